"""Verdicts on made-up times: sure differences are found, chance is called noise."""

from __future__ import annotations

import math
import random

import pytest

from tidings.model import EnvironmentProblem
from tidings.studies.compare.verdict import CONFIDENCE, FEWEST, Measure, judge, order_interval

TIME = Measure("time", "µs")
SPEED = Measure("speed", "filters/s", more_is_better=True)


def times(rng: random.Random, middle: float, count: int = 10) -> list[float]:
    return [middle * rng.lognormvariate(0, 0.02) for _ in range(count)]


def test_a_sure_difference_is_found(seed: int) -> None:
    rng = random.Random(seed)
    slower = judge(TIME, times(rng, 1.0), times(rng, 1.3), 0.03)
    assert slower.word == "regression"
    assert slower.low <= slower.ratio <= slower.high
    assert slower.ratio == pytest.approx(1.3, rel=0.1)
    assert judge(TIME, times(rng, 1.0), times(rng, 0.7), 0.03).word == "improvement"


def test_where_more_is_better_the_words_change_places() -> None:
    assert judge(SPEED, [1.0] * 5, [1.3] * 5, 0.03).word == "improvement"
    assert judge(SPEED, [1.3] * 5, [1.0] * 5, 0.03).word == "regression"


def test_equal_revisions_are_noise_almost_always(seed: int) -> None:
    rng = random.Random(seed)
    words = [judge(TIME, times(rng, 1), times(rng, 1), 0.03).word for _ in range(300)]
    assert words.count("noise") > 290


def test_a_busy_minute_falls_on_both_and_does_not_count() -> None:
    busy = [1.0, 5.0, 1.0, 9.0, 1.0, 1.0, 3.0, 1.0]
    verdict = judge(TIME, busy, [1.2 * time for time in busy], 0.03)
    assert verdict.word == "regression"
    assert verdict.low == verdict.high == pytest.approx(1.2)


def test_one_wild_measurement_changes_nothing() -> None:
    calm = [1.0] * 10
    assert judge(TIME, calm, [1.2] * 9 + [0.1], 0.03).word == "regression"
    assert judge(TIME, calm, [1.0] * 9 + [100], 0.03).word == "noise"


def test_a_sure_difference_below_the_threshold_is_noise() -> None:
    assert judge(TIME, [1.0] * 9, [1.02] * 9, 0.03).word == "noise"
    assert judge(TIME, [1.0] * 9, [1.02] * 9, 0.01).word == "regression"


def test_changing_sides_changes_the_word() -> None:
    opposite = {"improvement": "regression", "regression": "improvement", "noise": "noise"}
    for change in (0.9, 0.965, 0.975, 1.0, 1.025, 1.035, 1.1):
        there = judge(TIME, [1.0] * 6, [change] * 6, 0.03)
        back = judge(TIME, [change] * 6, [1.0] * 6, 0.03)
        assert back.word == opposite[there.word]


def test_few_measurements_are_not_judged() -> None:
    assert judge(TIME, [1.0] * (FEWEST - 1), [9.0] * (FEWEST - 1), 0.03).word == "too few"
    assert judge(TIME, [1.0] * FEWEST, [9.0] * FEWEST, 0.03).word == "regression"


@pytest.mark.parametrize("values", [[], [0.0]])
def test_nothing_measured(values: list[float]) -> None:
    with pytest.raises(EnvironmentProblem, match="no measurement of time"):
        judge(TIME, values, values, 0.03)


@pytest.mark.parametrize(
    ("count", "depth", "confidence"), [(1, 1, 0), (5, 1, 0.9375), (6, 1, 0.96875), (9, 2, 0.9609)]
)
def test_intervals_of_tables(count: int, depth: int, confidence: float) -> None:
    found = order_interval(count)
    assert found[0] == depth
    assert found[1] == pytest.approx(confidence, abs=1e-4)


@pytest.mark.parametrize("count", range(6, 60))
def test_an_interval_is_sure_enough_and_the_next_is_not(count: int) -> None:
    def confidence(depth: int) -> float:
        return 1 - 2 * sum(math.comb(count, heads) for heads in range(depth)) * 0.5**count

    depth, told = order_interval(count)
    assert told == pytest.approx(confidence(depth))
    assert told >= CONFIDENCE > confidence(depth + 1)
