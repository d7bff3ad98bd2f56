"""Full garbage collections of a node: they are rare, and Python starts none by itself."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import weakref
from itertools import pairwise

import pytest
from tests.waiting import until

from tidings.broker import garbage


class Ring:
    """Garbage that refers to itself."""

    def __init__(self) -> None:
        self.me = self


def test_what_refers_to_itself_goes_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "OFTEN", 0.2)
    monkeypatch.setattr(garbage, "WHOLE_PART", 0)
    before = gc.get_threshold()
    started = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            started.append(asyncio.current_task())

    async def work() -> None:
        collecting = asyncio.create_task(garbage.collect_seldom())
        await asyncio.sleep(0)
        gc.callbacks.append(note)
        ring = Ring()
        went = asyncio.Event()
        gone = weakref.ref(ring, lambda _: went.set())
        gc.collect(0)
        gc.collect(1)  # it is old now
        del ring
        kept = [[n] for n in range(500_000)]  # Python would collect all for these, several times
        assert started == []
        assert gone() is not None
        await asyncio.wait_for(went.wait(), 60)
        assert set(started) == {collecting}
        assert len(kept) == 500_000
        collecting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await collecting

    try:
        asyncio.run(work())
    finally:
        gc.callbacks.remove(note)
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_cycles_of_frozen_objects_go_when_the_heap_has_grown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage, "OFTEN", 0.01)
    monkeypatch.setattr(garbage, "WHOLE_PART", 0)
    collections = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            collections.append(info)

    async def work() -> None:
        collecting = asyncio.create_task(garbage.collect_seldom())
        await asyncio.sleep(0)
        collections.clear()
        ring = Ring()
        went = asyncio.Event()
        gone = weakref.ref(ring, lambda _: went.set())
        await until(lambda: collections)  # the ring is frozen now
        del ring
        for _ in range(5):  # collections that skip it
            await asyncio.sleep(0.02)
        assert gone() is not None
        kept = [[n] for n in range(sys.getallocatedblocks() // 2)]
        await asyncio.wait_for(went.wait(), 60)
        assert kept
        collecting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await collecting

    gc.callbacks.append(note)
    try:
        asyncio.run(work())
    finally:
        gc.callbacks.remove(note)


def test_survivors_are_collected_before_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "CHECK", 0.001)
    monkeypatch.setattr(garbage, "WHOLE_PART", 1e9)
    kept: list[object] = []
    found: list[int] = []  # how many were kept when all new objects were collected

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            found.append(len(kept))

    async def work() -> None:
        collecting = asyncio.create_task(garbage.collect_seldom())
        for at in range(300_000):
            kept.append([at, [at]])
            if not at % 1000:
                await asyncio.sleep(0.001)
        collecting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await collecting

    gc.callbacks.append(note)
    try:
        asyncio.run(work())
    finally:
        gc.callbacks.remove(note)
    assert found[-1] > 200_000
    assert max(after - before for before, after in pairwise(found)) < 50_000
