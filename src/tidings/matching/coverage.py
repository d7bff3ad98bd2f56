"""Which filters cover which, for very many at once: the batch join on filters instead of events.

A filter is an event whose every attribute is an interval instead of a point. A test of another
filter covers it when both ends of that interval lie inside, so each filter is a row of two codes
per term, its lowest and its highest, and each test is made twice:

    A covers B when, for every test of A, A.low <= B.low <= A.high and A.low <= B.high <= A.high

The same kernel then finds all pairs. It works on hulls, so a pair is certain when A is one box of
single intervals over plain attributes; other pairs are only candidates and are checked one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters.covering import covers
from tidings.filters.expression import Attribute
from tidings.filters.form import Form
from tidings.filters.index import HullIndex
from tidings.matching import kernels
from tidings.matching.access import choose_access
from tidings.matching.compiling import kernel
from tidings.matching.part import PADDING
from tidings.matching.segment import MOST_TERMS, Arrays, Term, Tests, gather_tests

Array = npt.NDArray[Any]
BATCH = 65536
ROOM = 1 << 20
Progress = Callable[[int], None]


class Pairs(msgspec.Struct):
    """above[i] covers below[i]; both are numbers of forms."""

    above: Array
    below: Array


def cover_pairs(forms: Sequence[Form], progress: Progress | None = None) -> Pairs:
    """All pairs of different forms of which the first covers the second, as computed."""
    special = {n for n, form in enumerate(forms) if form.never}
    plain = [n for n in range(len(forms)) if n not in special and _is_plain(forms[n])]
    if len({term for n in plain for term in forms[n].hull}) >= MOST_TERMS:
        plain = []  # more columns than the join has room for
    above, below, rough = _join_hulls(forms, plain, special, progress)
    doubtful = np.array([not _is_certain(form) for form in forms], bool)
    keep = above != below
    for at in np.nonzero((doubtful[above] | rough) & keep)[0].tolist():
        keep[at] = covers(forms[above[at]], forms[below[at]])
    extra = _one_by_one(forms, set(range(len(forms))) - set(plain) - special)
    for never in sorted(special):  # whatever there is covers what matches nothing
        extra.extend((other, never) for other in range(len(forms)) if other != never)
    more = np.array(extra, np.int64).reshape(-1, 2)
    return Pairs(
        np.concatenate([above[keep], more[:, 0]]), np.concatenate([below[keep], more[:, 1]])
    )


def _is_plain(form: Form) -> bool:
    """Whether hulls say enough: no computed terms, so that a test needs a test to be covered."""
    return form.boxes is not None and all(isinstance(t, Attribute) for t in form.terms.values())


def _is_certain(form: Form) -> bool:
    """Whether a hull that holds another hull covers it: one box, each set one interval."""
    return (
        form.boxes is not None
        and len(form.boxes) == 1
        and all(len(values.cuts) <= 2 for values in form.boxes[0].values())
        and _is_plain(form)
    )


def _one_by_one(forms: Sequence[Form], numbers: set[int]) -> list[tuple[int, int]]:
    """The pairs whose first form has computed terms or is wide, from the index of hulls."""
    if not numbers:
        return []
    index: HullIndex[int] = HullIndex()
    for number, form in enumerate(forms):
        index.add(number, form)
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        form = forms[number]
        found.extend(
            (number, other)
            for other in dict.fromkeys(index.may_be_covered(form))
            if other != number and not forms[other].never and covers(form, forms[other])
        )
    return found


def _join_hulls(
    forms: Sequence[Form], plain: list[int], never: set[int], progress: Progress | None
) -> tuple[Array, Array, Array]:
    """(above, below) of all hulls of plain forms that hold the hull of any form, and which of
    these pairs were compared by coarse codes only."""
    hulls = [
        (number, msgspec.structs.replace(form, boxes=(form.hull,), tree=None))
        for number, form in enumerate(forms)
        if number not in never
    ]
    terms, tests, slots = gather_tests(hulls)
    tests.several[:] = -1  # hulls only
    plain_row = np.isin(slots, np.array(plain, np.uint32))
    arrays = _chosen(tests, slots, terms, plain_row)
    coarse = np.zeros(len(forms), bool)
    coarse[slots[tests.box[arrays.shift[tests.column] > 0]]] = True
    joiner = _Joiner(_doubled(arrays), terms)
    order = np.argsort(tests.box, kind="stable")
    starts = np.searchsorted(tests.box[order], np.arange(0, len(slots) + BATCH, BATCH))
    found: list[tuple[Array, Array]] = []
    for number, start in enumerate(range(0, len(slots), BATCH)):
        rows = order[starts[number] : starts[number + 1]]
        count = min(BATCH, len(slots) - start)
        low = np.zeros((len(terms) + 1, count), np.uint32)
        high = np.zeros((len(terms) + 1, count), np.uint32)
        # a term that is not tested has 0, which is below the low end of every test
        low[tests.column[rows], tests.box[rows] - start] = tests.low[rows]
        high[tests.column[rows], tests.box[rows] - start] = tests.high[rows]
        for above, event in joiner.join(low, high):
            found.append((above.astype(np.int64), slots[start + event].astype(np.int64)))
        if progress is not None:
            progress(count)
    none = np.zeros(0, np.int64)
    above = np.concatenate([a for a, _ in found]) if found else none
    below = np.concatenate([b for _, b in found]) if found else none
    return above, below, coarse[above]


class _Joiner:
    """The kernel with its arguments: rows of two codes per term against doubled tests."""

    def __init__(self, arrays: Arrays, terms: Sequence[Term]) -> None:
        self.arrays = arrays
        self.sizes = [1, *(len(term.ranks) for term in terms)]
        self.runs = []
        for column in np.unique(arrays.group_column):
            groups = np.nonzero(arrays.group_column == column)[0]
            first, last = int(arrays.group_start[groups[0]]), int(arrays.group_end[groups[-1]])
            boxes = arrays.entry_box[first:last].astype(np.int64)
            tests = slice(arrays.box_tests[boxes.min()], arrays.box_tests[boxes.max() + 1])
            tested = np.unique(arrays.test_column[tests]).astype(np.int64)
            self.runs.append((int(column), first, last, tested))
        slots = int(arrays.box_slot.max()) + 1 if len(arrays.box_slot) else 1
        self.dead = np.zeros(slots, np.uint8)

    def join(self, low: Array, high: Array) -> Iterator[tuple[Array, Array]]:
        """(form that covers, row that is covered), in pieces."""
        arrays = self.arrays
        count = low.shape[1]
        both = np.zeros((2 * low.shape[0], count + PADDING), np.uint16)
        both[0::2, :count] = low >> arrays.shift[:, None]
        both[1::2, :count] = high >> arrays.shift[:, None]
        none, one = np.zeros(0, np.uint32), np.zeros(1, np.uint32)
        for column, position, last, tested in self.runs:
            order, starts = np.empty(count, np.uint32), np.empty(self.sizes[column] + 1, np.int64)
            kernels.sort_by_code(low[column], self.sizes[column], order, starts)
            permuted = np.empty_like(both)
            kernels.permute(both, tested, order, permuted)
            while position < last:
                event, slot = np.empty(ROOM, np.uint32), np.empty(ROOM, np.uint32)
                rest = np.empty(count, np.uint32)
                position, pairs, _ = kernels.join(
                    position, last, arrays.entry_low, arrays.entry_high, arrays.entry_box,
                    starts, order, permuted, arrays.box_tests, arrays.test_column,
                    arrays.test_low, arrays.test_width, arrays.box_slot, arrays.box_flags,
                    self.dead, arrays.box_extras, arrays.extra_kind, arrays.extra_column,
                    arrays.extra_a, arrays.extra_b, low, none, none,
                    np.full(1, -1), np.zeros(1, np.int64), one, np.zeros(1, np.uint8),
                    event, slot, rest, rest, self.dead, np.zeros(0, np.int64),
                )  # fmt: skip
                yield slot[:pairs], event[:pairs]


def _chosen(tests: Tests, slots: Array, terms: Sequence[Term], plain: Array) -> Arrays:
    """The arrays of the plain hulls alone: they are the ones that cover."""
    number = np.cumsum(plain) - 1
    kept = plain[tests.box]
    chosen = Tests(
        number[tests.box[kept]].astype(np.uint32), tests.column[kept], tests.low[kept],
        tests.high[kept], tests.several[kept], np.zeros(1, np.int64),
        np.zeros(0, np.uint32), np.zeros(0, np.uint32),
    )  # fmt: skip
    arrays, _ = choose_access(chosen, slots[plain], terms, [], set(), {})
    # what is coarse here is checked afterwards, so extras are not needed
    return msgspec.structs.replace(arrays, box_flags=np.zeros_like(arrays.box_flags))


def _doubled(arrays: Arrays) -> Arrays:
    """Each test on column c becomes one on 2c, the low end, and one on 2c + 1, the high end."""
    starts = arrays.box_tests.astype(np.int64)
    sizes: Array = starts[1:] - starts[:-1]
    entries: Array = arrays.group_end - arrays.group_start
    columns = np.repeat(arrays.group_column, entries)
    boxes = arrays.entry_box.astype(np.int64)  # one entry per box
    access = np.zeros(len(sizes), np.int64)
    access_low, access_high = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    access[boxes], access_low[boxes] = columns, arrays.entry_low
    access_high[boxes] = arrays.entry_high
    new_starts = np.zeros(len(starts), np.int64)
    np.cumsum(2 * sizes + 1, out=new_starts[1:])
    total = int(new_starts[-1])
    column, low = np.zeros(total, np.uint16), np.zeros(total, np.uint16)
    width = np.zeros(total, np.uint16)
    shift = arrays.shift.astype(np.int64)
    first = new_starts[:-1]
    column[first] = 2 * access + 1
    low[first] = access_low >> shift[access]
    width[first] = (access_high >> shift[access]) - (access_low >> shift[access])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    place = first[owner] + 1 + 2 * (np.arange(len(owner)) - starts[owner])
    for offset in (0, 1):
        column[place + offset] = 2 * arrays.test_column.astype(np.int64) + offset
        low[place + offset] = arrays.test_low
        width[place + offset] = arrays.test_width
    return msgspec.structs.replace(
        arrays, box_tests=new_starts.astype(np.uint32), test_column=column, test_low=low,
        test_width=width, shift=shift,
    )  # fmt: skip


@kernel
def _mark_parents(starts, above, is_parent, seen):  # type: ignore[no-untyped-def]
    """For each node which of its coverers are its parents: those that cover no other coverer.

    starts int64 [n + 1], above int64: the coverers of each node; is_parent uint8 like above.
    seen int64 [n], filled with -1. Returns the number of coverers that transitivity asks for and
    that are not there.
    """
    missing = 0
    here = np.full(seen.shape[0], -1, np.int64)
    for node in range(starts.shape[0] - 1):
        for i in range(starts[node], starts[node + 1]):
            here[above[i]] = node
        for i in range(starts[node], starts[node + 1]):
            middle = above[i]
            for j in range(starts[middle], starts[middle + 1]):
                seen[above[j]] = node
                if here[above[j]] != node and above[j] != node:
                    missing += 1
        for i in range(starts[node], starts[node + 1]):
            is_parent[i] = seen[above[i]] != node
    return missing


def parents_of(pairs: Pairs, count: int) -> Pairs:
    """The transitive reduction of a relation without loops; it is closed first if it has to be."""
    above, below = pairs.above, pairs.below
    while True:
        order = np.lexsort((above, below))
        above, below = above[order], below[order]
        fresh = np.ones(len(above), bool)
        fresh[1:] = (above[1:] != above[:-1]) | (below[1:] != below[:-1])
        above, below = above[fresh], below[fresh]
        starts = np.searchsorted(below, np.arange(count + 1)).astype(np.int64)
        is_parent = np.zeros(len(above), np.uint8)
        if _mark_parents(starts, above, is_parent, np.full(count, -1, np.int64)) == 0:
            kept = is_parent != 0
            return Pairs(above[kept], below[kept])
        above, below = _closed_once(starts, above, below)


def equals_of(pairs: Pairs, count: int) -> tuple[Array, Pairs]:
    """Forms that cover each other are one: for each form the first of its equals, and the pairs
    between these."""
    forth = pairs.above * count + pairs.below
    back = pairs.below * count + pairs.above
    mutual = np.isin(forth, back)
    first = np.arange(count)

    def leader(number: int) -> int:
        while first[number] != number:
            first[number] = first[first[number]]
            number = int(first[number])
        return number

    for above, below in zip(pairs.above[mutual], pairs.below[mutual], strict=True):
        one, other = leader(int(above)), leader(int(below))
        first[max(one, other)] = min(one, other)
    for number in np.unique(np.concatenate([pairs.above[mutual], pairs.below[mutual]])):
        first[number] = leader(int(number))
    above, below = first[pairs.above], first[pairs.below]
    real = above != below
    return first, Pairs(above[real], below[real])


def _closed_once(starts: Array, above: Array, below: Array) -> tuple[Array, Array]:
    """Add the coverers of coverers."""
    sizes: Array = starts[above + 1] - starts[above]
    ends = np.cumsum(sizes)
    offset = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
    further = above[np.repeat(starts[above], sizes) + offset]
    more_below = np.repeat(below, sizes)
    real = further != more_below
    return np.concatenate([above, further[real]]), np.concatenate([below, more_below[real]])
