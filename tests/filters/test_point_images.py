"""Computed terms in boxes that restrict their attributes to a few points."""

from __future__ import annotations

import datetime as dt
import math
import random
import time
from itertools import permutations
from typing import Any

import pytest

from tidings import parse
from tidings.filters.canonical import point_images
from tidings.filters.canonical.boxes import Box, WorkBudget
from tidings.filters.dialects import Context
from tidings.filters.dialects.sql.dialect import parse_term
from tidings.filters.language.expression import Expression
from tidings.filters.language.sql_writer import text_of
from tidings.filters.values import sets
from tidings.filters.values.sets import ValueSet, key


def term(text: str, functions: dict[str, Any] | None = None) -> Expression:
    return parse_term(text, Context(None, functions or {}))


def image(node: Expression, given: Box) -> ValueSet | None:
    return point_images.image(text_of(node), node, given)


def box(**values: Any) -> Box:
    """A box of points: a list is several, a ValueSet is itself."""
    return {
        name: some if isinstance(some, ValueSet) else points(some) for name, some in values.items()
    }


def points(some: Any) -> ValueSet:
    return sets.points(key(value) for value in (some if isinstance(some, list) else [some]))


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("lower(a)", box(a="Bo"), ["bo"]),
        ("lower(a)", box(a=["Bo", "BO", "Al"]), ["bo", "al"]),
        ("lower(a)", box(a=[None, 5]), [None]),
        ("a + b", box(a=[1, 2], b=10), [11, 12]),
        ("a < b", box(a=[1, 9], b=5), [True, False]),
        ("a < b", box(a=1, b="x"), [None]),
        ("a DIV 2", box(a=4), [2, None]),  # 4 may be an integer or a double
        ("a DIV 2", box(a=2**53 + 1), [2**52]),  # that can only be an integer
        ("a IS NULL", box(a=None), [True]),
        ("isnan(a)", box(a=math.nan), [True]),
        ("year(a)", box(a=dt.date(2024, 1, 1)), [2024]),
        ("coalesce(a, b)", box(a=True, b=[1, "x"]), [True]),
        # the box leaves it open
        ("lower(a)", box(), None),
        ("lower(a)", box(b="x"), None),
        ("a + b", box(a=1), None),
        ("a + 1", box(a=sets.above(key(5), True)), None),
        ("a", box(a=1), None),  # not computed
        ("reverse(a)", box(a=sets.LISTS), None),
    ],
)
def test_the_image_of_a_term(text: str, given: Box, expected: list[Any] | None) -> None:
    found = image(term(text), given)
    assert found == (None if expected is None else points(expected))


def test_fields_of_structs() -> None:
    given = {"u.a": points("x"), "u.b": points("y")}
    assert image(term("concat(u.a, u.b)"), given) == points("xy")
    # a struct is more than its fields
    assert image(term("coalesce(u, u.a)"), {"u": points(None), "u.a": points("x")}) is None


@pytest.mark.parametrize(("count", "known"), [(64, True), (65, False)])
def test_the_most_points(count: int, known: bool) -> None:
    found = image(term("lower(a)"), box(a=[f"x{n}" for n in range(count)]))
    assert (found is not None) is known
    pairs = box(a=[f"x{n}" for n in range(8)], b=[f"x{n}" for n in range(count // 8 + count % 8)])
    assert (image(term("concat(a, b)"), pairs) is not None) is known


def test_a_function_of_the_application_is_not_tried_out() -> None:
    asked: list[Any] = []
    own = {"f": asked.append}
    assert image(term("lower(f(a))", own), box(a="x")) is None
    assert asked == []


DAY = dt.date(2024, 1, 1)
AT = dt.datetime(2024, 1, 1, 5, tzinfo=dt.UTC)
NUMBERS = [5, 0.5, 2**53, 2**53 + 1, -(2**63), 2.0**63, math.inf]


@pytest.mark.parametrize("value", [None, False, True, *NUMBERS, "", "a", DAY, AT])
def test_the_values_at_a_place(value: Any) -> None:
    found = list(point_images.values_at(key(value)))
    assert value in found
    assert all(key(one) == key(value) for one in found)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, "[5, 5.0]"),
        (5.0, "[5, 5.0]"),
        (-0.0, "[0, 0.0, -0.0]"),
        (2**53 + 1, "[9007199254740993]"),
        (0.5, "[0.5]"),
        (math.nan, "[nan]"),
        (None, "[None]"),
        (True, "[True]"),
    ],
)
def test_a_number_may_be_an_integer_and_a_double(value: Any, expected: str) -> None:
    assert repr(list(point_images.values_at(key(value)))) == expected


