"""The hot loop of diagrams: evaluate tests in order, and move the groups that wait for them.

    words of bits      the ranks at which groups wait; the lowest bit is the next test
    heads, next_group  the groups that wait for a test, as a list
    group_state        whether a group waits, is done, or has an outcome before it waits

A test is evaluated at most once, by comparing one code, and only if some group still waits for the
test. Every group that waits for the test moves on to a class. To visit a class is to decide the
units of its leaves, to let its groups wait for their tests, and to follow its edges.

`table` is the pointer table of signal_kernels.py; `arrays` and `work` are two of its named tuples,
whose definitions give the dtype and shape of each array. `codes` is int64 [C]. Tests and classes
are integers.
"""

from __future__ import annotations

import numpy as np

from tidings.matching.diagrams.diagram_arrays import END, NO_UNIT
from tidings.matching.diagrams.diagram_work import RESULTS, STAMP, WORD
from tidings.matching.diagrams.signal_kernels import (
    EVENTS,
    INFERRED,
    SKIPPED,
    STEPS,
    TESTS,
    decide_unit,
    is_needed,
    take_matches,
    views,
)
from tidings.matching.jit.kernel_compiler import kernel
from tidings.matching.jit.simd import lowest_bit
from tidings.matching.rank_space.rank_kernels import code_of_integer

WAITING, DONE, KNOWN_LOW, KNOWN_HIGH = 0, 1, 2, 3
LAST_STAMP = 2**31 - 1  # even shifted left by 32 bits, it fits into an int64


@kernel
def begin(table):  # type: ignore[no-untyped-def]
    """Start an event whose codes are already set: put every unit at its root, and let the groups of
    the roots wait for their tests."""
    arrays, work, counts, _ = views(table)
    if work.now[STAMP] >= LAST_STAMP:
        work.group_state[:] = 0
        work.class_stamp[:] = 0
        work.signal_state[:] = 0
        work.now[STAMP] = 0
    work.now[STAMP] += 1
    work.now[WORD] = 0
    work.now[RESULTS] = 0
    work.heads[:] = arrays.root_heads
    work.bits[:] = arrays.root_bits
    counts.counts[EVENTS] += 1
    for column in range(1, work.codes.shape[0]):
        counts.codes[counts.code_starts[column] + work.codes[column]] += 1


@kernel
def passes(arrays, test, codes):  # type: ignore[no-untyped-def]
    """Whether the code of a test's term lies in the test's set."""
    code = codes[arrays.test_column[test]]
    for at in range(np.int64(arrays.test_sets[test]), np.int64(arrays.test_sets[test + 1])):
        if arrays.set_low[at] <= code <= arrays.set_high[at]:
            return True
    return False


@kernel
def enter(work, target, size):  # type: ignore[no-untyped-def]
    """Put a class on the stack, which has `size` classes, unless the class was already visited;
    return the new size."""
    stamp = work.now[STAMP]
    if work.class_stamp[target] == stamp:
        return size
    work.class_stamp[target] = stamp
    work.stack[size] = target
    return size + 1


