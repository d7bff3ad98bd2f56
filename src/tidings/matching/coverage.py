"""Which filters cover which, for very many at once: the batch join on filters instead of events.

A filter is an event whose every attribute is an interval instead of a point. A test of another
filter covers it when both ends of that interval lie inside:

    A covers B when, for every test of A, A.low <= B.low <= A.high and A.low <= B.high <= A.high

1. Hulls to arrays (hulls.py).
2. The coverings that hulls alone do not decide, one list of pairs (doubts.py), and with them the
   filters that cover each other: from here on these are one.
3. Hulls in an order in which whatever covers comes before what it covers.
4. Block by block of that order, in several threads: the join finds the coverers of its hulls.
5. Block after block: coverers to parents, for which those of all blocks before are needed.

Only edges are kept, so memory is bounded by the blocks that are under way, however many filters
cover one another; a block that finds more pairs than it has room for is cut in two.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters.form import Form
from tidings.matching import doubts
from tidings.matching.cover_join import CoverJoin, Found
from tidings.matching.cover_kernels import find_parents
from tidings.matching.hulls import gather_hulls
from tidings.model import TidingsError

Array = npt.NDArray[Any]
BLOCK, SMALLEST = 1 << 17, 1 << 12  # hulls that are joined at once
ROOM = 1 << 22  # pairs that one block may find
MOST_THREADS = 4


class Coverage(msgspec.Struct, frozen=True):
    """Numbers are places in the sequence of forms.

    `first` has for each form the first of those that are equal to it, itself if there is none;
    above[i] is a parent of below[i], and both are first ones.
    """

    first: Array
    above: Array
    below: Array
    candidates: int  # pairs of hulls that the joins looked at
    pairs: int  # coverings that they found


def cover(
    forms: Sequence[Form],
    progress: Callable[[int], None] = lambda _: None,
    threads: int | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Coverage:
    """Who covers whom, reduced to edges; the same with any number of threads.

    `progress` is told how many more forms have their place, `note` what is done next.
    """
    if threads is None:
        threads = min(MOST_THREADS, os.cpu_count() or 1)
    if type(threads) is not int or threads < 1:
        raise TidingsError(f"threads is {threads!r}, expected a whole number from 1 up")
    note("hulls")
    hulls, boxes = gather_hulls(forms)
    never = np.array([form.never for form in forms], bool)
    note("doubts")
    doubtful = doubts.settle(forms, hulls, boxes, never)
    note("order")
    ranked = _ranked(hulls.sizes(), doubtful, never)
    number = np.full(len(forms), -1, np.int64)
    number[ranked] = np.arange(len(ranked))
    number = number[doubtful.first]
    join = CoverJoin(hulls.take(ranked), doubtful.certain[ranked])
    more = _by_row(number[doubtful.above], number[doubtful.below], len(ranked))
    always = len(ranked) > 0 and forms[ranked[0]].always
    linker = _Linker(len(ranked), 0 if always else -1, more)
    note("join")
    for first, last, found in _blocks(join, threads):
        linker.link(first, last, found)
        progress(last - first)
    progress(len(forms) - len(ranked))
    above, below = linker.edges()
    lowest = np.setdiff1d(np.arange(len(ranked)), above) if never.any() else np.zeros(0, np.int64)
    nothing = np.full(len(lowest), np.argmax(never) if len(never) else 0)
    return Coverage(
        first=doubtful.first,
        above=np.concatenate([ranked[above], ranked[lowest]]),
        below=np.concatenate([ranked[below], nothing]),
        candidates=join.seen + doubtful.candidates,
        pairs=linker.pairs + len(doubtful.above),
    )


def _ranked(sizes: tuple[Array, Array], doubtful: doubts.Settled, never: Array) -> Array:
    """The first ones of all that match something, those that cover before those they cover.

    Where hulls are alike, the one that is its hull covers the others, and those have an order.
    """
    tests, codes = sizes
    ranked = np.lexsort((doubtful.rank, doubtful.certain == 0, -codes, tests))
    chosen: Array = ranked[(doubtful.first[ranked] == ranked) & ~never[ranked]]
    return chosen


def _by_row(above: Array, below: Array, count: int) -> tuple[Array, Array]:
    order = np.argsort(below, kind="stable")
    starts = np.searchsorted(below[order], np.arange(count + 1)).astype(np.int64)
    return starts, above[order].astype(np.uint32)


def _blocks(join: CoverJoin, threads: int) -> Iterator[tuple[int, int, Found]]:
    """(first, last, pairs) of the blocks in their order, a few of them joined ahead."""
    count = len(join.hulls)
    size = min(BLOCK, max(SMALLEST, -(-count // threads)))
    at = 0
    running: deque[tuple[int, int, Future[Found | None]]] = deque()
    with ThreadPoolExecutor(threads) as pool:

        def start(first: int, last: int) -> tuple[int, int, Future[Found | None]]:
            return first, last, pool.submit(join.pairs, first, last, ROOM, True)

        while at < count or running:
            while at < count and len(running) <= threads:
                running.append(start(at, min(at + size, count)))
                at = running[-1][1]
            first, last, work = running.popleft()
            found = work.result()
            if found is not None:
                if len(found.above) < ROOM // 4:
                    size = min(BLOCK, 2 * size)
                yield first, last, found
                continue
            size = (last - first) // 2
            running.appendleft(start(first + size, last))
            running.appendleft(start(first, first + size))


class _Linker:
    """The parents of hulls, block after block."""

    def __init__(self, count: int, top: int, more: tuple[Array, Array]) -> None:
        self.top = top
        self.more = more
        self.starts = np.zeros(count + 1, np.int64)
        self.parents = np.empty(max(16, count), np.uint32)
        self.pairs = 0
        self._scratch = (
            np.full(count, -1, np.int64), np.full(count, -1, np.int64), np.empty(count, np.uint32)
        )  # fmt: skip

    def link(self, first: int, last: int, found: Found) -> None:
        self.pairs += len(found.above)
        further = int(self.more[0][last] - self.more[0][first])
        needed = int(self.starts[first]) + len(found.above) + further + (last - first)
        if needed > len(self.parents):
            grown = np.empty(max(needed, 2 * len(self.parents)), np.uint32)
            grown[: self.starts[first]] = self.parents[: self.starts[first]]
            self.parents = grown
        find_parents(
            first, last, found.above, found.below, *self.more, self.top, self.starts, self.parents,
            *self._scratch,
        )  # fmt: skip

    def edges(self) -> tuple[Array, Array]:
        """(above, below)"""
        count = np.diff(self.starts)
        above = self.parents[: self.starts[-1]].astype(np.int64)
        return above, np.repeat(np.arange(len(count)), count)
