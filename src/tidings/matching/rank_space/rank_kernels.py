"""Kernels that encode whole columns of one type.

Shapes for n values of a column and K known strings, which are the strings that filters mention:

    starts int32 or int64 [n + 1], text uint8    the strings of the column
    offsets int64 [K + 1], data uint8            the known strings, sorted
    exact uint32 [K]                             the codes of the known strings
    out uint32 [n]                               output: the codes of the column
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from tidings.matching.jit.kernel_compiler import kernel


class IntegerColumn(IntEnum):
    """How the integers of a column are encoded: by a table or by bisection."""

    BASE = 0  # with a table, the integer at its first place; else the code of the least number
    FIRST = 1  # the places [FIRST, END) in the table, or in the thresholds
    END = 2
    IN_TABLE = 3  # 1 if there is a table


@kernel
def hash_bytes(data, first, last):  # type: ignore[no-untyped-def]
    """The FNV-1a hash of data[first:last] (uint8), with a final mix. This hash suits the short
    strings that filters contain."""
    value = np.uint64(0xCBF29CE484222325)
    for i in range(first, last):
        value = (value ^ np.uint64(data[i])) * np.uint64(0x100000001B3)
    return np.int64((value ^ (value >> np.uint64(29))) >> np.uint64(1))


@kernel
def same_bytes(a, a_first, b, b_first, size):  # type: ignore[no-untyped-def]
    """Whether a[a_first:] and b[b_first:] (uint8) begin with the same `size` bytes."""
    for i in range(size):  # noqa: SIM110  Numba has no all()
        if a[a_first + i] != b[b_first + i]:
            return False
    return True


@kernel
def fill_table(offsets, data, table):  # type: ignore[no-untyped-def]
    """Fill a hash table with open addressing with the numbers of the known strings. `table` is
    int32, its size is a power of two, and it is filled with -1 at first."""
    mask = table.shape[0] - 1
    for number in range(offsets.shape[0] - 1):
        place = hash_bytes(data, offsets[number], offsets[number + 1]) & mask
        while table[place] >= 0:
            place = (place + 1) & mask
        table[place] = number


@kernel
def rank_known_strings(  # type: ignore[no-untyped-def]
    starts,
    text,
    table,
    offsets,
    data,
    exact,
    unknown,
    out,
):
    """Encode strings by hash: a known string gets its code, any other string gets `unknown`
    (uint32). `fill_table` fills the table."""
    mask = table.shape[0] - 1
    for i in range(starts.shape[0] - 1):
        first, last = starts[i], starts[i + 1]
        size = last - first
        place = hash_bytes(text, first, last) & mask
        code = unknown
        while table[place] >= 0:
            number = table[place]
            begin = offsets[number]
            if offsets[number + 1] - begin == size and same_bytes(text, first, data, begin, size):
                code = exact[number]
                break
            place = (place + 1) & mask
        out[i] = code


@kernel
def compare_bytes(a, a_first, a_last, b, b_first, b_last):  # type: ignore[no-untyped-def]
    """Compare a[a_first:a_last] with b[b_first:b_last] (uint8). The result is -1 if a is below b, 0
    if they are equal, and 1 if a is above b. In UTF-8, the order of bytes is the order of code
    points."""
    size = min(a_last - a_first, b_last - b_first)
    for i in range(size):
        x, y = a[a_first + i], b[b_first + i]
        if x != y:
            return -1 if x < y else 1
    x_size, y_size = a_last - a_first, b_last - b_first
    if x_size == y_size:
        return 0
    return -1 if x_size < y_size else 1


@kernel
def rank_ordered_strings(starts, text, offsets, data, exact, gaps, out):  # type: ignore[no-untyped-def]
    """Encode strings by bisection in the sorted known strings. `gaps`, uint32 [K + 1], contains for
    each known string the code just below it, and at the end the code above all of them."""
    for i in range(starts.shape[0] - 1):
        first, last = starts[i], starts[i + 1]
        low, high = 0, offsets.shape[0] - 1
        code = -1
        while low < high:
            middle = (low + high) >> 1
            order = compare_bytes(text, first, last, data, offsets[middle], offsets[middle + 1])
            if order == 0:
                code = exact[middle]
                break
            if order < 0:
                high = middle
            else:
                low = middle + 1
        out[i] = code if code >= 0 else gaps[low]


@kernel
def rank_by_table(values, lowest, table, out):  # type: ignore[no-untyped-def]
    """Encode integers (int64 [n]) by one lookup, for thresholds that lie close together. `table`,
    uint32, contains the code of `lowest`, followed by the codes of the integers after it. Values
    below `lowest` get the first code of the table, and values beyond the end of the table get the
    last code."""
    top = table.shape[0] - 1
    for i in range(values.shape[0]):
        value = values[i]
        if value < lowest:
            out[i] = table[0]
        elif value > lowest + top:
            out[i] = table[top]
        else:
            out[i] = table[value - lowest]


@kernel
def rank_integers(values, thresholds, base, out):  # type: ignore[no-untyped-def]
    """Encode integers (int64 [n]) by bisection: the code is `base` plus the number of thresholds
    (int64, sorted) at or below the value."""
    for i in range(values.shape[0]):
        value = values[i]
        low, high = 0, thresholds.shape[0]
        while low < high:
            middle = (low + high) >> 1
            if thresholds[middle] <= value:
                low = middle + 1
            else:
                high = middle
        out[i] = base + low


@kernel
def code_of_integer(value, column, integers):  # type: ignore[no-untyped-def]
    """The code of one integer in a column, found by a table or by bisection; `integers` is an
    event_coder.IntegerCodes."""
    numbers, table, thresholds = integers.columns, integers.table, integers.thresholds
    first, last = numbers[column, IntegerColumn.FIRST], numbers[column, IntegerColumn.END]
    if numbers[column, IntegerColumn.IN_TABLE] == 1:
        lowest = numbers[column, IntegerColumn.BASE]
        if value < lowest:
            return np.int64(table[first])
        if value >= lowest + (last - first):  # the difference of both could overflow
            return np.int64(table[last - 1])
        return np.int64(table[first + (value - lowest)])
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if thresholds[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return numbers[column, IntegerColumn.BASE] + (low - first)
