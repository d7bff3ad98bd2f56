"""Filters in bulk: as exact as one by one, in the order of the cuts, and fast."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from tidings import FilterError, TidingsError, parse
from tidings.filters.values import sets
from tidings.matching import Matcher
from tidings.matching.held_filters import SEAL_AT
from tidings.matching.rank_space import gathering
from tidings.matching.rank_space.gathering import TermTests, order_of_cuts
from tidings.matching.rank_space.ranks import asks_order
from tidings.studies.workloads.workloads import make_workload

PER_SECOND = 5_000  # a sixth of what was measured, so that only a change of kind fails


POOLS: tuple[tuple[Any, ...], ...] = (
    tuple(n / 2 for n in range(-30, 30)),
    tuple(range(-20, 20)),
    (*range(2**53 - 6, 2**53), 0.5, 7, -(2.0**53) + 1),
    (*range(2**53 - 6, 2**53 + 7), -(2**53), -(2**53) - 1),
    (*range(-(2**63), 10 - 2**63), 2**63 - 1, 2**63 - 2, -(2.0**63), 2.0**63),
    (float("inf"), -float("inf"), 1e300, -1e-300, 5, 0, -0.0),
    (None, True, float("nan"), "", "a", "b", 1, 2, 2.5),
)


def test_cuts_are_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FEW", 1)
    rng = random.Random(seed)
    for pool in POOLS * 50:
        values = rng.sample(pool, k=rng.randint(1, len(pool)))
        cuts = {cut for value in values for cut in sets.points([sets.key(value)]).cuts}
        cuts |= set(rng.sample([(0,), (1,), (2,), (3,), (4,), (5,), (6,), (4, "x", 0)], k=3))
        mixed = rng.sample(sorted(cuts), k=len(cuts))
        assert [mixed[at] for at in order_of_cuts(mixed)] == sorted(cuts)


@pytest.mark.parametrize("order", [1, -1])
def test_codes_are_those_of_each_set(order: int) -> None:
    texts = ["x = 1", "x BETWEEN 2 AND 7", "x IN (1, 4, 9)", "x IS NOT NULL", "x IS NULL",
             "x != 'a'", "x = 'b'", "x > 3", "x = ''", "x = true"]  # fmt: skip
    sets_ = [parse(text).form.hull["x"] for text in texts][::order]
    tests = TermTests(parse("x").expression)
    for box, values in enumerate(sets_):
        tests.add(box, values)
    several: list[list[tuple[int, int]]] = [[(0, 0)]]  # of another term
    ranks, (boxes, columns, low, high, which) = tests.to_codes(5, several)
    assert boxes.tolist() == list(range(len(texts)))
    assert set(columns.tolist()) == {5}
    for at, values in enumerate(sets_):
        intervals = ranks.intervals(values)
        assert (low[at], high[at]) == (intervals[0][0], intervals[-1][1])
        assert (several[which[at]] if which[at] >= 0 else intervals) == intervals
        assert (which[at] >= 0) == (len(values.cuts) > 2)


@pytest.mark.parametrize(
    "text",
    ["x = 'a'", "x = ''", "x > 'a'", "x <= 'a'", "x LIKE 'a%'", "x != 'a'", "x IN ('a', 'b')",
     "x > 5", "x = 5", "x IS NULL", "x BETWEEN 'a' AND 'b'", "x > 5 OR x < 'a'",
     "x = 'a' OR x > 5"],
)  # fmt: skip
def test_order_is_asked_for_as_before(text: str) -> None:
    values = parse(text).form.hull["x"]
    tests = TermTests(parse("x").expression)
    tests.add(0, parse("x = 'q'").form.hull["x"])
    tests.add(1, values)
    assert tests.ordered == asks_order(values)


@pytest.mark.usefixtures("engine")
def test_many_added_at_once_match_like_those_added_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    drawn = make_workload("mixed", SEAL_AT + 500, 200, seed % 1000)
    pairs = [*drawn.texts(), ("never", "a0 = 'x' AND a0 = 'y'"), ("wide", "a1 > 5 OR a3 < 7")]
    rng.shuffle(pairs)
    at_once, one_by_one = Matcher(background=False), Matcher(background=False)
    for matcher in (at_once, one_by_one):  # so that slots do not begin at 0
        matcher.add("first", "a1 IS NOT NULL")
    assert at_once.add_many(iter(pairs)) == len(pairs)
    for id_, text in pairs:
        one_by_one.add(id_, text)
    matched: set[object] = set()
    for event in drawn.events.to_pylist():
        assert set(at_once.match(event)) == set(one_by_one.match(event))
        matched |= set(at_once.match(event))
    assert matched > {"first"}


@pytest.mark.parametrize("count", [10, SEAL_AT + 10])
def test_when_one_is_refused_none_is_added(count: int) -> None:
    matcher = Matcher(background=False)
    good = [(n, f"x = {n}") for n in range(count)]
    with pytest.raises(FilterError, match="expected AND, OR or the end"):
        matcher.add_many([*good, ("bad", "x = 1 y")])
    with pytest.raises(TidingsError, match="the id 3 occurs twice"):
        matcher.add_many([*good, (3, "x = 1")])
    assert len(matcher) == 0
    assert matcher.match({"x": 3}) == []
    matcher.add_many(good)
    with pytest.raises(TidingsError, match="the id 3 already has a filter"):
        matcher.add_many((n + 3, text) for n, text in good)
    assert matcher.match({"x": 3}) == [3]


@pytest.mark.bench
@pytest.mark.parametrize("name", ["mixed", "equality", "ranges", "prefix"])
def test_filters_are_taken_in_at_speed(name: str) -> None:
    count = 10_000
    pairs = list(make_workload(name, count, 1).texts())
    best = 0.0
    for _ in range(2):  # the first also fills what is remembered
        matcher = Matcher(background=False)
        start = time.process_time()
        matcher.add_many(pairs)
        best = max(best, count / (time.process_time() - start))
    assert best > PER_SECOND, f"{best:,.0f} filters per second"
