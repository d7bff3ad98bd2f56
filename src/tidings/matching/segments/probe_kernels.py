"""The hot loops for one event; probe.py says what the arrays are.

bin_starts    int64 [C + 1]   where the bins of a column begin
bins          uint8           the bin of each coarse code, column after column
pairs         int64 [P, 4]    two columns, the first cell, bins of the second column
cells         uint32 [Q + 1]  where the records of a cell begin
records       uint16 [R, 10]  three tests of a box (the two of the pair, then column, low and width
                              of a third), 0, and the number of the box in two halves
groups        int64 [G, 5]    column, first and last single entry, greatest width, and where in
                              single_index the entries of its points are listed, or -1
single_low, single_high, single_box  uint32 [S]
single_first  uint16 [S, 3]   column, low and width of the next test of the box
single_index  uint32          for each code of a column where its entries begin
"""

from __future__ import annotations

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from tidings.matching.jit.compiling import kernel, short_kernel
from tidings.matching.jit.pointer_table import pointer
from tidings.matching.segments.join_kernels import extras_hold


@kernel
def count_cells(spans, pair, pairs, cells):  # type: ignore[no-untyped-def]
    """How many records each cell gets, at its place + 1; then where each cell begins.

    spans int64 [E, 4]: first and last bin of the first column and of the second; pair int64 [E].
    """
    for entry in range(spans.shape[0]):
        start, width = pairs[pair[entry], 2], pairs[pair[entry], 3]
        for row in range(spans[entry, 0], spans[entry, 1] + 1):
            for place in range(spans[entry, 2], spans[entry, 3] + 1):
                cells[start + row * width + place + 1] += 1
    for cell in range(cells.shape[0] - 1):
        cells[cell + 1] += cells[cell]


@kernel
def fill_cells(spans, pair, pairs, cells, content, records):  # type: ignore[no-untyped-def]
    """Put a copy of each entry's content (uint16 [E, 10]) into every cell that it spans."""
    place = cells[:-1].copy()
    for entry in range(spans.shape[0]):
        start, width = pairs[pair[entry], 2], pairs[pair[entry], 3]
        for row in range(spans[entry, 0], spans[entry, 1] + 1):
            for column in range(spans[entry, 2], spans[entry, 3] + 1):
                cell = start + row * width + column
                records[place[cell]] = content[entry]
                place[cell] += 1


