"""Choose the access test of each box, and lay out the arrays of a segment accordingly.

The access test is the one that the fewest of the past events pass. If there are no histograms of
past events, events are assumed to have the values that filters ask for: each code counts once, and
once more for each filter that asks for exactly that code. The code of lists and structs has little
weight, because event patterns always allow lists and structs in addition to single values, whether
or not events have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.filters.values import sets
from tidings.matching.rank_space.ranks import Ranks
from tidings.matching.segments.segment import (
    ELEMENT,
    EXTRA,
    INTERVALS,
    REST,
    Arrays,
    TermColumn,
    Tests,
)

Array = npt.NDArray[Any]
MOST_INTERVALS = 64  # a set with more intervals is not split into one entry per interval
ElementTest = tuple[int, int, Ranks, Any, int]  # box, column, ranks, the element's place, outcomes


class Extra(NamedTuple):
    """A test of a box that is evaluated after its other tests."""

    box: int
    kind: int  # INTERVALS or ELEMENT; `a` and `b` depend on it, see segment.py
    column: int
    a: int
    b: int


def shares(tests: Tests, terms: Sequence[TermColumn], histograms: Mapping[str, Array]) -> Array:
    """For each test, the estimated share of events that pass it. float32."""
    out = np.ones(len(tests.box), np.float32)
    order = np.argsort(tests.column, kind="stable")
    columns = tests.column[order]
    for number, term in enumerate(terms, 1):
        rows = order[slice(*np.searchsorted(columns, [number, number + 1]))]
        if len(rows) == 0:
            continue
        low, high = tests.low[rows], tests.high[rows]
        seen = histograms.get(term.text)
        if seen is None or len(seen) != len(term.ranks):
            seen = None
        weight = weights(seen, low[low == high], len(term.ranks), code_of_lists(term.ranks))
        total = np.concatenate([[0.0], np.cumsum(weight)])
        out[rows] = (total[high + 1] - total[low]) / total[-1]
        _narrow_several(tests, rows, total, out)
    return out


def code_of_lists(ranks: Ranks) -> int | None:
    """The code that only lists and structs have; None if other values have the same code."""
    return ranks.other if (sets.OTHER,) in ranks.place else None


def weights(seen: Array | None, points: Array, size: int, lists: int | None = None) -> Array:
    """The weight of each of `size` codes: how often events had it. If no event was counted, how
    often filters ask for it."""
    if seen is not None and seen.any():
        found: Array = seen + 1.0 / size
        return found
    asked: Array = np.bincount(points, minlength=size) + 1.0
    if lists is not None:
        asked[lists] = 1.0 / size
    return asked


def _narrow_several(tests: Tests, rows: Array, total: Array, out: Array) -> None:
    """Correct the shares of sets with several intervals: only the intervals count, not the gaps
    between them."""
    for row in rows[tests.several[rows] >= 0]:
        first, last = tests.set_starts[tests.several[row] : tests.several[row] + 2]
        low, high = tests.set_low[first:last], tests.set_high[first:last]
        out[row] = (total[high + 1] - total[low]).sum() / total[-1]


def choose_access(
    tests: Tests,
    slots: Array,
    terms: Sequence[TermColumn],
    elements: Sequence[ElementTest],
    rest: set[int],
    histograms: Mapping[str, Array],
) -> tuple[Arrays, Array]:
    """Choose the best access test for each box; return the arrays of the segment, and the new
    numbers of the boxes."""
    count = len(slots)
    share = shares(tests, terms, histograms)
    order = np.lexsort((share, tests.box))
    box = tests.box[order].astype(np.int64)
    first = np.ones(len(box), bool)
    first[1:] = box[1:] != box[:-1]
    access = np.full(count, -1, np.int64)
    access[box[first]] = order[first]
    shift = np.zeros(len(terms) + 1, np.uint8)
    for number, term in enumerate(terms, 1):
        shift[number] = max(0, (len(term.ranks) - 1).bit_length() - 16)

    entries, element_access = _entries(tests, access, elements, count)
    extras = _extras(tests, access, elements, element_access, shift)
    flags = np.zeros(count, np.uint8)
    flags[[one.box for one in extras]] |= EXTRA
    flags[sorted(rest)] |= REST

    kept = order[~first]
    return _lay_out(tests, kept, entries, slots, flags, extras, shift)


def _entries(
    tests: Tests, access: Array, elements: Sequence[ElementTest], count: int
) -> tuple[tuple[Array, Array, Array, Array], set[int]]:
    """The column, low, high and box of each entry, and the element tests that became entries."""
    has = access >= 0
    rows = access[has]
    boxes = np.nonzero(has)[0]
    split = _is_split(tests, rows)
    columns = [tests.column[rows[~split]]]
    lows, highs = [tests.low[rows[~split]]], [tests.high[rows[~split]]]
    owners = [boxes[~split]]
    for row, owner in zip(rows[split], boxes[split], strict=True):
        first, last = tests.set_starts[tests.several[row] : tests.several[row] + 2]
        size = int(last - first)
        columns.append(np.full(size, tests.column[row]))
        lows.append(tests.set_low[first:last])
        highs.append(tests.set_high[first:last])
        owners.append(np.full(size, owner))

    taken: set[int] = set()
    without = set(np.nonzero(~has)[0].tolist())
    for number, (owner, column, ranks, place, outcomes) in enumerate(elements):
        if owner in without and outcomes == 4:  # passes only if the list has the element
            without.discard(owner)
            taken.add(number)
            code = _element_code(ranks, place)
            columns.append(np.array([column]))
            lows.append(np.array([code]))
            highs.append(np.array([code]))
            owners.append(np.array([owner]))
    bare = np.array(sorted(without), np.int64)
    columns.append(np.zeros(len(bare)))
    lows.append(np.zeros(len(bare)))
    highs.append(np.zeros(len(bare)))
    owners.append(bare)
    joined = [np.concatenate(part).astype(np.uint32) for part in (columns, lows, highs, owners)]
    return (joined[0], joined[1], joined[2], joined[3]), taken


def _is_split(tests: Tests, rows: Array) -> Array:
    """Which of the access tests are sets of a few intervals? Each interval of such a set becomes an
    entry."""
    which = tests.several[rows]
    if len(tests.set_starts) == 1:
        return np.zeros(len(which), bool)
    sizes = np.diff(tests.set_starts)[np.maximum(which, 0)]
    few: Array = (which >= 0) & (sizes <= MOST_INTERVALS)
    return few


def _element_code(ranks: Ranks, place: Any) -> int:
    return ranks.place[sets.points([place]).cuts[0]] + 1


def _extras(
    tests: Tests, access: Array, elements: Sequence[ElementTest], taken: set[int], shift: Array
) -> list[Extra]:
    """The additional tests (extras) of all boxes."""
    out: list[Extra] = []
    several = tests.several >= 0
    split = np.zeros(len(tests.box), bool)
    rows = access[access >= 0]
    split[rows[_is_split(tests, rows)]] = True
    for row in np.nonzero(several & ~split)[0]:
        first, last = tests.set_starts[tests.several[row] : tests.several[row] + 2]
        box, column = int(tests.box[row]), int(tests.column[row])
        out.append(Extra(box, INTERVALS, column, int(first), int(last)))
    for number, (owner, column, ranks, place, outcomes) in enumerate(elements):
        if number not in taken:
            code = _element_code(ranks, place)
            comparable = 0b1100 if place[0] in (sets.NUMBER, sets.NAN) else 1 << place[0]
            out.append(Extra(owner, ELEMENT, column, code, outcomes | comparable << 3))
    coarse = (shift[tests.column] > 0) & ~several
    coarse[rows] = False  # access tests always use exact codes
    return out + _coarse_extras(tests, np.nonzero(coarse)[0])


def _coarse_extras(tests: Tests, rows: Array) -> list[Extra]:
    """For each test on a term with too many codes for 16 bits, an extra with the exact interval."""
    base = len(tests.set_low)
    tests.set_low = np.concatenate([tests.set_low, tests.low[rows]])
    tests.set_high = np.concatenate([tests.set_high, tests.high[rows]])
    return [
        Extra(int(tests.box[row]), INTERVALS, int(tests.column[row]), base + at, base + at + 1)
        for at, row in enumerate(rows)
    ]


def _lay_out(
    tests: Tests,
    kept: Array,
    entries: tuple[Array, Array, Array, Array],
    slots: Array,
    flags: Array,
    extras: list[Extra],
    shift: Array,
) -> tuple[Arrays, Array]:
    """Renumber boxes in the order of their entries, so that a pass over entries also reads boxes
    and tests in order."""
    column, low, high, owner = entries
    width = (high - low).astype(np.int64)
    wide_class = np.zeros(len(width), np.int64)
    some = width > 0
    # each class is 4 times as wide as the one before
    wide_class[some] = 1 + np.log2(width[some]).astype(np.int64) // 2
    order = np.lexsort((low, wide_class, column))
    column, low, high, owner = column[order], low[order], high[order], owner[order]
    wide_class, width = wide_class[order], width[order]
    groups = _groups(column, wide_class, width)

    # boxes get new numbers, in the order of their first entries
    _, seen_at = np.unique(owner, return_index=True)
    by_entry = np.argsort(seen_at, kind="stable")
    number = np.empty(len(slots), np.int64)
    number[by_entry] = np.arange(len(slots))

    test_box = number[tests.box[kept]]
    place = np.argsort(test_box, kind="stable")  # keeps the order by share of `kept`
    rows = kept[place]
    starts = np.zeros(len(slots) + 1, np.uint32)
    starts[1:] = np.cumsum(np.bincount(test_box, minlength=len(slots)))
    test_shift = shift[tests.column[rows]].astype(np.uint32)
    test_low = (tests.low[rows] >> test_shift).astype(np.uint16)
    test_high = (tests.high[rows] >> test_shift).astype(np.uint16)

    renumbered = sorted(one._replace(box=int(number[one.box])) for one in extras)
    fields = np.array(renumbered, np.int64).reshape(-1, len(Extra._fields)).T
    extra_box, extra_kind, extra_column, extra_a, extra_b = fields
    extra_starts = np.zeros(len(slots) + 1 if len(extras) else 1, np.uint32)
    if len(extras):
        extra_starts[1:] = np.cumsum(np.bincount(extra_box, minlength=len(slots)))
    box_slot, box_flags = np.empty_like(slots), np.empty_like(flags)
    box_slot[number], box_flags[number] = slots, flags
    arrays = Arrays(
        entry_low=low,
        entry_high=high,
        entry_box=number[owner].astype(np.uint32),
        **groups,
        box_tests=starts,
        test_column=tests.column[rows].astype(np.uint16),
        test_low=test_low,
        test_width=test_high - test_low,
        box_slot=box_slot,
        box_flags=box_flags,
        box_extras=extra_starts,
        extra_kind=extra_kind.astype(np.uint8),
        extra_column=extra_column.astype(np.uint32),
        extra_a=extra_a.astype(np.uint32),
        extra_b=extra_b.astype(np.uint32),
        set_low=tests.set_low,
        set_high=tests.set_high,
        shift=shift,
    )
    return arrays, number


def _groups(column: Array, wide_class: Array, width: Array) -> dict[str, Array]:
    """Runs of entries with the same column and width class, and the greatest width in each run."""
    if len(column) == 0:
        none = np.zeros(0, np.int64)
        return {"group_column": none, "group_start": none, "group_end": none, "group_width": none}
    change = np.ones(len(column), bool)
    change[1:] = (column[1:] != column[:-1]) | (wide_class[1:] != wide_class[:-1])
    starts = np.nonzero(change)[0].astype(np.int64)
    ends = np.append(starts[1:], len(column)).astype(np.int64)
    return {
        "group_column": column[starts].astype(np.int64),
        "group_start": starts,
        "group_end": ends,
        "group_width": np.maximum.reduceat(width, starts),
    }
