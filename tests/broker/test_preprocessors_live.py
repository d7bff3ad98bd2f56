"""Agents that tag, preprocessors that tag for them, headers and nodes by number, over real
connections: everyone gets exactly what `Filter.matches` says, once."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.broker.networks import FAST, at, payloads, running, started, stopped
from tests.broker.processes import Process
from tests.forking import Forked
from tests.waiting import PATIENCE, until

from tidings.broker import Address, Door, PreprocessorNode, RouterNode
from tidings.broker.admission.permissions import TokenRights, Tokens
from tidings.filters import parse
from tidings.network import Agent, Outdated, Refusal, connect
from tidings.network.agent import Tagging
from tidings.network.agents import publishing
from tidings.routing.clients.subscriber import Delivery
from tidings.routing.protocol import Limits, pack_tag

TEXTS = ["n > 3", "n > 6", "n <= 5 AND word = 'a'", "word LIKE 'a%'", "length(word) > 1",
         "n IN (1, 4, 7)", "word = 'b' OR n = 0", "n > 3 AND n < 7"]  # fmt: skip


def an_event(chance: random.Random) -> dict[str, Any]:
    return {"n": chance.randrange(9), "word": chance.choice(["a", "ab", "b"])}


async def catch_up(agent: Agent, version: int) -> None:
    """Wait until an agent that tags by itself has seen a version."""
    await until(lambda: agent.view.version >= version)


@pytest.mark.parametrize("tag", ["local", "preprocessor"])
@pytest.mark.parametrize("routers", [0, 2])
def test_everyone_gets_what_matches(tag: Tagging, routers: int, tmp_path: Path, seed: int) -> None:
    """While filters come, and after the preprocessor is gone; many at a time and one by one."""

    async def work() -> None:
        chance = random.Random(seed)
        network = root, chain = await started(tmp_path, routers)
        last = chain[-1] if chain else root
        async with (
            connect(at(root), tag="local", times=FAST) as tagger,
            connect(at(last), times=FAST) as reader,
        ):
            node = PreprocessorNode("pre", tagger, Door(), times=FAST)
            await node.start()
            view = tagger.view
            async with connect(at(last), tag=tag, times=FAST) as writer:
                if tag == "preprocessor":
                    assert await writer._preprocessors.wait_for_any(PATIENCE)
                expected: dict[str, list[bytes]] = {}
                told = {}
                async with contextlib.AsyncExitStack() as stack:
                    for step, text in enumerate(TEXTS):
                        told[text] = await stack.enter_async_context(reader.subscribe(text))
                        expected[text] = []
                        if step == 5:
                            await node.stop()
                        many = [(an_event(chance), b"%d %d" % (step, at)) for at in range(60)]
                        for event, payload in many[:10]:
                            await writer.publish(event, payload)
                        assert await writer.publish_many(many[10:]) == 50
                        for event, payload in many:
                            for known, due in expected.items():
                                if parse(known).matches(event):
                                    due.append(payload)
                    for text, due in expected.items():
                        assert await payloads(told[text], len(due)) == due
        assert view._is_closed  # changes that are being applied do not delay the end
        if tag == "preprocessor":
            assert node.tagged == writer._preprocessors.asked > 200
        await stopped(network)

    running(work)


def test_fast_notifications_of_an_agent_that_tags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have tags, and the rendezvous point corrects these tags instead of matching."""

    async def work() -> None:
        network = root, (edge,) = await started(tmp_path, 1)
        async with (
            connect(at(edge), tag="local", times=FAST) as writer,
            connect(at(root), times=FAST) as reader,
            reader.subscribe("n > 3") as told,
        ):
            await catch_up(writer, told.node)
            view = writer.view
            async with reader.subscribe("n > 6") as newer:
                monkeypatch.setattr(root.machine.tagger, "_ask_filters", None)
                for stale in (True, False):
                    if not stale:
                        await catch_up(writer, newer.node)
                        view = writer.view
                    monkeypatch.setattr(writer._following, "tag", view.tag)
                    writer.publish_fast({"n": 5}, b"5")
                    assert await writer.publish({"n": 8}, b"8", fast=True) == 0
                    assert await payloads(told, 2) == [b"5", b"8"]
                    assert await payloads(newer, 1) == [b"8"]
        monkeypatch.undo()
        await stopped(network)

    running(work)


