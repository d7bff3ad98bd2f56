"""The hot loops, compiled by Numba: free functions over arrays, no Python objects.

Shapes, used throughout (n events, C columns, K codes of a term, E entries, B boxes, T tests):

    columns   uint16 [C, n + 64]   codes of the events, coarse where a term has over 65,536
    entry     one access interval of one box: entry_low, entry_high uint32 [E], entry_box uint32 [E]
    box       box_tests uint32 [B + 1]: its tests are [box_tests[b], box_tests[b + 1])
    test      test_column uint16, test_low uint16, test_width uint16 [T]

All release the GIL and are cached on disk.
"""

from __future__ import annotations

import numpy as np

from tidings.matching.jit.compiling import kernel
from tidings.matching.jit.simd import inside, lowest_bit


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
    """out[c, i] = columns[c, order[i]] for the wanted columns (int64); the padding is anything."""
    for w in range(wanted.shape[0]):
        source, target = columns[wanted[w]], out[wanted[w]]
        for i in range(order.shape[0]):
            target[i] = source[order[i]]


@kernel
def interval_holds(lows, highs, first, last, code):  # type: ignore[no-untyped-def]
    """Whether a code lies in one of the sorted, disjoint intervals [first, last)."""
    low, high = np.int64(first), np.int64(last)
    while low < high:
        middle = (low + high) >> 1
        if highs[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low < np.int64(last) and lows[low] <= code


@kernel
def list_outcome(list_starts, list_codes, list_state, event, wanted, comparable):  # type: ignore[no-untyped-def]
    """array_contains as 1 (unknown), 2 (false) or 4 (true); an event's codes are sorted.

    list_state: a bit per family of the elements, bit 7 for what is no list; an element that does
    not compare with the wanted one leaves the outcome unknown.
    """
    first, last = list_starts[event], list_starts[event + 1]
    end = last
    while first < last:
        middle = (first + last) >> 1
        if list_codes[middle] < wanted:
            first = middle + 1
        else:
            last = middle
    if first < end and list_codes[first] == wanted:
        return 4
    return 1 if np.int64(list_state[event]) & ~np.int64(comparable) != 0 else 2


@kernel
def extras_hold(  # type: ignore[no-untyped-def]
    first,
    last,
    event,
    extra_kind,
    extra_column,
    extra_a,
    extra_b,
    exact,
    set_low,
    set_high,
    list_base,
    list_starts,
    list_codes,
    list_state,
):
    """The tests that no single 16-bit interval can say: 1 interval sets, 2 elements of lists."""
    for x in range(first, last):
        if extra_kind[x] == 1:
            code = exact[np.int64(extra_column[x]), np.int64(event)]
            if not interval_holds(set_low, set_high, extra_a[x], extra_b[x], code):
                return False
        elif extra_kind[x] == 2:
            base = list_base[extra_column[x]]
            outcome = list_outcome(
                list_starts,
                list_codes,
                list_state,
                base + np.int64(event),
                extra_a[x],
                np.int64(extra_b[x]) >> 3,
            )
            if np.int64(outcome) & np.int64(extra_b[x]) & 7 == 0:
                return False
    return True


@kernel
def join(  # type: ignore[no-untyped-def]
    position,
    last,
    entry_low,
    entry_high,
    entry_box,
    starts,
    order,
    columns,
    box_tests,
    test_column,
    test_low,
    test_width,
    box_slot,
    box_flags,
    dead,
    box_extras,
    extra_kind,
    extra_column,
    extra_a,
    extra_b,
    exact,
    set_low,
    set_high,
    list_base,
    list_starts,
    list_codes,
    list_state,
    out_event,
    out_slot,
    rest_event,
    rest_box,
    many,
    counts,
):
    """The batch join of one access term: entries [position, last) against a sorted batch.

    The events that pass an entry's access test are one slice of the order; the other tests run
    over it 64 events at a time. Pairs go to out_* (event, slot), and those that need more than the
    kernel can decide to rest_* (event, box). Stops early when an output could overflow. Where
    counts (int64, one per event, or none at all) are wanted, a match of a filter of one box is
    counted and not written.
    Returns (position reached, pairs out, pairs rest).
    """
    n_out, n_rest = 0, 0
    room_out, room_rest = out_event.shape[0], rest_event.shape[0]
    while position < last:
        box = np.int64(entry_box[position])
        begin = starts[np.int64(entry_low[position])]
        end = starts[np.int64(entry_high[position]) + 1]
        if end == begin or dead[box_slot[box]]:
            position += 1
            continue
        if n_out + (end - begin) > room_out or n_rest + (end - begin) > room_rest:
            break
        first, beyond = np.int64(box_tests[box]), np.int64(box_tests[box + 1])
        flags = box_flags[box]
        slot = box_slot[box]
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
                column = columns[test_column[test]]
                mask &= inside(column, at, test_low[test], test_width[test])
                test += 1
            while mask != np.uint64(0):
                event = order[at + lowest_bit(mask)]
                mask &= mask - np.uint64(1)
                if flags != 0:
                    if flags & 1 and not extras_hold(
                        box_extras[box],
                        box_extras[box + 1],
                        event,
                        extra_kind,
                        extra_column,
                        extra_a,
                        extra_b,
                        exact,
                        set_low,
                        set_high,
                        list_base,
                        list_starts,
                        list_codes,
                        list_state,
                    ):
                        continue
                    if flags & 2:
                        rest_event[n_rest] = event
                        rest_box[n_rest] = box
                        n_rest += 1
                        continue
                if counted:
                    counts[event] += 1
                    continue
                out_event[n_out] = event
                out_slot[n_out] = slot
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
    """Write first + e (int64) for every match of event e."""
    for e in range(starts.shape[0] - 1):
        for i in range(starts[e], starts[e + 1]):
            out[i] = first + e
