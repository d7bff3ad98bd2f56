"""The hot loops of the batch join: free functions over arrays, which Numba compiles.

Arrays that belong together are passed as one named tuple: `Arrays` of segment.py, or one of the
tuples below (with n events and C columns). Their definitions give the dtype and shape of each
array. Events, boxes, entries and codes are integers. All kernels release the GIL and are cached on
disk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.matching.jit.kernel_compiler import kernel
from tidings.matching.jit.simd import count_bits, inside, lowest_bit

Array = npt.NDArray[Any]
NONE = 1 << 62  # higher than any code
SPARSE = 4  # a term with more codes than SPARSE times the events is sorted by rank


class ListColumns(NamedTuple):
    """The codes of all columns that contain elements of lists, concatenated."""

    # int64 [C]: where a column begins in `starts` and `state`; -1 for a column without lists
    base: Array
    starts: Array  # int64, n + 1 per column: where the codes of each event begin
    codes: Array  # uint32, sorted for each event
    state: Array  # uint8: one bit for each family of the elements; bit 7 if the value is not a list


class SortedBatch(NamedTuple):
    """A batch that is sorted by the codes of one access term. The term has K codes.

        codes 0 .. K:  . . 2 . . 5 5 . . .     events have the codes 2, 5 and 5
        by code   starts = 0 0 0 1 1 1 3 3 3 3   used = 2 2 2 5 5 5 NONE ...
        by rank   words  = 0000100100 (bits)     ranks = 0      starts = 0 1 3   used = 2 5 NONE

    If the batch is small, writing arrays of K elements takes longer than the join. For such a
    batch, `starts` and `used` have one element for each distinct code, and the bits of `words` say
    which codes occur: the rank of a code is the number of set bits below it. With a million filters
    and 40 events, the join then takes a sixth of the time that it would take with K elements.
    """

    starts: Array  # int64 [K + 1]: where the events with each code (or distinct code) begin
    used: Array  # int64 [K + 1]: for each code (or rank), the next code that an event has, or NONE
    words: Array  # uint64 [K // 64 + 1], or empty if the batch is sorted by code
    ranks: Array  # int64 [K // 64 + 1]: how many distinct codes are below each word; or empty
    order: Array  # uint32 [n]: the events in sorted order
    columns: Array  # uint16 [C, n + 64]: codes in the same order, shifted to fit in 16 bits
    exact: Array  # uint32 [C, n]: codes by event


class Accesses(NamedTuple):
    """The A access terms of a segment, as arrays of int64."""

    column: Array  # [A]: the column of each term
    size: Array  # [A]: how many codes the term has
    first: Array  # [A]: where the entries of a term begin
    last: Array  # [A]: where the entries of a term end
    tested_starts: Array  # [A + 1]: where the tested columns of a term begin
    tested: Array  # the columns that the boxes of a term's entries test
    group_starts: Array  # [A + 1]: where a term's groups of entries begin; see segment.py
    group_end: Array  # the end of each group
    group_width: Array  # the greatest width in each group


class Pairs(NamedTuple):
    """Output buffers of a join, uint32."""

    out_event: Array  # for each match, its event
    out_slot: Array  # for each match, the slot of its filter
    rest_event: Array  # for each pair that must still be evaluated, its event
    rest_box: Array  # for each of these pairs, its box


@kernel
def sort_by_code(codes, count, order, starts):  # type: ignore[no-untyped-def]
    """Counting sort.

    codes uint32 [n], each below `count`; order uint32 [n]; starts int64 [count + 1].
    """
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
def sort_by_rank(codes, count, batch):  # type: ignore[no-untyped-def]
    """Fill `order`, `starts`, `used`, `words` and `ranks` of a SortedBatch that is sorted by rank.

    `codes` is uint32 [n]; each code is below `count`.
    """
    words, ranks, starts, used = batch.words, batch.ranks, batch.starts, batch.used
    last = count // 64 + 1
    words[:last] = 0
    for i in range(codes.shape[0]):
        words[codes[i] >> 6] |= np.uint64(1) << np.uint64(codes[i] & 63)
    total = np.int64(0)
    for word in range(last):
        ranks[word] = total
        if words[word] != np.uint64(0):
            total += count_bits(words[word])
    starts[: total + 1] = 0
    for i in range(codes.shape[0]):
        rank = rank_of(batch, np.int64(codes[i]))
        starts[rank + 1] += 1
        used[rank] = codes[i]
    used[total] = NONE
    for rank in range(total):
        starts[rank + 1] += starts[rank]
    place = starts[:total].copy()
    for i in range(codes.shape[0]):
        rank = rank_of(batch, np.int64(codes[i]))
        batch.order[place[rank]] = i
        place[rank] += 1


@kernel
def rank_of(batch, code):  # type: ignore[no-untyped-def]
    """How many distinct codes of a SortedBatch are below `code`; `code` is at most K."""
    word = code >> 6
    below = (np.uint64(1) << np.uint64(code & 63)) - np.uint64(1)
    return batch.ranks[word] + count_bits(batch.words[word] & below)


@kernel
def events_below(batch, code):  # type: ignore[no-untyped-def]
    """How many events of a SortedBatch have codes below `code`; `code` is at most K."""
    return batch.starts[code if batch.words.shape[0] == 0 else rank_of(batch, code)]


@kernel
def next_code(batch, code):  # type: ignore[no-untyped-def]
    """The lowest code of an event in a SortedBatch that is not below `code`, or NONE."""
    return batch.used[code if batch.words.shape[0] == 0 else rank_of(batch, code)]


@kernel
def permute(columns, wanted, order, out):  # type: ignore[no-untyped-def]
    """out[c, i] = columns[c, order[i]] for the wanted columns (int64); the padding is kept.

    `columns` is uint16 [C, n]. `order` is uint32 [m]; an event may occur in it several times or not
    at all. `out` is uint16 [C, m + 64].
    """
    for w in range(wanted.shape[0]):
        source, target = columns[wanted[w]], out[wanted[w]]
        for i in range(order.shape[0]):
            target[i] = source[order[i]]


@kernel
def interval_holds(lows, highs, first, last, code):  # type: ignore[no-untyped-def]
    """Whether a code lies in one of the intervals from `first` to `last` - 1; the intervals are
    sorted and disjoint. `lows` and `highs` are uint32; both ends of an interval are included."""
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
    """The result of array_contains, as one bit: 1 (unknown), 2 (false) or 4 (true).

    If an element of the list can't be compared with the wanted element, "false" becomes "unknown".
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
    """Whether the extras of a box pass: interval sets (kind 1) and elements of lists (kind 2).
    exact int64 or uint32 [C, n]: the exact codes."""
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
def find_used(starts, size, used):  # type: ignore[no-untyped-def]
    """Compute `used` from `starts`, for `size` codes; for both arrays, see SortedBatch."""
    used[size] = NONE
    for code in range(size - 1, -1, -1):
        used[code] = code if starts[code + 1] > starts[code] else used[code + 1]


