"""What an agent tells its application besides payloads: which filters match, interruptions, the
state of its link, and another router when one is gone. Against filters evaluated one by one."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest
from tests.broker.networks import BRIEF, FAST, at, payloads, running, started, stopped
from tests.waiting import PATIENCE, until

from tidings import (
    Break,
    Delivery,
    EnvironmentProblem,
    Interrupted,
    Lost,
    Refusal,
    Resumed,
    Subscription,
    connect,
    parse,
)
from tidings.broker import Address, Door, RouterNode
from tidings.network import parse_addresses
from tidings.network.agent import LARGEST
from tidings.network.agents.publishing import fit_tag
from tidings.routing.protocol import Limits
from tidings.store.journal import journal, log_segments
from tidings.studies.host.ports import free_ports

NAMED = "named('one', n = 1) OR named('a', s = 'a') OR n = 2"


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
    for wrong, sentence in (
        ("tidings://one,,two", "found the address 'tidings://', expected one such as"),
        ("10.0.0.7:7400/fx", r"does not begin with tidings://.* such as 'tidings://10.0.0.7:7400/"),
        ("http://one:7400", r"does not begin with tidings://.* such as 'tidings://one:7400'"),
        ("", r"does not begin with tidings://.* such as 'tidings://127.0.0.1:7400'"),
        ("tidings://one:99999", r"\(port out of range 0-65535\), expected one such as"),
        ("tidings://one:port", r"\(port could not be cast .*\), expected one such as"),
        ("tidings://one:0", "found the address 'tidings://one:0', expected one such as"),
    ):
        with pytest.raises(EnvironmentProblem, match=sentence):
            parse_addresses(wrong)


def test_another_server_at_the_address() -> None:
    """A web server answers, or nobody does: the sentence says what was expected there."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async def work() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Refusal, match="found an HTTP server, expected a tidings router: check"):
            async with connect(f"tidings://127.0.0.1:{port}"):
                pass
        server.close()
        await server.wait_closed()
        with pytest.raises(EnvironmentProblem, match=r"can't connect.*; expected a router there"):
            async with connect(f"tidings://127.0.0.1:{port}"):
                pass

    asyncio.run(work())


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
                    found = await one.next(PATIENCE)
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
            assert isinstance(await told.next(PATIENCE), Delivery)
            await first.stop()
            gone = await told.next(PATIENCE)
            assert isinstance(gone, Interrupted)
            assert gone.reason == "the router stops"
            await writer.publish({"n": 2}, b"2")
            rest = [await told.next(PATIENCE), await told.next(30)]
            assert {type(one) for one in rest} == {Delivery, Resumed}
            state = agent.state
            assert (state.linked, state.router) == (True, f"127.0.0.1:{second.port}")
            await second.stop()
            await until(lambda: not agent.state.linked)
            assert agent.state.reason
            assert agent.state.since >= state.since
        await root.stop()

    running(work)


def test_no_router_at_all() -> None:
    async def work() -> None:
        port, other = free_ports(2)
        with pytest.raises(EnvironmentProblem, match=f"can't connect to 127.0.0.1:{port}"):
            async with connect(f"tidings://127.0.0.1:{port},127.0.0.1:{other}"):
                pass

    running(work)


def test_a_rendezvous_point_that_is_not_heard(tmp_path: Path) -> None:
    """The router is there; what is above it is not."""

    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        root, (edge,) = network
        async with connect(at(edge), times=BRIEF) as agent, agent.subscribe("n >= 0") as told:
            await root.stop()
            found = await told.next(PATIENCE)
            assert found == Interrupted("nothing was heard from the rendezvous point")
            assert agent.state.linked
        await edge.stop()
        await asyncio.sleep(0)

    running(work)


def test_attributes_subject_and_time(tmp_path: Path) -> None:
    """Live, and recovered after a while without a link; not if the publisher keeps them."""

    async def work() -> None:
        network = await started(tmp_path, 2)
        edge = network[1][-1]
        edge_port = edge.port
        began = time.time()
        async with (
            connect(at(edge), times=FAST) as agent,
            connect(at(network[0]), times=FAST) as writer,
            agent.subscribe("n >= 0") as told,
            agent.subscribe(NAMED) as named,
        ):
            await writer.publish({"n": 1, "s": "a"}, b"1", subject="first")
            await writer.publish({"n": 2}, b"2", share=False)
            first, second = await told.next(PATIENCE), await told.next(30)
            assert isinstance(first, Delivery)
            assert isinstance(second, Delivery)
            assert first.attributes == {"n": 1, "s": "a"}
            assert first.subject == "first"
            assert first.time is not None
            assert began - 1 <= first.time <= time.time() + 1
            assert (second.attributes, second.subject, second.payload) == (None, "", b"2")
            await edge.stop()
            await writer.publish({"n": 3}, b"3", subject="third")
            again = RouterNode("r1", Address("127.0.0.1", network[1][0].port),
                               Door(Address("127.0.0.1", edge_port)), times=FAST)  # fmt: skip
            await again.start()
            while not isinstance(third := await told.next(PATIENCE), Delivery):
                assert isinstance(third, Interrupted | Resumed)
            assert (third.attributes, third.subject, third.payload) == ({"n": 3}, "third", b"3")
            assert "n >= 0" in third.matched
            parts = [await named.next(PATIENCE) for _ in range(2)]
            assert [one.parts for one in parts if isinstance(one, Delivery)] == [
                {NAMED: ["one", "a"]},
                {},  # the attributes were not shared
            ]
            await again.stop()
        await network[1][0].stop()
        await network[0].stop()

    running(work)


