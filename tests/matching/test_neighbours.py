"""Neighbours of a new filter: what boxes say is what the filters themselves say when asked."""

from __future__ import annotations

import random

import pytest
from tests.repeats import runs
from tests.snapshots.test_snapshot import many_filters

from tidings import Filter, parse
from tidings.matching.covering.compiled_neighbours import MAYBE, NO, YES, Neighbours
from tidings.matching.segments.segment_builder import build_segment


def neighbours(filters: list[Filter]) -> Neighbours:
    return Neighbours(build_segment(enumerate(one.form for one in filters)), len(filters))


@pytest.mark.parametrize("run", runs(2, 6))
def test_answers_are_those_of_the_filters(seed: int, run: int) -> None:
    drawn, _ = many_filters(random.Random(f"{seed} neighbours {run}"), 120)
    filters = [one for _, one in drawn if not one.never]
    compiled, found = filters[:80], neighbours(filters[:80])
    for new in filters[50:]:  # some are known
        above, below = found.of(new.form)
        for at, other in enumerate(compiled):
            assert above[at] in (MAYBE, YES if other.covers(new) else NO), (other, new)
            assert below[at] in (MAYBE, YES if new.covers(other) else NO), (other, new)


@pytest.mark.parametrize(
    ("compiled", "new", "above", "below"),
    [
        ("x > 5", "x > 5", YES, YES),
        ("x > 5", "x > 5.5", YES, NO),  # a cut between those that are known
        ("x > 5", "x > 4", NO, YES),
        ("x > 5 AND x < 9", "x > 6 AND x < 7", YES, NO),
        ("x IN (1, 3, 5)", "x IN (1, 5)", YES, NO),
        ("x IN (1, 3, 5)", "x IN (1, 2, 3, 4, 5)", NO, YES),
        ("x != 3", "x > 3", YES, NO),
        ("x > 5", "y > 5", NO, NO),
        ("x > 5", "true", NO, YES),
        ("true", "x > 5", YES, NO),
        ("x > 5 AND y = 'a'", "x > 5", NO, YES),
        ("x = 1 OR y = 2", "z = 3", NO, NO),  # each leaves it on a column of its own
        ("z = 3", "x = 1 OR y = 2", NO, NO),
        ("x = 1 OR y = 2", "x = 1 OR y = 2 OR z = 3", NO, YES),
        ("x = 1 OR y = 2", "y = 2 AND z = 3", YES, NO),
        ("x < 5 AND y = 1 OR x >= 5 AND y = 1 AND z = 2", "z = 2 AND y = 1", MAYBE, NO),
        ("lower(s) = 'bo'", "s = 'BO'", MAYBE, NO),
        ("s = 'BO'", "lower(s) = 'bo'", NO, MAYBE),
        ("lower(s) = 'bo'", "t = 'BO'", NO, NO),
        ("array_contains(l, 'a')", "array_contains(l, 'a') AND x = 1", MAYBE, NO),
        ("array_contains(l, 'a')", "x = 1", NO, NO),
        ("s LIKE '%a_b%'", "s LIKE '%a_b%' AND x = 1", MAYBE, NO),
        ("x > 5", "x > 6 AND x < 3", NO, NO),  # it matches nothing, and has no neighbours
        ("x > 6 AND x < 3", "x > 5", NO, NO),
    ],
)
def test_some_pairs(compiled: str, new: str, above: int, below: int) -> None:
    found = neighbours([parse(compiled), parse("q = 1")]).of(parse(new).form)
    assert [int(found[0][0]), int(found[1][0])] == [above, below]


def test_wide_filters_are_asked_unless_their_hulls_say_no() -> None:
    wide = " AND ".join(f"(a{i} > 1 OR b{i} > 1 OR c{i} > 1)" for i in range(9))
    assert parse(f"x = 1 AND {wide}").form.boxes is None
    for new, above, below in (("x = 1", MAYBE, YES), ("x = 2", NO, NO), ("y = 1", NO, NO)):
        found = neighbours([parse(f"x = 1 AND {wide}")]).of(parse(new).form)
        assert [int(found[0][0]), int(found[1][0])] == [above, below]
        found = neighbours([parse(new)]).of(parse(f"x = 1 AND {wide}").form)
        assert [int(found[0][0]), int(found[1][0])] == [below, above]
    again = neighbours([parse(f"x = 1 AND {wide}")]).of(parse(f"x = 1 AND {wide}").form)
    assert [int(again[0][0]), int(again[1][0])] == [MAYBE, MAYBE]