@kernel
def first_from(values, first, last, least):  # type: ignore[no-untyped-def]
    """The index of the first value that is not below `least`. The values [first, last) are sorted,
    and are integers of any dtype."""
    while first < last:
        middle = (first + last) >> 1
        if np.int64(values[middle]) < least:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def next_hit(position, last, width, low, high, batch):  # type: ignore[no-untyped-def]
    """The next entry of a group with an interval that contains the code of an event, or `last`.

    The entries of a group are sorted by their low ends, and no entry is wider than `width`. So
    entries that end before the next code in use are skipped together. `low` and `high` (uint32 [E])
    are the intervals of the entries; for `used`, see SortedBatch.
    """
    while position < last:
        code = next_code(batch, np.int64(low[position]))
        if code <= np.int64(high[position]):
            return position
        least = code - width  # an entry that begins below `least` ends before the code
        position += 1
        end = last
        if position < last and np.int64(low[position]) >= least:
            end = position
        position = first_from(low, position, end, least)
    return last


@kernel
def join_group(  # type: ignore[no-untyped-def]
    position, last, width, arrays, batch, lists, dead, many, pairs, counts, n_out, n_rest
):
    """The batch join of a sorted batch with the entries [position, last) of one group.

    In this order, the events that pass the access test of an entry form one slice; the other tests
    run over the slice, 64 events at a time. Matches are appended to `pairs.out_*`, after the first
    `n_out`; pairs that must still be evaluated are appended to `pairs.rest_*`, after the first
    `n_rest`. The kernel stops early when an output could overflow. If `counts` (int64 per event) is
    not empty, matches of filters with one box are counted there and not written. `dead` and `many`,
    uint8 [slots], mark removed filters and filters with several boxes. Returns (position reached,
    number of matches, number of pairs to evaluate).
    """
    room_out, room_rest = pairs.out_event.shape[0], pairs.rest_event.shape[0]
    while position < last:
        box = np.int64(arrays.entry_box[position])
        begin = events_below(batch, np.int64(arrays.entry_low[position]))
        end = events_below(batch, np.int64(arrays.entry_high[position]) + 1)
        if end == begin:
            position = next_hit(position, last, width, arrays.entry_low, arrays.entry_high, batch)
            continue
        if dead[arrays.box_slot[box]]:
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
def join_access(  # type: ignore[no-untyped-def]
    access, position, accesses, arrays, batch, lists, dead, many, pairs, counts, n_out, n_rest
):
    """The batch join of one access term, group by group, from an entry on; see `join_group`, also
    for the other arguments. `accesses` is `Accesses`."""
    for group in range(accesses.group_starts[access], accesses.group_starts[access + 1]):
        end = accesses.group_end[group]
        if position < end:
            position, n_out, n_rest = join_group(
                position, end, accesses.group_width[group], arrays, batch, lists, dead, many,
                pairs, counts, n_out, n_rest,
            )  # fmt: skip
            if position < end:
                break
    return position, n_out, n_rest


