"""The hot loops for a single event; probe.py explains the data structure.

The letters in sizes: C columns, P pairs, Q cells, R records, G groups, S single entries.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.matching.array_fields import ArrayField, Int64, UInt8, UInt32
from tidings.matching.jit.kernel_compiler import kernel, short_kernel
from tidings.matching.jit.pointer_table import views_of
from tidings.matching.rank_space.event_coder import IntegerCodes
from tidings.matching.rank_space.rank_kernels import code_of_integer
from tidings.matching.segments.join_kernels import ListColumns, extras_hold, first_from
from tidings.matching.segments.segment import Arrays

Array = npt.NDArray[Any]


class Pair(IntEnum):
    """The columns of `pairs`. Each pair consists of two columns of the segment, A and B, and has a
    grid."""

    A = 0
    B = 1
    CELL = 2  # the first cell
    BINS = 3  # how many bins B has


class Record(IntEnum):
    """The columns of `records`: three tests of a box, and its number."""

    A_LOW = 0
    A_WIDTH = 1
    B_LOW = 2
    B_WIDTH = 3
    C = 4  # the column of the third test
    C_LOW = 5
    C_WIDTH = 6
    UNUSED = 7
    BOX = 8  # the low half of the number of the box
    BOX_HIGH = 9  # the high half


class Group(IntEnum):
    """The columns of `groups`. A group is a range of single entries of one column, of similar
    width."""

    COLUMN = 0
    FIRST = 1  # the entries [FIRST, END)
    END = 2
    WIDTH = 3  # the greatest width of an entry
    INDEX = 4  # where the index of points of the group begins in single_index; -1 if there is none


class Interval(IntEnum):
    """The columns of an array of tests: the number of a column of the segment, and an interval of
    codes."""

    COLUMN = 0
    LOW = 1
    WIDTH = 2


class BinSpan(IntEnum):
    """The columns of an array of spans. A span is the bins of A and of B that an entry touches."""

    A_FIRST = 0
    A_LAST = 1
    B_FIRST = 2
    B_LAST = 3


class Probe(NamedTuple):
    """The index for single events. The fields are also the names of files in a snapshot."""

    bin_starts: Int64  # [C + 1]: where the bins of a column begin
    bins: UInt8  # the bin of each coarse code, column after column
    pairs: Annotated[Array, ArrayField(np.int64, len(Pair))]  # [P]
    cells: UInt32  # [Q + 1]: where the records of a cell begin
    records: Annotated[Array, ArrayField(np.uint16, len(Record))]  # [R]
    groups: Annotated[Array, ArrayField(np.int64, len(Group))]  # [G]
    single_low: UInt32  # [S]
    single_high: UInt32  # [S]
    single_box: UInt32  # [S]
    single_first: Annotated[Array, ArrayField(np.uint16, len(Interval))]
    """[S]: the next test of the entry's box."""
    single_index: UInt32  # where the entries of each code of an indexed column begin

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


TABLE = (IntegerCodes, Arrays, Probe)  # the named tuples in the pointer table of `probe`
_views = views_of(*TABLE)


@kernel
def count_cells(spans, pair, pairs, cells):  # type: ignore[no-untyped-def]
    """Count the records of each cell, and compute from the counts where each cell begins.

    spans int64 [E, len(BinSpan)]; pair int64 [E]: the pair of each entry; pairs, cells: see Probe.
    """
    for entry in range(spans.shape[0]):
        start, width = pairs[pair[entry], Pair.CELL], pairs[pair[entry], Pair.BINS]
        for row in range(spans[entry, BinSpan.A_FIRST], spans[entry, BinSpan.A_LAST] + 1):
            for place in range(spans[entry, BinSpan.B_FIRST], spans[entry, BinSpan.B_LAST] + 1):
                cells[start + row * width + place + 1] += 1
    for cell in range(cells.shape[0] - 1):
        cells[cell + 1] += cells[cell]


@kernel
def fill_cells(spans, pair, pairs, cells, content, records):  # type: ignore[no-untyped-def]
    """Copy the content of each entry (uint16 [E, len(Record)]) into every cell that the entry
    spans. The other arguments are those of `count_cells`."""
    place = cells[:-1].copy()
    for entry in range(spans.shape[0]):
        start, width = pairs[pair[entry], Pair.CELL], pairs[pair[entry], Pair.BINS]
        for row in range(spans[entry, BinSpan.A_FIRST], spans[entry, BinSpan.A_LAST] + 1):
            for column in range(spans[entry, BinSpan.B_FIRST], spans[entry, BinSpan.B_LAST] + 1):
                cell = start + row * width + column
                records[place[cell]] = content[entry]
                place[cell] += 1


