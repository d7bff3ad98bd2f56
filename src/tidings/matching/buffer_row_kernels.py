"""The hot loop over the rows of a batch: which rows may match one of a few filters?

    numbers     float64 [K, R]: for each column of the batch, the values as doubles
    hashes      int64 [K, R]: the hashes of strings
    kinds       uint8 [K, R]: NOTHING, NUMBER, STRING or ANYTHING

The kernels keep the GIL: they are short, and waiting for the GIL afterwards would take longer.
"""

from __future__ import annotations

import numpy as np

from tidings.matching.jit.kernel_compiler import short_kernel
from tidings.matching.rank_space.rank_kernels import hash_bytes

# Kinds of values, and of intervals. NOTHING: null or absent. ANYTHING: matches all but NOTHING.
NOTHING, NUMBER, STRING, ANYTHING = range(4)


@short_kernel
def hash_strings(data, offsets, out):  # type: ignore[no-untyped-def]
    """The hash of each string data[offsets[i] : offsets[i + 1]]; data uint8, offsets int64, out
    int64."""
    for at in range(out.shape[0]):
        out[at] = hash_bytes(data, offsets[at], offsets[at + 1])


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
        if kind[at] == value_kind:
            if value_kind == STRING:
                if hashes[at] == hash_:
                    return True
            elif low[at] <= number <= high[at]:
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
