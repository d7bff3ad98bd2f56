"""Decide box by box whether one filter covers another, if either has several boxes or computed
terms.

    A covers B if each box of B lies in one box of A.
    A does not cover B if some box b of B lies in no box of A, and the boxes of A that overlap b
    fail to span b, each on a different column: some corner of b is then outside all boxes of A.

If neither rule applies, the answer is MAYBE. The answer is also MAYBE instead of NO if a computed
term of A reads attributes for which a box of B allows only a few values. For wide filters the
answer is MAYBE too, because only their hulls are known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import MOST_BOXED
from tidings.matching.covering.cover_join import HullPairs
from tidings.matching.covering.cover_kernels import (
    MAYBE,
    MOST_NEAR,
    NO,
    YES,
    add_column,
    is_pinned,
    spans_hold,
)
from tidings.matching.covering.hulls import Boxes
from tidings.matching.jit.kernel_compiler import kernel

Array = npt.NDArray[Any]


class Decider:
    """Decides whether forms cover each other by comparing their boxes."""

    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes
        several = np.diff(boxes.starts) > 0
        self._narrow = several | (boxes.rows.one_box[: len(several)] != 0)

    def decide(self, found: HullPairs) -> Array:
        """For each pair, NO, MAYBE or YES, as uint8."""
        answers = np.where(found.sure != 0, YES, MAYBE).astype(np.uint8)
        asked = np.nonzero((answers == MAYBE) & self._narrow[found.above])[0]
        out = np.empty(len(asked), np.uint8)
        boxes = self._boxes
        above, below = found.above[asked], found.below[asked]
        decide_pairs(above, below, boxes.starts, boxes.rows, MOST_BOXED, out)
        answers[asked] = out
        return answers


@kernel
def spans_meet(hulls, one, other):  # type: ignore[no-untyped-def]
    """Whether two tests have a code in common. `hulls` is `Hulls` of hulls.py; tests are
    numbers."""
    spans, low, high = hulls.spans, hulls.low, hulls.high
    at, beside = spans[one], spans[other]
    while at < spans[one + 1] and beside < spans[other + 1]:
        if high[at] < low[beside]:
            at += 1
        elif high[beside] < low[at]:
            beside += 1
        else:
            return True
    return False


@kernel
def decide_pairs(above, below, boxes, hulls, most, out):  # type: ignore[no-untyped-def]
    """Whether the form above[i], which is not wide, covers the form below[i].

    The answer for a pair that needs more than `most` comparisons of boxes is MAYBE. Arrays:

        above, below   uint32 [P]
        boxes          int64 [n + 1]: where the boxes of each form begin; a form that equals its
                       hull has no boxes here, because the hull is its box
        hulls          Hulls of hulls.py: the boxes
        out            uint8 [P]
    """
    one_box, starts, column = hulls.one_box, hulls.starts, hulls.column
    left = np.empty(MOST_NEAR, np.int64)
    for pair in range(above.shape[0]):
        first, last = boxes[above[pair]], boxes[above[pair] + 1]
        inner, stop = boxes[below[pair]], boxes[below[pair] + 1]
        if one_box[above[pair]] != 0:
            first, last = np.int64(above[pair]), np.int64(above[pair]) + 1
        if one_box[below[pair]] != 0:
            inner, stop = np.int64(below[pair]), np.int64(below[pair]) + 1
        answer = YES if inner < stop else MAYBE
        if (last - first) * (stop - inner) > most:
            answer, stop = MAYBE, inner
        while inner < stop:
            is_inside, near, apart, decides = False, 0, True, False
            for outer in range(first, last):
                contains, meets, leaves = True, True, np.int64(-1)
                at, end = starts[inner], starts[inner + 1]
                for test in range(starts[outer], starts[outer + 1]):
                    wanted = column[test]
                    while at < end and column[at] < wanted:
                        at += 1
                    if np.int64(wanted) >= hulls.attributes and not decides:
                        decides = is_pinned(hulls, wanted, inner)
                    if at == end or column[at] != wanted:
                        contains, leaves = False, np.int64(wanted)
                    elif not spans_hold(hulls, test, at):
                        contains, leaves = False, np.int64(wanted)
                        if not spans_meet(hulls, test, at):
                            meets = False
                            break
                if contains:
                    is_inside = True
                    break
                if meets and apart:
                    apart = add_column(left, near, leaves)
                    near += 1
            if not is_inside:
                answer = NO if apart and not decides else MAYBE
                if answer == NO:
                    break
            inner += 1
        out[pair] = answer
