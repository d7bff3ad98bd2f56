"""Decide from their boxes alone whether a new filter and compiled filters cover each other.

If the answer is YES or NO, comparing the filters would give the same answer, because the comparison
always finds a covering if one box contains another.

The definitions of `Boxed` and `ColumnReads` give the dtype and shape of each array. `outer`,
`inner`, `boxed`, `compiled` and `new` are `Boxed`, and `columns` is `ColumnReads`, for C columns.
Boxes, tests, columns and slots are given by number, as integers. For other arrays, see
`find_above`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.matching.covering.cover_kernels import MAYBE, MOST_NEAR, NO, YES, add_column
from tidings.matching.jit.kernel_compiler import kernel

Array = npt.NDArray[Any]


class Boxed(NamedTuple):
    """B boxes, with T tests and S spans in total, of compiled filters or of a new filter."""

    tests: Array  # int64 [B + 1]: where the tests of a box begin; the tests are sorted by column
    column: Array  # uint32 [T]
    # int64 [T + 1]: where the spans of a test begin; a test has no spans if its set is unknown
    spans: Array
    low: Array  # int32 [S]
    high: Array  # int32 [S]: the last position; this is `low` - 1 if two new cuts share a position
    pinned: Array  # uint8 [T]: whether the set may be a few points


class ColumnReads(NamedTuple):
    """The attributes that computed columns read."""

    computed: Array  # uint8 [C]: whether a column is computed
    reads: Array  # int64 [C + 1]: where the attributes that a column reads begin in `read`
    read: Array  # int64: the columns of these attributes; -1 for an attribute without a column


@kernel
def spans_hold(outer, test, inner, other):  # type: ignore[no-untyped-def]
    """Whether each span of the inner test lies in a span of the outer test."""
    at, end = outer.spans[test], outer.spans[test + 1]
    for span in range(inner.spans[other], inner.spans[other + 1]):
        while at < end and outer.high[at] < inner.high[span]:
            at += 1
        if at == end or outer.low[at] > inner.low[span]:
            return False
    return True


@kernel
def spans_meet(outer, test, inner, other):  # type: ignore[no-untyped-def]
    """Whether two tests have a position in common."""
    at, beside = outer.spans[test], inner.spans[other]
    while at < outer.spans[test + 1] and beside < inner.spans[other + 1]:
        if outer.high[at] < inner.low[beside]:
            at += 1
        elif inner.high[beside] < outer.low[at]:
            beside += 1
        else:
            return True
    return False


@kernel
def has_no_spans(boxed, test):  # type: ignore[no-untyped-def]
    """Whether the set of a test is unknown."""
    return boxed.spans[test] == boxed.spans[test + 1]


@kernel
def decides(boxed, box, columns, wanted):  # type: ignore[no-untyped-def]
    """Whether a box allows only a few points in every column that a computed column reads. If so,
    checking those points may decide the computed value."""
    for source in range(columns.reads[wanted], columns.reads[wanted + 1]):
        found = False
        for test in range(boxed.tests[box], boxed.tests[box + 1]):
            if np.int64(boxed.column[test]) == columns.read[source] and boxed.pinned[test] != 0:
                found = True
        if not found:
            return False
    return True


@kernel
def box_in_box(outer, box, inner, other, columns):  # type: ignore[no-untyped-def]
    """Whether the outer box contains the inner one: (answer, meets, leaves, decided). `meets`: the
    boxes overlap; `leaves`: a column on which the inner box extends beyond the outer one;
    `decided`: the points of the inner box may decide a computed term."""
    answer, leaves, decided = YES, np.int64(-1), False
    at, end = inner.tests[other], inner.tests[other + 1]
    for test in range(outer.tests[box], outer.tests[box + 1]):
        wanted = outer.column[test]
        while at < end and inner.column[at] < wanted:
            at += 1
        is_there = at < end and inner.column[at] == wanted
        open_ = False
        if is_there:
            if has_no_spans(outer, test) or has_no_spans(inner, at):
                open_ = True
            elif spans_hold(outer, test, inner, at):
                continue
            elif not spans_meet(outer, test, inner, at):
                return NO, False, np.int64(wanted), decided
        if columns.computed[wanted] != 0 and decides(inner, other, columns, wanted):
            open_ = decided = True
        if not open_:
            answer, leaves = NO, np.int64(wanted)
        elif answer == YES:
            answer = MAYBE
    return answer, True, leaves, decided


@kernel
def boxes_hold(outer, first, last, inner, other, columns, left):  # type: ignore[no-untyped-def]
    """Whether the outer boxes [first, last) contain the inner box, either one of them or all
    together.

    Suppose that all outer boxes that overlap the inner box fail to span it, and that each fails on
    a different column. Then some corner of the inner box is outside all outer boxes, so the outer
    boxes do not contain the inner box. `left`, int64 [MOST_NEAR], is scratch space.
    """
    near, apart, open_ = 0, True, False
    for box in range(first, last):
        answer, meets, leaves, decided = box_in_box(outer, box, inner, other, columns)
        if answer == YES:
            return YES
        if answer == MAYBE or decided:
            open_ = True
        elif meets and apart:
            apart = add_column(left, near, leaves)
            near += 1
    return MAYBE if open_ or not apart else NO


@kernel
def hull_allows(outer, box, inner, other, columns):  # type: ignore[no-untyped-def]
    """Whether a box contains another, if only tests on attributes are considered."""
    at, end = inner.tests[other], inner.tests[other + 1]
    for test in range(outer.tests[box], outer.tests[box + 1]):
        wanted = outer.column[test]
        if columns.computed[wanted] != 0:
            continue
        while at < end and inner.column[at] < wanted:
            at += 1
        if at == end or inner.column[at] != wanted:
            return False
        if has_no_spans(outer, test) or has_no_spans(inner, at):
            continue
        if not spans_hold(outer, test, inner, at):
            return False
    return True


@kernel
def is_above(slot, slots, compiled, wide, new, boxes, columns, most, left):  # type: ignore[no-untyped-def]
    """Whether a compiled filter covers the new one: NO, MAYBE or YES. Arguments as in `find_above`;
    left int64 [MOST_NEAR]: scratch."""
    first, last = slots[slot], slots[slot + 1]
    if first == last:
        return NO
    if last - first == 1 and not hull_allows(compiled, first, new, boxes, columns):
        return NO
    if (last - first) * boxes > most:
        return MAYBE
    answer = YES
    for box in range(max(boxes, 1)):
        held = boxes_hold(compiled, first, last, new, box, columns, left)
        answer = min(answer, held)
        if answer == NO:
            break
    if wide[slot] != 0 or (boxes == 0 and answer != YES):
        answer = MAYBE
    return answer


@kernel
def is_below(slot, slots, compiled, wide, new, boxes, columns, most, left):  # type: ignore[no-untyped-def]
    """Whether the new filter covers a compiled one: NO, MAYBE or YES. Arguments as in
    `is_above`."""
    if (slots[slot + 1] - slots[slot]) * boxes > most:
        return MAYBE
    answer = YES if slots[slot] < slots[slot + 1] else NO
    for box in range(slots[slot], slots[slot + 1]):
        found = NO
        if hull_allows(new, boxes, compiled, box, columns):
            found = boxes_hold(new, 0, boxes, compiled, box, columns, left)
            if found == NO and (boxes == 0 or wide[slot] != 0):
                found = MAYBE
        answer = min(answer, found)
        if answer == NO:
            break
    return answer


@kernel
def find_above(slots, compiled, wide, new, boxes, columns, most, out):  # type: ignore[no-untyped-def]
    """Which compiled filters cover the new one; `out`, uint8 [n], receives NO, MAYBE or YES for
    each filter.

    The answer for a pair that needs more than `most` comparisons of boxes is MAYBE. Arguments:

        slots   int64 [n + 1]: where the boxes of a filter begin; none if it matches nothing
        wide    uint8 [n]: whether the filter's only box is the hull of a tree
        new     the `boxes` boxes of the new filter (none if it is wide), then its hull
    """
    left = np.empty(MOST_NEAR, np.int64)
    for slot in range(wide.shape[0]):
        out[slot] = is_above(slot, slots, compiled, wide, new, boxes, columns, most, left)


@kernel
def find_below(slots, compiled, wide, new, boxes, columns, most, out):  # type: ignore[no-untyped-def]
    """Which compiled filters the new filter covers; the arguments are those of `find_above`."""
    left = np.empty(MOST_NEAR, np.int64)
    for slot in range(wide.shape[0]):
        out[slot] = is_below(slot, slots, compiled, wide, new, boxes, columns, most, left)


@kernel
def ask_above(asked, slots, compiled, wide, new, boxes, columns, most, out):  # type: ignore[no-untyped-def]
    """Which of the filters `asked` (slots, uint32) cover the new one; see `find_above`."""
    left = np.empty(MOST_NEAR, np.int64)
    for at in range(asked.shape[0]):
        slot = np.int64(asked[at])
        out[at] = is_above(slot, slots, compiled, wide, new, boxes, columns, most, left)


@kernel
def ask_below(asked, slots, compiled, wide, new, boxes, columns, most, out):  # type: ignore[no-untyped-def]
    """Which of the filters `asked` (slots, uint32) the new one covers; see `find_above`."""
    left = np.empty(MOST_NEAR, np.int64)
    for at in range(asked.shape[0]):
        slot = np.int64(asked[at])
        out[at] = is_below(slot, slots, compiled, wide, new, boxes, columns, most, left)
