"""Filters that match everything, of one subscriber, over real connections."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.broker.networks import BRIEF, FAST, at, payloads, running, started, stopped
from tests.broker.test_limits import Raw
from tests.waiting import until

from tidings.broker.admission.permissions import Permissions, TokenRights
from tidings.broker.root_node import RootNode
from tidings.network.agent import Agent, Refusal, Subscription, connect
from tidings.network.agents import publishing as module
from tidings.routing.clients.subscriber import Delivery
from tidings.routing.protocol import frames, messages as m
from tidings.routing.protocol.limits import Limits
from tidings.routing.protocol.lineage import Break
from tidings.routing.root.publishing import root_tagger


def everything(number: int) -> str:
    """Matches whatever there is, and covers none of its kind."""
    return f"z{number} IS NULL"


async def subscribed(agent: Agent, count: int, first: int = 0) -> list[Subscription]:
    found = [agent.subscribe(everything(first + number)) for number in range(count)]
    for one in found:
        await one.__aenter__()
    return found


async def refusal_of(subscription: Subscription) -> str:
    """Why it ended; what was told before is passed over."""
    with pytest.raises(Refusal) as found:
        async for _ in subscription:
            pass
    return str(found.value)


@pytest.mark.parametrize("routers", [0, 2])
def test_what_matches_everything_is_set_aside(tmp_path: Path, routers: int) -> None:
    async def work() -> None:
        network = await started(tmp_path, routers, limits=Limits(marks=20))
        root = network[0]
        last = network[1][-1] if routers else root
        async with (
            connect(at(last), name="hostile", times=FAST) as hostile,
            connect(at(last), name="honest", times=FAST) as honest,
            connect(at(last), name="writer", times=FAST) as writer,
            honest.subscribe("n >= 0") as told,
            honest.subscribe(everything(30)) as also,
        ):
            filters = await subscribed(hostile, 50)
            for number in range(5):
                await writer.publish({"n": number}, b"%d" % number)
            assert await payloads(told, 5) == [b"0", b"1", b"2", b"3", b"4"]
            assert await payloads(also, 5) == [b"0", b"1", b"2", b"3", b"4"]
            kept = [at for at, one in enumerate(filters) if one._machine.phase.value == "on"]
            assert kept == [*range(19), 30]  # the oldest, and one that stays for another
            for one in filters[19:30]:
                reason = await refusal_of(one)
                assert reason.startswith("50 filters of 'hostile' give marks to one notification")
            assert await payloads(filters[0], 5) == [b"0", b"1", b"2", b"3", b"4"]
            with pytest.raises(Refusal, match="the newest were set aside, including this one"):
                async with hostile.subscribe(everything(40)):
                    pass
            filters[0].close()  # now there is room for another
            (owner,) = (one for one in root.machine.claims.holdings if one.endswith("hostile"))
            await until(lambda: root.machine.claims.holding(owner).room)
            async with hostile.subscribe(everything(40)) as another:
                await writer.publish({"n": 8}, b"8")
                assert await payloads(another, 1) == [b"8"]
        await stopped(network)

    running(work)


def test_filters_that_take_too_long_go_and_no_publication_is_refused(tmp_path: Path) -> None:
    """Those of whoever has most of them, who is told; others keep theirs."""

    def searched(number: int) -> str:
        return f"s RLIKE 'a[ab]{{20}}c{number}'"

    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF, limits=Limits(match_millis=5))
        router = network[1][0]
        text = "ab" * 20_000
        async with (
            connect(at(router), name="hostile", times=BRIEF) as hostile,
            connect(at(router), name="honest", times=BRIEF) as honest,
            honest.subscribe("n >= 0") as told,
            honest.subscribe("s RLIKE 'b{1,3}'") as also,
        ):
            filters = [hostile.subscribe(searched(number)) for number in range(200)]
            await asyncio.gather(*(one.__aenter__() for one in filters))  # one wait for the disk
            for number in range(3):
                await honest.publish({"n": number, "s": text}, b"%d" % number)
            assert await payloads(told, 3) == [b"0", b"1", b"2"]
            assert await payloads(also, 3) == [b"0", b"1", b"2"]
            reason = await refusal_of(filters[-1])
            assert "the filters of 'hostile' take too long on one notification" in reason
            assert network[0].machine.beyond["marks"] >= 100
        await stopped(network)

    running(work)


def test_who_loses_filters_is_told_of_a_break_first(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 1, limits=Limits(marks=3))
        async with connect(at(network[1][0]), name="one", times=FAST) as agent:
            filters = await subscribed(agent, 5)
            await agent.publish({"n": 1}, b"1")
            found = [await anext(filters[4])]
            found += [await anext(filters[4])] if isinstance(found[0], Delivery) else []
            assert isinstance(found[-1], Break)
            assert "expected at most 3" in await refusal_of(filters[4])
        await stopped(network)

    running(work)


def test_guests_of_one_token_share_a_share(tmp_path: Path) -> None:
    tokens = {"any": "*", "other": "*", "r": TokenRights("r0", frozenset({"subscribe", "route"}))}

    async def work() -> None:
        network = await started(tmp_path, 0, limits=Limits(marks=6), tokens=tokens)
        root = network[0]
        agents = [connect(at(root), name=f"g{n}", token="any", times=FAST) for n in range(5)]
        guests = [await one.__aenter__() for one in agents]
        other = connect(at(root), name="another", token="other", times=FAST)
        aside = await other.__aenter__()
        for number, guest in enumerate(guests):
            await subscribed(guest, 4, 4 * number)
        await subscribed(aside, 6, 100)
        await guests[0].publish({"n": 1})
        counts = [len(one.aside) for one in root.machine.claims.holdings.values()]
        assert sorted(counts) == [0, 14]
        for one in (*agents, other):
            await one.__aexit__(None, None, None)
        await stopped(network)

    running(work)


def test_owners_of_passes() -> None:
    guests = [Permissions("a", bound=False, key=b"1"), Permissions("b", bound=False, key=b"1"),
              Permissions("a", bound=False, key=b"2")]  # fmt: skip
    first, same, other = (one.owner for one in guests)
    assert first == same != other
    assert first.startswith("*/")
    assert Permissions("a", key=b"1").owner == "a"


def test_a_forged_owner_counts_for_the_link(tmp_path: Path) -> None:
    async def work() -> None:
        tokens = {"t": TokenRights("bob", frozenset({"subscribe"})), "w": "writer"}
        network = await started(tmp_path, 0, tokens=tokens)
        root = network[0]
        raw = await Raw.made(root)
        await raw.say(m.Hello("bob", token="t"))
        for number in range(10):
            await raw.say(m.Ask(number, everything(number).encode(), f"victim{number}"))
        await until(lambda: len(root.machine.graph) == 10)
        assert {*root.machine.claims.holdings} == {"bob"}
        raw.close()
        await stopped(network)

    running(work)


def test_no_publication_is_refused_for_filters(tmp_path: Path) -> None:
    """Many subscribers that are each within their share, more than fit into a header."""

    async def work() -> None:
        network = await started(tmp_path, 1, limits=Limits(marks=20, all_marks=30))
        root, (router,) = network
        agents = [connect(at(router), name=f"a{n}", times=FAST) for n in range(5)]
        for number, one in enumerate(agents):
            await subscribed(await one.__aenter__(), 10, 10 * number)
        async with (
            connect(at(router), name="honest", times=FAST) as honest,
            honest.subscribe("n >= 0") as told,
        ):
            await honest.publish({"n": 1}, b"1")
            assert await payloads(told, 1) == [b"1"]
            assert len(root.machine.counts.counts) == 1 + 5 * 5  # all have as many as leave room
        for one in agents:
            await one.__aexit__(None, None, None)
        await stopped(network)

    running(work)


def test_the_largest_payload_with_many_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header of any size fits beside a payload of any size."""
    most = frames.LARGEST - 1024  # so that a few marks do not fit into what is left free
    monkeypatch.setattr(module, "LARGEST", most)
    monkeypatch.setattr(root_tagger, "LARGEST", most)

    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        async with connect(at(network[1][0]), name="one", times=BRIEF) as agent:
            filters = await subscribed(agent, 100)
            payload = b"x" * (most - len(b'{"n":1}'))
            await agent.publish({"n": 1}, payload)
            for one in (filters[0], filters[-1]):
                assert await payloads(one, 1) == [payload]
        await stopped(network)

    running(work)


