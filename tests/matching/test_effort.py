"""The count of what a look-up evaluates, against plain loops over all entries of the index."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.filters.strategies import Writer, event, schema
from tests.repeats import draws

from tidings import Filter, FilterError, parse
from tidings.matching import Matcher
from tidings.matching.effort import Effort
from tidings.matching.segments.part import Part
from tidings.studies.workloads.workloads import make_workload


def sealed(filters: dict[int, Filter | str]) -> Matcher:
    matcher = Matcher(background=False)
    matcher.add_many(filters)
    matcher.merge()
    return matcher


def the_part(matcher: Matcher) -> Part:
    state, _ = matcher._seal()
    (one,) = state.parts
    return one.part


def codes_of(part: Part, event: dict[str, Any]) -> list[int]:
    codes: list[Any] = []
    part.probe(event, np.zeros(part.segment.slots, np.uint8), codes.append)
    return [int(code) for code in codes[0][: len(part.segment.terms) + 1]]


def brute_force(part: Part, event: dict[str, Any]) -> tuple[int, int, int]:
    """Candidates, comparisons and different comparisons, by the definition of cells and slices.

    Every entry of the segment is looked at. It is a candidate if it is single and in the slice of
    its group, or else if the event's bins lie within the bins of its two intervals. Only for
    filters without lists, without sets of several intervals, and with codes of 16 bits.
    """
    arrays, probe = part.segment.arrays, part.index
    assert not arrays.shift.any()
    assert not len(arrays.extra_kind)
    codes = codes_of(part, event)
    single = {
        (int(low), int(high), int(box))
        for low, high, box in zip(
            probe.single_low, probe.single_high, probe.single_box, strict=True
        )
    }

    def bin_of(column: int, code: int) -> int:
        return int(probe.bins[int(probe.bin_starts[column]) + code])

    def touches(column: int, low: int, high: int) -> bool:
        return bin_of(column, low) <= bin_of(column, codes[column]) <= bin_of(column, high)

    candidates = compared = 0
    made: set[tuple[int, int, int]] = set()
    for group in range(len(arrays.group_column)):
        column = int(arrays.group_column[group])
        width, start, end = (
            int(one[group]) for one in (arrays.group_width, arrays.group_start, arrays.group_end)
        )
        alone = [
            one
            for one in range(start, end)
            if (int(arrays.entry_low[one]), int(arrays.entry_high[one]),
                int(arrays.entry_box[one])) in single
        ]  # fmt: skip
        for entry in range(start, end):
            low, high = int(arrays.entry_low[entry]), int(arrays.entry_high[entry])
            box = int(arrays.entry_box[entry])
            tests = [
                (int(arrays.test_column[at]), int(arrays.test_low[at]),
                 int(arrays.test_low[at]) + int(arrays.test_width[at]))
                for at in range(int(arrays.box_tests[box]), int(arrays.box_tests[box + 1]))
            ]  # fmt: skip
            is_single = entry in alone
            if is_single:
                is_here = codes[column] - width <= low <= codes[column]
            else:
                is_here = touches(column, low, high) and touches(*tests[0])
            if not is_here:
                continue
            candidates += 1
            at_once = 2 if is_single else 3  # compared together, whether they pass or not
            has_failed = False
            for place, test in enumerate([(column, low, high), *tests]):
                if has_failed and place >= at_once:
                    break
                if test[0]:  # in column 0, all events are the same
                    compared += 1
                    made.add(test)
                    has_failed |= not test[1] <= codes[test[0]] <= test[2]
    return candidates, compared, len(made)


def check(matcher: Matcher, events: list[dict[str, Any]]) -> list[Effort]:
    part = the_part(matcher)
    found = [matcher.effort(one) for one in events]
    for one, effort in zip(events, found, strict=True):
        assert (effort.candidates, effort.compared, effort.different) == brute_force(part, one)
        assert effort.coded == len(part.segment.terms)
        assert sorted(map(str, effort.matched)) == sorted(map(str, matcher.match(one)))
    return found


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("name", ["mixed", "equality", "ranges"])
def test_against_loops_over_all_entries(
    name: str, grid: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if grid:
        monkeypatch.setattr("tidings.matching.segments.probe.LEAST_VISITS", 0)
    candidates = 0
    for again in draws(1, lambda: candidates > 0):  # a few events may have no candidates
        workload = make_workload(name, 250, 12, seed % 1000 + again)
        found = check(sealed(dict(workload.texts())), workload.events.to_pylist())
        candidates += sum(effort.candidates for effort in found)
    assert candidates > 0


def test_equal_tests_of_candidates_are_compared_again() -> None:
    """Forty filters with one popular test: their boxes are found by it, or compare it each."""
    texts: dict[int, Filter | str] = {n: f"a = 1 AND b > {n}" for n in range(40)}
    (one,) = check(sealed(texts), [{"a": 1, "b": 20}])
    assert one.matched == tuple(range(20))
    assert one.coded == 2
    assert one.candidates >= 20
    assert one.compared == 2 * one.candidates
    assert one.different == one.candidates + 1  # `a = 1`, and each b > n


def test_residuals_are_asked_often_and_evaluated_once() -> None:
    texts: dict[int, Filter | str] = {n: f"a >= {n % 3} AND name RLIKE 'x+y'" for n in range(30)}
    texts |= {30 + n: f"name RLIKE 'x+y' AND b < a AND c = {n}" for n in range(3)}
    one = sealed(texts).effort({"a": 2, "name": "axxy", "b": 1, "c": 1})
    assert sorted(one.matched) == [*range(30), 31]
    assert (one.asked, one.evaluated) == (30 + 2, 2)  # name RLIKE 'x+y', and b < a


def test_lists_sets_and_changes(seed: int) -> None:
    """Whatever filters test, the count finds what the matcher finds."""
    chance = random.Random(seed)
    of = schema(chance)
    write = Writer(chance, of, spark=False)
    filters: dict[int, Filter] = {}
    while len(filters) < 150:
        try:
            filters[len(filters)] = parse(write.filter(2))
        except FilterError:
            continue
    matcher = Matcher(background=False)
    matcher.add_many({n: one for n, one in filters.items() if n < 100})
    matcher.merge()
    for n in range(0, 100, 7):
        matcher.remove(n)
        del filters[n]
    matcher.add_many({n: one for n, one in filters.items() if n >= 100})
    for one in [event(chance, of) for _ in range(25)]:
        effort = matcher.effort(one)
        assert len(effort.matched) == sum(filter_.matches(one) for filter_ in filters.values())
        assert effort.different <= effort.compared
        assert effort.evaluated <= effort.asked