@kernel
def code_of_integer(value, column, numbers, table, thresholds):  # type: ignore[no-untyped-def]
    """The code of an integer, from a table or by bisection."""
    first, last = numbers[column, 1], numbers[column, 2]
    if numbers[column, 3] == 1:
        lowest = numbers[column, 0]
        if value < lowest:
            return np.int64(table[first])
        if value >= lowest + (last - first):  # and not by a difference: that may overflow
            return np.int64(table[last - 1])
        return np.int64(table[first + (value - lowest)])
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if thresholds[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return numbers[column, 0] + (low - first)


@kernel
def first_from(values, first, last, least):  # type: ignore[no-untyped-def]
    """The place of the first of the sorted values [first, last) that is not below `least`."""
    while first < last:
        middle = (first + last) >> 1
        if np.int64(values[middle]) < least:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def left_holds(  # type: ignore[no-untyped-def]
    box,
    test,
    coarse,
    exact,
    box_tests,
    test_column,
    test_low,
    test_width,
    box_slot,
    box_flags,
    dead,
    box_extras,
    extra_kind,
    extra_column,
    extra_a,
    extra_b,
    set_low,
    set_high,
    list_base,
    list_starts,
    list_codes,
    list_state,
):
    """Whether a box passes its tests from number `test` on, and all that is not of 16 bits."""
    beyond = np.int64(box_tests[box + 1])
    while test < beyond:
        if np.uint16(coarse[test_column[test]] - test_low[test]) > test_width[test]:
            return False
        test += 1
    if dead[box_slot[box]]:
        return False
    return box_flags[box] & 1 == 0 or extras_hold(
        box_extras[box],
        box_extras[box + 1],
        0,
        extra_kind,
        extra_column,
        extra_a,
        extra_b,
        exact,
        set_low,
        set_high,
        list_base,
        list_starts,
        list_codes,
        list_state,
    )


# the types of the arrays in a book, in the order in which `probe` takes them out
BOOK = (
    np.int64,
    np.uint32,
    np.int64,
    np.uint8,
    np.int64,
    np.uint8,
    np.int64,
    np.uint32,
    np.uint16,
    np.int64,
    np.uint32,
    np.uint32,
    np.uint32,
    np.uint16,
    np.uint32,
    np.uint32,
    np.uint16,
    np.uint16,
    np.uint16,
    np.uint32,
    np.uint8,
    np.uint32,
    np.uint8,
    np.uint32,
    np.uint32,
    np.uint32,
    np.uint32,
    np.uint32,
)


@short_kernel
def probe(  # type: ignore[no-untyped-def]
    values,
    book,
    dead,
    list_base,
    list_starts,
    list_codes,
    list_state,
    slots_wanted,
    found,
):
    """One event against all boxes: those of pairs by cell, the others by their entry.

    values int64: the codes of all columns, then the numbers of the columns where an integer stands
    in place of its code; here it becomes one. book: the addresses of all that is the same for every
    event. found intp: gets the boxes that match, or their slots where these are wanted. Returns how
    many, or -1 when there is no room for more.
    """
    numbers = carray(pointer(book[0, 0]), (book[0, 1], 4), np.int64)
    table = carray(pointer(book[1, 0]), (book[1, 1],), np.uint32)
    thresholds = carray(pointer(book[2, 0]), (book[2, 1],), np.int64)
    shift = carray(pointer(book[3, 0]), (book[3, 1],), np.uint8)
    bin_starts = carray(pointer(book[4, 0]), (book[4, 1],), np.int64)
    bins = carray(pointer(book[5, 0]), (book[5, 1],), np.uint8)
    pairs = carray(pointer(book[6, 0]), (book[6, 1], 4), np.int64)
    cells = carray(pointer(book[7, 0]), (book[7, 1],), np.uint32)
    records = carray(pointer(book[8, 0]), (book[8, 1], 10), np.uint16)
    groups = carray(pointer(book[9, 0]), (book[9, 1], 5), np.int64)
    single_low = carray(pointer(book[10, 0]), (book[10, 1],), np.uint32)
    single_high = carray(pointer(book[11, 0]), (book[11, 1],), np.uint32)
    single_box = carray(pointer(book[12, 0]), (book[12, 1],), np.uint32)
    single_first = carray(pointer(book[13, 0]), (book[13, 1], 3), np.uint16)
    single_index = carray(pointer(book[14, 0]), (book[14, 1],), np.uint32)
    box_tests = carray(pointer(book[15, 0]), (book[15, 1],), np.uint32)
    test_column = carray(pointer(book[16, 0]), (book[16, 1],), np.uint16)
    test_low = carray(pointer(book[17, 0]), (book[17, 1],), np.uint16)
    test_width = carray(pointer(book[18, 0]), (book[18, 1],), np.uint16)
    box_slot = carray(pointer(book[19, 0]), (book[19, 1],), np.uint32)
    box_flags = carray(pointer(book[20, 0]), (book[20, 1],), np.uint8)
    box_extras = carray(pointer(book[21, 0]), (book[21, 1],), np.uint32)
    extra_kind = carray(pointer(book[22, 0]), (book[22, 1],), np.uint8)
    extra_column = carray(pointer(book[23, 0]), (book[23, 1],), np.uint32)
    extra_a = carray(pointer(book[24, 0]), (book[24, 1],), np.uint32)
    extra_b = carray(pointer(book[25, 0]), (book[25, 1],), np.uint32)
    set_low = carray(pointer(book[26, 0]), (book[26, 1],), np.uint32)
    set_high = carray(pointer(book[27, 0]), (book[27, 1],), np.uint32)
    width = shift.shape[0]
    for i in range(width, values.shape[0]):
        column = values[i]
        values[column] = code_of_integer(values[column], column, numbers, table, thresholds)
    exact = values[:width].reshape(width, 1)
    coarse, place = np.empty(width, np.uint16), np.empty(width, np.int64)
    for column in range(width):
        coarse[column] = values[column] >> shift[column]
        place[column] = bins[bin_starts[column] + np.int64(coarse[column])]
    count = 0
    # cells lie anywhere in memory: in a loop of their own, many are waited for at once
    spans = np.empty((pairs.shape[0], 2), np.int64)
    for pair in range(pairs.shape[0]):
        cell = pairs[pair, 2] + place[pairs[pair, 0]] * pairs[pair, 3] + place[pairs[pair, 1]]
        spans[pair, 0], spans[pair, 1] = cells[cell], cells[cell + 1]
    for pair in range(pairs.shape[0]):
        code_a, code_b = coarse[pairs[pair, 0]], coarse[pairs[pair, 1]]
        for at in range(spans[pair, 0], spans[pair, 1]):
            if (
                (np.uint16(code_a - records[at, 0]) <= records[at, 1])
                & (np.uint16(code_b - records[at, 2]) <= records[at, 3])
                & (np.uint16(coarse[records[at, 4]] - records[at, 5]) <= records[at, 6])
            ):
                box = np.int64(records[at, 8]) | np.int64(records[at, 9]) << 16
                if left_holds(
                    box,
                    np.int64(box_tests[box]) + 2,
                    coarse,
                    exact,
                    box_tests,
                    test_column,
                    test_low,
                    test_width,
                    box_slot,
                    box_flags,
                    dead,
                    box_extras,
                    extra_kind,
                    extra_column,
                    extra_a,
                    extra_b,
                    set_low,
                    set_high,
                    list_base,
                    list_starts,
                    list_codes,
                    list_state,
                ):
                    if count == found.shape[0]:
                        return -1
                    found[count] = box_slot[box] if slots_wanted else box
                    count += 1
    for group in range(groups.shape[0]):
        column, end = groups[group, 0], groups[group, 2]
        base = list_base[column]
        looks = 1
        if base >= 0:
            looks = list_starts[base + 1] - list_starts[base]
        for look in range(looks):
            code = values[column]
            if base >= 0:
                code = np.int64(list_codes[list_starts[base] + look])
            index = groups[group, 4]
            if index >= 0:
                first, last = np.int64(single_index[index + code]), single_index[index + code + 1]
            else:
                first = first_from(single_low, groups[group, 1], end, code - groups[group, 3])
                last = first_from(single_low, first, end, code + 1)
            for at in range(first, np.int64(last)):
                if (np.int64(single_high[at]) >= code) & (
                    np.uint16(coarse[single_first[at, 0]] - single_first[at, 1])
                    <= single_first[at, 2]
                ):
                    box = np.int64(single_box[at])
                    if left_holds(
                        box,
                        np.int64(box_tests[box]) + 1,
                        coarse,
                        exact,
                        box_tests,
                        test_column,
                        test_low,
                        test_width,
                        box_slot,
                        box_flags,
                        dead,
                        box_extras,
                        extra_kind,
                        extra_column,
                        extra_a,
                        extra_b,
                        set_low,
                        set_high,
                        list_base,
                        list_starts,
                        list_codes,
                        list_state,
                    ):
                        if count == found.shape[0]:
                            return -1
                        found[count] = box_slot[box] if slots_wanted else box
                        count += 1
    return count