@kernel
def join_all(access, position, accesses, exact, coarse, arrays, lists, dead, many, pairs, counts):  # type: ignore[no-untyped-def]
    """The batch join of all access terms; it starts at entry `position` of term `access`.

    exact uint32 [C, n], coarse uint16 [C, n + 64]: the codes of the batch. If there are few events,
    calling three kernels for each term would take longer than the join itself. Returns (term
    reached, entry reached, number of matches, number of pairs to evaluate); the term is A when all
    terms are done.
    """
    most = accesses.size.max() + 1
    starts, used = np.empty(most, np.int64), np.empty(most, np.int64)
    words, ranks = np.empty(most // 64 + 1, np.uint64), np.empty(most // 64 + 1, np.int64)
    order = np.empty(exact.shape[1], np.uint32)
    permuted = np.empty(coarse.shape, np.uint16)
    n_out, n_rest = np.int64(0), np.int64(0)
    while access < accesses.column.shape[0]:
        size, codes = accesses.size[access], exact[accesses.column[access]]
        by_rank = 1 if SPARSE * codes.shape[0] < size else 0  # 0: `words` and `ranks` stay empty
        batch = SortedBatch(
            starts, used, words[: by_rank * len(words)], ranks[: by_rank * len(ranks)], order,
            permuted, exact,
        )  # fmt: skip
        if by_rank:
            sort_by_rank(codes, size, batch)
        else:
            sort_by_code(codes, size, order, starts[: size + 1])
            find_used(starts, size, used)
        first, end = accesses.tested_starts[access], accesses.tested_starts[access + 1]
        permute(coarse, accesses.tested[first:end], order, permuted)
        position, n_out, n_rest = join_access(
            access, max(position, accesses.first[access]), accesses, arrays, batch, lists, dead,
            many, pairs, counts, n_out, n_rest,
        )  # fmt: skip
        if position < accesses.last[access]:
            break
        access += 1
        position = np.int64(0)
    return access, position, n_out, n_rest


@kernel
def count_codes(exact, columns, places, step, flat):  # type: ignore[no-untyped-def]
    """Count the codes that every `step`th event has in some columns: each code adds 1 to
    flat[places[c] + code].

    `exact` is uint32 [C, n], `columns` and `places` are int64, `flat` is float64.
    """
    for c in range(columns.shape[0]):
        codes = exact[columns[c]]
        for i in range(0, codes.shape[0], step):
            flat[places[c] + codes[i]] += 1.0


@kernel
def count_events(events, starts):  # type: ignore[no-untyped-def]
    """Add the occurrences of each event in `events` (uint32 [P]) to starts[event + 1]. `starts` is
    int64 [n + 1]."""
    for i in range(events.shape[0]):
        starts[np.int64(events[i]) + 1] += 1


@kernel
def put_slots(events, slots, many, place, out):  # type: ignore[no-untyped-def]
    """Write slots (uint32 [P]) to the next free position of their event, and advance `place` (int64
    [n]).

    `many`, uint8 [slots], marks the filters with several boxes; only the slots of these filters can
    repeat. Returns whether any of the slots belongs to such a filter.
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
    """Keep each slot once per event; the slots that remain are moved to the front of `out`. Returns
    how many slots remain.

    starts int64 [n + 1], updated; out uint32; seen int64 [slots], filled with -1.
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
