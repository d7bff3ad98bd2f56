"""Whether a new filter and compiled ones cover each other, from their boxes alone.

YES and NO are certain, given that the covering of filters says yes whenever one box holds another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.matching.covering.cover_kernels import MAYBE, NO, YES
from tidings.matching.jit.compiling import kernel

MOST_NEAR = 64  # boxes that meet another for which columns of their own are looked for
Array = npt.NDArray[Any]


class Boxed(NamedTuple):
    """B boxes with T tests of S spans, of compiled filters or of a new one."""

    tests: Array  # int64 [B + 1]: the tests of a box, by rising column
    column: Array  # uint32 [T]
    spans: Array  # int64 [T + 1]: the spans of a test; none where its set is not known
    low: Array  # int32 [S]
    high: Array  # int32 [S]: both ends inside; low - 1 between two cuts
    pinned: Array  # uint8 [T]: the set may be a few points


class ColumnReads(NamedTuple):
    """What columns are computed from."""

    computed: Array  # uint8 [C]: whether it is
    reads: Array  # int64 [C + 1]: the sources of a column ...
    read: Array  # int64: ... as columns; -1 for an attribute that has none


@kernel
def spans_hold(outer, test, inner, other):  # type: ignore[no-untyped-def]
    """Whether each span of a test of the inner boxes lies in one of a test of the outer ones."""
    at, end = outer.spans[test], outer.spans[test + 1]
    for span in range(inner.spans[other], inner.spans[other + 1]):
        while at < end and outer.high[at] < inner.high[span]:
            at += 1
        if at == end or outer.low[at] > inner.low[span]:
            return False
    return True


@kernel
def spans_meet(outer, test, inner, other):  # type: ignore[no-untyped-def]
    """Whether two tests have something in common."""
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
    """Whether the set of a test is not known."""
    return boxed.spans[test] == boxed.spans[test + 1]


@kernel
def decides(boxed, box, columns, wanted):  # type: ignore[no-untyped-def]
    """Whether the points of a box may say what a computed column is worth."""
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
    """(answer, meets, leaves, decided): whether a box holds another; whether they have anything in
    common; a column on which the inner one reaches beyond; whether points of it decide a term."""
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
    """Whether the outer boxes [first, last) hold another box, one of them or all together.

    They do not where those that meet it each leave it on a column of their own: what it has outside
    each of them, on these columns, is in none. left int64 [MOST_NEAR], scratch.
    """
    near, apart, open_ = 0, True, False
    for box in range(first, last):
        answer, meets, leaves, decided = box_in_box(outer, box, inner, other, columns)
        if answer == YES:
            return YES
        if answer == MAYBE or decided:
            open_ = True
        elif meets and apart:
            apart = near < MOST_NEAR
            for i in range(min(near, MOST_NEAR)):
                if left[i] == leaves:
                    apart = False
            if apart:
                left[near] = leaves
                near += 1
    return MAYBE if open_ or not apart else NO


@kernel
def hull_allows(outer, box, inner, other, columns):  # type: ignore[no-untyped-def]
    """Whether a box holds another as far as attributes go."""
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
def find_above(slots, compiled, wide, new, boxes, columns, most, out):  # type: ignore[no-untyped-def]
    """Which compiled filters cover the new one: out uint8 [n], NO, MAYBE or YES.

    slots int64 [n + 1]: the boxes of a filter, none if it matches nothing; wide uint8 [n]: its one
    box is the hull of a tree. The new filter has this many boxes, or is wide if it has none; behind
    them is its hull. More comparisons of boxes than `most` are left open.
    """
    left = np.empty(MOST_NEAR, np.int64)
    for slot in range(wide.shape[0]):
        first, last = slots[slot], slots[slot + 1]
        out[slot] = NO
        if first == last:
            continue
        if last - first == 1 and not hull_allows(compiled, first, new, boxes, columns):
            continue
        if (last - first) * boxes > most:
            out[slot] = MAYBE
            continue
        answer = YES
        for box in range(max(boxes, 1)):
            held = boxes_hold(compiled, first, last, new, box, columns, left)
            answer = min(answer, held)
            if answer == NO:
                break
        if wide[slot] != 0 or (boxes == 0 and answer != YES):
            answer = MAYBE
        out[slot] = answer


@kernel
def find_below(slots, compiled, wide, new, boxes, columns, most, out):  # type: ignore[no-untyped-def]
    """Which compiled filters the new one covers; arguments as before."""
    left = np.empty(MOST_NEAR, np.int64)
    for slot in range(wide.shape[0]):
        if (slots[slot + 1] - slots[slot]) * boxes > most:
            out[slot] = MAYBE
            continue
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
        out[slot] = answer
