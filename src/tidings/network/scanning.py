"""Scans frames with compiled kernels in busy routers.

A router at first scans frames in plain Python. After BUSY frames, a thread loads the kernels. This
takes about a second, and a hundred megabytes of memory. The results are the same with and without
kernels. Agents, and routers with little traffic, never load the kernels.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from tidings.routing.protocol import frames, messages as m

BUSY = 200_000  # the kernels are loaded after this many frames
LEAST = 1 << 14  # bytes; smaller buffers are scanned in Python
MOST_KNOWN = 100_000  # plans are cached for at most this many labels
_MOST_ARENA = 1 << 24  # cached labels take at most this many bytes

_log = logging.getLogger(__name__)


class _KernelLoader:
    """The kernels and numpy, if they are loaded."""

    def __init__(self) -> None:
        self.kernels: Any = None
        self.numpy: Any = None
        self.asked = False

    def load(self) -> None:
        try:
            import numpy

            from tidings.network import scan_kernels

            self.numpy = numpy
            _Table(scan_kernels).rehearse()
            self.kernels = scan_kernels
        except Exception as problem:  # without kernels, the router still works
            _log.warning("can't load the kernels that scan frames, using Python: %s", problem)


loader = _KernelLoader()


def ask_for_kernels() -> None:
    """Start to load the kernels, unless that has been done."""
    if not loader.asked:
        loader.asked = True
        threading.Thread(target=loader.load, name="tidings-kernels", daemon=True).start()


def load_scan_kernels() -> None:
    """Load the kernels now."""
    loader.asked = True
    loader.load()


def scan(buffer: bytes, at: int, largest: int) -> tuple[list[int], int]:
    """Scan frames like `frames.scan`, but with kernels if they are loaded and worthwhile."""
    kernels, numpy = loader.kernels, loader.numpy
    if kernels is None or len(buffer) - at < LEAST:
        return frames.scan(buffer, at, largest)
    starts = numpy.empty((len(buffer) - at) // 6 + 1, numpy.int64)
    data = numpy.frombuffer(buffer, numpy.uint8)
    count, end = kernels.scan_frames(data, at, frames.VERSION, largest, frames.EARLY_HEAD, starts)
    if count < 0:
        return frames.scan(buffer, at, largest)  # raises the error that says what is wrong
    return starts[:count].tolist(), end


def new_table() -> _Table | None:
    """A new table of plans, or None if the kernels are not loaded."""
    return None if loader.kernels is None else _Table(loader.kernels)


class _Table:
    """Plans by labels, in arrays for the kernels."""

    def __init__(self, kernels: Any) -> None:
        self._kernels = kernels
        self._numpy = loader.numpy
        self.clear()

    def clear(self) -> None:
        self._plans: list[Any] = []
        self._number: dict[int, int] = {}  # the `id` of a plan -> its number
        self._known = self._used = 0
        self._arena = self._numpy.zeros(1 << 12, self._numpy.uint8)
        self._table = self._empty(1 << 10)

    def rehearse(self) -> None:
        """Compile all kernels, or load them from the cache, for the types with which they are
        called."""
        frame = frames.encode(m.Notification(1, 1, (m.Mark(1, 1, (1,)),), b""))
        self.runs(frame, 0, len(frame), lambda *_: ())
        self._grow()
        starts = self._numpy.zeros(len(frame), self._numpy.int64)
        data = self._numpy.frombuffer(frame, self._numpy.uint8)
        self._kernels.scan_frames(
            data, 0, frames.VERSION, frames.LARGEST, frames.EARLY_HEAD, starts
        )

    def runs(
        self, buffer: bytes, start: int, end: int, plan_of: Callable[[bytes, int], Any]
    ) -> list[tuple[int, Any]]:
        """Find runs of frames with the same plan; return the first frame and the plan of each run.
        `plan_of` returns the plan of unknown labels. Raise FrameError if a front does not fit into
        its frame."""
        data = self._numpy.frombuffer(buffer, self._numpy.uint8)
        most = (end - start) // frames.HEAD + 1
        firsts, found = self._numpy.empty((2, most), self._numpy.int64)
        runs: list[tuple[int, Any]] = []
        done, last = 0, -1
        while True:
            count, done, start, why = self._kernels.find_runs(
                data, start, end, done, last, self._table, self._arena, firsts, found
            )
            if count:
                last = int(found[count - 1])
                plans = map(self._plans.__getitem__, found[:count].tolist())
                runs += zip(firsts[:count].tolist(), plans, strict=True)
            if why == self._kernels.DONE:
                return runs
            if why == self._kernels.SHORT:
                raise frames.FrameError(frames.TOO_SHORT)
            front = frames.front_of(buffer, start)
            labels = buffer[front.labels : front.rest]
            self._learn(labels, plan_of(labels, front.marks))
            last = -1  # `_learn` may have renumbered the plans

    def drop(self, labels: bytes) -> None:
        """Forget the plan of labels. The labels keep their place in the table."""
        place = self._find(labels)
        if self._table[1, place] >= 0:
            self._table[2, place] = self._kernels.NO_PLAN

    def _find(self, labels: bytes) -> int:
        data = self._numpy.frombuffer(labels, self._numpy.uint8)
        places, sizes, _ = self._table
        return int(self._kernels.find_place(data, 0, len(labels), places, sizes, self._arena))

    def _learn(self, labels: bytes, plan: Any) -> None:
        """Add the plan of labels; if the cache is full, first forget all other labels."""
        full = self._used + len(labels) > _MOST_ARENA or len(self._plans) >= MOST_KNOWN
        if self._known >= MOST_KNOWN or full:
            self.clear()
        number = self._number.setdefault(id(plan), len(self._plans))
        if number == len(self._plans):
            self._plans.append(plan)
        place = self._find(labels)
        if self._table[1, place] >= 0:  # the labels are known, but their plan was dropped
            self._table[2, place] = number
            return
        if 2 * self._known >= self._table.shape[1]:
            self._grow()
        if self._used + len(labels) > len(self._arena):
            room = self._numpy.zeros(2 * (self._used + len(labels)), self._numpy.uint8)
            room[: self._used] = self._arena[: self._used]
            self._arena = room
        data = self._numpy.frombuffer(labels, self._numpy.uint8)
        self._arena[self._used : self._used + len(labels)] = data
        self._put(self._table, data, 0, self._used, len(labels), number)
        self._used += len(labels)
        self._known += 1

    def _put(self, table: Any, data: Any, at: int, begin: int, size: int, number: int) -> None:
        place = self._kernels.find_place(data, at, size, table[0], table[1], self._arena)
        table[:, place] = begin, size, number

    def _grow(self) -> None:
        old, self._table = self._table, self._empty(4 * self._table.shape[1])
        for begin, size, number in old[:, old[1] >= 0].T.tolist():
            self._put(self._table, self._arena, begin, begin, size, number)

    def _empty(self, size: int) -> Any:
        table = self._numpy.zeros((3, size), self._numpy.int64)
        table[1] = -1
        return table