@kernel
def visit(table, start):  # type: ignore[no-untyped-def]
    """Visit a class, and all classes that it implies."""
    arrays, work, counts, _ = views(table)
    roots = np.int64(arrays.class_groups[1])
    base = 4 * work.now[STAMP]
    size = enter(work, start, 0)
    while size > 0:
        size -= 1
        owner = np.int64(work.stack[size])
        for at in range(
            np.int64(arrays.class_leaves[owner]), np.int64(arrays.class_leaves[owner + 1])
        ):
            decide_unit(table, arrays.leaves[at])
        for group in range(
            np.int64(arrays.class_groups[owner]), np.int64(arrays.class_groups[owner + 1])
        ):
            state = work.group_state[group]
            target = np.int64(-1)
            if state == base + KNOWN_LOW:
                target = np.int64(arrays.group_low[group])
            elif state == base + KNOWN_HIGH:
                target = np.int64(arrays.group_high[group])
            elif state < base:
                test = np.int64(arrays.group_test[group])
                word, bit = test >> 6, np.int64(1) << (test & 63)
                if work.bits[word] & bit:
                    work.next_group[group] = work.heads[test]
                else:
                    work.bits[word] |= bit
                    work.next_group[group] = END
                work.heads[test] = group
                work.group_state[group] = base + WAITING
            if target >= 0:
                work.group_state[group] = base + DONE
                counts.counts[INFERRED] += 1
                size = enter(work, target, size)
        for at in range(
            np.int64(arrays.class_edges[owner]), np.int64(arrays.class_edges[owner + 1])
        ):
            implied, outcome = np.int64(arrays.edges[at]) >> 1, np.int64(arrays.edges[at]) & 1
            state = work.group_state[implied]
            if state == base + WAITING or (state < base and implied < roots):
                work.group_state[implied] = base + DONE
                counts.counts[INFERRED] += 1
                target = np.int64(arrays.group_low[implied])
                if outcome:
                    target = np.int64(arrays.group_high[implied])
                size = enter(work, target, size)
            elif state < base:
                work.group_state[implied] = base + KNOWN_LOW + outcome


@kernel
def advance(table, pause):  # type: ignore[no-untyped-def]
    """Continue an event until it is done or, with `pause`, until a test has decided filters.

    Returns whether the event is done.
    """
    arrays, work, counts, _ = views(table)
    base = 4 * work.now[STAMP]
    before = work.now[RESULTS]
    word = work.now[WORD]
    while word < work.bits.shape[0]:
        bits = work.bits[word]
        if bits == 0:
            word += 1
            continue
        place = lowest_bit(np.uint64(bits))
        work.bits[word] = bits & ~(np.int64(1) << place)
        test = 64 * word + place
        outcome = -1
        group = work.heads[test]
        while group != END:
            following = work.next_group[group]
            state = work.group_state[group]
            if state != base + DONE:
                work.group_state[group] = base + DONE
                unit = arrays.group_unit[group]
                if unit != NO_UNIT and not is_needed(table, np.int64(unit)):
                    counts.counts[SKIPPED] += 1
                else:
                    if outcome < 0:
                        outcome = 1 if passes(arrays, test, work.codes) else 0
                        counts.counts[TESTS] += 1
                    counts.counts[STEPS] += 1
                    target = arrays.group_high[group] if outcome else arrays.group_low[group]
                    visit(table, np.int64(target))
            group = following
        if pause and work.now[RESULTS] > before:
            work.now[WORD] = word
            return False
    work.now[WORD] = word
    return True


@kernel
def set_codes(table, values):  # type: ignore[no-untyped-def]
    """Take the codes of one event, an int64 array: one value for each column, followed by the
    numbers of those columns whose value is an integer instead of a code."""
    _, work, _, integers = views(table)
    width = work.codes.shape[0]
    work.codes[:] = values[:width]
    for i in range(width, values.shape[0]):
        column = values[i]
        work.codes[column] = code_of_integer(values[column], column, integers)


@kernel
def match_event(table, values, dead, found):  # type: ignore[no-untyped-def]
    """Match one event. `found` (intp, with room for all outputs) receives the slots that match and
    are not dead; returns their number."""
    set_codes(table, values)
    begin(table)
    advance(table, False)
    _, work, _, _ = views(table)
    return take_matches(work, dead, found, 0)


@kernel
def match_events(table, codes, first, dead, events, slots):  # type: ignore[no-untyped-def]
    """Match the events of a batch from `first` on. `codes` is uint32 [C, n]; `events` and `slots`
    (uint32) receive the matches. Returns the first event for which there may not be enough room,
    and the number of matches."""
    _, work, _, _ = views(table)
    count = 0
    room = events.shape[0] - work.results.shape[0]
    event = first
    while event < codes.shape[1] and count <= room:
        for column in range(codes.shape[0]):
            work.codes[column] = codes[column, event]
        begin(table)
        advance(table, False)
        before = count
        count = take_matches(work, dead, slots, count)
        events[before:count] = event
        event += 1
    return event, count
