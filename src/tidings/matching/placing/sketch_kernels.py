"""The hot loops over sketches. They pass over all boxes, and reject nearly every box by its mask
alone.

The tests of a box are the rows from starts[box] to starts[box + 1], sorted by column. A row has the
words COLUMN, LOW, HIGH, HASH and POINT. LOW and HIGH are keys of cuts. The order of keys is that of
the cuts: `a.low <= b.low` holds if it holds for the cuts.

These kernels keep the GIL. The kernels are short; if they released the GIL, placing a new filter
would have to wait for the GIL after each kernel.
"""

from __future__ import annotations

import numpy as np

from tidings.matching.jit.kernel_compiler import short_kernel

COLUMN, LOW, HIGH, HASH, POINT = range(5)  # HASH: the first cut; POINT: 1 if one value
WORDS = 5


@short_kernel
def is_around(tests, first, last, corner):  # type: ignore[no-untyped-def]
    """May the box with the tests [first, last) contain a corner?
    tests, corner uint64 [n, WORDS]."""
    at, end = 0, corner.shape[0]
    for test in range(first, last):
        wanted = tests[test, COLUMN]
        while at < end and corner[at, COLUMN] < wanted:
            at += 1
        if at == end or corner[at, COLUMN] != wanted:
            return False
        if tests[test, POINT] != 0:
            if tests[test, HASH] != corner[at, HASH]:
                return False
        elif not tests[test, LOW] <= corner[at, LOW] <= tests[test, HIGH]:
            return False
    return True


@short_kernel
def is_inside(tests, first, last, piece, is_tight):  # type: ignore[no-untyped-def]
    """May the corner of the box with the tests [first, last) lie in a piece?
    tests, piece uint64 [n, WORDS]."""
    test = first
    for at in range(piece.shape[0]):
        wanted = piece[at, COLUMN]
        while test < last and tests[test, COLUMN] < wanted:
            test += 1
        if test == last or tests[test, COLUMN] != wanted:
            return False
        if piece[at, POINT] != 0:
            if tests[test, HASH] != piece[at, HASH]:
                return False
        elif not piece[at, LOW] <= tests[test, LOW] <= piece[at, HIGH] or (
            is_tight and tests[test, HIGH] > piece[at, HIGH]
        ):
            return False
    return True


@short_kernel
def find_around(count, masks, owners, starts, tests, corner, mask, out):  # type: ignore[no-untyped-def]
    """Among the first `count` boxes, find those that may contain a corner; return their owners. An
    owner may occur several times.

    `masks` (uint64) and `owners` (uint32) have one element per box; `starts` is int64; `tests` and
    `corner` are uint64 [n, WORDS]. `out` is uint32, with room for `count`.
    """
    found = 0
    for box in range(count):
        if masks[box] & ~mask == np.uint64(0) and is_around(
            tests, starts[box], starts[box + 1], corner
        ):
            out[found] = owners[box]
            found += 1
    return found


@short_kernel
def find_inside(count, masks, owners, starts, tests, is_corner, piece, is_tight, mask, out):  # type: ignore[no-untyped-def]
    """The owners of the corner boxes that may lie in a piece; for the arguments, see `find_around`.

    is_corner uint8, one per box: whether the box is the corner box of its owner.
    """
    found = 0
    for box in range(count):
        if (
            mask & ~masks[box] == np.uint64(0)
            and is_corner[box] != 0
            and is_inside(tests, starts[box], starts[box + 1], piece, is_tight)
        ):
            out[found] = owners[box]
            found += 1
    return found


@short_kernel
def find_both(count, masks, owners, starts, tests, is_corner, box_tests, mask, out):  # type: ignore[no-untyped-def]
    """Like `find_around` and `find_inside` in one pass over the boxes, for a filter of one box.
    `out` (uint32 [2 * count]) receives the owners that may be above the filter, followed, from
    index `count` on, by the owners that may be below it. Returns how many owners of each kind there
    are."""
    above, below = 0, 0
    for box in range(count):
        more, less = masks[box] & ~mask, mask & ~masks[box]
        if more == np.uint64(0) and is_around(tests, starts[box], starts[box + 1], box_tests):
            out[above] = owners[box]
            above += 1
        if (
            less == np.uint64(0)
            and is_corner[box] != 0
            and is_inside(tests, starts[box], starts[box + 1], box_tests, True)
        ):
            out[count + below] = owners[box]
            below += 1
    return above, below
