"""Build a segment, which matches events, from hulls that were gathered for the join of filters.

The codes of hulls come from a rank space, so the tests of boxes are reused unchanged. Only tests
without a column (elements of lists and residuals) are turned back into sets of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import Form
from tidings.filters.values import ValueSet
from tidings.matching.covering.hull_gathering import GatheredHulls
from tidings.matching.covering.hulls import Hulls, bounds, ranges
from tidings.matching.rank_space.ranks import Ranks
from tidings.matching.segments import segment as segments
from tidings.matching.segments.segment import Rest, Segment, TermColumn, Tests
from tidings.matching.segments.segment_builder import UnindexedTests, is_indexed, segment_of_tests

Array = npt.NDArray[Any]


def segment_of_hulls(gathered: GatheredHulls, chosen: Array, forms: Sequence[Form]) -> Segment:
    """The segment of the chosen forms. The slot of a form is its position in `chosen`.

    Only the wide forms are read from `forms`.
    """
    slots = np.nonzero(~gathered.never[chosen])[0]
    rows, sizes, is_wide = _rows_of(gathered, chosen[slots])
    slot_of_box = np.repeat(slots, sizes).astype(np.uint32)
    hulls = gathered.boxes.rows
    picked = ranges(hulls.starts[rows], hulls.starts[rows + 1])
    box_of = np.repeat(
        np.arange(len(rows), dtype=np.uint32), hulls.starts[rows + 1] - hulls.starts[rows]
    )
    terms, number = _terms(gathered, hulls.column[picked])
    others = _others(gathered, picked, box_of, number, rows, is_wide, forms)
    indexed = number[hulls.column[picked]] > 0
    if not indexed.all():
        picked, box_of = picked[indexed], box_of[indexed]
    tests = _tests(hulls, picked, box_of, number)
    return segment_of_tests(terms, tests, slot_of_box, others)


def _rows_of(gathered: GatheredHulls, forms: Array) -> tuple[Array, Array, Array]:
    """The rows of the forms' boxes, the number of boxes of each form, and which of these rows are
    hulls of wide forms."""
    starts = gathered.boxes.starts
    several = starts[forms + 1] > starts[forms]
    first = np.where(several, starts[forms], forms)
    sizes: Array = np.where(several, starts[forms + 1] - starts[forms], 1)
    wide = ~several & (gathered.hulls.one_box[forms] == 0)
    return ranges(first, first + sizes), sizes, np.repeat(wide, sizes)


def _terms(gathered: GatheredHulls, columns: Array) -> tuple[list[TermColumn], Array]:
    """The terms of the tested columns, sorted by text, and the new numbers of all columns, which
    count from 1; a column that is not indexed gets 0."""
    count = np.bincount(columns, minlength=len(gathered.columns))
    used = [at for at in np.nonzero(count)[0].tolist() if is_indexed(gathered.columns[at].node)]
    # the terms with the fewest tests are evaluated instead of indexed
    if len(used) > segments.MOST_TERMS:
        used = sorted(used, key=lambda at: -count[at])[: segments.MOST_TERMS]
    used.sort(key=lambda at: gathered.columns[at].text)
    number = np.zeros(len(gathered.columns), np.uint32)
    number[used] = np.arange(1, len(used) + 1)
    of = [gathered.columns[at] for at in used]
    return [TermColumn(one.text, one.node, Ranks(one.cuts, one.ordered)) for one in of], number


def _others(
    gathered: GatheredHulls,
    picked: Array,
    box_of: Array,
    number: Array,
    rows: Array,
    is_wide: Array,
    forms: Sequence[Form],
) -> UnindexedTests:
    """The tests of terms that are not indexed, and the wide forms."""
    others = UnindexedTests()
    hulls = gathered.boxes.rows
    left: dict[int, list[tuple[str, ValueSet]]] = {}
    at = np.nonzero(number[hulls.column[picked]] == 0)[0]
    for test, box in zip(picked[at].tolist(), box_of[at].tolist(), strict=True):
        column = gathered.columns[hulls.column[test]]
        spans = slice(int(hulls.spans[test]), int(hulls.spans[test + 1]))
        values = column.values(hulls.low[spans], hulls.high[spans])
        others.add_other(box, column.text, column.node, values, left.setdefault(box, []))
    others.rest = {box: Rest(tests=tuple(tests)) for box, tests in left.items() if tests}
    for box in np.nonzero(is_wide)[0].tolist():
        others.rest[box] = Rest(form=forms[int(rows[box])])
    return others


def _tests(hulls: Hulls, picked: Array, box_of: Array, number: Array) -> Tests:
    first, last = hulls.spans[picked], hulls.spans[picked + 1]
    many = np.nonzero(last - first > 1)[0]
    several = np.full(len(picked), -1, np.int64)
    several[many] = np.arange(len(many))
    spans = ranges(first[many], last[many])
    return Tests(
        box=box_of,
        column=number[hulls.column[picked]],
        low=hulls.low[first],
        high=hulls.high[last - 1],
        several=several,
        set_starts=bounds(last[many] - first[many]),
        set_low=hulls.low[spans],
        set_high=hulls.high[spans],
    )
