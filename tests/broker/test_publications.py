"""A single publication is processed at once; a flood from one publisher does not delay others."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import cast

import pytest
from tests.broker.parts import make_part
from tests.broker.test_backlog import FakeLink, turns_until
from tests.waiting import until

from tidings.broker.links import Lane
from tidings.broker.queues import publications as module
from tidings.broker.queues.publications import Publications
from tidings.routing.protocol import frames, messages as m
from tidings.routing.root import Piece, Run, find_runs
from tidings.routing.root.handover import part_columns


def publish(publisher: str, stamp: int, size: int = 0) -> m.Publish:
    return m.Publish(publisher, stamp, 1, b"{}", b"x" * size)


def busy(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def test_one_alone_is_taken_at_once() -> None:
    taken: list[m.Publish] = []
    publications = Publications(lambda _, message: taken.append(message), lambda: None)
    publications.begin()
    publications.put(cast(Lane, FakeLink()), publish("w", 1))
    assert [one.stamp for one in taken] == [1]


def test_a_flood_through_the_same_router_waits_for_others() -> None:
    async def work() -> None:
        taken: list[tuple[str, int]] = []

        def take(_: Lane, message: m.Publish) -> None:
            taken.append((message.publisher, message.stamp))
            busy(module.SLICE / 4)

        slices: list[int] = []
        publications = Publications(take, lambda: slices.append(len(taken)))
        edge, side = cast(Lane, FakeLink()), cast(Lane, FakeLink())
        publications.begin()
        for stamp in range(1, 101):
            publications.put(edge, publish(f"trudy/{stamp % 7}", stamp))
        before = len(taken)
        assert 1 <= before <= 10
        publications.begin()  # another buffer
        publications.put(edge, publish("writer/1", 1))
        publications.put(side, publish("side/1", 1))
        await turns_until(lambda: not len(publications))
        assert taken.index(("writer/1", 1)) <= before + 3
        assert taken.index(("side/1", 1)) <= before + 3
        assert [stamp for name, stamp in taken if name[0] == "t"] == [*range(1, 101)]
        assert len(slices) > 5, "the event loop had no turn between"

    asyncio.run(work())


def test_a_queue_that_is_never_empty_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))

    async def work() -> None:
        nonlocal now
        publications = Publications(lambda *_: None, lambda: None)
        link = cast(Lane, FakeLink())
        for turn in range(3):  # the queue is empty between the turns
            now += module.BEHIND
            publications.put(link, publish("w", turn))
            assert not publications.are_behind
            await turns_until(lambda: not len(publications))
        publications.put(link, publish("w", 4))
        now += 2 * module.BEHIND
        publications.put(link, publish("w", 5))
        assert publications.are_behind
        await turns_until(lambda: not len(publications))
        assert not publications.are_behind

    asyncio.run(work())


def test_a_link_of_which_too_much_waits_is_not_read_from() -> None:
    async def work() -> None:
        publications = Publications(lambda *_: None, lambda: None)
        link = FakeLink()
        for stamp in range(5):  # no buffer was begun, so all of them wait
            publications.put(cast(Lane, link), publish("w", stamp, module.MOST_BYTES // 4))
        assert not link.reading
        await turns_until(lambda: not len(publications))
        assert link.reading
        publications.put(cast(Lane, link), publish("w", 6))
        publications.forget(cast(Lane, link))
        assert not len(publications)

    asyncio.run(work())


def test_a_part_of_many_notifications_does_not_delay_others() -> None:
    """It is taken in pieces, and a publication that comes meanwhile waits for a few of them."""

    async def work() -> None:
        taken: list[str] = []

        def take(_: Lane, message: object) -> None:
            taken.append("piece" if isinstance(message, Piece) else "publication")
            busy(module.SLICE / 2)

        publications = Publications(take, lambda: None)
        spark, side = cast(Lane, FakeLink()), cast(Lane, FakeLink())
        rows = [((1,), b"x")] * (40 * part_columns.ROWS)
        part = make_part("out", (0, 0), rows, 1, 1).message()
        pieces = part_columns.Columns(part, 1 << 30).pieces()
        assert len(pieces) >= 40
        publications.begin()
        for piece in pieces:
            publications.put(spark, piece)
        publications.begin()
        publications.put(side, publish("side/1", 1))
        await turns_until(lambda: not len(publications))
        assert len(taken) == len(pieces) + 1
        assert taken.index("publication") <= 10

    asyncio.run(work())


def test_a_part_is_cut_where_it_is_large() -> None:
    """By notifications, by nodes and by bytes; one that is too large alone is a piece."""
    nodes = tuple(range(1, part_columns.NODES))
    rows = [((1,), b"x" * part_columns.BYTES), *[(nodes, b"y")] * 2, *[((1,), b"z")] * 3000]
    part = make_part("out", (0, 0), rows, 1, 1).message()
    pieces = part_columns.Columns(part, 1 << 30).pieces()
    assert [(one.first, one.end) for one in pieces[:3]] == [(0, 1), (1, 2), (2, 3 + 1)]
    assert all(len(one) <= part_columns.ROWS for one in pieces)
    assert sum(map(len, pieces)) == len(rows)
    assert [one.is_last for one in pieces] == [*[False] * (len(pieces) - 1), True]
    empty = part_columns.Columns(make_part("out", (0, 0), [], 1, 1).message(), 100).pieces()
    assert [(len(one), one.is_last) for one in empty] == [(0, True)]


def test_a_run_that_fails_is_taken_one_by_one() -> None:
    async def work() -> None:
        taken: list[int] = []
        runs = 0

        def take(_: Lane, message: m.Publish | Run) -> None:
            nonlocal runs
            if isinstance(message, Run):
                runs += 1  # it failed, as after a bug
            else:
                taken.append(message.stamp)

        publications = Publications(take, lambda: None)
        buffer = b"".join(frames.encode(publish("w", stamp)) for stamp in range(1, 41))
        (found,) = find_runs(buffer, frames.split(buffer)[0])
        assert found[1] is not None
        publications.put(cast(Lane, FakeLink()), found[1])
        await turns_until(lambda: not len(publications))
        assert (runs, taken) == (1, [*range(1, 41)])

    asyncio.run(asyncio.wait_for(work(), 60))


def test_runs_are_gathered_while_filters_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that arrive one after the other are joined, but only in the time after a question."""
    monkeypatch.setattr(module, "GATHERED", 0.2)
    monkeypatch.setattr(module, "SHARED", 60.0)

    async def count(asked: bool) -> tuple[int, list[int]]:
        taken: list[int] = []
        processed = 0

        def take(_: Lane, run: Run) -> None:
            nonlocal processed
            processed += 1
            taken.extend(one.stamp for one in run.take_rest())

        publications = Publications(take, lambda: None)
        if asked:
            publications.expect_questions()
        link = cast(Lane, FakeLink())
        for first in range(1, 101, 20):
            data = b"".join(frames.encode(publish("w", n)) for n in range(first, first + 20))
            starts, _ = frames.split(data)
            for _, run in find_runs(data, starts):
                assert run is not None
                publications.put(link, run)
            for _ in range(10):  # more turns of the event loop than a run lingers
                await asyncio.sleep(0)
        await until(lambda: len(taken) == 100)
        return processed, taken

    for asked, expected in ((False, 5), (True, 2)):
        processed, taken = asyncio.run(count(asked))
        assert taken == [*range(1, 101)]
        assert processed == expected
