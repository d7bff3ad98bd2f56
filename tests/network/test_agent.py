"""What an agent tells its application besides payloads: which filters match, interruptions, the
state of its link, and another router when one is gone. Against filters evaluated one by one."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from tests.broker.networks import FAST, at, running, started, stopped
from tests.waiting import until

from tidings import Delivery, EnvironmentProblem, Interrupted, Resumed, connect, parse
from tidings.broker import Address, Door, RouterNode
from tidings.network import parse_addresses


def test_addresses() -> None:
    several = parse_addresses("tidings://one:1,two/c")
    assert [(one.host, one.port, one.channel) for one in several] == [
        ("one", 1, "c"), ("two", 7400, "c")
    ]  # fmt: skip
    assert parse_addresses(["tidings://one:1/c", "tidings://two/c"]) == several
    assert parse_addresses("tidings+tls://[::1]:5,other:6")[0].host == "::1"
    with pytest.raises(EnvironmentProblem, match="expected at least one"):
        parse_addresses([])
    with pytest.raises(EnvironmentProblem, match="expected addresses of one channel"):
        parse_addresses(["tidings://one", "tidings+tls://two"])
    with pytest.raises(EnvironmentProblem, match="expected one such as"):
        parse_addresses("tidings://one,,two")


def test_which_filters_match(tmp_path: Path, seed: int) -> None:
    """Overlapping filters of one agent, beside those of another: each delivery names all filters of
    its agent that match."""
    chance = random.Random(seed)

    def draw() -> str:
        low = chance.randrange(40)
        return f"n BETWEEN {low} AND {low + chance.choice((0, 5, 20))}"

    async def work() -> None:
        network = await started(tmp_path, 2)
        mine, others = {draw() for _ in range(12)} | {"n >= 0"}, {draw() for _ in range(12)}
        async with (
            connect(at(network[1][-1]), times=FAST) as agent,
            connect(at(network[1][0]), times=FAST) as other,
        ):
            told = {text: agent.subscribe(text) for text in sorted(mine)}
            rest = [other.subscribe(text) for text in sorted(others)]
            for one in (*told.values(), *rest):
                await one.__aenter__()
            for n in range(60):
                await other.publish({"n": n}, b"%d" % n)
            for text, one in told.items():
                due = [n for n in range(60) if parse(text).matches({"n": n})]
                for n in due:
                    found = await one.next(30)
                    assert isinstance(found, Delivery)
                    assert found.payload == b"%d" % n
                    expected = {t for t in mine if parse(t).matches({"n": n})}
                    assert set(found.matched) == expected, (text, n)
        await stopped(network)

    running(work)


def test_another_router_when_one_is_gone(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 1)
        root, (first,) = network
        second = RouterNode("second", Address("127.0.0.1", root.port), Door(), times=FAST)
        await second.start()
        addresses = f"{at(first)},127.0.0.1:{second.port}"
        async with (
            connect(addresses, times=FAST) as agent,
            connect(at(root), times=FAST) as writer,
            agent.subscribe("n >= 0") as told,
        ):
            state = agent.state
            assert (state.linked, state.router) == (True, f"127.0.0.1:{first.port}")
            await writer.publish({"n": 1}, b"1")
            assert isinstance(await told.next(30), Delivery)
            await first.stop()
            gone = await told.next(30)
            assert isinstance(gone, Interrupted)
            assert gone.reason == "the router stops"
            await writer.publish({"n": 2}, b"2")
            rest = [await told.next(30), await told.next(30)]
            assert {type(one) for one in rest} == {Delivery, Resumed}
            state = agent.state
            assert (state.linked, state.router) == (True, f"127.0.0.1:{second.port}")
            await second.stop()
            await until(lambda: not agent.state.linked)
            assert agent.state.reason
            assert agent.state.since >= state.since
        await root.stop()

    running(work)


def test_no_router_at_all(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 0)
        port = network[0].port
        await stopped(network)
        with pytest.raises(EnvironmentProblem, match=f"can't connect to 127.0.0.1:{port}"):
            async with connect(f"tidings://127.0.0.1:{port},127.0.0.1:{port + 1}"):
                pass

    running(work)


def test_a_rendezvous_point_that_is_not_heard(tmp_path: Path) -> None:
    """The router is there; what is above it is not."""

    async def work() -> None:
        network = await started(tmp_path, 1)
        root, (edge,) = network
        async with connect(at(edge), times=FAST) as agent, agent.subscribe("n >= 0") as told:
            await root.stop()
            found = await told.next(30)
            assert found == Interrupted("the rendezvous point is not heard")
            assert agent.state.linked
        await edge.stop()
        await asyncio.sleep(0)

    running(work)
