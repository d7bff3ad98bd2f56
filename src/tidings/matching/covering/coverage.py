"""Find which filters cover which others, in bulk: the batch join, with filters in place of events.

A filter is like an event that has intervals instead of points as attribute values. Filter A covers
filter B if both ends of each interval of B pass the tests of A:

    A covers B if, for every test of A, A.low <= B.low <= A.high and A.low <= B.high <= A.high

1. Turn forms into hulls, in arrays (hull_gathering.py).
2. Among filters with the same hull, find those that cover each other, and put them in order
   (undecided.py). Filters that cover each other are called equal, and share one *place* from here
   on.
3. Sort the places so that every covering filter comes before the filters that it covers.
4. For each block of places, in threads or processes: join its hulls with all hulls that may contain
   them. The result is the *coverers* of each place: the places that cover it. If the hulls do not
   decide a pair, the boxes of its filters are compared; if the boxes do not decide it either, the
   filters themselves are compared.
5. Block after block, reduce coverers to parents; this needs the parents of all earlier blocks.

Only edges are kept. So only the blocks in progress need memory, however many coverings there are; a
block whose pairs do not fit is split. Step 2 is the exception: it may have to store all coverings
among filters with the same hull.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import Form
from tidings.matching.covering import undecided
from tidings.matching.covering.cover_join import CoverJoin, HullPairs
from tidings.matching.covering.cover_kernels import find_parents
from tidings.matching.covering.hull_gathering import GatheredHulls, gather
from tidings.matching.covering.hulls import Boxes
from tidings.model import TidingsError

Array = npt.NDArray[Any]
BLOCK, SMALLEST = 1 << 17, 1 << 12  # the largest and smallest number of hulls in a block
ROOM = 1 << 22  # the most pairs that one block may find
MOST_THREADS = 4


class Coverage(msgspec.Struct, frozen=True):
    """The coverings among forms, which are numbered by position.

    `first` has, for each form, the first form that is equal to it, which may be itself. above[i] is
    a parent of below[i], and both are such first forms.
    """

    first: Array
    above: Array
    below: Array
    candidates: int  # the number of pairs of hulls that the joins compared
    pairs: int  # the number of coverings that the joins found

    def chain_equals(self, form_of: Array | None = None) -> tuple[Array, Array]:
        """The (lower, upper) pair of each edge between nodes; equal nodes form a chain, with the
        last of them at the top. So no two nodes share a place, and there are no cycles.

        `form_of` has the form of each node; without `form_of`, each form is a node.
        """
        group = self.first if form_of is None else self.first[form_of]
        order = np.argsort(group, kind="stable")
        same = group[order][1:] == group[order][:-1]
        size = int(group.max()) + 1 if len(group) else 0
        bottom, top = np.zeros(size, np.int64), np.zeros(size, np.int64)
        top[group[order]] = order  # if several nodes are equal, the last of them is the top
        bottom[group[order[::-1]]] = order[::-1]
        return (
            np.concatenate([top[self.below], order[:-1][same]]),
            np.concatenate([bottom[self.above], order[1:][same]]),
        )


def cover(
    forms: Sequence[Form],
    progress: Callable[[int], None] = lambda _: None,
    threads: int | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Coverage:
    """The coverings among forms, reduced to edges; the result does not depend on `threads`.

    `progress` is called with the number of forms placed since the last call, and `note` with the
    name of the next step.
    """
    blocks = in_threads(threads)
    note("hulls")
    return cover_hulls(gather(forms), forms, blocks, progress, note)


def cover_hulls(
    gathered: GatheredHulls,
    forms: Sequence[Form],
    blocks: Blocks,
    progress: Callable[[int], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> Coverage:
    """Find the coverings among gathered hulls, as `cover` does. `forms` provides those few filters
    that must themselves be compared.

    `blocks` finds the coverers of all places, and yields the blocks in order.
    """
    hulls, never = gathered.hulls, gathered.never
    note("doubts")
    resolver = undecided.Resolver(forms, gathered.boxes)
    settled = undecided.order_by_hull(hulls, gathered.boxes, never, resolver)
    note("order")
    tests, codes = hulls.sizes()
    order = np.lexsort((settled.rank, settled.hull, -codes, tests))
    order = order[~never[order]]
    join = CoverJoin(hulls.take(order))
    finder = Finder(join, order, settled.first[order], gathered.boxes, resolver)
    ranked = finder.firsts
    always = len(ranked) > 0 and forms[int(ranked[0])].always
    linker = _Linker(len(ranked), 0 if always else -1)
    note("join")
    for first, last, found in blocks(finder):
        linker.link(first, last, found)
        progress(last - first)
    progress(len(never) - len(ranked))
    above, below = linker.edges()
    lowest = np.setdiff1d(np.arange(len(ranked)), above) if never.any() else np.zeros(0, np.int64)
    nothing = np.full(len(lowest), np.argmax(never) if len(never) else 0)
    return Coverage(
        first=settled.first,
        above=np.concatenate([ranked[above], ranked[lowest]]),
        below=np.concatenate([ranked[below], nothing]),
        candidates=finder.join.seen + settled.candidates,
        pairs=linker.pairs,
    )


class CoveringPairs(msgspec.Struct, frozen=True):
    """The filter at the place above[i] covers the filter at the place below[i]. Both arrays are
    uint32."""

    above: Array
    below: Array
    looked_at: int  # the number of pairs that the join of hulls found, before they were confirmed


class Finder:
    """Finds the coverers of places. All filters of a place take part in the join, because a
    covering may be found for only some of several equal filters."""

    def __init__(
        self,
        join: CoverJoin,
        order: Array,
        first: Array,
        boxes: Boxes,
        resolver: undecided.Resolver,
    ) -> None:
        self.join = join  # the hulls of the filters
        self.order = order.astype(np.uint32)  # for each hull, the position of its form
        self.first = first  # by hull: the first form that is equal to the form of that hull
        self.boxes = boxes
        self._resolver = resolver
        fresh = np.ones(len(order), bool)
        fresh[1:] = first[1:] != first[:-1]
        self.firsts = first[fresh]
        self._starts = np.append(np.nonzero(fresh)[0], len(order))  # of each place
        self._place = (np.cumsum(fresh) - 1).astype(np.uint32)

    def __len__(self) -> int:
        return len(self.firsts)

    def pieces(self, first: int, last: int) -> Iterator[Block]:
        """The coverers of places [first, last): in one piece, or in several pieces if there are
        very many coverers."""
        found = self.find(first, last)
        if found is not None:
            yield first, last, found
            return
        middle = (first + last) // 2
        yield from self.pieces(first, middle)
        yield from self.pieces(middle, last)

    def find(self, first: int, last: int) -> CoveringPairs | None:
        """The coverers of places [first, last); None if there are too many."""
        begin, end = int(self._starts[first]), int(self._starts[last])
        if last - first > 1:
            found = self.join.pairs(begin, end, ROOM)
            return None if found is None else self._confirm(found)
        parts = [self._confirm(found) for found in self._rows(begin, end)]
        return CoveringPairs(
            np.concatenate([part.above for part in parts]),
            np.concatenate([part.below for part in parts]),
            max(part.looked_at for part in parts),
        )

    def _rows(self, first: int, last: int) -> Iterator[HullPairs]:
        """The coverers of the filters [first, last), in pieces; a piece that does not fit is split.
        A single filter always fits."""
        found = self.join.pairs(first, last, ROOM)
        if found is not None:
            yield found
            return
        middle = (first + last) // 2
        yield from self._rows(first, middle)
        yield from self._rows(middle, last)

    def _confirm(self, found: HullPairs) -> CoveringPairs:
        looked_at = len(found.above)
        if not found.sure.all():
            forms = HullPairs(self.order[found.above], self.order[found.below], found.sure)
            found = _keep(found, self._resolver.confirm(forms))
        if len(self.firsts) < len(self.order):  # at least two filters are equal
            found = HullPairs(self._place[found.above], self._place[found.below], found.sure)
            found = _keep(found, found.above != found.below)
        return CoveringPairs(found.above, found.below, looked_at)


def _keep(found: HullPairs, chosen: Array) -> HullPairs:
    return HullPairs(found.above[chosen], found.below[chosen], found.sure[chosen])


Block = tuple[int, int, CoveringPairs]  # places [first, last), and their coverers
Blocks = Callable[[Finder], Iterator[Block]]


def in_threads(threads: int | None) -> Blocks:
    """Return a function that finds the coverers of all blocks, in threads of this process."""
    if threads is None:
        threads = min(MOST_THREADS, os.cpu_count() or 1)
    if type(threads) is not int or threads < 1:
        raise TidingsError(f"threads is {threads!r}, expected a whole number of at least 1")
    return partial(_blocks, threads=threads)


def _blocks(finder: Finder, threads: int) -> Iterator[Block]:
    """The blocks of places, in order; a few blocks are computed before they are asked for."""
    count = len(finder)
    size = min(BLOCK, max(SMALLEST, -(-count // threads)))
    at = 0
    running: deque[tuple[int, int, Future[CoveringPairs | None]]] = deque()
    with ThreadPoolExecutor(threads) as pool:

        def start(first: int, last: int) -> tuple[int, int, Future[CoveringPairs | None]]:
            return first, last, pool.submit(finder.find, first, last)

        while at < count or running:
            while at < count and len(running) <= threads:
                running.append(start(at, min(at + size, count)))
                at = running[-1][1]
            first, last, work = running.popleft()
            found = work.result()
            if found is not None:
                if found.looked_at < ROOM // 4:
                    size = min(BLOCK, 2 * size)
                yield first, last, found
                continue
            size = (last - first) // 2
            running.appendleft(start(first + size, last))
            running.appendleft(start(first, first + size))


class _Linker:
    """Computes the parents of places, block after block."""

    def __init__(self, count: int, top: int) -> None:
        self.top = top
        self.starts = np.zeros(count + 1, np.int64)
        self.parents = np.empty(max(16, count), np.uint32)
        self.pairs = 0
        self._scratch = (
            np.full(count, -1, np.int64), np.full(count, -1, np.int64), np.empty(count, np.uint32)
        )  # fmt: skip

    def link(self, first: int, last: int, found: CoveringPairs) -> None:
        self.pairs += len(found.above)
        needed = int(self.starts[first]) + len(found.above) + (last - first)
        if needed > len(self.parents):
            grown = np.empty(max(needed, 2 * len(self.parents)), np.uint32)
            grown[: self.starts[first]] = self.parents[: self.starts[first]]
            self.parents = grown
        find_parents(
            first, last, found.above, found.below, self.top, self.starts, self.parents,
            *self._scratch,
        )  # fmt: skip

    def edges(self) -> tuple[Array, Array]:
        """All edges, as (above, below)."""
        count = np.diff(self.starts)
        above = self.parents[: self.starts[-1]].astype(np.int64)
        return above, np.repeat(np.arange(len(count)), count)
