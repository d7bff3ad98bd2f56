"""Values: their order, what other types are read as, times as numbers."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from enum import IntEnum
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.model.moments import utc

from tidings.model import compare, from_micros, micros, normalise
from tidings.model.values import INT_MAX, INT_MIN, is_number

NAN, INF = math.nan, math.inf
EAST = dt.timezone(dt.timedelta(hours=2))


def naive(*parts: int) -> dt.datetime:
    return utc(*parts).replace(tzinfo=None)


# Each family in order: values in one bracket are equal, and below those in the next.
FAMILIES: dict[str, list[list[Any]]] = {
    "booleans": [[False], [True]],
    "numbers": [
        [-INF], [-1.7976931348623157e308], [INT_MIN, -(2.0**63)], [-1, -1.0], [-5e-324],
        [0, 0.0, -0.0], [5e-324], [0.5], [1, 1.0], [2.0**53, 2**53], [2**53 + 1], [2.0**53 + 2],
        [INT_MAX], [2.0**63], [1e300], [INF], [NAN, -NAN],
    ],
    "strings": [
        [""], ["\0"], ["A"], ["B"], ["a"], ["a\0"], ["aa"], ["é"], ["\ud7ff"], ["\ue000"],
        ["\uffff"], ["\U00010000"],
    ],
    "times": [
        [dt.date(1, 1, 1), utc(1, 1, 1)],
        [utc(1969, 12, 31, 23, 59, 59, 999_999)],
        [dt.date(1970, 1, 1), naive(1970, 1, 1), dt.datetime(1970, 1, 1, 2, tzinfo=EAST)],
        [utc(1970, 1, 1, 0, 0, 0, 1)],
        [dt.datetime(2024, 2, 29, 23, 30, tzinfo=EAST), utc(2024, 2, 29, 21, 30)],
        [dt.date(2024, 3, 1), dt.datetime(2024, 3, 1, 2, tzinfo=EAST)],
        [dt.date(9999, 12, 31)],
    ],
    "lists": [
        [[]], [[None]], [[None, None], [None, pd.NaT]], [[None, 1]], [[0], (0,), [-0.0]],
        [[0, None]], [[0, 0]], [[1]], [[2**53], [2.0**53]], [[2**53 + 1]], [[NAN], [-NAN]],
    ],
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_the_order_within_a_family(family: str) -> None:
    rows = [[normalise(value) for value in row] for row in FAMILIES[family]]
    for row in rows:
        for left, right in product(row, row):
            assert compare(left, right) == 0, (left, right)
    for lower, higher in combinations(rows, 2):
        for left, right in product(lower, higher):
            assert compare(left, right) == -1, (left, right)
            assert compare(right, left) == 1, (left, right)


OTHERS: list[Any] = [None, {"a": 1}, {}, b"a", object(), dt.time(1), dt.timedelta(1), 1j]


def test_families_do_not_compare() -> None:
    firsts = [[normalise(v) for v in rows[0]] for rows in FAMILIES.values()]
    for some, more in combinations([*firsts, OTHERS], 2):
        for left, right in product(some, more):
            assert compare(left, right) is None, (left, right)
            assert compare(right, left) is None, (left, right)
    for left, right in product(OTHERS, OTHERS):
        assert compare(left, right) is None, (left, right)


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        ([1, "a"], [1, 2], None),
        ([1, "a"], [2, 2], -1),  # decided before the pair that does not compare
        (["a"], [1, 2], None),
        ([[1], [2]], [[1], [3]], None),  # lists hold scalars
        ([1, [2]], [2, [3]], -1),
        ([True], [1], None),
        ([{"a": 1}], [{"a": 1}], None),
        ([], ["a"], -1),
        ([np.int64(3)], [Decimal("3.0")], 0),
        ([dt.date(2024, 1, 1)], [utc(2024, 1, 1)], 0),
    ],
)
def test_lists(left: list[Any], right: list[Any], order: int | None) -> None:
    assert compare(left, right) == order
    assert compare(right, left) == (None if order is None else -order)


class Level(IntEnum):
    HIGH = 7


class Word(str):
    __slots__ = ()


PLAIN: list[tuple[Any, Any]] = [
    (None, None),
    (True, True),
    (5, 5),
    (INT_MAX, INT_MAX),
    (INT_MIN, INT_MIN),
    (INT_MAX + 1, 2.0**63),
    (INT_MIN - 1, -(2.0**63)),
    (10**400, INF),
    (-(10**400), -INF),
    (Level.HIGH, 7),
    (0.5, 0.5),
    ("a", "a"),
    (Word("a"), "a"),
    (Decimal("5.00"), 5),
    (Decimal("-0"), 0),
    (Decimal("0.1"), 0.1),
    (Decimal(2**53 + 1), 2**53 + 1),
    (Decimal(INT_MAX), INT_MAX),
    (Decimal(INT_MAX + 1), Decimal(INT_MAX + 1)),
    (Decimal("1E+30"), 1e30),
    (Decimal("1E+399"), INF),
    (Decimal("-1E+9999"), -INF),
    (Decimal("1E-9999"), 0.0),
    (Decimal("Infinity"), INF),
    (Decimal("NaN"), NAN),
    (np.int8(-3), -3),
    (np.uint64(2**64 - 1), 2.0**64),
    (np.float32(0.5), 0.5),
    (np.float64("nan"), NAN),
    (np.bool_(True), True),
    (np.str_("a"), "a"),
    (np.datetime64("2024-02-29"), dt.date(2024, 2, 29)),
    (np.datetime64("2024-02-29T01:02:03"), naive(2024, 2, 29, 1, 2, 3)),
    (np.datetime64("NaT"), None),
    (np.array(4), 4),
    (np.array([1, 2]), [1, 2]),
    (np.array([[1.5], [2.5]]), [[1.5], [2.5]]),
    (np.array([]), []),
    ((1, "a"), [1, "a"]),
    ((), []),
    ({3}, [3]),
    (frozenset({3}), [3]),
    ([1, None], [1, None]),
    ({"a": 1}, {"a": 1}),
    (dt.date(2024, 1, 1), dt.date(2024, 1, 1)),
    (utc(2024, 1, 1), utc(2024, 1, 1)),
    (pd.NaT, None),
    (pd.Timestamp("2024-01-01"), naive(2024, 1, 1)),
    (pd.Timestamp("2024-01-01 02:00", tz="Europe/Berlin"), utc(2024, 1, 1, 1)),
    (pd.Timestamp("2024-01-01 00:00:00.000001999"), naive(2024, 1, 1, 0, 0, 0, 1)),
]


@pytest.mark.parametrize(("value", "expected"), PLAIN, ids=repr)
def test_plain(value: Any, expected: Any) -> None:
    found = normalise(value)
    assert found == expected or (found != found and expected != expected)
    assert isinstance(found, type(expected))
    assert isinstance(found, bool) is isinstance(expected, bool)
    assert normalise(found) is found


@pytest.mark.parametrize("value", [b"a", 1j, dt.timedelta(1), object()])
def test_what_is_none_of_ours_stays(value: object) -> None:
    assert normalise(value) is value


def test_nothing_of_the_other_type_is_left() -> None:
    assert type(normalise(pd.Timestamp("2024-01-01"))) is dt.datetime
    assert type(normalise(Level.HIGH)) is int


MICROS: list[tuple[dt.date, int]] = [
    (dt.date(1970, 1, 1), 0),
    (dt.date(1970, 1, 2), 86_400_000_000),
    (dt.date(1969, 12, 31), -86_400_000_000),
    (utc(1970, 1, 1, 0, 0, 0, 1), 1),
    (naive(1970, 1, 1, 0, 0, 1), 1_000_000),
    (utc(1969, 12, 31, 23, 59, 59, 999_999), -1),
    (dt.datetime(1970, 1, 1, 2, tzinfo=EAST), 0),
    (dt.date(1, 1, 1), -62_135_596_800_000_000),
    (utc(9999, 12, 31, 23, 59, 59, 999_999), 253_402_300_799_999_999),
]


@pytest.mark.parametrize(("value", "count"), MICROS)
def test_micros(value: dt.date, count: int) -> None:
    assert micros(value) == count
    assert compare(from_micros(count), value) == 0


def test_moment_is_a_date_at_midnight_only() -> None:
    assert from_micros(0) == dt.date(1970, 1, 1)
    assert type(from_micros(-86_400_000_000)) is dt.date
    assert from_micros(1) == utc(1970, 1, 1, 0, 0, 0, 1)


def test_moment_is_the_inverse_of_micros(seed: int) -> None:
    rng = random.Random(seed)
    first, last = MICROS[-2][1], MICROS[-1][1]
    for _ in range(2_000):
        count = rng.choice(
            (rng.randint(first, last), rng.randint(-719_162, 2_932_896) * 86_400_000_000)
        )
        assert micros(from_micros(count)) == count


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, True), (1.5, True), (NAN, True), (True, False), ("1", False), (None, False), ([], False)],
)
def test_is_number(value: object, expected: bool) -> None:
    assert is_number(value) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.datetime64("2024-01-01T00:00:00", "ns"), dt.datetime(2024, 1, 1)),  # noqa: DTZ001
        (pd.NA, None),
        (Decimal("sNaN"), None),
    ],
)
def test_plain_of_what_others_call_a_time_or_nothing(value: Any, expected: Any) -> None:
    found = normalise(value)
    assert found == expected or (expected is None and found != found)
