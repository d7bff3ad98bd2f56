"""Nodes and agents over real connections, in one process."""

from __future__ import annotations

import asyncio
import itertools
import random
from pathlib import Path

import pytest
from tests.broker.networks import BRIEF, FAST, at, payloads, running, started, stopped
from tests.waiting import until

from tidings import Delivery
from tidings.broker import Address, Door, RootNode, RouterNode
from tidings.model import EnvironmentProblem
from tidings.network.agent import LARGEST, LARGEST_WHOLE, Agent, Refusal, connect
from tidings.network.agents.agent_link import AgentLink


@pytest.mark.parametrize("routers", [0, 1, 3])
def test_from_publisher_to_subscriber(tmp_path: Path, routers: int) -> None:
    async def work() -> None:
        network = await started(tmp_path, routers)
        last = network[1][-1] if routers else network[0]
        async with (
            connect(at(last), times=FAST) as reader,
            connect(at(last), times=FAST) as writer,
            reader.subscribe("price > 90") as dear,
            reader.subscribe("price > 50 AND symbol = 'SNE'") as ours,
        ):
            for price in (10, 60, 95, 99):
                note = {"symbol": "SNE", "price": price}
                await writer.publish(note, str(price).encode())
            assert await payloads(dear, 2) == [b"95", b"99"]
            assert await payloads(ours, 3) == [b"60", b"95", b"99"]
        await stopped(network)

    running(work)


def test_many_at_once(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 1)
        async with (
            connect(at(network[1][0]), times=FAST) as agent,
            agent.subscribe("n >= 0") as everything,
        ):
            done = [agent.publish_soon({"n": n}, str(n).encode()) for n in range(3000)]
            assert await payloads(everything, 3000) == [b"%d" % n for n in range(3000)]
            await asyncio.gather(*done)
        await stopped(network)

    running(work)


def test_who_reads_late_gets_everything(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 1)
        async with (
            connect(at(network[1][0]), times=FAST) as agent,
            agent.subscribe("n >= 0", most=50) as late,
        ):
            await asyncio.gather(*(agent.publish_soon({"n": n}, b"%d" % n) for n in range(500)))
            await until(lambda: len(late._machine.inbox) >= 50)
            assert len(late._machine.inbox) == 50
            found = await payloads(late, 500)
            assert sorted(map(int, found)) == [*range(500)]
        await stopped(network)

    running(work)


def test_what_is_refused(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 1, tokens={"secret": "*", "bobs": "bob"})
        router = network[1][0]
        for token, name in (("", None), ("wrong", None), ("bobs", "ana")):
            with pytest.raises(Refusal, match="token"):
                async with connect(at(network[0]), token=token, name=name):
                    pass
        async with connect(at(network[0]), token="bobs", name="bob", times=FAST) as agent:
            with pytest.raises(Refusal, match="expected"):
                async with agent.subscribe("price >"):
                    pass
            agent._publisher.publish(b"[1", b"", agent._now)
        assert "<upstream>" not in router.links
        await stopped(network)

    running(work)


def test_a_filter_that_can_never_match_gets_a_word_through_routers(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 2)
        async with connect(at(network[1][-1]), times=FAST) as agent:
            never, all_ = agent.subscribe("n > 5 AND n < 3"), agent.subscribe("n >= 0")
            async with never, all_:
                assert never.never
                assert never.note.endswith("no value of n is both > 5 and < 3")
                assert (all_.note, all_.never) == ("", False)
                await agent.publish({"n": 4}, b"4")
                assert await payloads(all_, 1) == [b"4"]
                assert await never.next(timeout=0) is None
        await stopped(network)

    running(work)


def test_a_root_that_is_started_again(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 1)
        root, (router,) = network
        port = root.port
        async with connect(at(router), times=FAST) as agent, agent.subscribe("n >= 0") as told:
            await agent.publish({"n": 1}, b"1")
            assert await payloads(told, 1) == [b"1"]
            await root.stop()
            waiting = agent.publish_soon({"n": 2}, b"2")
            door = Door(Address("127.0.0.1", port))
            again = RootNode("root", tmp_path / "journal.db", door, times=FAST)
            await again.start()
            await waiting
            assert await payloads(told, 1) == [b"2"]
            await agent.publish({"n": 3}, b"3")
            assert await payloads(told, 1) == [b"3"]
        await stopped((again, [router]))

    running(work)


