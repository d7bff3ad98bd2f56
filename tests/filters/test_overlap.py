"""arrays_overlap against what `compare` says of each pair, and in time that is linear."""

from __future__ import annotations

import datetime as dt
import math
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from tidings.filters import parse
from tidings.filters.language.evaluation import evaluate
from tidings.filters.values.overlap import overlap
from tidings.filters.values.work_limit import WorkError, limit_work
from tidings.model import compare, normalise

SCALARS = st.sampled_from(
    [None, True, False, 0, -0.0, 1, 1.0, 1.5, math.nan, 2**53, 2.0**53, 2**53 + 1, "", "a", "b",
     dt.date(1970, 1, 1), dt.datetime(1970, 1, 1, tzinfo=dt.UTC), Decimal(1), b"x"]
)  # fmt: skip
NESTED = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("ab"), inner, max_size=1),
    ),
    max_leaves=4,
)
LISTS = st.lists(st.lists(SCALARS, max_size=3), max_size=4)
NUMBERS = st.lists(st.lists(st.sampled_from([0, 0.0, 1, None, math.nan]), max_size=3), max_size=3)


def each_with_each(left: list[Any], right: list[Any]) -> bool | None:
    orders = [compare(normalise(a), normalise(b)) for a in left for b in right]
    if 0 in orders:
        return True
    return None if None in orders else False


@given(st.one_of(*(st.tuples(one, one) for one in (LISTS, NUMBERS, st.lists(NESTED, max_size=4)))))
@example(([[]], [[]]))
@example(([[1, 2]], [[1, "a"]]))
@example(([[2, 2]], [[1, "a"]]))
@example(([[None]], [[[]]]))
@example(([[None]], [[{}]]))
@example(([[None]], [[1]]))
@example(([[1]], [[1, []]]))
@example(([[math.nan]], [[1]]))
@example(([[]], [1]))
@example(([{}], [{}]))
@example(([{}], []))
def test_it_is_what_compare_says_of_each_pair(both: tuple[list[Any], list[Any]]) -> None:
    assert overlap(*both) is each_with_each(*both)
    assert overlap(*reversed(both)) is each_with_each(*both)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([[]] * 20_000, [[]] * 20_000, True),
        ([[]] * 20_000, [[1]] * 20_000, False),
        ([[0]] * 20_000, [[1, n] for n in range(20_000)], False),
        ([[0] * 1_000] * 20, [[*[0] * 999, n + 1] for n in range(20)], False),
        ([{}] * 20_000, [{}] * 20_000, None),
        ([[[]]] * 20_000, [[[]]] * 20_000, None),
    ],
)
def test_nested_values_take_no_square(left: Any, right: Any, expected: bool | None) -> None:
    one = parse("arrays_overlap(l, m)")
    start = time.thread_time()
    assert evaluate(one.expression, {"l": left, "m": right}) is expected
    assert time.thread_time() - start < 1.0  # a square of them takes minutes


def test_it_stops_when_the_time_is_spent() -> None:
    ticks = iter(range(100))
    with limit_work(lambda: float(next(ticks)), 3.0), pytest.raises(WorkError):
        overlap([[0] * 50 + [1]], [[0] * 50 + [2]])