def test_tags_of_strangers_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens: Tokens = {
        "writes": TokenRights("writer", frozenset({"publish", "subscribe"})),
        "tags": TokenRights("tagger", frozenset({"publish", "subscribe", "preprocess"})),
        "routes": TokenRights("edge", frozenset({"route", "publish", "subscribe", "preprocess"})),
        "eu": TokenRights("berlin", within="region = 'EU'"),
    }

    async def work() -> None:
        network = root, chain = await started(tmp_path, 0, tokens=tokens)
        above = Address("127.0.0.1", root.port)
        edge = RouterNode("edge", above, Door(tokens=tokens), times=FAST, token="routes")
        await edge.start()
        chain.append(edge)
        for place in (at(root), at(edge)):
            async with (
                connect(place, name="writer", token="writes", times=FAST) as writer,
                connect(place, name="tagger", token="tags", times=FAST, tag="local") as tagger,
                connect(place, name="berlin", token="eu", times=FAST) as berlin,
                writer.subscribe("n > 3") as told,
                writer.subscribe("word = 'z'") as other,
            ):
                history = root.machine.history
                wrong = pack_tag(history.life, history.version, (other.node,))
                for who, payload in ((writer, b"ours"), (tagger, b"its own")):
                    await who.publish_content(b'{"n": 5}', payload, tag=wrong)
                    many = [who.publish_content(b'{"n": 5}', payload, tag=wrong) for _ in range(20)]
                    await asyncio.gather(*many)
                assert await payloads(told, 21) == [b"ours"] * 21
                assert await payloads(other, 21) == [b"its own"] * 21
                for who in (writer, tagger):  # fast ones are treated alike
                    monkeypatch.setattr(who._following, "tag", lambda _: wrong)
                    monkeypatch.setattr(who, "_tagging", "local")
                    who.publish_fast({"n": 5}, who.name.encode())
                    monkeypatch.undo()
                assert await payloads(told, 1) == [b"writer"]
                assert await payloads(other, 1) == [b"tagger"]
                await catch_up(tagger, history.version)
                header = await tagger.header({"n": 5})
                assert await tagger.publish(payload=b"secret", header=header)
                secret = await told.next()
                assert isinstance(secret, Delivery)
                assert (secret.payload, secret.attributes) == (b"secret", None)
                with pytest.raises(Refusal, match="without attributes: 'writer' may not prepro"):
                    await writer.publish(payload=b"secret", header=header)
                with pytest.raises(Refusal, match="may not preprocess here"):
                    async with connect(
                        place, name="writer", token="writes", times=FAST, tag="local"
                    ):
                        pass
                with pytest.raises(Refusal, match="expected a node of this channel whose filter"):
                    async with berlin.subscribe(node=told.node):
                        pass
        await stopped(network)

    running(work)


def test_headers_that_are_too_old(tmp_path: Path) -> None:
    async def work() -> None:
        network = root, _ = await started(tmp_path, 1, limits=Limits(tag_changes=3))
        async with (
            connect(at(root), times=FAST, tag="local") as agent,
            agent.subscribe("n > 3") as told,
            contextlib.AsyncExitStack() as stack,
        ):
            await catch_up(agent, root.machine.history.version)
            header = await agent.header({"n": 5})
            await agent.publish(payload=b"a", header=header)
            for at_ in range(5):
                await stack.enter_async_context(agent.subscribe(f"word = '{at_}'"))
            with pytest.raises(
                Outdated, match="the nodes changed more than 3 times after that version"
            ) as problem:
                await agent.publish(payload=b"b", header=header)
            assert problem.value.version == root.machine.history.version
            await agent.publish({"n": 5}, b"c", header=header)  # with attributes it is corrected
            await catch_up(agent, problem.value.version)
            await agent.publish(payload=b"d", header=await agent.header({"n": 5}))
            assert await payloads(told, 3) == [b"a", b"c", b"d"]
            async with agent.subscribe(node=told.node) as same:
                await agent.publish({"n": 4}, b"e")
                assert await payloads(same, 1) == [b"e"]
            with pytest.raises(Refusal, match="found the node '12345', expected a node of this"):
                async with agent.subscribe(node=12345):
                    pass
        await stopped(network)

    running(work)


# -- processes -------------------------------------------------------------------------------------


class Preprocessor:
    """`tidings preprocessor` as a process."""

    def __init__(
        self, folder: Path, name: str, port: int, channel: str = "", more: Sequence[str] = ()
    ) -> None:
        self._errors = (folder / f"{name}.log").open("a")
        self.process = Forked(
            [sys.executable, "-m", "tidings", "preprocessor",
             f"tidings://127.0.0.1:{port}/{channel}", *more],
            stdout=subprocess.PIPE, stderr=self._errors, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("the preprocessor listens on "), line
        self.port = int(line.rsplit(":", 1)[1])

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
        self._errors.close()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(120)
        self.process.communicate()
        self._errors.close()
        return code


def kill(process: Process) -> None:
    process.signal(signal.SIGKILL)
    process.stop()


def test_chunks_are_tagged_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Three at a time, whose answers come in any order; notifications stay in order, and one that
    is refused ends the call as before."""
    monkeypatch.setattr(publishing, "PIECE", 20)

    async def work() -> None:
        chance = random.Random(seed)
        network = root, _ = await started(tmp_path, 0)
        async with (
            connect(at(root), tag="local", times=FAST) as tagger,
            connect(at(root), tag="preprocessor", times=FAST) as writer,
            writer.subscribe("n >= 0") as told,
        ):
            node = PreprocessorNode("pre", tagger, Door(), times=FAST)
            await node.start()
            assert await writer.preprocessors.wait_for_any(PATIENCE)
            open_, most, tag = 0, 0, writer.preprocessors.tag

            async def slowly(contents: Sequence[bytes]) -> list[bytes]:
                nonlocal open_, most
                open_ += 1
                most = max(most, open_)
                try:
                    await asyncio.sleep(chance.random() * 0.05)
                    return await tag(contents)
                finally:
                    open_ -= 1

            monkeypatch.setattr(writer.preprocessors, "tag", slowly)
            many = [({"n": number}, b"%d" % number) for number in range(210)]
            assert await writer.publish_many(many) == 210
            assert most == publishing.AHEAD
            assert await payloads(told, 210) == [payload for _, payload in many]
            assert node.tagged == writer.preprocessors.asked == 210
            wrong: list[Any] = [*many[:90], "no pair", *many]
            with pytest.raises(Refusal, match="notification 91: "):
                await writer.publish_many(wrong)
            assert await payloads(told, 90) == [payload for _, payload in many[:90]]
            await node.stop()
        await stopped(network)

    running(work)
