"""Filters that a preprocessor places for agents that subscribe: over real connections, and as
processes, with the processor time of the rendezvous point."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from pathlib import Path

import pytest
from tests.broker.networks import FAST, at, payloads, running, started, stopped
from tests.broker.processes import Process, tell
from tests.waiting import until

from tidings.broker import Door, PreprocessorNode
from tidings.filters import parse
from tidings.network import Agent, Refusal, connect
from tidings.snapshots import Snapshot
from tidings.store import ChangeLog


def test_an_agent_lets_a_preprocessor_place_its_filters(tmp_path: Path, seed: int) -> None:
    """Every agent gets what matches. Equal filters share a node, whoever placed them; filters that
    a preprocessor can't place, and bad ones, are placed or refused as ever."""
    chance = random.Random(seed)
    texts = [f"n > {low} AND n <= {low + chance.randrange(1, 9)}" for low in range(12)]
    texts += ["n > 3 AND n < 3", "length(word) > 1", "n > 5"]

    async def work() -> None:
        network = root, (router,) = await started(tmp_path, 1)
        async with (
            connect(at(root), tag="local", times=FAST) as tagger,
            connect(at(router), times=FAST) as plain,
            connect(at(router), tag="preprocessor", times=FAST) as agent,
        ):
            node = PreprocessorNode("pre", tagger, Door(), times=FAST)
            await node.start()
            assert await agent.preprocessors.wait_for_any(60)
            async with agent.subscribe("n > 100"):
                await until(lambda: node._proposing._view is not None)
            async with contextlib.AsyncExitStack() as stack:
                stack.push_async_callback(node.stop)
                told = {}
                for at_, text in enumerate(texts):
                    who: Agent = plain if at_ % 5 == 4 else agent
                    told[text] = await stack.enter_async_context(who.subscribe(text, timeout=60))
                same = await stack.enter_async_context(plain.subscribe("5 < n"))
                assert same.node == told["n > 5"].node
                assert told["n > 3 AND n < 3"].never
                assert node._proposing.suggested >= 5
                expected: dict[str, list[bytes]] = {text: [] for text in texts}
                for number in range(60):
                    event = {"n": number % 20, "word": "ab" * (number % 2)}
                    payload = b"%d" % number
                    await agent.publish(event, payload)
                    for text, due in expected.items():
                        if parse(text).matches(event):
                            due.append(payload)
                assert not expected.pop("n > 3 AND n < 3")
                for text, due in expected.items():
                    assert await payloads(told[text], len(due)) == due, text
                with pytest.raises(Refusal, match="found the end of the filter"):
                    async with agent.subscribe("n >"):
                        pass
                await node.stop()  # now the rendezvous point places all filters
                late = await stack.enter_async_context(agent.subscribe("n > 17", timeout=60))
                await agent.publish({"n": 18}, b"late")
                assert await payloads(late, 1) == [b"late"]
        await stopped(network)

    running(work)


ROOT = """
name = "root"
listen = "127.0.0.1:0"
journal = "journal.db"
"""
PLACED = 200


def _cpu(process: Process) -> float:
    """Seconds of processor time of a process so far."""
    fields = Path(f"/proc/{process._process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _filter(chance: random.Random) -> str:
    low = chance.randrange(1000)
    return (
        f"region = 'r{chance.randrange(50)}' AND price > {low} AND "
        f"price < {low + chance.randrange(1, 1000)} AND qty >= {chance.randrange(100)} AND "
        f"symbol LIKE 'S{chance.randrange(1000)}%'"
    )


@pytest.mark.bench
def test_the_processor_time_of_the_rendezvous_point(tmp_path: Path, seed: int) -> None:
    """With 30,000 filters, alternately: new filters that the rendezvous point places, and filters
    that a preprocessor places. Publications are tagged elsewhere meanwhile."""
    chance = random.Random(seed)
    log = ChangeLog(tmp_path / "journal.db")
    log.adopt(Snapshot.build({f"b{n}": _filter(chance) for n in range(30_000)}))
    root = Process(tmp_path, "root", ROOT)
    address = f"tidings://127.0.0.1:{root.port}"

    async def work() -> dict[str, float]:
        spent = {"root": 0.0, "preprocessor": 0.0}
        async with (
            connect(address, tag="local", timeout=60) as tagger,
            connect(address, timeout=60) as plain,
            connect(address, tag="preprocessor", timeout=60) as agent,
        ):
            node = PreprocessorNode("pre", tagger, Door())
            await node.start()
            assert await agent.preprocessors.wait_for_any(120)
            await _place(agent, [_filter(chance)])
            await until(lambda: node._proposing._view is not None)
            await _place(plain, [_filter(chance) for _ in range(50)])
            await asyncio.sleep(2)
            await _place(agent, [_filter(chance) for _ in range(50)])
            for _ in range(3):
                for who, one in ((plain, "root"), (agent, "preprocessor")):
                    await asyncio.sleep(3)  # the preprocessor catches up
                    texts = [_filter(chance) for _ in range(PLACED)]
                    begun = _cpu(root)
                    await _place(who, texts)
                    spent[one] += _cpu(root) - begun
            assert node._proposing.suggested > 2 * PLACED
            await node.stop()
        return spent

    async def _place(agent: Agent, texts: list[str]) -> None:
        """Subscribe to filters, twenty at a time, and keep the subscriptions."""
        for first in range(0, len(texts), 20):
            some = [agent.subscribe(text) for text in texts[first : first + 20]]
            await asyncio.gather(*(one.__aenter__() for one in some))

    try:
        found = asyncio.run(work())
        each = {one: 1e6 * seconds / (3 * PLACED) for one, seconds in found.items()}
        tell(f"processor time of the rendezvous point for each new filter: {each['root']:.0f} us "
             f"alone, {each['preprocessor']:.0f} us with a preprocessor")  # fmt: skip
        assert each["preprocessor"] < each["root"]
    finally:
        root.stop()
