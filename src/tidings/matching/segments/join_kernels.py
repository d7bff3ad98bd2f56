"""The hot loops, compiled by Numba: free functions over arrays, no Python objects.

Arrays that belong together come as a named tuple, which a kernel reads by its fields: `Arrays` of
segment.py, and those below (n events, C columns). All release the GIL and are cached on disk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.matching.jit.compiling import kernel
from tidings.matching.jit.simd import inside, lowest_bit

Array = npt.NDArray[Any]


class ListColumns(NamedTuple):
    """The codes of all columns whose terms are elements of lists, one after the other."""

    base: Array  # int64 [C]: where a column begins in `starts` and `state`, -1 for others
    starts: Array  # int64: the codes of an event, sorted; one more for each column
    codes: Array  # uint32
    state: Array  # uint8: a bit per family of the elements, bit 7 for what is no list


class SortedBatch(NamedTuple):
    """A batch in the order of one access term."""

    starts: Array  # int64 [K + 1]: where each code of the term begins
    order: Array  # uint32 [n]: the event at each place
    columns: Array  # uint16 [C, n + 64]: codes in that order, coarse where there are over 65,536
    exact: Array  # uint32 [C, n]: codes by event


class Pairs(NamedTuple):
    """Room for what a join finds, uint32."""

    out_event: Array  # a match: the event,
    out_slot: Array  # and the filter
    rest_event: Array  # what is left to evaluate: the event,
    rest_box: Array  # and the box


@kernel
def sort_by_code(codes, count, order, starts):  # type: ignore[no-untyped-def]
    """Counting sort. codes uint32 [n], below count; order uint32 [n]; starts int64 [count + 1]."""
    starts[:] = 0
    for i in range(codes.shape[0]):
        starts[codes[i] + 1] += 1
    for c in range(count):
        starts[c + 1] += starts[c]
    place = starts[:count].copy()
    for i in range(codes.shape[0]):
        code = codes[i]
        order[place[code]] = i
        place[code] += 1


@kernel
def permute(columns, wanted, order, out):  # type: ignore[no-untyped-def]
    """out[c, i] = columns[c, order[i]] for the wanted columns (int64); the padding is anything.

    columns uint16 [C, n]; order uint32 [m]: an event may be there often or not at all; out uint16
    [C, m + 64].
    """
    for w in range(wanted.shape[0]):
        source, target = columns[wanted[w]], out[wanted[w]]
        for i in range(order.shape[0]):
            target[i] = source[order[i]]


@kernel
def interval_holds(lows, highs, first, last, code):  # type: ignore[no-untyped-def]
    """Whether a code lies in one of the sorted, disjoint intervals [first, last). lows, highs
    uint32; both ends inside."""
    low, high = np.int64(first), np.int64(last)
    while low < high:
        middle = (low + high) >> 1
        if highs[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low < np.int64(last) and lows[low] <= code


@kernel
def list_outcome(lists, event, wanted, comparable):  # type: ignore[no-untyped-def]
    """array_contains as 1 (unknown), 2 (false) or 4 (true); an event's codes are sorted.

    An element that does not compare with the wanted one leaves the outcome unknown.
    """
    first, last = lists.starts[event], lists.starts[event + 1]
    end = last
    while first < last:
        middle = (first + last) >> 1
        if lists.codes[middle] < wanted:
            first = middle + 1
        else:
            last = middle
    if first < end and lists.codes[first] == wanted:
        return 4
    return 1 if np.int64(lists.state[event]) & ~np.int64(comparable) != 0 else 2


@kernel
def extras_hold(arrays, box, event, exact, lists):  # type: ignore[no-untyped-def]
    """The tests that no single 16-bit interval can say: 1 interval sets, 2 elements of lists."""
    for x in range(arrays.box_extras[box], arrays.box_extras[box + 1]):
        a, b = arrays.extra_a[x], arrays.extra_b[x]
        if arrays.extra_kind[x] == 1:
            code = exact[np.int64(arrays.extra_column[x]), np.int64(event)]
            if not interval_holds(arrays.set_low, arrays.set_high, a, b, code):
                return False
        elif arrays.extra_kind[x] == 2:
            place = lists.base[arrays.extra_column[x]] + np.int64(event)
            outcome = list_outcome(lists, place, a, np.int64(b) >> 3)
            if np.int64(outcome) & np.int64(b) & 7 == 0:
                return False
    return True


@kernel
def join(position, last, arrays, batch, lists, dead, many, pairs, counts):  # type: ignore[no-untyped-def]
    """The batch join of one access term: entries [position, last) against a sorted batch.

    The events that pass an entry's access test are one slice of the order; the other tests run
    over it 64 events at a time. What is found goes to `pairs`; what the kernel can't decide alone
    goes to its rest. Stops early when an output could overflow. Where counts (int64, one per event,
    or none at all) are wanted, a match of a filter of one box is counted and not written.
    dead, many uint8 [slots]: filters that were removed, and those of several boxes.
    Returns (position reached, pairs out, pairs rest).
    """
    n_out, n_rest = 0, 0
    room_out, room_rest = pairs.out_event.shape[0], pairs.rest_event.shape[0]
    while position < last:
        box = np.int64(arrays.entry_box[position])
        begin = batch.starts[np.int64(arrays.entry_low[position])]
        end = batch.starts[np.int64(arrays.entry_high[position]) + 1]
        if end == begin or dead[arrays.box_slot[box]]:
            position += 1
            continue
        if n_out + (end - begin) > room_out or n_rest + (end - begin) > room_rest:
            break
        first, beyond = np.int64(arrays.box_tests[box]), np.int64(arrays.box_tests[box + 1])
        flags = arrays.box_flags[box]
        slot = arrays.box_slot[box]
        counted = counts.shape[0] != 0 and many[slot] == 0
        at = begin
        while at < end:
            left = end - at
            if left >= 64:
                mask = ~np.uint64(0)
            else:
                mask = (np.uint64(1) << np.uint64(left)) - np.uint64(1)
            test = first
            while test < beyond and mask != np.uint64(0):
                column = batch.columns[arrays.test_column[test]]
                mask &= inside(column, at, arrays.test_low[test], arrays.test_width[test])
                test += 1
            while mask != np.uint64(0):
                event = batch.order[at + lowest_bit(mask)]
                mask &= mask - np.uint64(1)
                if flags != 0:
                    if flags & 1 and not extras_hold(arrays, box, event, batch.exact, lists):
                        continue
                    if flags & 2:
                        pairs.rest_event[n_rest] = event
                        pairs.rest_box[n_rest] = box
                        n_rest += 1
                        continue
                if counted:
                    counts[event] += 1
                    continue
                pairs.out_event[n_out] = event
                pairs.out_slot[n_out] = slot
                n_out += 1
            at += 64
        position += 1
    return position, n_out, n_rest


@kernel
def count_events(events, starts):  # type: ignore[no-untyped-def]
    """Add the matches of each event (uint32 [P]) to starts[event + 1] (int64 [n + 1])."""
    for i in range(events.shape[0]):
        starts[np.int64(events[i]) + 1] += 1


@kernel
def put_slots(events, slots, many, place, out):  # type: ignore[no-untyped-def]
    """Put slots (uint32 [P]) where the next one of their event belongs; place int64 [n] moves on.

    many uint8 [slots]: filters of several boxes, which alone can repeat. Returns whether one of
    them is there.
    """
    repeats = False
    for i in range(events.shape[0]):
        event = events[i]
        out[place[event]] = slots[i]
        place[event] += 1
        repeats = repeats or many[slots[i]] != 0
    return repeats


@kernel
def drop_repeats(starts, out, many, seen):  # type: ignore[no-untyped-def]
    """Keep each slot once per event, in place. Returns how many are left.

    starts int64 [n + 1], changed along; out uint32; seen int64 [slots], filled with -1.
    """
    kept = np.int64(0)
    begin = np.int64(0)
    for e in range(starts.shape[0] - 1):
        end = starts[e + 1]
        starts[e] = kept
        for i in range(begin, end):
            slot = out[i]
            if many[slot] != 0:
                if seen[slot] == e:
                    continue
                seen[slot] = e
            out[kept] = slot
            kept += 1
        begin = end
    starts[starts.shape[0] - 1] = kept
    return kept


@kernel
def number_rows(starts, first, out):  # type: ignore[no-untyped-def]
    """Write first + e for every match of event e: starts int64 [n + 1]; out int64."""
    for e in range(starts.shape[0] - 1):
        for i in range(starts[e], starts[e + 1]):
            out[i] = first + e