def test_fast_notifications(tmp_path: Path) -> None:
    """They pass the routers among others, and leave no trace at the rendezvous point."""

    async def work() -> None:
        network = await started(tmp_path, 2)
        root = network[0]
        async with (
            connect(at(network[1][-1]), times=FAST) as agent,
            connect(at(root), times=FAST) as writer,
            agent.subscribe("n >= 0") as told,
            agent.subscribe("n >= 50", fast=True) as few,
        ):
            await writer.publish({"n": 100}, b"alone", fast=True)  # nothing else is published
            alone = await told.next(PATIENCE)
            assert isinstance(alone, Delivery)
            assert alone.payload == b"alone"
            await few.next(PATIENCE)
            for n in range(100):
                fast = bool(n % 3)
                stamp = await writer.publish({"n": n}, b"%d" % n, subject="s", fast=fast)
                assert bool(stamp) is not fast
            found = [await told.next(PATIENCE) for _ in range(100)]
            assert all(isinstance(one, Delivery) for one in found)
            numbers = {int(one.payload): one for one in found if isinstance(one, Delivery)}
            assert numbers.keys() == set(range(100))
            for n, one in numbers.items():
                assert bool(one.serial) is not bool(n % 3)
                assert (one.attributes, one.subject) == ({"n": n}, "s")
            serials = [one.serial for one in numbers.values() if one.serial]
            assert serials == [*range(1, 35)]
            some = [await few.next(PATIENCE) for _ in range(50)]
            assert {int(one.payload) for one in some if isinstance(one, Delivery)} == {
                *range(50, 100)
            }
            assert root.machine.counts.given == 34
            with pytest.raises(Refusal, match="found a fast notification of 16,7"):
                writer.publish_fast({"n": 1}, bytes(LARGEST))
        await stopped(network)

    running(work)


def test_a_subscription_that_is_dropped(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 1)
        edge = network[1][0]
        async with (
            connect(at(edge), times=FAST) as agent,
            agent.subscribe("n >= 0", drop_after=0.5) as told,
            agent.subscribe("n >= 1") as stays,
        ):
            await edge.stop()
            assert isinstance(await told.next(PATIENCE), Interrupted)
            assert isinstance(await told.next(PATIENCE), Break)
            assert await told.next(PATIENCE) is None
            assert isinstance(await stays.next(PATIENCE), Interrupted)
            assert await stays.next(0.2) is None
        await network[0].stop()

    running(work)


async def deliveries(told: Subscription, count: int) -> list[Delivery]:
    """The next ones; with brief times, a busy machine may interrupt them."""
    found: list[Delivery] = []
    while len(found) < count:
        one = await told.next(PATIENCE)
        assert one is not None, found
        found += [one] if isinstance(one, Delivery) else []
    return found


def test_a_named_subscription(tmp_path: Path) -> None:
    """It goes on after the last confirmed one, through another router and with another root."""

    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        root, (edge,) = network
        async with (
            connect(at(edge), times=BRIEF, name="reader") as agent,
            connect(at(root), times=BRIEF) as writer,
        ):
            async with agent.subscribe("n >= 0", name="mine") as told:
                for n in range(10):
                    await writer.publish({"n": n}, b"%d" % n)
                fifth = (await deliveries(told, 10))[4]
                await told.confirm(fifth, 30)
            with pytest.raises(Refusal, match="of an agent without a name"):
                writer.subscribe("n >= 0", name="mine")
            async with agent.subscribe("n >= 0") as other:
                with pytest.raises(Refusal, match="found a subscription without a name"):
                    other.confirm_soon(fifth)
            await writer.publish({"n": 10}, b"10")
            async with agent.subscribe("n >= 100"):  # without a name, so its node is retired
                await until(lambda: len(root.machine.graph) == 2)
            await until(lambda: len(root.machine.graph) == 1)
        await stopped(network)
        network = await started(tmp_path, 2, BRIEF)
        root, chain = network
        async with connect(at(chain[-1]), times=BRIEF, name="reader") as agent:
            with pytest.raises(Refusal, match="found another filter for the name"):
                await agent.subscribe("n > 0", name="mine").__aenter__()
            async with agent.subscribe("n >= 0", name="mine") as told:
                rest = await deliveries(told, 6)
                assert [int(one.payload) for one in rest] == [5, 6, 7, 8, 9, 10]
                await told.confirm(rest[-1], 30)
            async with agent.subscribe("n >= 0", name="mine") as told:
                assert not isinstance(await told.next(1), Delivery)
                await told.drop(30)
                assert not isinstance(await told.next(1), Delivery)
            assert not root.machine.naming.cursors.known
        await stopped(network)

    running(work)


