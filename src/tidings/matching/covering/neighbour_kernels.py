"""Whether a new filter and compiled ones cover each other, from their boxes alone.

Boxes of either side come as one tuple, `Boxed.arrays` of neighbours.py:

    tests    int64 [B + 1]: the tests of a box, by rising column
    column   uint32 [T]
    spans    int64 [T + 1]: the spans of a test; none where its set is not known
    low      int32 [S], high int32 [S]: both ends inside; high = low - 1 between two cuts
    pinned   uint8 [T]: the set may be a few points

`terms` is (computed uint8 [C], reads int64 [C + 1], read int64): which columns are computed, and
from which ones; -1 for an attribute that has no column.

YES and NO are certain, given that the covering of filters says yes whenever one box holds another.
"""

from __future__ import annotations

import numpy as np

from tidings.matching.covering.cover_kernels import MAYBE, NO, YES
from tidings.matching.jit.compiling import kernel

MOST_NEAR = 64  # boxes that meet another for which columns of their own are looked for


@kernel
def spans_hold(o_spans, o_low, o_high, outer, i_spans, i_low, i_high, inner):  # type: ignore[no-untyped-def]
    """Whether each span of the inner test lies in one of the outer."""
    at, end = o_spans[outer], o_spans[outer + 1]
    for span in range(i_spans[inner], i_spans[inner + 1]):
        while at < end and o_high[at] < i_high[span]:
            at += 1
        if at == end or o_low[at] > i_low[span]:
            return False
    return True


@kernel
def spans_meet(o_spans, o_low, o_high, outer, i_spans, i_low, i_high, inner):  # type: ignore[no-untyped-def]
    """Whether two tests have something in common."""
    at, beside = o_spans[outer], i_spans[inner]
    while at < o_spans[outer + 1] and beside < i_spans[inner + 1]:
        if o_high[at] < i_low[beside]:
            at += 1
        elif i_high[beside] < o_low[at]:
            beside += 1
        else:
            return True
    return False


@kernel
def decides(tests, column, pinned, box, reads, read, wanted):  # type: ignore[no-untyped-def]
    """Whether the points of a box may say what a computed column is worth."""
    for source in range(reads[wanted], reads[wanted + 1]):
        found = False
        for test in range(tests[box], tests[box + 1]):
            if np.int64(column[test]) == read[source] and pinned[test] != 0:
                found = True
        if not found:
            return False
    return True


@kernel
def box_in_box(  # type: ignore[no-untyped-def]
    o_tests, o_column, o_spans, o_low, o_high, box, i_tests, i_column, i_spans, i_low, i_high,
    i_pinned, other, computed, reads, read
):  # fmt: skip
    """(answer, meets, leaves, decided): whether a box holds another; whether they have anything in
    common; a column on which the inner one reaches beyond; whether points of it decide a term."""
    answer, leaves, decided = YES, np.int64(-1), False
    at, end = i_tests[other], i_tests[other + 1]
    for test in range(o_tests[box], o_tests[box + 1]):
        wanted = o_column[test]
        while at < end and i_column[at] < wanted:
            at += 1
        is_there = at < end and i_column[at] == wanted
        open_ = False
        if is_there:
            if o_spans[test] == o_spans[test + 1] or i_spans[at] == i_spans[at + 1]:
                open_ = True
            elif spans_hold(o_spans, o_low, o_high, test, i_spans, i_low, i_high, at):
                continue
            elif not spans_meet(o_spans, o_low, o_high, test, i_spans, i_low, i_high, at):
                return NO, False, np.int64(wanted), decided
        if computed[wanted] != 0 and decides(
            i_tests, i_column, i_pinned, other, reads, read, wanted
        ):
            open_ = decided = True
        if not open_:
            answer, leaves = NO, np.int64(wanted)
        elif answer == YES:
            answer = MAYBE
    return answer, True, leaves, decided


