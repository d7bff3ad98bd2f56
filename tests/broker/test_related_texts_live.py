"""Related subscriptions in a folder of an earlier release, which gave one node to all texts of an
application that mean the same."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import msgspec
import pytest
from tests.broker.networks import FAST, at, running
from tests.channel.related_world import SETTINGS
from tests.preprocessing.installed import install
from tests.waiting import PATIENCE

from tidings.broker import Door, RootNode
from tidings.channel.interests.own_texts import OwnTexts
from tidings.network import Agent, connect
from tidings.preprocessing import KindDefinition
from tidings.relations import Reading, RelationSettings
from tidings.routing.clients.subscriber import Delivery
from tidings.routing.protocol import Break

APART = KindDefinition("application", entry_point="portfolios", version="1")
TOGETHER = msgspec.structs.replace(APART, settings={"renamed": {"SAPG": "SAP"}})
OTHERS = msgspec.structs.replace(APART, settings={"renamed": {"SAPG": "SAP", "BMWG": "BMW"}})
RELATIONS = RelationSettings(SETTINGS.semantic, Reading(place="security"))


@pytest.mark.parametrize("first", ["SAP", "SAPG"])
def test_nothing_is_missed(first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by the name whose text the related node has, nor by the other one; not even in a
    revision that does not tell the texts apart."""
    monkeypatch.syspath_prepend(str(install(tmp_path / "site")))
    monkeypatch.delitem(sys.modules, "kinds_for_tests", raising=False)
    texts = sorted(("SAP", "SAPG"), key=lambda text: text != first)

    async def begin(kind: KindDefinition) -> RootNode:
        root = RootNode("root", tmp_path / "j", Door(), kind=kind, times=FAST, relations=RELATIONS)
        await root.start()
        return root

    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            enter = stack.enter_async_context

            async def reader(root: RootNode) -> Agent:
                return await enter(connect(at(root), times=FAST, name="reader"))

            with monkeypatch.context() as earlier:  # filters decide alone
                earlier.setattr(OwnTexts, "select", lambda _, numbers, __: [*numbers])
                earlier.setattr(OwnTexts, "select_like", lambda _, numbers, __: [*numbers])
                root = await begin(TOGETHER)
                agent = await reader(root)
                exact = await enter(agent.subscribe("SAP", "application"))
                for text in texts:
                    name = f"of {text}"
                    async with agent.subscribe(text, "application", related=0.7, name=name):
                        pass
                await agent.publish({"name": "SAP"}, b"1")
                await agent.close()
                await root.stop()

            root = await begin(TOGETHER)
            for number in range(1, 5):
                assert not root._interests.refused
                agent = await reader(root)
                for text in texts:
                    name = f"of {text}"
                    told = agent.subscribe(text, "application", related=0.7, name=name)
                    async with told:
                        found = await told.next(PATIENCE)
                        assert isinstance(found, Delivery)
                        assert found.payload == b"%d" % number
                        await told.confirm(found)
                await agent.publish({"name": "SAP"}, b"%d" % (number + 1))
                if number == 1:
                    other = agent.subscribe("SAPG", "application")
                    async with other:
                        assert other.node != exact.node
                await agent.close()
                if number == 2:
                    await root.revise(OTHERS)
                elif number == 3:
                    await root.stop()
                    root = await begin(OTHERS)
            await root.revise(APART)
            agent = await reader(root)
            told = await enter(
                agent.subscribe(texts[1], "application", related=0.7, name=f"of {texts[1]}")
            )
            assert isinstance(await told.next(PATIENCE), Break)
            await agent.close()
            await root.stop()

    running(work)