def test_names_belong_to_agents(tmp_path: Path) -> None:
    """Two agents at two routers use the same name, and do not confirm for each other."""

    async def work() -> None:
        network = await started(tmp_path, 2)
        _, (upper, lower) = network
        async with (
            connect(at(upper), times=FAST, name="a") as a,
            connect(at(lower), times=FAST, name="b") as b,
        ):
            async with (
                a.subscribe("n >= 0", name="mine") as one,
                b.subscribe("n >= 0", name="mine") as other,
            ):
                for n in range(3):
                    await a.publish({"n": n}, b"%d" % n)
                assert await payloads(other, 3) == [b"0", b"1", b"2"]
                last = [await one.next(PATIENCE) for _ in range(3)][-1]
                assert isinstance(last, Delivery)
                await one.confirm(last, 30)
            async with b.subscribe("n >= 0", name="mine") as other:
                assert await payloads(other, 3) == [b"0", b"1", b"2"]
            async with a.subscribe("n >= 0", name="mine") as one:
                assert await one.next(1) is None
        await stopped(network)

    running(work)


def test_a_name_outlives_nodes_below_it(tmp_path: Path) -> None:
    """What matched a narrower filter, which is gone since, is still there after a restart."""

    async def work() -> None:
        root = (await started(tmp_path, 0, BRIEF))[0]
        async with connect(at(root), times=BRIEF, name="reader") as agent:
            async with agent.subscribe("n >= 0", name="mine"):
                pass
            async with agent.subscribe("n >= 5") as narrow:
                for n in range(5, 8):
                    await agent.publish({"n": n}, b"%d" % n)
                assert await payloads(narrow, 3) == [b"5", b"6", b"7"]
            await until(lambda: len(root.machine.graph) == 1)
            await agent.publish({"n": 8}, b"8")
        await root.stop()
        root = (await started(tmp_path, 0, BRIEF))[0]
        async with (
            connect(at(root), times=BRIEF, name="reader") as agent,
            agent.subscribe("n >= 0", name="mine") as told,
        ):
            assert await payloads(told, 4) == [b"5", b"6", b"7", b"8"]
        await root.stop()

    running(work)


def test_limits_come_before_cursors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was dropped because too much was kept is lost, and counted."""

    monkeypatch.setattr(journal, "SEGMENT_BYTES", 1000)
    monkeypatch.setattr(log_segments, "LINGER", 0.1)

    async def work() -> None:
        network = await started(tmp_path, 0, limits=Limits(kept=20))
        (root, _) = network
        async with connect(at(root), times=FAST, name="reader") as agent:
            async with agent.subscribe("n >= 0", name="slow") as told:
                await agent.publish({"n": 0}, b"0")
                first = await told.next(PATIENCE)
                assert isinstance(first, Delivery)
                await told.confirm(first, 30)
            for n in range(1, 101):
                await agent.publish({"n": n}, b"%d" % n)
            await until(lambda: root.journal._segments.size() < 8000)
        await root.stop()  # with its cache, which still has them
        network = await started(tmp_path, 0, limits=Limits(kept=20))
        async with connect(at(network[0]), times=FAST, name="reader") as agent:
            await agent.publish({"n": 101}, b"101")
            async with agent.subscribe("n >= 0", name="slow") as told:
                lost, came = 0, list[int]()
                while lost + len(came) < 101:
                    one = await told.next(PATIENCE)
                    if isinstance(one, Lost):
                        lost += one.count
                    elif not isinstance(one, Interrupted | Resumed):
                        assert isinstance(one, Delivery), one
                        came.append(int(one.payload))
                assert lost + len(came) == 101
                assert lost
                assert came == [*range(101 - len(came) + 1, 102)]
        await stopped(network)

    running(work)


def test_a_tag_that_does_not_fit_into_the_frame_is_left_out() -> None:
    content, payload = b"{}", bytes(LARGEST - 102)
    assert fit_tag(content, payload, bytes(100)) == bytes(100)
    assert fit_tag(content, payload, bytes(101)) == b""
    assert fit_tag(b"", payload, bytes(200)) == bytes(200)  # without attributes it is needed
