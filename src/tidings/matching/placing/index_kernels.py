"""The hot loops that find candidates among compiled filters.

There are two indexes, for C columns. The segment itself is the index for filters above: its access
tests are searched for the code of a corner. `Corners` is the index for filters below: the tests of
one box of each filter, sorted by column and first position, so that the tests inside a set are a
few slices. A *mask* has one bit for each column that a box tests (modulo 64). Masks reject nearly
all candidates without visiting their boxes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.matching.jit.compiling import kernel
from tidings.matching.segments.join_kernels import first_from

Array = npt.NDArray[Any]


class Corners(NamedTuple):
    """T tests of corner boxes, sorted by (column, low)."""

    starts: Array  # int64 [C + 1]: where the tests of a column begin
    low: Array  # int32 [T]: the first position of the set
    high: Array  # int32 [T]: the last position
    mask: Array  # uint64 [T]: the columns of the box
    slot: Array  # uint32 [T]


class EncodedPiece(NamedTuple):
    """K tests of a piece, as spans of positions, and the columns that a corner must test."""

    columns: Array  # int64 [K]
    starts: Array  # int64 [K + 1]: where the spans of a test begin
    low: Array  # int64
    high: Array  # int64
    mask: np.uint64


@kernel
def passes(arrays, box, columns, codes):  # type: ignore[no-untyped-def]
    """Whether a corner passes all tests of a box except its access test, by coarse codes."""
    for test in range(np.int64(arrays.box_tests[box]), np.int64(arrays.box_tests[box + 1])):
        wanted, is_there = np.int64(arrays.test_column[test]), False
        for at in range(columns.shape[0]):
            if columns[at] == wanted:
                code = np.uint16(codes[at] >> np.int64(arrays.shift[wanted]))
                if np.uint16(code - arrays.test_low[test]) > arrays.test_width[test]:
                    return False
                is_there = True
        if not is_there:
            return False
    return True


@kernel
def stab(columns, codes, arrays, masks, mask, out):  # type: ignore[no-untyped-def]
    """The slots of boxes that may contain a corner; a slot may occur repeatedly.

    columns, codes int64 [k]: the segment's columns of the corner, including column 0. masks uint64
    [B]: by box of the segment. Returns the number of slots (uint32) in `out`, or -1 if it is full.
    """
    count, room = 0, out.shape[0]
    group_column = arrays.group_column
    for at in range(columns.shape[0]):
        group = first_from(group_column, 0, group_column.shape[0], columns[at])
        code = codes[at]
        while group < group_column.shape[0] and group_column[group] == columns[at]:
            end = arrays.group_end[group]
            least = code - arrays.group_width[group]
            entry = first_from(arrays.entry_low, arrays.group_start[group], end, least)
            last = first_from(arrays.entry_low, entry, end, code + 1)
            while entry < last:
                if np.int64(arrays.entry_high[entry]) >= code:
                    box = arrays.entry_box[entry]
                    if masks[box] & ~mask == np.uint64(0) and passes(arrays, box, columns, codes):
                        if count == room:
                            return -1
                        out[count] = arrays.box_slot[box]
                        count += 1
                entry += 1
            group += 1
    return count


@kernel
def count_inside(corners, piece, test):  # type: ignore[no-untyped-def]
    """How many corners lie in the set of one test of a piece."""
    begin, end = corners.starts[piece.columns[test]], corners.starts[piece.columns[test] + 1]
    total = 0
    for span in range(piece.starts[test], piece.starts[test + 1]):
        first = first_from(corners.low, begin, end, piece.low[span])
        total += first_from(corners.low, first, end, piece.high[span] + 1) - first
    return total


@kernel
def best_test(corners, piece):  # type: ignore[no-untyped-def]
    """The test of a piece that the fewest corners pass, and how many pass it."""
    best, least = 0, np.int64(1) << 62
    for test in range(piece.columns.shape[0]):
        total = count_inside(corners, piece, test)
        if total < least:
            best, least = test, total
    return best, least


@kernel
def sift(corners, piece, test, is_tight, out):  # type: ignore[no-untyped-def]
    """The slots whose corners pass one test of a piece and have all its columns.

    If the piece is tight, the set of the slot must not extend beyond the set of the piece. `out`
    (uint32) has room for all corners that `best_test` counts. Returns the number of slots.
    """
    begin, end = corners.starts[piece.columns[test]], corners.starts[piece.columns[test] + 1]
    last = piece.starts[test + 1]
    highest = piece.high[last - 1] if last > piece.starts[test] else 0
    count = 0
    for span in range(piece.starts[test], last):
        at = first_from(corners.low, begin, end, piece.low[span])
        beyond = first_from(corners.low, at, end, piece.high[span] + 1)
        while at < beyond:
            if piece.mask & ~corners.mask[at] == np.uint64(0) and (
                not is_tight or np.int64(corners.high[at]) <= highest
            ):
                out[count] = corners.slot[at]
                count += 1
            at += 1
    return count
