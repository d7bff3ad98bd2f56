"""The join of hulls with hulls: prepare the arrays for cover_kernels.py, and run the kernels."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.matching.covering.cover_kernels import (
    JoinInput,
    PairRoom,
    join_rows,
    order_tests,
    scan_rows,
)
from tidings.matching.covering.hulls import Hulls
from tidings.matching.segments.join_kernels import sort_by_code

Array = npt.NDArray[Any]
BITS = 16  # bits per code in the matrix of a join


class HullPairs(msgspec.Struct, frozen=True):
    """The hull of above[i] contains the hull of below[i]; `sure` says whether this proves a
    covering."""

    above: Array  # uint32
    below: Array  # uint32
    sure: Array  # uint8


class CoverJoin:
    """Finds which hulls contain which. Safe to use from several threads.

    A hull without attribute tests has no slice to search, so it is compared with all other hulls,
    which takes about 10 nanoseconds for each of them. A hull without any tests contains all others,
    and is left out.
    """

    def __init__(self, hulls: Hulls, prepared: JoinInput | None = None) -> None:
        """Pass `prepared` if these hulls were already prepared, perhaps by another process."""
        self.hulls = hulls
        self.prepared = prepared or _prepare(hulls)
        self.seen = 0
        self._lock = threading.Lock()

    def pairs(self, first: int, last: int, room: int) -> HullPairs | None:
        """The coverers of the hulls [first, last), provided that no hull covers a hull before it.
        Return None if there are more than max(room, number of hulls) pairs."""
        out = _make_room(max(room, self.hulls.hull_count))
        seen = np.zeros(1, np.int64)
        count = join_rows(self.hulls, self.prepared, first, last, out, seen)
        if count >= 0:
            bare = self.prepared.bare[self.prepared.bare < last]
            count = scan_rows(self.hulls, bare, first, last, out, count)
            seen[0] += len(bare) * (last - first)
        with self._lock:
            self.seen += int(seen[0])
        if count < 0:
            return None
        return HullPairs(*(array[:count].copy() for array in out))


def hulls_alike(hulls: Hulls, outers: Array) -> HullPairs:
    """For each hull in `outers`, find the hulls that it contains, among all hulls."""
    out = _make_room(len(outers) * hulls.hull_count)
    count = scan_rows(hulls, outers, 0, hulls.hull_count, out, 0)
    return HullPairs(*(array[:count] for array in out))


def _make_room(size: int) -> PairRoom:
    return PairRoom(
        above=np.empty(size, np.uint32),
        below=np.empty(size, np.uint32),
        sure=np.empty(size, np.uint8),
    )


def _prepare(hulls: Hulls) -> JoinInput:
    widths = [max(0, (int(size) - 1).bit_length() - BITS) for size in np.diff(hulls.base)]
    shift = np.array(widths, np.uint8)
    order = np.zeros(len(hulls.column), np.uint32)
    order_tests(hulls, order)
    tests_no_attribute = hulls.computed == hulls.starts[:-1]
    tests_nothing = (hulls.one_box != 0) & (hulls.starts[1:] == hulls.starts[:-1])
    return JoinInput(
        entries=_entries(hulls, order),
        order=order,
        shift=shift,
        exact=_find_undecided(hulls, shift),
        bare=np.nonzero(tests_no_attribute & ~tests_nothing)[0],
    )


def _find_undecided(hulls: Hulls, shift: Array) -> Array:
    """Find the hulls that need an exact check as the outer hull: those that have sets with several
    spans, shifted codes, computed terms, or several boxes."""
    rough = (np.diff(hulls.spans) > 1) | (shift[hulls.column] > 0)
    rough |= hulls.column >= hulls.attributes
    total = np.concatenate([[0], np.cumsum(rough)])
    some = total[hulls.starts[1:]] > total[hulls.starts[:-1]]
    undecided: Array = (some | (hulls.one_box == 0)).astype(np.uint8)
    return undecided


def _entries(hulls: Hulls, order: Array) -> Array:
    """The hulls that test attributes, sorted by the column and first code of their access tests."""
    numbers = np.nonzero(hulls.computed > hulls.starts[:-1])[0]
    access = order[hulls.starts[numbers]]
    place = hulls.base[hulls.column[access]] + hulls.low[hulls.spans[access]]
    by_place, starts = np.empty(len(numbers), np.uint32), np.empty(hulls.base[-1] + 1, np.int64)
    sort_by_code(place.astype(np.uint32), int(hulls.base[-1]), by_place, starts)
    return numbers[by_place].astype(np.uint32)