@kernel
def left_holds(table, box, skipped, coarse, exact, dead, lists):  # type: ignore[no-untyped-def]
    """Whether a box passes its extras, and all its tests after the first `skipped` ones.

    This function takes the table instead of its views: the views consist of 150 numbers, all of
    which would be put on the stack for each call. `table` is as in `probe`; `coarse` (uint16 [C])
    and `exact` (int64 [C, 1]) are the codes; `dead` is uint8, by slot; `lists` is a ListColumns.
    """
    _, arrays, _ = _views(table)
    test, beyond = np.int64(arrays.box_tests[box]) + skipped, np.int64(arrays.box_tests[box + 1])
    while test < beyond:
        code = coarse[arrays.test_column[test]]
        if np.uint16(code - arrays.test_low[test]) > arrays.test_width[test]:
            return False
        test += 1
    if dead[arrays.box_slot[box]]:
        return False
    return arrays.box_flags[box] & 1 == 0 or extras_hold(arrays, box, 0, exact, lists)


@short_kernel
def probe(  # type: ignore[no-untyped-def]
    values,
    table,
    dead,
    list_base,
    list_starts,
    list_codes,
    list_state,
    slots_wanted,
    found,
):
    """Match one event against all boxes: by cell if the pair of a box has a grid, else by entry.

    Returns how many boxes or slots were found, or -1 if `found` is full. Arguments:

        values   int64: one value per column, then the numbers of the columns whose value is an
                 integer instead of a code; the kernel replaces each such integer with its code
        table    the pointer table of TABLE
        dead     uint8, by slot
        list_*   the arrays of ListColumns
        found    intp: receives the boxes that match, or their slots if `slots_wanted`
    """
    integers, arrays, tables = _views(table)
    lists = ListColumns(list_base, list_starts, list_codes, list_state)
    shift, box_slot = arrays.shift, arrays.box_slot
    bins, bin_starts = tables.bins, tables.bin_starts
    pairs, cells, records = tables.pairs, tables.cells, tables.records
    groups, single_low, single_high = tables.groups, tables.single_low, tables.single_high
    single_box, single_first = tables.single_box, tables.single_first
    single_index = tables.single_index
    width = shift.shape[0]
    for i in range(width, values.shape[0]):
        column = values[i]
        values[column] = code_of_integer(values[column], column, integers)
    exact = values[:width].reshape(width, 1)
    coarse, place = np.empty(width, np.uint16), np.empty(width, np.int64)
    for column in range(width):
        coarse[column] = values[column] >> shift[column]
        place[column] = bins[bin_starts[column] + np.int64(coarse[column])]
    count = 0
    # cells are scattered in memory; because this loop is separate, the processor fetches many at
    # once
    slices = np.empty((pairs.shape[0], 2), np.int64)  # where the records in a cell begin and end
    for pair in range(pairs.shape[0]):
        row, column = place[pairs[pair, Pair.A]], place[pairs[pair, Pair.B]]
        cell = pairs[pair, Pair.CELL] + row * pairs[pair, Pair.BINS] + column
        slices[pair, 0], slices[pair, 1] = cells[cell], cells[cell + 1]
    for pair in range(pairs.shape[0]):
        code_a, code_b = coarse[pairs[pair, Pair.A]], coarse[pairs[pair, Pair.B]]
        for at in range(slices[pair, 0], slices[pair, 1]):
            code_c = coarse[records[at, Record.C]]
            if (
                (np.uint16(code_a - records[at, Record.A_LOW]) <= records[at, Record.A_WIDTH])
                & (np.uint16(code_b - records[at, Record.B_LOW]) <= records[at, Record.B_WIDTH])
                & (np.uint16(code_c - records[at, Record.C_LOW]) <= records[at, Record.C_WIDTH])
            ):
                high = np.int64(records[at, Record.BOX_HIGH])
                box = np.int64(records[at, Record.BOX]) | high << 16
                if left_holds(table, box, 2, coarse, exact, dead, lists):
                    if count == found.shape[0]:
                        return -1
                    found[count] = box_slot[box] if slots_wanted else box
                    count += 1
    for group in range(groups.shape[0]):
        column, end = groups[group, Group.COLUMN], groups[group, Group.END]
        base = list_base[column]
        looks = 1
        if base >= 0:
            looks = list_starts[base + 1] - list_starts[base]
        for look in range(looks):
            code = values[column]
            if base >= 0:
                code = np.int64(list_codes[list_starts[base] + look])
            index = groups[group, Group.INDEX]
            if index >= 0:
                first, last = np.int64(single_index[index + code]), single_index[index + code + 1]
            else:
                least = code - groups[group, Group.WIDTH]
                first = first_from(single_low, groups[group, Group.FIRST], end, least)
                last = first_from(single_low, first, end, code + 1)
            for at in range(first, np.int64(last)):
                if (np.int64(single_high[at]) >= code) & (
                    np.uint16(
                        coarse[single_first[at, Interval.COLUMN]] - single_first[at, Interval.LOW]
                    )
                    <= single_first[at, Interval.WIDTH]
                ):
                    box = np.int64(single_box[at])
                    if left_holds(table, box, 1, coarse, exact, dead, lists):
                        if count == found.shape[0]:
                            return -1
                        found[count] = box_slot[box] if slots_wanted else box
                        count += 1
    return count