@kernel
def boxes_hold(  # type: ignore[no-untyped-def]
    o_tests, o_column, o_spans, o_low, o_high, first, last, i_tests, i_column, i_spans, i_low,
    i_high, i_pinned, other, computed, reads, read, left
):  # fmt: skip
    """Whether the boxes [first, last) hold another box, one of them or all together.

    They do not where those that meet it each leave it on a column of their own: what it has outside
    each of them, on these columns, is in none. left int64 [MOST_NEAR], scratch.
    """
    near, apart, open_ = 0, True, False
    for box in range(first, last):
        answer, meets, leaves, decided = box_in_box(
            o_tests, o_column, o_spans, o_low, o_high, box, i_tests, i_column, i_spans, i_low,
            i_high, i_pinned, other, computed, reads, read,
        )  # fmt: skip
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
def hull_allows(  # type: ignore[no-untyped-def]
    o_tests, o_column, o_spans, o_low, o_high, box, i_tests, i_column, i_spans, i_low, i_high,
    other, computed
):  # fmt: skip
    """Whether a box holds another as far as attributes go."""
    at, end = i_tests[other], i_tests[other + 1]
    for test in range(o_tests[box], o_tests[box + 1]):
        wanted = o_column[test]
        if computed[wanted] != 0:
            continue
        while at < end and i_column[at] < wanted:
            at += 1
        if at == end or i_column[at] != wanted:
            return False
        if o_spans[test] == o_spans[test + 1] or i_spans[at] == i_spans[at + 1]:
            continue
        if not spans_hold(o_spans, o_low, o_high, test, i_spans, i_low, i_high, at):
            return False
    return True


@kernel
def find_above(slots, compiled, wide, new, boxes, terms, most, out):  # type: ignore[no-untyped-def]
    """Which compiled filters cover the new one: out uint8 [n], NO, MAYBE or YES.

    slots int64 [n + 1]: the boxes of a filter, none if it matches nothing; wide uint8 [n]: its one
    box is the hull of a tree. The new filter has this many boxes, or is wide if it has none; behind
    them is its hull. More comparisons of boxes than `most` are left open.
    """
    o_tests, o_column, o_spans, o_low, o_high, _ = compiled
    i_tests, i_column, i_spans, i_low, i_high, i_pinned = new
    computed, reads, read = terms
    left = np.empty(MOST_NEAR, np.int64)
    for slot in range(wide.shape[0]):
        first, last = slots[slot], slots[slot + 1]
        out[slot] = NO
        if first == last:
            continue
        if last - first == 1 and not hull_allows(
            o_tests, o_column, o_spans, o_low, o_high, first, i_tests, i_column, i_spans, i_low,
            i_high, boxes, computed,
        ):  # fmt: skip
            continue
        if (last - first) * boxes > most:
            out[slot] = MAYBE
            continue
        answer = YES
        for box in range(max(boxes, 1)):
            answer = min(answer, boxes_hold(
                o_tests, o_column, o_spans, o_low, o_high, first, last, i_tests, i_column, i_spans,
                i_low, i_high, i_pinned, box, computed, reads, read, left,
            ))  # fmt: skip
            if answer == NO:
                break
        if wide[slot] != 0 or (boxes == 0 and answer != YES):
            answer = MAYBE
        out[slot] = answer


@kernel
def find_below(slots, compiled, wide, new, boxes, terms, most, out):  # type: ignore[no-untyped-def]
    """Which compiled filters the new one covers; arguments as before."""
    o_tests, o_column, o_spans, o_low, o_high, _ = new
    i_tests, i_column, i_spans, i_low, i_high, i_pinned = compiled
    computed, reads, read = terms
    left = np.empty(MOST_NEAR, np.int64)
    for slot in range(wide.shape[0]):
        if (slots[slot + 1] - slots[slot]) * boxes > most:
            out[slot] = MAYBE
            continue
        answer = YES if slots[slot] < slots[slot + 1] else NO
        for box in range(slots[slot], slots[slot + 1]):
            found = NO
            if hull_allows(
                o_tests, o_column, o_spans, o_low, o_high, boxes, i_tests, i_column, i_spans, i_low,
                i_high, box, computed,
            ):  # fmt: skip
                found = boxes_hold(
                    o_tests, o_column, o_spans, o_low, o_high, 0, boxes, i_tests, i_column, i_spans,
                    i_low, i_high, i_pinned, box, computed, reads, read, left,
                )  # fmt: skip
                if found == NO and (boxes == 0 or wide[slot] != 0):
                    found = MAYBE
            answer = min(answer, found)
            if answer == NO:
                break
        out[slot] = answer
