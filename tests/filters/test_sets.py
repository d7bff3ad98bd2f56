"""The algebra of sets of values against the plain way: try every representative value.

POINTS are the ends that the sets of these tests have, and LINE has a value from every gap between
two of them as well, so two sets are equal, or one holds the other, exactly when that is so for the
values here.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import random
from typing import Any

import pytest
from tests.repeats import draws

from tidings.filters.values import sets
from tidings.filters.values.sets import EVERYTHING, NOTHING, ValueSet, key
from tidings.model import ABSENT, compare

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
DAY = dt.date(2020, 2, 29)
MOMENT = dt.datetime(2020, 3, 1, 12, 30, 0, 1, tzinfo=dt.UTC)

# the whole line in order; True for a point that is an end, False for the gap after it
LINE: list[tuple[Any, bool]] = [
    (ABSENT, True), (None, True),
    (False, True), (True, True),
    (-math.inf, True), (-1e300, False), (INT_MIN, True), (-0.5, False), (0, True), (0.5, False),
    (1, True), (1.5, False), (2, True), (1e9, False), (INT_MAX, True), (1e300, False),
    (math.inf, True), (math.nan, True),
    ("", True), ("\0", False), ("a", True), ("ab", False), ("b", True), ("c", False),
    ("\ud7ff", True), ("\ud7ffx", False), ("\ue000", True), ("\uffff", False),
    ("\U0010ffff", True), ("\U0010ffffa", False),
    (dt.date(1, 1, 1), False), (DAY, True),
    (dt.datetime(2020, 2, 29, 0, 0, 0, 1, tzinfo=dt.UTC), False), (MOMENT, True),
    (dt.date(9999, 12, 31), False),
    ([], False),
]  # fmt: skip
VALUES = [value for value, _ in LINE]
POINTS = [value for value, is_end in LINE if is_end]
ENDS = [value for value in POINTS if value is not None and value is not ABSENT]
ALL = frozenset(range(len(VALUES)))

Model = frozenset[int]


def model(values: ValueSet) -> Model:
    """The representatives that a set has."""
    return frozenset(at for at, value in enumerate(VALUES) if key(value) in values)


def where(test: Any) -> Model:
    return frozenset(at for at, value in enumerate(VALUES) if test(value))


def random_set(rng: random.Random, depth: int) -> tuple[ValueSet, Model]:
    """A set and the representatives that it should have."""
    if depth == 0:
        return random_leaf(rng)
    left, left_has = random_set(rng, depth - 1)
    right, right_has = random_set(rng, depth - 1)
    match rng.choice("&|-~"):
        case "&":
            return left & right, left_has & right_has
        case "|":
            return left | right, left_has | right_has
        case "-":
            return left - right, left_has - right_has
        case _:
            return ~left, ALL - left_has


def random_leaf(rng: random.Random) -> tuple[ValueSet, Model]:
    end = rng.choice(ENDS)
    inclusive = rng.random() < 0.5
    match rng.choice(("below", "above", "points", "between", "prefix", "family")):
        case "below":
            least = 0 if inclusive else -1
            return sets.below(key(end), inclusive), where(
                lambda v: (order := compare(v, end)) is not None and order <= least
            )
        case "above":
            least = 0 if inclusive else 1
            return sets.above(key(end), inclusive), where(
                lambda v: (order := compare(v, end)) is not None and order >= least
            )
        case "points":
            some = rng.sample(POINTS, rng.randint(0, 5))
            return sets.points(map(key, some)), where(lambda v: any(v is one for one in some))
        case "between":
            other = rng.choice(ENDS)

            def inside(v: Any) -> bool:
                low, high = compare(v, end), compare(v, other)
                return low is not None and high is not None and low >= 0 and high <= 0

            return sets.between(key(end), key(other)), where(inside)
        case "prefix":
            text = rng.choice(("", "a", "\ud7ff", "\U0010ffff"))
            return sets.prefix(text), where(lambda v: isinstance(v, str) and v.startswith(text))
        case _:
            families: list[tuple[ValueSet, Model]] = [
                (NOTHING, where(lambda _: False)),
                (EVERYTHING, ALL),
                (sets.NULL, where(lambda v: v is None or v is ABSENT)),
                (sets.NOT_NULL, where(lambda v: v is not None and v is not ABSENT)),
                (sets.IS_ABSENT, where(lambda v: v is ABSENT)),
                (sets.IS_PRESENT, where(lambda v: v is not ABSENT)),
                (sets.EXPLICIT_NULL, where(lambda v: v is None)),
                (sets.BOOLEANS, where(lambda v: isinstance(v, bool))),
                (sets.NUMBERS, where(lambda v: type(v) in (int, float))),
                (sets.STRINGS, where(lambda v: isinstance(v, str))),
                (sets.TIMES, where(lambda v: isinstance(v, dt.date))),
                (sets.LISTS, where(lambda v: isinstance(v, list))),
                (sets.IS_NAN, where(lambda v: isinstance(v, float) and v != v)),
                (sets.TRUE, where(lambda v: v is True)),
                (sets.FALSE, where(lambda v: v is False)),
            ]
            return rng.choice(families)


def is_normal(values: ValueSet) -> bool:
    return all(low < high for low, high in itertools.pairwise(values.cuts))


# -- the line ----------------------------------------------------------------------------------


def test_values_stand_on_the_line_in_their_order() -> None:
    keys = [key(value) for value in VALUES]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0.0, -0.0),
        (0, -0.0),
        (math.nan, -math.nan),
        (2**53, 2.0**53),
        (-(2**63), -(2.0**63)),
        (DAY, dt.datetime(2020, 2, 29, tzinfo=dt.UTC)),
        (MOMENT, MOMENT.replace(tzinfo=None)),
        ([1], {"a": 1}),
    ],
)
def test_equal_values_stand_at_one_place(one: Any, other: Any) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        ("1", 1),
        (2**53 + 1, 2.0**53),
        (None, ""),
        (None, 0),
        ("", []),
        (None, ABSENT),
    ],
)
def test_different_values_stand_at_different_places(one: Any, other: Any) -> None:
    assert key(one) != key(other)


def test_the_order_of_keys_is_the_order_of_values(seed: int) -> None:
    rng = random.Random(seed)
    pool = [v for v in VALUES if v not in (None, ABSENT) and not isinstance(v, list)]
    for _ in range(2_000):
        one, other = rng.choice(pool), rng.choice(pool)
        order = compare(one, other)
        if order is not None:
            left, right = key(one), key(other)
            assert (left > right) - (left < right) == order


# -- the algebra -------------------------------------------------------------------------------


def test_random_sets_hold_what_they_should(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(3_000):
        values, has = random_set(rng, rng.randint(0, 3))
        assert model(values) == has
        assert is_normal(values)
        assert bool(values) == bool(has)
        assert values.is_everything == (has == ALL)


def test_random_sets_are_equal_or_inside_exactly_when_they_should_be(seed: int) -> None:
    rng = random.Random(seed)
    held = 0
    for _ in draws(3_000, lambda: held > 100):
        one, one_has = random_set(rng, rng.randint(0, 2))
        other, other_has = random_set(rng, rng.randint(0, 2))
        assert (one == other) == (one_has == other_has)
        assert (one >= other) == (one_has >= other_has)
        assert (one <= other) == (one_has <= other_has)
        if one == other:
            assert hash(one) == hash(other)
        assert one | other >= one >= one & other
        held += one >= other
    assert held > 100


def test_laws(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(500):
        a, b, c = (random_set(rng, 1)[0] for _ in range(3))
        assert ~~a == a
        assert ~(a | b) == ~a & ~b
        assert a & (b | c) == (a & b) | (a & c)
        assert a - b == a & ~b
        assert (a - b) | (a & b) == a
        assert not (a & ~a)
        assert (a | ~a).is_everything


def test_points_are_found_exactly_when_there_are_finitely_many(seed: int) -> None:
    rng = random.Random(seed)
    found = 0
    for _ in draws(3_000, lambda: found > 300):
        values, has = random_set(rng, rng.randint(0, 2))
        points = values.points()
        members = [VALUES[at] for at in sorted(has)]
        if all(any(member is end for end in POINTS) for member in members):
            assert points == [key(member) for member in members]
            assert sets.points(points) == values
            assert values.points(len(points)) == points
            assert not points or values.points(len(points) - 1) is None
            found += 1
        else:
            assert points is None
    assert found > 300


def test_intervals_make_the_set_again(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(500):
        values, _ = random_set(rng, 2)
        parts = [
            ValueSet((low,) if high is None else (low, high)) for low, high in values.intervals()
        ]
        assert sets.unite([NOTHING, *parts]) == values


def test_many_at_once_is_one_after_the_other(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(300):
        many = [random_set(rng, 1)[0] for _ in range(rng.randint(1, 9))]
        united, common = many[0], many[0]
        for one in many[1:]:
            united, common = united | one, common & one
        assert sets.unite(many) == united
        assert sets.intersect(many) == common


# -- prefixes ----------------------------------------------------------------------------------

ALPHABET = ("a", "b", "\0", "\ud7fe", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff")


def test_prefix_is_startswith(seed: int) -> None:
    rng = random.Random(seed)

    def word() -> str:
        return "".join(rng.choices(ALPHABET, k=rng.randint(0, 4)))

    for _ in range(5_000):
        start, text = word(), word()
        if rng.random() < 0.5:
            text = start + text
        assert (key(text) in sets.prefix(start)) == text.startswith(start), (start, text)


# -- whole numbers -----------------------------------------------------------------------------

_HALVES = [n / 2 for n in range(-6, 7)] + [-3, 0, 2, -math.inf, math.inf, math.nan]
_WIDE = [INT_MIN, INT_MAX, INT_MIN + 1, INT_MAX - 1, 1e300, -1e300, 2.0**63, -(2.0**63), 1e18, 0.5]


@pytest.mark.parametrize("ends", [_HALVES, _WIDE], ids=["near", "wide"])
def test_whole_numbers_have_one_set_for_the_same_integers(ends: list[float], seed: int) -> None:
    rng = random.Random(seed)
    near = {int(end) + step for end in ends if math.isfinite(end) for step in range(-2, 3)}
    integers = sorted({min(max(number, INT_MIN), INT_MAX) for number in near})

    def random_numbers() -> ValueSet:
        values = NOTHING
        for _ in range(rng.randint(1, 3)):
            low, high = rng.choice(ends), rng.choice(ends)
            part = sets.above(key(low), rng.random() < 0.5) & sets.below(
                key(high), rng.random() < 0.5
            )
            values = values | part if rng.random() < 0.7 else values - part
        return values

    known: dict[frozenset[int], ValueSet] = {}
    for _ in range(3_000):
        values = random_numbers()
        whole = sets.whole_numbers(values)
        has = frozenset(n for n in integers if key(n) in values)
        assert has == frozenset(n for n in integers if key(n) in whole)
        assert known.setdefault(has, whole) == whole
        assert sets.whole_numbers(whole) == whole
    assert len(known) > 20


def test_whole_numbers_leave_other_values_alone(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(500):
        values, _ = random_set(rng, 2)
        assert sets.whole_numbers(values) - sets.NUMBERS == values - sets.NUMBERS
