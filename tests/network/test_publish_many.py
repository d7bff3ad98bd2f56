"""Many publications of an agent with one answer, over real connections: all arrive, once and in
order; refusals are reported as for single ones."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.broker.networks import FAST, at, payloads, running, started, stopped

from tidings.network import connect
from tidings.network.agent import Refusal
from tidings.network.agents import publishing as module


@pytest.mark.parametrize("routers", [0, 2])
def test_many_arrive_in_order(tmp_path: Path, routers: int) -> None:
    async def work() -> None:
        network = await started(tmp_path, routers)
        root, chain = network
        node = chain[-1] if chain else root
        async with (
            connect(at(node), times=FAST) as agent,
            connect(at(node), times=FAST) as other,
            other.subscribe("n >= 0") as told,
        ):
            pairs = (({"n": n, "word": "a" * (n % 7)}, b"%d" % n) for n in range(12_000))
            single = agent.publish_soon({"n": -5}, b"before")
            many = asyncio.create_task(agent.publish_many(pairs))
            assert await payloads(told, 12_000) == [b"%d" % n for n in range(12_000)]
            assert await many == 12_000
            assert await single == 1
            assert await agent.publish({"n": 1}, b"after") == 12_002
            assert await agent.publish_many([]) == 0
        await stopped(network)

    running(work)


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 50)

    async def work() -> None:
        network = await started(tmp_path, 0)
        node = network[0]
        async with connect(at(node), times=FAST) as agent, agent.subscribe("n >= 0") as told:
            large = {"n": 1, "text": "x" * (2 << 20)}  # attributes beyond the limit content_bytes
            given: list[tuple[dict[str, object], bytes]]
            given = [({"n": n}, b"%d" % n) for n in range(300)]
            given[120] = large, b""
            with pytest.raises(Refusal, match="notification 121: found 2,097,"):
                await agent.publish_many(given)
            found = await payloads(told, 150 - 1)
            assert found[:120] == [b"%d" % n for n in range(120)]
            given[120] = {"n": 1}, b"x" * 20_000_000
            with pytest.raises(Refusal, match="notification 121: found a notification of 20,000,"):
                await agent.publish_many(given)
        await stopped(network)

    running(work)


def test_an_agent_that_is_closed(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 0)
        node = network[0]
        async with connect(at(node), times=FAST) as agent:
            await agent.publish({"n": 1})
            await stopped(network)
            many = asyncio.create_task(agent.publish_many([({"n": 1}, b"")] * 20))
            await asyncio.sleep(0)
        with pytest.raises(Refusal, match="the agent was closed before"):
            await many

    running(work)
