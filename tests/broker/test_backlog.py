"""Subscription work waits, keeps its order, and does not pile up."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidings.broker import RootNode
from tidings.broker.admission.listen import Door
from tidings.broker.links import Lane
from tidings.broker.queues import backlog as module, turns as turns_module
from tidings.broker.queues.backlog import MOST_WAITING, PIECE, Backlog
from tidings.network.agent import connect
from tidings.routing.protocol import messages as m


class FakeLink:
    """A link that knows only whose it is, and whether it is read from."""

    is_over = False

    def __init__(self, owner: str = "") -> None:
        self.reading = True
        self.owner = owner or f"owner of {id(self)}"

    def read(self, _: str, *, on: bool) -> None:
        self.reading = on


async def turns_until(done: Callable[[], bool]) -> int:
    """Let the event loop go round; how often it did."""
    for turn in range(1_000_000):
        if done():
            return turn
        await asyncio.sleep(0)
    raise AssertionError("it goes on and on")


def test_slices_and_order() -> None:
    async def work() -> None:
        taken: list[m.Message] = []
        slices: list[int] = []

        def take(_: Lane, message: m.Message) -> None:
            taken.append(message)
            until = time.monotonic() + module.SLICE / 4
            while time.monotonic() < until:
                pass

        backlog = Backlog(take, lambda: slices.append(len(taken)))
        link = cast(Lane, FakeLink())
        given = [m.Ask(number, b"") for number in range(40)]
        for message in given:
            backlog.put(link, message)
        assert not taken
        turns = await turns_until(lambda: not len(backlog))
        assert taken == given
        assert turns >= 5, "the event loop had no turn between"
        assert 5 <= len(slices) <= turns  # on a busy machine there is a rest between two

    asyncio.run(work())


def test_a_late_slice_is_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """While notifications arrive: a slice that begins in time is short, a late one longer, and
    none is longer than LONG_SLICE. While publications are behind, all are short. The clock is
    simulated, and each message takes 0.1 ms."""
    now = 0.0
    clock = SimpleNamespace(monotonic=lambda: now, thread_time=lambda: now)
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(turns_module, "time", clock)
    each = 0.0001

    def slice_of(late: float, marks: int = 1, *, behind: bool = False) -> float:
        nonlocal now
        taken: list[m.Message] = []
        slices: list[int] = []

        def take(_: Lane, message: m.Message) -> None:
            nonlocal now
            now += each
            taken.append(message)

        async def work() -> None:
            nonlocal now
            backlog = Backlog(
                take, lambda: slices.append(len(taken)), lambda: (1, marks), lambda: behind
            )
            for number in range(500):
                backlog.put(cast(Lane, FakeLink("one")), m.Ask(number, b""))
            now += late
            await turns_until(lambda: bool(slices))

        asyncio.run(work())
        return slices[0] * each

    assert slice_of(0.0) == pytest.approx(module.SLICE, abs=2 * each)
    assert slice_of(0.004) == pytest.approx(module.SLICE + 0.004 / module.REST, abs=2 * each)
    assert slice_of(1.0) == pytest.approx(module.LONG_SLICE, abs=2 * each)
    assert slice_of(1.0, behind=True) == pytest.approx(module.SLICE, abs=2 * each)
    assert slice_of(0.0, module.MANY_MARKS) == pytest.approx(module.LONG_SLICE, abs=2 * each)


def test_large_subscriptions_are_taken_in_pieces() -> None:
    async def work() -> None:
        taken: list[m.Message] = []
        backlog = Backlog(lambda _, message: taken.append(message), lambda: None)
        nodes = tuple(range(2 * PIECE + 3))
        backlog.put(cast(Lane, FakeLink()), m.Subscribe(7, nodes))
        await turns_until(lambda: not len(backlog))
        assert [len(one.nodes) for one in taken if isinstance(one, m.Subscribe)] == [
            PIECE,
            PIECE,
            3,
        ]
        assert tuple(node for one in taken for node in one.nodes) == nodes  # type: ignore[attr-defined]
        assert {one.epoch for one in taken if isinstance(one, m.Up)} == {7}

    asyncio.run(work())


def test_all_that_is_wanted_is_taken_in_slices(seed: int) -> None:
    chance = random.Random(seed)

    async def work() -> None:
        taken: list[m.Wanted] = []
        backlog = Backlog(lambda _, message: taken.append(cast(m.Wanted, message)), lambda: None)
        for _ in range(20):
            parts = chance.randrange(1, 5)
            given = m.Slice(chance.randrange(parts), parts)
            nodes = chance.sample(range(100_000), chance.randrange(PIECE + 1, 20 * PIECE))
            taken.clear()
            backlog.put(cast(Lane, FakeLink()), m.Wanted(7, tuple(nodes), given))
            await turns_until(lambda: not len(backlog))
            assert len(taken) <= 16
            for one in taken:
                assert one.nodes == tuple(filter(one.slice.has, nodes))
            assert {n for one in taken for n in one.nodes} == {*filter(given.has, nodes)}
            for node in nodes:  # each is in one slice, or in none
                assert sum(one.slice.has(node) for one in taken) == given.has(node)

    asyncio.run(work())


def test_whoever_asks_too_much_is_not_read_from() -> None:
    async def work() -> None:
        backlog = Backlog(lambda *_: None, lambda: None)
        flooding, modest = FakeLink(), FakeLink()
        for number in range(MOST_WAITING + 1):
            backlog.put(cast(Lane, flooding), m.Ask(number, b""))
        backlog.put(cast(Lane, modest), m.Ask(1, b""))
        assert (flooding.reading, modest.reading) == (False, True)
        await turns_until(lambda: not len(backlog))
        assert flooding.reading

    asyncio.run(work())


def test_notifications_go_before_subscriptions(tmp_path: Path) -> None:
    """One that is published after 300 subscriptions were asked for is taken before they are."""

    async def work() -> None:
        root = RootNode("root", tmp_path / "journal.db", Door())
        await root.start()
        address = f"tidings://127.0.0.1:{root.port}"
        async with connect(address) as asking, connect(address) as publishing:
            await publishing.publish({"n": 0})
            taken: list[type] = []
            receive = root.machine.receive

            def watched(sender: Any, message: m.Message, now: float) -> Any:
                taken.append(type(message))
                return receive(sender, message, now)

            root.machine.receive = watched  # type: ignore[method-assign]
            for number in range(300):
                asking.subscribe(f"n > {number} AND m < {number}")
            await turns_until(lambda: m.Ask in taken)
            await publishing.publish({"n": 1})
            await turns_until(lambda: taken.count(m.Ask) == 300)
            before = taken[: taken.index(m.Publish)].count(m.Ask)
            assert 0 < before < 300, "it waited until all subscriptions were there"
        await root.stop()

    asyncio.run(asyncio.wait_for(work(), 30))
