"""The hot loops over sketches: passes that reject nearly every box by its mask alone.

The tests of a box are numbered from starts[box] to starts[box + 1], and sorted by column. low and
high are keys of cuts. Keys keep the order of cuts: `a.low <= b.low` holds if it holds for the cuts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.matching.jit.compiling import kernel

Array = npt.NDArray[Any]


class SketchedTests(NamedTuple):
    """The sketched tests of all boxes, or of the corner or piece that is looked up."""

    column: Array  # uint32
    low: Array  # uint64
    high: Array  # uint64
    hash: Array  # uint64: the hash of the first cut
    is_point: Array  # uint8: the set is a single value


@kernel
def find_around(count, masks, owners, starts, tests, corner, mask, out):  # type: ignore[no-untyped-def]
    """Among the first `count` boxes, find the owners of boxes that may contain a corner. An owner
    may occur repeatedly.

    masks uint64, owners uint32 by box; starts int64. out uint32, with room for `count`.
    """
    found = 0
    for box in range(count):
        if masks[box] & ~mask != np.uint64(0):
            continue
        at, end, holds = 0, corner.column.shape[0], True
        for test in range(starts[box], starts[box + 1]):
            wanted = tests.column[test]
            while at < end and corner.column[at] < wanted:
                at += 1
            if at == end or corner.column[at] != wanted:
                holds = False
            elif tests.is_point[test] != 0:
                holds = tests.hash[test] == corner.hash[at]
            else:
                holds = tests.low[test] <= corner.low[at] <= tests.high[test]
            if not holds:
                break
        if holds:
            out[found] = owners[box]
            found += 1
    return found


@kernel
def find_inside(count, masks, owners, starts, tests, is_corner, piece, is_tight, mask, out):  # type: ignore[no-untyped-def]
    """The owners of the corner boxes that may lie in a piece; arguments as in `find_around`.

    is_corner uint8 by box: whether the box is the corner box of its owner.
    """
    found = 0
    for box in range(count):
        if mask & ~masks[box] != np.uint64(0) or is_corner[box] == 0:
            continue
        test, end, holds = starts[box], starts[box + 1], True
        for at in range(piece.column.shape[0]):
            wanted = piece.column[at]
            while test < end and tests.column[test] < wanted:
                test += 1
            if test == end or tests.column[test] != wanted:
                holds = False
            elif piece.is_point[at] != 0:
                holds = tests.hash[test] == piece.hash[at]
            else:
                holds = piece.low[at] <= tests.low[test] <= piece.high[at]
                if is_tight:
                    holds = holds and tests.high[test] <= piece.high[at]
            if not holds:
                break
        if holds:
            out[found] = owners[box]
            found += 1
    return found
