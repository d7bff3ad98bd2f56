"""The join of hulls with hulls: the kernel of cover_kernels.py with its arguments."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.matching import cover_kernels
from tidings.matching.hulls import Hulls
from tidings.matching.kernels import sort_by_code

Array = npt.NDArray[Any]
BITS = 16  # of a code in the matrix of a join


class Found(msgspec.Struct, frozen=True):
    """above[i] covers below[i], at least by their hulls; `sure` where that decides it."""

    above: Array  # uint32
    below: Array  # uint32
    sure: Array  # uint8


class CoverJoin:
    """Which hulls, of those that are chosen, hold which. Safe to use from several threads.

    A hull that tests no attribute has no slice to look in: `pairs` leaves it out, and `held_by`
    goes through all hulls for it, at some 10 nanoseconds each.
    """

    def __init__(self, hulls: Hulls, chosen: Array) -> None:
        self.hulls = hulls
        self.seen = 0
        self._lock = threading.Lock()
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
        self.entries = self._entries(chosen)

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

    def _entries(self, chosen: Array) -> Array:
        """The chosen hulls by the column and first code of their access tests."""
        hulls = self.hulls
        numbers = np.nonzero((chosen != 0) & (hulls.computed > hulls.starts[:-1]))[0]
        access = self._order[hulls.starts[numbers]]
        place = hulls.base[hulls.column[access]] + hulls.low[hulls.spans[access]]
        order, starts = np.empty(len(numbers), np.uint32), np.empty(hulls.base[-1] + 1, np.int64)
        sort_by_code(place.astype(np.uint32), int(hulls.base[-1]), order, starts)
        return numbers[order].astype(np.uint32)

    def held_by(self, outer: int) -> Found:
        """All hulls that this one holds."""
        hulls = self.hulls
        below, sure = np.empty(len(hulls), np.uint32), np.empty(len(hulls), np.uint8)
        count = cover_kernels.scan_rows(
            outer, hulls.starts, hulls.column, hulls.pinned, hulls.spans, hulls.low, hulls.high,
            hulls.one_box, hulls.reads, hulls.read, hulls.attributes, below, sure,
        )  # fmt: skip
        self.seen += len(hulls)
        return Found(np.full(count, outer, np.uint32), below[:count], sure[:count])

    def pairs(self, first: int, last: int, room: int, ordered: bool) -> Found | None:
        """The coverers of hulls `first` up to `last`; None when there are more than `room`, or than
        there are hulls if that is more. `ordered`: no hull covers one before it."""
        hulls = self.hulls
        room = max(room, len(hulls))
        above, below = np.empty(room, np.uint32), np.empty(room, np.uint32)
        sure, seen = np.empty(room, np.uint8), np.zeros(1, np.int64)
        count = cover_kernels.join_rows(
            first, last, last if ordered else len(hulls), self.entries, self._order, self._shift,
            self._exact, hulls.starts, hulls.computed, hulls.column, hulls.pinned, hulls.spans,
            hulls.low, hulls.high, hulls.one_box, hulls.base, hulls.reads, hulls.read,
            hulls.attributes, above, below, sure, seen,
        )  # fmt: skip
        with self._lock:
            self.seen += int(seen[0])
        if count < 0:
            return None
        return Found(above[:count].copy(), below[:count].copy(), sure[:count].copy())