def settled(text: str, given: Box) -> Box | None:
    """The box, with the test that a computed term is true, or is 'bo'."""
    one = term(text)
    allowed = points("bo") if text.startswith("lower") else sets.TRUE
    terms = {text: one} | {name: term(name) for name in given}
    return point_images.settle({text: allowed, **given}, terms)


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("lower(a)", box(a=["Bo", "Al", "BO"]), box(a=["Bo", "BO"])),
        ("lower(a)", box(a=["Bo", "BO"], b=1), box(a=["Bo", "BO"], b=1)),
        ("lower(a)", box(a=["Al", None]), None),
        ("a < b", box(a=1, b=[2, 3]), box(a=1, b=[2, 3])),
        ("a < b", box(a=1, b=[0, -1]), None),
    ],
)
def test_points_decide(text: str, given: Box, expected: Box | None) -> None:
    assert settled(text, given) == expected


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("lower(a)", box(a=sets.STRINGS)),
        ("a < b", box(a=1, b=[0, 2])),  # of two attributes: passes for some
        ("a DIV 2 = 2", box(a=4)),  # passes as 4, not as 4.0
    ],
)
def test_the_test_stays(text: str, given: Box) -> None:
    found = settled(text, given)
    assert found is not None
    assert {name: values for name, values in found.items() if name != text} == given
    assert text in found


def test_one_test_takes_points_away_that_kept_another() -> None:
    tests = ["length(a) < b", "lower(a) = 'bo'", "a IN ('Bo', 'a long one')", "b IN (5, 9)"]
    for order in permutations(tests):
        assert parse(" AND ".join(order)).form.boxes == (box(a="Bo", b=[5, 9]),)


def test_settling_changes_no_match(seed: int) -> None:
    rng = random.Random(seed)
    pool = ("", "a", "A", "ab", "aB", None)
    terms = (
        "lower(a) = 'ab'",
        "length(a) >= length(b)",
        "upper(b) = a",
        "a < b",
        "reverse(b) = 'ba'",
    )
    for _ in range(300):
        given = [f"{name} IN {tuple(rng.choices(pool[:-1], k=3))}" for name in "ab"]
        tests = [*rng.sample(terms, k=2), *rng.sample(given, k=rng.randint(1, 2))]
        one = parse(" AND ".join(tests))
        for _ in range(20):
            event = {"a": rng.choice(pool), "b": rng.choice(pool)}
            assert one.form.holds(event) == one.matches(event), (one, event)


def wild(number: int, size: int = 50) -> str:
    """A pattern for which the places of a text are followed one by one."""
    return "%a" + "_" * size + f"{number}%"


def letters(size: int) -> str:
    return "".join(random.Random(1).choices("ab", k=size))


def test_long_texts_are_not_computed_on() -> None:
    node = term("lower(a)")
    longest = point_images.MOST_WORK // len("lower(a)")
    assert image(node, box(a="A" * longest)) == points("a" * longest)
    assert image(node, box(a="A" * (longest + 1))) is None
    assert image(node, box(a=["A" * (longest // 2), "b"])) == points(["a" * (longest // 2), "b"])
    assert image(node, box(a=["A" * (longest // 2 + 1), "b"])) is None


def test_a_filter_with_a_long_text_is_canonical() -> None:
    one = parse(f"s = '{'ab' * 4_000}' AND NOT s LIKE '{wild(0)}' AND lower(s) = 'x'")
    assert parse(one.canonical().sql()).key == one.key


def test_computing_is_a_part_of_the_effort() -> None:
    effort = WorkBudget(100)
    node, given = term("lower(a)"), box(a="A" * 1_000)
    assert point_images.image("lower(a)", node, given, effort) == points("a" * 1_000)
    assert effort.left < 100
    assert point_images.image("lower(a)", node, given, WorkBudget(1)) is None


@pytest.mark.parametrize(
    "text",
    [
        f"s = '{letters(8_000)}' AND "
        + " AND ".join(f"NOT s LIKE '{wild(k, 400)}'" for k in range(60)),
        f"s = '{letters(450)}' AND " + " AND ".join(f"NOT s LIKE '{wild(k)}'" for k in range(40))
        + " AND (" + " OR ".join(f"x{k} = 1" for k in range(400)) + ")",
    ],
)  # fmt: skip
def test_texts_and_patterns_take_no_product(text: str) -> None:
    start = time.thread_time()
    one = parse(text)
    form = one.form
    assert time.thread_time() - start < 1.0
    for event in (
        {"s": letters(8_000)},
        {"s": letters(450), "x7": 1},
        {"s": letters(450), "x7": 2},
    ):
        assert form.holds(event) == one.matches(event)


def test_the_work_on_a_union_is_bounded() -> None:
    many = [box(s="ab" * 100, x=k) for k in range(400)]
    terms = {f"s LIKE '{wild(k)}'": term(f"s LIKE '{wild(k)}'") for k in range(40)}
    names = {name: term(name) for name in "sx"}
    assert not point_images.is_too_much(many, names)
    union = [{**one, **dict.fromkeys(terms, sets.FALSE)} for one in many]
    assert point_images.is_too_much(union, terms | names)
    assert not point_images.is_too_much(union[:2], terms | names)