def test_a_router_that_is_started_again(tmp_path: Path) -> None:
    async def work() -> None:
        root, (router,) = await started(tmp_path, 1)
        port = router.port
        async with (
            connect(at(router), times=FAST) as agent,
            connect(at(root), times=FAST) as writer,
            agent.subscribe("n >= 0") as told,
        ):
            await writer.publish({"n": 1}, b"1")
            assert await payloads(told, 1) == [b"1"]
            await router.stop()
            await writer.publish({"n": 2}, b"2")
            again = RouterNode("r0", Address("127.0.0.1", root.port),
                               Door(Address("127.0.0.1", port)), times=FAST)  # fmt: skip
            await again.start()
            await writer.publish({"n": 3}, b"3")
            assert sorted(await payloads(told, 2)) == [b"2", b"3"]
        await stopped((root, [again]))

    running(work)


def test_a_router_that_is_away_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries, connect_link = itertools.count(), AgentLink._connect
    tried = next(tries)

    async def count_and_connect(self: AgentLink) -> None:
        nonlocal tried
        tried = next(tries)
        await connect_link(self)

    monkeypatch.setattr(AgentLink, "_connect", count_and_connect)

    async def work() -> None:
        root, (router,) = await started(tmp_path, 1)
        port = router.port
        async with connect(at(router), times=FAST) as agent, agent.subscribe("n >= 0") as told:
            await router.stop()
            waiting, before = agent.publish_soon({"n": 2}, b"2"), tried
            await until(lambda: tried > before + 1)  # more than one try to connect is in vain
            above, door = Address("127.0.0.1", root.port), Door(Address("127.0.0.1", port))
            again = RouterNode("r0", above, door, times=FAST)
            await again.start()
            await waiting
            assert await payloads(told, 1) == [b"2"]
            with pytest.raises(Refusal, match=r"found attributes of 20,000,\d\d\d bytes"):
                await agent.publish({"n": "x" * 20_000_000})
        await stopped((root, [again]))

    running(work)


def test_a_journal_has_one_rendezvous_point(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 0)
        with pytest.raises(EnvironmentProblem, match="another rendezvous point is using the"):
            RootNode("other", tmp_path / "journal.db", Door())
        await stopped(network)
        again = await started(tmp_path, 0)
        await stopped(again)

    running(work)


def test_agents_that_leave(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        root, (router,) = network

        async def one(agent: Agent) -> None:
            async with agent.subscribe("n > 3"):
                assert len(router.machine.graph)

        async with connect(at(router), times=BRIEF) as agent:
            await one(agent)
        await until(lambda: not len(router.machine.graph) and not len(root.machine.graph))
        await stopped(network)

    running(work)


def test_refused_among_others(tmp_path: Path) -> None:
    """Each publication is told its own fate, whatever is before and behind it."""

    async def work() -> None:
        network = await started(tmp_path, 1)
        async with (
            connect(at(network[1][0]), times=FAST) as agent,
            agent.subscribe("n >= 0") as told,
        ):
            contents = [b'{"n": 1}', b"[]", b'{"n": 2}', b"{", b"", b'{"n": 3}']
            waiting = [agent.publish_content(one, one) for one in contents]
            ended = await asyncio.gather(*waiting, return_exceptions=True)
            assert [isinstance(one, Refusal) for one in ended] == [False, True] * 2 + [True, False]
            assert await payloads(told, 3) == [contents[0], contents[2], contents[5]]
            for bad in ("text", None, 5):
                with pytest.raises(TypeError, match="expected bytes"):
                    agent.publish_soon({"n": 1}, bad)  # type: ignore[arg-type]
            await agent.publish({"n": 4})
        await stopped(network)

    running(work)


def test_notifications_that_fit_into_no_frame(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 1)
        async with (
            connect(at(network[1][0]), times=FAST) as agent,
            agent.subscribe("n >= 0") as told,
        ):
            largest = LARGEST - len(b'{"n":1}')
            with pytest.raises(Refusal, match="found a payload of 1,073,741,825 bytes"):
                await agent.publish({"n": 1}, bytes(LARGEST_WHOLE + 1))
            assert await agent.publish({"n": 2}, b"y" * largest) == 1
            (found,) = await payloads(told, 1)
            assert found == b"y" * largest
            large = random.Random(1).randbytes(largest + 1)
            assert await agent.publish({"n": 3}, large, subject="large") == 5  # in four pieces
            whole = await told.next(30)
            assert isinstance(whole, Delivery)
            assert whole.payload == large
            assert (whole.subject, whole.attributes) == ("large", {"n": 3})
        await stopped(network)

    running(work)
