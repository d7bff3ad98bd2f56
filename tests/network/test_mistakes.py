"""Common mistakes with an agent, each with its error message."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.broker.networks import FAST, at, payloads, running, started, stopped

from tidings import Refusal, connect, connect_blocking
from tidings.broker.admission.permissions import TokenRights


def test_a_closed_agent(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 0)
        async with connect(at(network[0]), times=FAST) as agent:
            other = agent.channel("other")
        for one in (agent, other):
            with pytest.raises(Refusal, match="the agent is closed"):
                await asyncio.wait_for(one.publish({"n": 1}), 5)
            with pytest.raises(Refusal, match="the agent is closed"):
                await asyncio.wait_for(one.publish_many([({"n": 1}, b"")]), 5)
            with pytest.raises(Refusal, match="the agent is closed"):
                one.publish_fast({"n": 1})
            with pytest.raises(Refusal, match="the agent is closed"):
                one.subscribe("n > 0")
        await stopped(network)

    running(work)


def test_what_users_write_by_mistake(tmp_path: Path) -> None:
    async def work() -> None:
        tokens: dict[str, str | TokenRights] = {"secret": "*"}
        network = await started(tmp_path, 0, tokens=tokens)
        address = at(network[0])
        with pytest.raises(Refusal, match="found a name of type int, expected a string"):
            async with connect(address, name=5):  # type: ignore[arg-type]
                pass
        with pytest.raises(Refusal, match="the token is not known here"):
            async with connect(address, token=None, times=FAST):
                pass
        async with connect(address, token="secret\n", times=FAST) as agent:
            wrong: list[Any] = [({"n": 1}, b"1"), {"n": 2}]
            with pytest.raises(Refusal, match="notification 2: found a notification of type dict"):
                await agent.publish_many(wrong)
            with pytest.raises(Refusal, match="the subscription may not be in force yet"):
                await anext(agent.subscribe("n > 0"))
            async with agent.subscribe({"n": [7]}, "eventbridge") as told:
                await agent.publish({"n": 7}, b"7")
                assert await payloads(told, 1) == [b"7"]
        await stopped(network)

    running(work)


def test_the_blocking_agent_has_what_the_other_has(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 0)
        address = at(network[0])

        def use() -> None:
            with connect_blocking(address, name="ana", tag="local", times=FAST) as agent:
                with agent.subscribe("n > 0", name="kept") as told:
                    assert told.node > 0
                    agent.publish({"n": 1}, b"1")
                    one = told.next(120)
                    assert one is not None
                    told.confirm_soon(one)  # type: ignore[arg-type]
                with pytest.raises(Refusal, match="notification 1: found a notification of type"):
                    agent.publish_many([5])  # type: ignore[list-item]

        await asyncio.to_thread(use)
        await stopped(network)

    running(work)
