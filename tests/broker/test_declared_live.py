"""The declaration of a channel that has a rendezvous point: its file adds attributes, commands
change it while it runs, and it outlives a restart. Nodes keep their numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.broker.networks import BRIEF, payloads, running
from tests.broker.test_commands_live import apart

from tidings import Attributes, Refusal
from tidings.broker import Door, RootNode
from tidings.network.agent import connect
from tidings.store import ChangeLog
from tidings.store.declared import DeclarationError

WHOLE = Attributes({"n": "integer"})
MORE = Attributes({"n": "integer", "place": "string"})


def root_of(folder: Path, attributes: Attributes | None = None) -> RootNode:
    return RootNode("root", folder, Door(), attributes=attributes, times=BRIEF)


def test_a_running_rendezvous_point_declares_another_attribute(tmp_path: Path) -> None:
    folder = tmp_path / "channel"
    log = ChangeLog(folder, WHOLE)
    log.put("before", "n > 1")

    async def work() -> None:
        root = root_of(folder)  # its file declares nothing: the channel does
        await root.start()
        async with (
            connect(f"tidings://127.0.0.1:{root.port}", times=BRIEF) as agent,
            agent.subscribe("n >= 2") as told,
        ):
            assert [*root.machine.graph] == [1]  # as n is an integer
            with pytest.raises(Refusal, match="there is no attribute 'place'"):
                async with agent.subscribe("place = 'Cork'"):
                    pass
            with pytest.raises(DeclarationError, match=r"'n' is integer and would become double"):
                await apart(log.declare, Attributes({"n": "double"}))
            version = await apart(log.declare, MORE)
            assert version == log.version == log.last_declaration.version
            async with agent.subscribe("place = 'Cork'") as places:
                await agent.publish({"n": 7, "place": "Cork"}, b"7")
                assert await payloads(told, 1) == [b"7"]
                assert await payloads(places, 1) == [b"7"]
                assert {*root.machine.graph} == {1, max(root.machine.graph)}
        await root.stop()

    running(work)
    assert log.last_declaration.declaration.attributes is not None
    assert {*log.last_declaration.declaration.attributes.tree} == {"subject", "n", "place"}

    async def again() -> None:
        root = root_of(folder, Attributes({"n": "integer", "day": "date"}))
        await root.start()
        declared = root.declaration.kind.attributes
        assert declared is not None
        assert {*declared.tree} == {"subject", "n", "place", "day"}
        assert 1 in root.machine.graph
        await root.stop()

    running(again)
    with pytest.raises(DeclarationError, match=r"'n' is integer and would become string; 1 filter"):
        root_of(folder, Attributes({"n": "string"}))
    assert [*(log.last_declaration.declaration.types or {})] != []
