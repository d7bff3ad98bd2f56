"""The hot loops that find candidates among compiled filters.

There are two indexes, each for C columns. The segment itself is the index for filters above: its
access tests are searched for the code of a corner. `Corners` is the index for filters below: the
tests of one box of each filter, sorted by column and first position, so that the tests inside a set
are a few slices. A *mask* has one bit for each column that a box tests (modulo 64). A *code* has
four bits for each of the first eight tests, in the order of the bits in the mask: roughly where the
set of the test begins. Masks and codes reject nearly all candidates, whose boxes then need not be
fetched from memory.

`corners` is `Corners`, `piece` is `EncodedPiece`, and `arrays` is `Arrays` of segment.py; their
definitions give the dtype and shape of each array. Boxes, tests and positions are integers, and
masks are uint64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.matching.jit.kernel_compiler import kernel
from tidings.matching.segments.join_kernels import first_from

Array = npt.NDArray[Any]
NIBBLES = 8  # how many tests a code covers
STEPS = 15  # how many coarse positions a column has; as a position, 15 means unknown


class Corners(NamedTuple):
    """T tests of corner boxes, sorted by (column, low)."""

    starts: Array  # int64 [C + 1]: where the tests of a column begin
    low: Array  # int32 [T]: the first position of the test's set
    high: Array  # int32 [T]: the last position of the test's set
    mask: Array  # uint64 [T]: the mask of all columns of the box
    code: Array  # uint32 [T]: the code of the test's box
    slot: Array  # uint32 [T]
    ends: Array  # int64 [C]: one more than the last position of a column


class EncodedPiece(NamedTuple):
    """The K tests of a piece as spans of positions, and the columns that a corner must test."""

    columns: Array  # int64 [K]
    starts: Array  # int64 [K + 1]: where the spans of a test begin
    low: Array  # int64
    high: Array  # int64
    mask: np.uint64


@kernel
def passes(arrays, box, columns, codes):  # type: ignore[no-untyped-def]
    """Whether a corner passes, by coarse codes, all tests of a box except its access test. For the
    arguments, see `stab`."""
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
    [B]: one for each box of the segment. Returns the number of slots that were written to `out`
    (uint32), or -1 if `out` is full.
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
    """How many corners lie in the set of this test."""
    begin, end = corners.starts[piece.columns[test]], corners.starts[piece.columns[test] + 1]
    total = 0
    for span in range(piece.starts[test], piece.starts[test + 1]):
        first = first_from(corners.low, begin, end, piece.low[span])
        total += first_from(corners.low, first, end, piece.high[span] + 1) - first
    return total


@kernel
def best_test(corners, piece):  # type: ignore[no-untyped-def]
    """Of the tests in a piece, the one that the fewest corners pass, and their number."""
    best, least = 0, np.int64(1) << 62
    for test in range(piece.columns.shape[0]):
        total = count_inside(corners, piece, test)
        if total < least:
            best, least = test, total
    return best, least


@kernel
def coarse(position, end):  # type: ignore[no-untyped-def]
    """Convert a position among the `end` positions of a column to one of STEPS values."""
    return min(max(position, 0) * STEPS // end, STEPS - 1)


@kernel
def count_bits(mask):  # type: ignore[no-untyped-def]
    """The number of bits in a mask (uint64)."""
    mask -= (mask >> np.uint64(1)) & np.uint64(0x5555555555555555)
    twos = np.uint64(0x3333333333333333)
    mask = (mask & twos) + ((mask >> np.uint64(2)) & twos)
    mask = (mask + (mask >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (mask * np.uint64(0x0101010101010101)) >> np.uint64(56)


@kernel
def encode_boxes(boxed, ends, out):  # type: ignore[no-untyped-def]
    """Write the codes of all boxes to `out`, uint32 [B]. If two columns of a box share a bit of the
    mask, it is unknown which test each part of the code belongs to, so the whole code counts as
    unknown."""
    for box in range(out.shape[0]):
        first, last = boxed.tests[box], boxed.tests[box + 1]
        code = np.uint32(0xFFFFFFFF)
        for test in range(first, last):
            bit, rank, is_alone = boxed.column[test] % 64, 0, True
            for other in range(first, last):
                beside = boxed.column[other] % 64
                rank += beside < bit
                is_alone = is_alone and (other == test or beside != bit)
            if not is_alone:
                code = np.uint32(0xFFFFFFFF)
                break
            if rank < NIBBLES and boxed.spans[test] < boxed.spans[test + 1]:
                low = np.int64(boxed.low[boxed.spans[test]])
                nibble = np.uint32(STEPS - coarse(low, ends[boxed.column[test]]))
                code ^= nibble << np.uint32(4 * rank)
        out[box] = code


@kernel
def prepare_codes(corners, piece, below, first, last):  # type: ignore[no-untyped-def]
    """For each test of a piece, find the bits that a mask has before the column of the test, and
    the coarse positions of its set. The results are written to `below` (uint64 [K]), and to `first`
    and `last` (int64 [K])."""
    for test in range(piece.columns.shape[0]):
        column, end = piece.columns[test], corners.ends[piece.columns[test]]
        below[test] = (np.uint64(1) << np.uint64(column % 64)) - np.uint64(1)
        begin, beyond = piece.starts[test], piece.starts[test + 1]
        first[test] = coarse(np.int64(piece.low[begin]), end) if begin < beyond else 0
        last[test] = coarse(np.int64(piece.high[beyond - 1]), end) if begin < beyond else STEPS


@kernel
def code_fits(code, mask, below, first, last):  # type: ignore[no-untyped-def]
    """Whether all tests of a box may begin in the sets of a piece; see `prepare_codes`.
    code: uint32."""
    for test in range(below.shape[0]):
        rank = count_bits(mask & below[test])
        if rank < np.uint64(NIBBLES):
            nibble = np.int64((np.uint64(code) >> (rank << np.uint64(2))) & np.uint64(15))
            if nibble != STEPS and (nibble < first[test] or nibble > last[test]):
                return False
    return True


@kernel
def sift(corners, piece, test, is_tight, out):  # type: ignore[no-untyped-def]
    """The slots of corners that pass one test of a piece, have all its columns, and fit by code.

    If the piece is tight, the set of the slot must not extend beyond the set of the piece. `out`
    (uint32) has room for all corners that `best_test` counts. Returns the number of slots.
    """
    begin, end = corners.starts[piece.columns[test]], corners.starts[piece.columns[test] + 1]
    last = piece.starts[test + 1]
    highest = piece.high[last - 1] if last > piece.starts[test] else 0
    tests = piece.columns.shape[0]
    before = np.empty(tests, np.uint64)
    least, most = np.empty(tests, np.int64), np.empty(tests, np.int64)
    prepare_codes(corners, piece, before, least, most)
    count = 0
    for span in range(piece.starts[test], last):
        at = first_from(corners.low, begin, end, piece.low[span])
        beyond = first_from(corners.low, at, end, piece.high[span] + 1)
        while at < beyond:
            if (
                piece.mask & ~corners.mask[at] == np.uint64(0)
                and (not is_tight or np.int64(corners.high[at]) <= highest)
                and code_fits(corners.code[at], corners.mask[at], before, least, most)
            ):
                out[count] = corners.slot[at]
                count += 1
            at += 1
    return count
