"""The whole search for the neighbours of several simple filters, in one call.

A *simple* filter is one box over terms that have columns in the index. A simple filter is passed as
int64 words:

    K, then for each test, ascending by column:    column, pinned, the end of its spans
       then for each span:    low, high

Nearly all filters are simple. If each filter caused work outside of this kernel, such as creating
small arrays for each step, that work would take longer than the search itself.

`words` (int64) contains the words of simple filters. `new` is `Boxed`, and `piece` is
`EncodedPiece`. `room`, `found` and `out` (uint32) contain slots. `answers` (uint8) has NO, MAYBE or
YES for each slot in `room`. Places and counts are integers.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from tidings.matching.covering.cover_kernels import MAYBE, MOST_NEAR, NO, YES
from tidings.matching.covering.neighbour_kernels import Boxed, is_above, is_below
from tidings.matching.jit.kernel_compiler import kernel
from tidings.matching.placing.index_kernels import EncodedPiece, best_test, sift, stab

TEST, SPAN = 3, 2  # the number of words of a test, and of a span


class ListEnds(IntEnum):
    """The four lists of slots that are found for a filter, in the order in which they are written.
    They are also the columns of `ends`, which says where each list ends."""

    SURELY_ABOVE = 0
    PERHAPS_ABOVE = 1
    SURELY_BELOW = 2
    PERHAPS_BELOW = 3


@kernel
def read_box(words, at):  # type: ignore[no-untyped-def]
    """Read a simple filter as two equal boxes, because its only box is also its hull."""
    tests = words[at]
    first = at + 1 + TEST * tests
    spans = words[first - 1] if tests else 0
    column, pinned = np.empty(2 * tests, np.uint32), np.empty(2 * tests, np.uint8)
    starts = np.zeros(2 * tests + 1, np.int64)
    low, high = np.empty(2 * spans, np.int32), np.empty(2 * spans, np.int32)
    for twice in range(2):
        for test in range(tests):
            here, word = twice * tests + test, at + 1 + TEST * test
            column[here] = words[word]
            pinned[here] = words[word + 1]
            starts[here + 1] = twice * spans + words[word + 2]
        for span in range(spans):
            low[twice * spans + span] = words[first + SPAN * span]
            high[twice * spans + span] = words[first + SPAN * span + 1]
    return Boxed(np.array([0, tests, 2 * tests]), column, starts, low, high, pinned)


@kernel
def read_piece(new):  # type: ignore[no-untyped-def]
    """Convert the box of a simple filter to a piece."""
    tests = new.tests[1]
    columns, mask = np.empty(tests, np.int64), np.uint64(0)
    for test in range(tests):
        columns[test] = new.column[test]
        mask |= np.uint64(1) << np.uint64(new.column[test] % 64)
    spans = new.spans[tests]
    low, high = new.low[:spans].astype(np.int64), new.high[:spans].astype(np.int64)
    return EncodedPiece(columns, new.spans[: tests + 1], low, high, mask)


@kernel
def read_corner(piece):  # type: ignore[no-untyped-def]
    """The columns that a corner has in a segment, including column 0, and its codes there."""
    tests, count = piece.columns.shape[0], 1
    columns, codes = np.zeros(tests + 1, np.int64), np.zeros(tests + 1, np.int64)
    for test in range(tests):
        if piece.starts[test] < piece.starts[test + 1]:
            columns[count] = piece.columns[test] + 1
            codes[count] = (piece.low[piece.starts[test]] + 1) // 2
            count += 1
    return columns[:count], codes[:count]


@kernel
def put_sorted(out, first, end, slot):  # type: ignore[no-untyped-def]
    """Insert a slot into the sorted slots [first, end) of `out`, unless it is already there;
    returns the new end."""
    at = end
    while at > first and out[at - 1] > slot:
        at -= 1
    if at > first and out[at - 1] == slot:
        return end
    for move in range(end, at, -1):
        out[move] = out[move - 1]
    out[at] = slot
    return end + 1


@kernel
def keep_decided(found, answers, count, out, end):  # type: ignore[no-untyped-def]
    """Append first the slots with the answer YES, then those with MAYBE. Each of the two lists is
    sorted, and has no repeats. Returns where each of the two lists ends, or -1 twice if there is no
    room."""
    if end + count > out.shape[0]:
        return -1, -1
    first = end
    for at in range(count):
        if answers[at] == YES:
            end = put_sorted(out, first, end, found[at])
    sure = first = end
    for at in range(count):
        if answers[at] == MAYBE:
            end = put_sorted(out, first, end, found[at])
    return sure, end


@kernel
def decide(  # type: ignore[no-untyped-def]
    above, room, count, slots, compiled, wide, new, columns, most, left, answers
):
    """Keep only those candidates in `room` that surely or perhaps lie above (or below) a filter,
    together with their answers; returns how many were kept. For the other arguments, see
    `find_neighbours`; `left` (int64 [MOST_NEAR]) is working memory."""
    kept = 0
    for one in range(count):
        slot = np.int64(room[one])
        if wide[slot] == 0:
            if above:
                answer = is_above(slot, slots, compiled, wide, new, 1, columns, most, left)
            else:
                answer = is_below(slot, slots, compiled, wide, new, 1, columns, most, left)
            if answer != NO:
                room[kept], answers[kept] = slot, answer
                kept += 1
    return kept


@kernel
def find_neighbours(  # type: ignore[no-untyped-def]
    words, starts, arrays, masks, corners, split, loose, slots, compiled, wide, columns, most,
    room, out, ends,
):  # fmt: skip
    """Find the neighbours of simple filters, whose words in `words` begin at the indexes `starts`.

    `arrays`, `masks`, `corners`, `split` and `loose` are the index; see BoxIndex. For `slots`,
    `compiled`, `wide`, `columns` and `most`, see `find_above`. `room` (uint32) is working memory
    for candidates. `out` (uint32) receives the lists of slots, and `ends`
    (int64 [n, len(ListEnds)]) receives where each list ends; the last end is -1 if there was no
    room, or if all filters are candidates.
    """
    left, answers = np.empty(MOST_NEAR, np.int64), np.empty(room.shape[0], np.uint8)
    end = 0
    for at in range(ends.shape[0]):
        begin = end
        ends[at, ListEnds.PERHAPS_BELOW] = -1
        new = read_box(words, starts[at])
        piece = read_piece(new)
        corner = read_corner(piece)
        count = stab(corner[0], corner[1], arrays, masks, piece.mask, room)
        test, cost = best_test(corners, piece)
        if count < 0 or count + split.shape[0] > room.shape[0] or cost >= wide.shape[0]:
            continue
        if cost + loose.shape[0] > room.shape[0]:
            continue
        for one in range(split.shape[0]):
            room[count] = split[one]
            count += 1
        kept = decide(True, room, count, slots, compiled, wide, new, columns, most, left, answers)
        ends[at, ListEnds.SURELY_ABOVE], end = keep_decided(room, answers, kept, out, end)
        ends[at, ListEnds.PERHAPS_ABOVE] = end
        if end >= 0:
            count = sift(corners, piece, test, True, room)
            for one in range(loose.shape[0]):
                room[count] = loose[one]
                count += 1
            kept = decide(
                False, room, count, slots, compiled, wide, new, columns, most, left, answers
            )
            ends[at, ListEnds.SURELY_BELOW], end = keep_decided(room, answers, kept, out, end)
            ends[at, ListEnds.PERHAPS_BELOW] = end
        if end < 0:
            end = begin
            ends[at, ListEnds.PERHAPS_BELOW] = -1
