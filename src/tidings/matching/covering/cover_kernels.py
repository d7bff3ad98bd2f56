"""The hot loops of covering in bulk.

`hulls` is `Hulls` of hulls.py, with n hulls, T tests and C columns; the definition of `Hulls` gives
the dtype and shape of each array. A join also needs `JoinInput`, and `PairRoom` for its output.
Hulls, tests and columns are given by number, as integers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.matching.jit.kernel_compiler import kernel
from tidings.matching.jit.simd import inside, lowest_bit

NO, MAYBE, YES = 0, 1, 2
LANES = 64
MOST_NEAR = 64  # with more overlapping boxes than this, the answer is MAYBE
MOST_COLUMNS = 256  # the matrix of a join has about this many columns at most, to bound its size
Array = npt.NDArray[Any]


class JoinInput(NamedTuple):
    """The arrays that a join needs besides its hulls."""

    entries: Array  # uint32 [E]: hulls that may cover others, by position of the access test
    order: Array  # uint32 [T]: the attribute tests of each hull; the first is its *access* test
    shift: Array  # uint8 [C]: how many bits codes are shifted by to fit in 16 bits; usually 0
    exact: Array  # uint8 [n]: whether, as the outer hull of a pair, this hull needs an exact check
    bare: Array  # int64: the numbers of hulls without attribute tests


class PairRoom(NamedTuple):
    """Output buffers for pairs of hulls in which one hull contains the other."""

    above: Array  # uint32
    below: Array  # uint32
    sure: Array  # uint8: whether the hulls prove a covering


@kernel
def sort_places(places, first, last, by):  # type: ignore[no-untyped-def]
    """Heap sort: sort places[first:last] (uint32) by the value of each place in `by` (int64).

    np.argsort is not used; `sort_lists` in tag_kernels.py says why.
    """
    size = last - first
    for done in range(size + size // 2):
        # build the heap, then repeatedly move its greatest element to the end
        if done < size // 2:
            hole, end = size // 2 - 1 - done, size
        else:
            end = size - 1 - (done - size // 2)
            places[first], places[first + end] = places[first + end], places[first]
            hole = 0
        while 2 * hole + 1 < end:
            child = 2 * hole + 1
            if child + 1 < end and by[places[first + child]] < by[places[first + child + 1]]:
                child += 1
            if by[places[first + hole]] >= by[places[first + child]]:
                break
            swapped = places[first + hole]
            places[first + hole], places[first + child] = places[first + child], swapped
            hole = child


@kernel
def add_column(left, near, column):  # type: ignore[no-untyped-def]
    """Append a column to `left`, int64 [MOST_NEAR], which already contains `near` columns; return
    False if it contains this column, or if there is no room."""
    if near >= MOST_NEAR:
        return False
    for i in range(near):
        if left[i] == column:
            return False
    left[near] = column
    return True


@kernel
def order_tests(hulls, order):  # type: ignore[no-untyped-def]
    """Sort the tests of each hull by how many tests, of all hulls, begin inside each of them; the
    test with the fewest comes first. `order` (uint32 [T]) receives the sorted tests."""
    starts, computed, column, spans = hulls.starts, hulls.computed, hulls.column, hulls.spans
    low, high, base = hulls.low, hulls.high, hulls.base
    share = np.zeros(column.shape[0], np.int64)
    begins = np.zeros(base[-1] + 1, np.int64)
    for hull in range(computed.shape[0]):
        for test in range(starts[hull], computed[hull]):
            begins[base[column[test]] + low[spans[test]] + 1] += 1
    for code in range(1, begins.shape[0]):
        begins[code] += begins[code - 1]
    for hull in range(computed.shape[0]):
        for test in range(starts[hull], computed[hull]):
            zero = base[column[test]]
            for span in range(spans[test], spans[test + 1]):
                share[test] += begins[zero + high[span] + 1] - begins[zero + low[span]]
        first, last = starts[hull], computed[hull]
        for test in range(first, last):
            order[test] = test
        sort_places(order, first, last, share)


@kernel
def spans_hold(hulls, outer, inner):  # type: ignore[no-untyped-def]
    """Whether each span of the inner test lies in a span of the outer test."""
    spans, low, high = hulls.spans, hulls.low, hulls.high
    at, end = spans[outer], spans[outer + 1]
    for span in range(spans[inner], spans[inner + 1]):
        while at < end and high[at] < high[span]:
            at += 1
        if at == end or low[at] > low[span]:
            return False
    return True


@kernel
def is_pinned(hulls, wanted, row):  # type: ignore[no-untyped-def]
    """Whether a row restricts every attribute that a computed column reads to only a few values."""
    for source in range(hulls.reads[wanted], hulls.reads[wanted + 1]):
        found = False
        for test in range(hulls.starts[row], hulls.starts[row + 1]):
            if np.int64(hulls.column[test]) == hulls.read[source]:
                found = hulls.pinned[test] != 0
        if not found:
            return False
    return True


@kernel
def holds(hulls, outer, inner):  # type: ignore[no-untyped-def]
    """NO, MAYBE or YES: whether the filter of the outer hull covers that of the inner one.

    The inner filter may determine the value of a computed term without testing the term. If the
    inner filter is a single box, it determines the value of a term only if the box pins every
    attribute that the term reads. If the inner filter has several boxes, each box may determine the
    value.
    """
    starts, column = hulls.starts, hulls.column
    sure = hulls.one_box[outer] != 0
    at, end = starts[inner], starts[inner + 1]
    for test in range(starts[outer], starts[outer + 1]):
        wanted = column[test]
        while at < end and column[at] < wanted:
            at += 1
        if at < end and column[at] == wanted and spans_hold(hulls, test, at):
            continue
        if np.int64(wanted) < hulls.attributes:
            return NO
        sure = False
        if hulls.one_box[inner] != 0 and not is_pinned(hulls, wanted, inner):
            return NO
    return YES if sure else MAYBE


@kernel
def scan_rows(hulls, outers, first, last, out, pairs):  # type: ignore[no-untyped-def]
    """For each of the hulls `outers`, find the other hulls in [first, last) that it contains, by
    comparing all pairs. `outers` is int64.

    `out` already contains `pairs` pairs. Returns the new number of pairs, or -1 if `out` is too
    small.
    """
    room = out.above.shape[0]
    for outer in outers:
        for inner in range(first, last):
            if inner == outer:
                continue
            answer = holds(hulls, outer, inner)
            if answer == NO:
                continue
            if pairs == room:
                return -1
            out.above[pairs] = outer
            out.below[pairs] = inner
            out.sure[pairs] = answer == YES
            pairs += 1
    return pairs


@kernel
def join_rows(hulls, prepared, first, last, out, seen):  # type: ignore[no-untyped-def]
    """For each hull in [first, last), find the entries before `last` that cover it.

    The hulls that pass the access test of an entry begin inside one of the test's spans. So these
    hulls form slices of the list of all tests, which is sorted by (column, first code). The other
    tests are evaluated for a slice, 64 hulls at a time, on a matrix with two rows for each relevant
    column: the lowest and the highest codes. Entries with the same access column are handled in
    runs; all entries of a run share a matrix, and a run ends when it has MOST_COLUMNS relevant
    columns.

    The number of candidates is added to `seen`, int64 [1]. Returns the number of pairs in `out`, or
    -1 if `out` is too small.
    """
    starts, computed, column, spans = hulls.starts, hulls.computed, hulls.column, hulls.spans
    low, high, base, attributes = hulls.low, hulls.high, hulls.base, hulls.attributes
    entries, order, shift, exact = prepared.entries, prepared.order, prepared.shift, prepared.exact
    # all attribute tests of these hulls, sorted by column and first code
    zero = base[attributes]
    begins = np.zeros(zero + 2, np.int64)
    for hull in range(first, last):
        for test in range(starts[hull], computed[hull]):
            begins[base[column[test]] + low[spans[test]] + 1] += 1
    for code in range(1, begins.shape[0]):
        begins[code] += begins[code - 1]
    place = begins.copy()
    rows = np.empty(begins[zero], np.uint32)
    for hull in range(first, last):
        for test in range(starts[hull], computed[hull]):
            code = base[column[test]] + low[spans[test]]
            rows[place[code]] = hull
            place[code] += 1

    local = np.full(attributes, -1, np.int64)
    used = np.empty(attributes, np.int64)
    most = 1
    for entry in entries:
        most = max(most, computed[entry] - starts[entry])
    line = np.empty(2 * most, np.int64)
    least, width = np.empty(2 * most, np.uint16), np.empty(2 * most, np.uint16)

    pairs, room = 0, out.above.shape[0]
    run = 0
    while run < entries.shape[0]:
        access = column[order[starts[entries[run]]]]
        end = run
        columns = 0
        begin, beyond = begins[base[access + 1]], begins[base[access]]
        while end < entries.shape[0] and columns < MOST_COLUMNS:
            hull = entries[end]
            lead = order[starts[hull]]
            if column[lead] != access:
                break
            end += 1
            reached = begins[base[access] + low[spans[lead]]]
            passed = begins[base[access] + high[spans[lead + 1] - 1] + 1]
            if reached == passed or np.int64(hull) >= last:
                continue
            begin, beyond = min(begin, reached), max(beyond, passed)
            for test in range(starts[hull], computed[hull]):
                if local[column[test]] < 0:
                    local[column[test]] = columns
                    used[columns] = column[test]
                    columns += 1
        if columns == 0:
            run = end
            continue
        matrix = np.zeros((2 * columns, beyond - begin + LANES), np.uint16)
        is_wide = np.zeros(columns, np.uint8)
        for i in range(begin, beyond):
            for test in range(starts[rows[i]], computed[rows[i]]):
                here = local[column[test]]
                if here >= 0:
                    one, other = low[spans[test]], high[spans[test + 1] - 1]
                    matrix[2 * here, i - begin] = one >> shift[column[test]]
                    matrix[2 * here + 1, i - begin] = other >> shift[column[test]]
                    if one != other:
                        is_wide[here] = 1
        for number in range(run, end):
            outer = np.int64(entries[number])
            if outer >= last:
                continue
            lead = order[starts[outer]]
            reached = begins[base[access] + low[spans[lead]]]
            if reached == begins[base[access] + high[spans[lead + 1] - 1] + 1]:
                continue
            tests = 0
            for i in range(starts[outer], computed[outer]):
                wanted = order[i]
                here = local[column[wanted]]
                down = low[spans[wanted]] >> shift[column[wanted]]
                up = high[spans[wanted + 1] - 1] >> shift[column[wanted]]
                if wanted != lead:  # the hulls of the slice already pass the low end of this test
                    line[tests], least[tests], width[tests] = 2 * here, down, up - down
                    tests += 1
                if is_wide[here] != 0:  # if every set is a single code, the low end suffices
                    line[tests], least[tests], width[tests] = 2 * here + 1, down, up - down
                    tests += 1
            for span in range(spans[lead], spans[lead + 1]):
                at = begins[base[access] + low[span]] - begin
                stop = begins[base[access] + high[span] + 1] - begin
                seen[0] += stop - at
                while at < stop:
                    mask = ~np.uint64(0)
                    if stop - at < LANES:
                        mask = (np.uint64(1) << np.uint64(stop - at)) - np.uint64(1)
                    turn = 0
                    while turn < tests and mask != np.uint64(0):
                        mask &= inside(matrix[line[turn]], at, least[turn], width[turn])
                        turn += 1
                    while mask != np.uint64(0):
                        row = np.int64(rows[begin + at + lowest_bit(mask)])
                        mask &= mask - np.uint64(1)
                        if row == outer:
                            continue
                        answer = YES
                        if exact[outer] != 0:
                            answer = holds(hulls, outer, row)
                        if answer == NO:
                            continue
                        if pairs == room:
                            return -1
                        out.above[pairs] = outer
                        out.below[pairs] = row
                        out.sure[pairs] = answer == YES
                        pairs += 1
                    at += LANES
        for i in range(columns):
            local[used[i]] = -1
        run = end
    return pairs


@kernel
def find_parents(  # type: ignore[no-untyped-def]
    first, last, above, below, top, parent_starts, parents, here, over, queue
):  # fmt: skip
    """Find the parents of the hulls [first, last), given the parents of all earlier hulls.

    A coverer is a parent unless it lies above another coverer. Every hull above a coverer is a
    coverer too, even if that pair is not listed. The cost is linear in the number of coverers and
    their edges.

        above, below    uint32 [P]: the pairs of these hulls
        top             the hull that covers everything, or -1
        parent_starts   int64 [n + 1], filled up to `first`; this call extends it
        parents         uint32, large enough for all pairs; this call extends it
        here, over      int64 [n]: scratch, filled with -1 before the first call
        queue           uint32 [n]: scratch
    """
    begins = np.zeros(last - first + 2, np.int64)
    for i in range(below.shape[0]):
        begins[below[i] - first + 2] += 1
    for i in range(2, begins.shape[0]):
        begins[i] += begins[i - 1]
    grouped = np.empty(above.shape[0], np.uint32)
    for i in range(below.shape[0]):
        at = below[i] - first + 1
        grouped[begins[at]] = above[i]
        begins[at] += 1
    filled = parent_starts[first]
    for hull in range(first, last):
        size = 0
        for i in range(begins[hull - first], begins[hull - first + 1]):
            coverer = grouped[i]
            if here[coverer] != hull:
                here[coverer] = hull
                queue[size] = coverer
                size += 1
        direct = size
        at = 0
        while at < size:
            coverer = queue[at]
            at += 1
            for i in range(parent_starts[coverer], parent_starts[coverer + 1]):
                further = parents[i]
                over[further] = hull
                if here[further] != hull:
                    here[further] = hull
                    queue[size] = further
                    size += 1
        if direct == 0 and top >= 0 and hull != top:
            parents[filled] = top
            filled += 1
        for i in range(direct):
            if over[queue[i]] != hull:
                parents[filled] = queue[i]
                filled += 1
        parent_starts[hull + 1] = filled
