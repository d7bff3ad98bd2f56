"""The hot loop over the rows of a batch: which rows may match one of a few filters?

    numbers     float64 [K, R]: for each column of the batch, the values as doubles, in their order
    hashes      int64 [K, R]: the hashes of strings
    kinds       uint8 [K, R]: the kinds of the values

The kernels keep the GIL: they are short, and waiting for the GIL afterwards would take longer.
"""

from __future__ import annotations

import numpy as np

from tidings.matching.jit.kernel_compiler import short_kernel
from tidings.matching.rank_space.rank_kernels import hash_bytes

# Kinds of values, and of intervals. NOTHING: null or absent. ANYTHING: matches all but NOTHING.
# STRING: as an interval, one string, compared by hash. STRINGS: an interval of strings.
NOTHING, NUMBER, STRING, ANYTHING, STRINGS, BOOLEAN, TIME = range(7)
PREFIX = 6  # a string is compared by this many bytes; a double holds them exactly


@short_kernel
def hash_strings(data, offsets, hashes, numbers):  # type: ignore[no-untyped-def]
    """The hash and the first bytes, as a number, of each string data[offsets[i] : offsets[i + 1]].
    data uint8, read-only; offsets int64, read-only; hashes int64; numbers float64."""
    for at in range(hashes.shape[0]):
        first, last = offsets[at], offsets[at + 1]
        hashes[at] = hash_bytes(data, first, last)
        number = 0.0
        for place in range(first, first + PREFIX):
            number *= 256.0
            if place < last:
                number += data[place]
        numbers[at] = number


@short_kernel
def may_take(first, last, kind, low, high, hashes, value_kind, number, hash_):  # type: ignore[no-untyped-def]
    """May one of the intervals [first, last) contain a value?"""
    if value_kind == NOTHING:
        return False
    if value_kind == ANYTHING:
        return True
    for at in range(first, last):
        if kind[at] == ANYTHING:
            return True
        if kind[at] == STRING:
            is_inside = hashes[at] == hash_
        else:
            is_inside = low[at] <= number <= high[at]
        if is_inside and (kind[at] == value_kind or (kind[at] == STRINGS and value_kind == STRING)):
            return True
    return False


@short_kernel
def mark_rows(boxes, terms, tests, kind, low, high, hashes, columns, batch, found):  # type: ignore[no-untyped-def]
    """Mark the rows that may lie in a box.

    boxes    int64 [B + 1]: the tests of each box
    terms    int64 [T]: the term of each test
    tests    int64 [T + 1]: the intervals of each test
    kind, low, high, hashes    uint8, float64, float64, int64 [I]: the intervals
    columns  int64: for each term, the column of the batch; -1 if the batch lacks it
    batch    (kinds, numbers, hashes)
    found    uint8 [R]: 1 for a row that may match
    """
    value_kinds, numbers, value_hashes = batch
    for box in range(boxes.shape[0] - 1):
        first, last = boxes[box], boxes[box + 1]
        is_there = True
        for test in range(first, last):
            if columns[terms[test]] < 0:
                is_there = False
                break
        if not is_there:
            continue
        for row in range(found.shape[0]):
            if found[row] != 0:
                continue
            inside = np.uint8(1)
            for test in range(first, last):
                column = columns[terms[test]]
                if not may_take(
                    tests[test], tests[test + 1], kind, low, high, hashes,
                    value_kinds[column, row], numbers[column, row], value_hashes[column, row],
                ):  # fmt: skip
                    inside = np.uint8(0)
                    break
            found[row] = inside