def test_shares_are_kept_over_a_restart(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 0, limits=Limits(marks=1000))
        async with connect(at(network[0]), name="hostile", times=FAST) as hostile:
            await subscribed(hostile, 30)
            await hostile.publish({"n": 1})
        await stopped(network)
        network = await started(tmp_path, 0, limits=Limits(marks=10))
        root = network[0]
        assert root.machine.claims.holding("hostile").nodes == 30
        async with connect(at(root), name="honest", times=FAST) as honest:
            await honest.publish({"n": 2}, b"2")  # nobody wants them by now
            await until(lambda: len(root.machine.graph) <= 10)
            assert len(root.machine.graph) == 10
        await stopped(network)

    running(work)


def test_long_filters_of_one_leave_room_for_those_of_others(tmp_path: Path) -> None:
    def listed(count: int, first: int) -> str:
        return f"n IN ({', '.join(map(str, range(first, first + count)))})"

    async def work() -> None:
        root, routers = await started(tmp_path, 1, limits=Limits(long_filter_bytes=100_000))
        async with (
            connect(at(routers[0]), name="greedy", times=FAST) as greedy,
            connect(at(routers[0]), name="honest", times=FAST) as honest,
            greedy.subscribe(listed(1_500, 100_000)) as first,
        ):
            with pytest.raises(Refusal, match="found 28,010 bytes of filters longer than 4,096"):
                await greedy.subscribe(listed(2_000, 200_000)).__aenter__()
            async with honest.subscribe(listed(2_500, 300_000)) as told:
                await honest.publish({"n": 300_000}, b"it")
                assert await payloads(told, 1) == [b"it"]
            assert root.machine.claims.holding(first_owner(root)).long == 12_005
            assert first._machine.phase.value == "on"
        await stopped((root, routers))

    def first_owner(root: RootNode) -> str:
        return next(owner for owner in root.machine.claims.holdings if owner.endswith("greedy"))

    running(work)
