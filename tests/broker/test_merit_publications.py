"""Publications that wait in the order of merit: what can't be read comes again, others go on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.broker.test_backlog import FakeLink, turns_until

from tidings.broker.links import Lane
from tidings.broker.queues import merit_publications, publications
from tidings.broker.queues.merit_publications import MeritPublications
from tidings.broker.queues.spill import Spill
from tidings.routing.protocol import messages as m


class Merits:
    """The merit of a publication is the number of bytes of its payload."""

    def merit(self, message: m.Publish) -> float:
        if not message.payload:
            raise RuntimeError("no merit")
        return len(message.payload)

    def work(self, most: int) -> int:
        return 0


def make(folder: Path, take: Callable[[Lane, Any], None], **limits: int) -> MeritPublications:
    return MeritPublications(
        take, lambda: None, Merits(), Spill(folder / "spill"), ageing=600, **limits
    )


def publish(stamp: int, size: int = 1) -> m.Publish:
    return m.Publish("p", stamp, 1, b"{}", b"x" * size)


def test_what_cannot_be_read_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, failures = os.pread, 2

    def fail(*args: Any) -> bytes:
        nonlocal failures
        failures -= 1
        if failures == 1:
            raise OSError(5, "input/output error")
        return bytes(args[1]) if failures == 0 else read(*args)  # zeros are no message

    async def work() -> None:
        taken: list[int] = []
        queue = make(tmp_path, lambda _, one: taken.append(one.stamp), most_memory=0)
        link = cast(Lane, FakeLink())
        monkeypatch.setattr(os, "pread", fail)
        for stamp in range(1, 11):
            queue.put(link, publish(stamp, 20 - stamp))
        await turns_until(lambda: not len(queue))
        assert taken == [*range(3, 11)]
        assert queue.waiting(link) == 0
        for stamp in range(1, 3):  # the publisher repeats them
            queue.put(link, publish(stamp, 20 - stamp))
        await turns_until(lambda: not len(queue))
        assert taken[8:] == [1, 2]
        assert not list((tmp_path / "spill").glob("*"))

    asyncio.run(work())


def test_errors_stop_neither_others_nor_repetitions(tmp_path: Path) -> None:
    async def work() -> None:
        taken: list[int] = []
        errors: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, about: errors.append(about))

        def take(_: Lane, one: m.Publish) -> None:
            taken.append(one.stamp)
            if one.stamp == 2:
                raise RuntimeError("an error of the machine")

        queue, link = make(tmp_path, take), cast(Lane, FakeLink())
        with pytest.raises(RuntimeError):
            queue.put(link, publish(1, 0))  # it has no merit
        for stamp in (1, 2, 3):
            queue.put(link, publish(stamp, 5 if stamp == 2 else 1))
        await turns_until(lambda: not len(queue))
        assert taken == [2, 1, 3]
        assert len(errors) == 1

    asyncio.run(work())


def test_what_waits_for_long_is_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if something else, which waits in turns, comes later."""
    now = 0.0
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr(publications, "time", clock)
    monkeypatch.setattr(merit_publications, "time", clock)

    async def work() -> None:
        nonlocal now
        queue, link = make(tmp_path, lambda *_: None), cast(Lane, FakeLink())
        for turn in range(1, 4):  # the queue is empty between the turns
            now += 2 * publications.BEHIND
            queue.put(link, publish(turn))
            assert not queue.are_behind
            await turns_until(lambda: not len(queue))
        queue.put(link, publish(4))
        now += publications.BEHIND * 1.5
        queue.put(link, publish(0))  # a fast one
        assert queue.are_behind
        queue.put(link, publish(5))
        assert queue.are_behind
        await turns_until(lambda: not len(queue))
        assert not queue.are_behind

    asyncio.run(work())


@pytest.mark.parametrize("why", ["a full disk", "many"])
def test_links_are_not_read_from_if_memory_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(28, "no space left")

    async def work() -> None:
        taken: list[int] = []
        queue = make(tmp_path, lambda _, one: taken.append(one.stamp),
                     most_memory=2000, most_count=10 if why == "many" else 1000)  # fmt: skip
        link = FakeLink()
        lane = cast(Lane, link)
        if why == "a full disk":
            monkeypatch.setattr(os, "pwrite", refuse)
        stamp = 0
        while link.reading:
            stamp += 1
            assert stamp < 20
            queue.put(lane, publish(stamp))
        assert stamp == (11 if why == "many" else 8)  # each takes 259 bytes
        await turns_until(lambda: not len(queue))
        assert link.reading
        assert sorted(taken) == [*range(1, stamp + 1)]

    asyncio.run(work())
