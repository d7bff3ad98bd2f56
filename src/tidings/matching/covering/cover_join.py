"""The join of hulls with hulls: the kernel of cover_kernels.py with its arguments."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.matching.covering import cover_kernels
from tidings.matching.covering.hulls import Hulls
from tidings.matching.segments.join_kernels import sort_by_code

Array = npt.NDArray[Any]
BITS = 16  # of a code in the matrix of a join


class Found(msgspec.Struct, frozen=True):
    """above[i] covers below[i], at least by their hulls; `sure` where that decides it."""

    above: Array  # uint32
    below: Array  # uint32
    sure: Array  # uint8


class Prepared(msgspec.Struct, frozen=True):
    """What a join needs beside its hulls; dtypes and shapes in cover_kernels.py."""

    entries: Array
    order: Array
    shift: Array
    exact: Array
    bare: Array  # int64: hulls that test computed terms and no attribute


class CoverJoin:
    """Which hulls hold which. Safe to use from several threads.

    A hull that tests computed terms and no attribute has no slice to look in, and is held against
    all others, at some 10 nanoseconds each. One that tests nothing holds all, and is left out.
    """

    def __init__(self, hulls: Hulls) -> None:
        self._begin(hulls)
        sizes = np.diff(hulls.base)
        self._shift = np.array(
            [max(0, (int(size) - 1).bit_length() - BITS) for size in sizes], np.uint8
        )
        share = np.zeros(len(hulls.column), np.int64)
        self._order = np.zeros(len(hulls.column), np.uint32)
        cover_kernels.count_shares(
            hulls.starts, hulls.computed, hulls.column, hulls.spans, hulls.low, hulls.high,
            hulls.base, share, self._order,
        )  # fmt: skip
        self._exact = self._undecided()
        self.entries = self._entries()
        tests_no_attribute = hulls.computed == hulls.starts[:-1]
        tests_nothing = (hulls.one_box != 0) & (hulls.starts[1:] == hulls.starts[:-1])
        self._bare = np.nonzero(tests_no_attribute & ~tests_nothing)[0]

    def _begin(self, hulls: Hulls) -> None:
        self.hulls = hulls
        self.seen = 0
        self._lock = threading.Lock()

    @classmethod
    def of(cls, hulls: Hulls, prepared: Prepared) -> CoverJoin:
        """A join that was prepared before."""
        join = cls.__new__(cls)
        join._begin(hulls)
        join.entries, join._order, join._bare = prepared.entries, prepared.order, prepared.bare
        join._shift, join._exact = prepared.shift, prepared.exact
        return join

    @property
    def prepared(self) -> Prepared:
        return Prepared(self.entries, self._order, self._shift, self._exact, self._bare)

    def _undecided(self) -> Array:
        """Which hulls hold others for certain only after an exact look: those with sets of several
        spans or shifted codes, with computed terms, or of several boxes."""
        hulls = self.hulls
        rough = (np.diff(hulls.spans) > 1) | (self._shift[hulls.column] > 0)
        rough |= hulls.column >= hulls.attributes
        total = np.concatenate([[0], np.cumsum(rough)])
        some = total[hulls.starts[1:]] > total[hulls.starts[:-1]]
        undecided: Array = (some | (hulls.one_box == 0)).astype(np.uint8)
        return undecided

    def _entries(self) -> Array:
        """The hulls that test attributes, by the column and first code of their access tests."""
        hulls = self.hulls
        numbers = np.nonzero(hulls.computed > hulls.starts[:-1])[0]
        access = self._order[hulls.starts[numbers]]
        place = hulls.base[hulls.column[access]] + hulls.low[hulls.spans[access]]
        order, starts = np.empty(len(numbers), np.uint32), np.empty(hulls.base[-1] + 1, np.int64)
        sort_by_code(place.astype(np.uint32), int(hulls.base[-1]), order, starts)
        return numbers[order].astype(np.uint32)

    def pairs(self, first: int, last: int, room: int) -> Found | None:
        """The coverers of hulls `first` up to `last`, given that no hull covers one before it; None
        when there are more than `room`, or than there are hulls if that is more."""
        hulls = self.hulls
        room = max(room, len(hulls))
        above, below = np.empty(room, np.uint32), np.empty(room, np.uint32)
        sure, seen = np.empty(room, np.uint8), np.zeros(1, np.int64)
        count = cover_kernels.join_rows(
            first, last, self.entries, self._order, self._shift, self._exact, hulls.starts,
            hulls.computed, hulls.column, hulls.pinned, hulls.spans, hulls.low, hulls.high,
            hulls.one_box, hulls.base, hulls.reads, hulls.read, hulls.attributes, above, below,
            sure, seen,
        )  # fmt: skip
        if count >= 0:
            bare = self._bare[self._bare < last]
            count = scan(hulls, bare, first, last, above, below, sure, count)
            seen[0] += len(bare) * (last - first)
        with self._lock:
            self.seen += int(seen[0])
        if count < 0:
            return None
        return Found(above[:count].copy(), below[:count].copy(), sure[:count].copy())


def scan(
    hulls: Hulls,
    outers: Array,
    first: int,
    last: int,
    above: Array,
    below: Array,
    sure: Array,
    pairs: int = 0,
) -> int:
    """Which of some hulls hold which of hulls `first` up to `last`: scan_rows."""
    count: int = cover_kernels.scan_rows(
        outers, first, last, hulls.starts, hulls.column, hulls.pinned, hulls.spans, hulls.low,
        hulls.high, hulls.one_box, hulls.reads, hulls.read, hulls.attributes, above, below, sure,
        pairs,
    )  # fmt: skip
    return count


def hulls_alike(hulls: Hulls, outers: Array) -> Found:
    """Which of some hulls hold which of all."""
    room = len(outers) * len(hulls)
    above, below = np.empty(room, np.uint32), np.empty(room, np.uint32)
    sure = np.empty(room, np.uint8)
    count = scan(hulls, outers, 0, len(hulls), above, below, sure)
    return Found(above[:count], below[:count], sure[:count])
