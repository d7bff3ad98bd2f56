"""The reference semantics: truth tables in three values, and paths into notifications."""

from __future__ import annotations

from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tidings.filters.dialects import Context
from tidings.filters.dialects.sql.dialect import parse_term
from tidings.filters.language.evaluation import apply_comparison, evaluate, read, truth
from tidings.filters.language.expression import (
    And,
    Attribute,
    Between,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTruth,
    Literal,
    Not,
    Or,
)

T, F, U = True, False, None
A, B, C = (Attribute((name,)) for name in "abc")
NAN = float("nan")


def value(text: str, event: dict[str, Any]) -> Any:
    return evaluate(parse_term(text, Context()), event)


@pytest.mark.parametrize(
    ("a", "b", "both", "either"),
    [
        (T, T, T, T),
        (T, F, F, T),
        (T, U, U, T),
        (F, F, F, F),
        (F, U, F, U),
        (U, U, U, U),
    ],
)
def test_and_or(a: bool | None, b: bool | None, both: bool | None, either: bool | None) -> None:
    for event in ({"a": a, "b": b}, {"a": b, "b": a}):
        assert evaluate(And((A, B)), event) is both
        assert evaluate(Or((A, B)), event) is either


@pytest.mark.parametrize(
    ("a", "negated", "is_true", "is_false", "is_null"),
    [(T, F, T, F, F), (F, T, F, T, F), (U, U, F, F, T)],
)
def test_not_and_is(
    a: bool | None, negated: bool | None, is_true: bool, is_false: bool, is_null: bool
) -> None:
    event = {"a": a}
    assert evaluate(Not(A), event) is negated
    assert evaluate(IsTruth(A, True), event) is is_true
    assert evaluate(IsTruth(A, False), event) is is_false
    assert evaluate(IsNull(A), event) is is_null


def test_long_chains_agree_with_pairs() -> None:
    for a, b, c in product((T, F, U), repeat=3):
        event = {"a": a, "b": b, "c": c}
        assert evaluate(And((A, B, C)), event) is evaluate(And((And((A, B)), C)), event)
        assert evaluate(Or((A, B, C)), event) is evaluate(Or((Or((A, B)), C)), event)
        assert evaluate(Not(And((A, B, C))), event) is evaluate(Or((Not(A), Not(B), Not(C))), event)


def test_chains_of_nothing() -> None:
    assert evaluate(And(()), {}) is True
    assert evaluate(Or(()), {}) is False


@pytest.mark.parametrize("other", [0, 1, "true", 1.0, [True], {"a": 1}, np.bool_(True)])
def test_a_value_that_is_no_boolean_is_unknown(other: Any) -> None:
    event = {"a": other, "t": True, "f": False}
    expected = True if isinstance(other, np.bool_) else None  # which is a Boolean
    yes, no = Attribute(("t",)), Attribute(("f",))
    assert truth(A, event) is expected
    assert evaluate(And((A, yes)), event) is expected
    assert evaluate(Or((A, no)), event) is expected
    assert evaluate(And((A, no)), event) is False


# of = < <= on values: the other operators follow
COMPARED: list[tuple[Any, Any, bool | None, bool | None, bool | None]] = [
    (1, 1, T, F, T),
    (1, 1.0, T, F, T),
    (1, 2, F, T, T),
    (2, 1, F, F, F),
    (NAN, NAN, T, F, T),
    (5, NAN, F, T, T),
    ("a", "b", F, T, T),
    (1, "1", U, U, U),
    (True, 1, U, U, U),
    (1, None, U, U, U),
    (None, None, U, U, U),
    ({"a": 1}, {"a": 1}, U, U, U),
    ([1], [1, 2], F, T, T),
]
NEGATIONS: list[tuple[Comparison, Comparison]] = [("=", "!="), ("<", ">="), ("<=", ">")]


@pytest.mark.parametrize(("left", "right", "equal", "less", "not_more"), COMPARED)
def test_comparisons(left: Any, right: Any, equal: Any, less: Any, not_more: Any) -> None:
    for (op, opposite), expected in zip(NEGATIONS, (equal, less, not_more), strict=True):
        assert apply_comparison(op, left, right) is expected
        assert apply_comparison(opposite, left, right) is (
            None if expected is None else not expected
        )
    assert apply_comparison(">", right, left) is less
    assert apply_comparison(">=", right, left) is not_more


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1.0, T),
        (1, 2, F),
        (NAN, NAN, T),
        (None, None, T),
        (1, None, F),
        (None, 1, F),
        (1, "1", F),  # they do not compare, so they are not the same
        ([None], [None], T),
        ({"a": 1}, {"a": 1}, F),
    ],
)
def test_null_safe_equality_is_never_unknown(left: Any, right: Any, same: bool) -> None:
    assert apply_comparison("<=>", left, right) is same


@pytest.mark.parametrize(
    ("item", "options", "expected"),
    [
        (1, (1, 2), T),
        (1.0, (1, 2), T),
        (3, (1, 2), F),
        (3, (1, None), U),
        (1, (1, None), T),
        (3, (1, "a"), U),
        (1, ("a", 1), T),
        (None, (1,), U),
        (None, (None,), U),
        (NAN, (NAN,), T),
    ],
)
def test_in(item: Any, options: tuple[Any, ...], expected: bool | None) -> None:
    node = In(A, tuple(Literal(option) for option in options))
    assert evaluate(node, {"a": item}) is expected
    either: Expression = Or(tuple(In(A, (Literal(option),)) for option in options))
    assert evaluate(either, {"a": item}) is expected


@pytest.mark.parametrize(
    ("item", "low", "high", "expected"),
    [
        (5, 1, 9, T),
        (1, 1, 9, T),
        (9.0, 1, 9, T),
        (0, 1, 9, F),
        (10, 1, 9, F),
        (5, 9, 1, F),
        (5, None, 9, U),
        (10, None, 9, F),
        (0, 1, None, F),
        (5, 1, None, U),
        (None, 1, 9, U),
        (5, "a", 9, U),
        (10, "a", 9, F),
        ("b", "a", "c", T),
        (NAN, 1, 9, F),
    ],
)
def test_between(item: Any, low: Any, high: Any, expected: bool | None) -> None:
    event = {"a": item, "b": low, "c": high}
    assert evaluate(Between(A, B, C), event) is expected


EVENT: dict[str, Any] = {
    "n": 5,
    "null": None,
    "user": {"name": "Bo", "home": {"city": "Oslo"}, "a.b": 1},
    "lines": [{"sku": "A1", "n": 2}, {"sku": "B7"}, None, 5],
    "pair": ({"sku": "A1"},),
    "deep": [[{"x": 1}, {"x": 2}], []],
    "frozen": MappingProxyType({"x": 1}),
    "big": 2**70,
    "array": np.array([1, 2]),
    "nat": pd.NaT,
    "a.b": 7,
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("n", 5),
        ("missing", None),
        ("null", None),
        ("null.x", None),
        ("n.x", None),
        ("missing.x.y", None),
        ("user.name", "Bo"),
        ("user.home.city", "Oslo"),
        ("user.home.street", None),
        ("user.name.x", None),
        ("user", EVENT["user"]),
        ("lines.sku", ["A1", "B7", None, None]),
        ("lines.n", [2, None, None, None]),
        ("lines.sku.x", [None] * 4),
        ("pair.sku", ["A1"]),
        ("deep.x", [[1, 2], []]),
        ("frozen.x", 1),
        ("big", 2.0**70),
        ("array", [1, 2]),
        ("nat", None),
    ],
)
def test_paths(path: str, expected: Any) -> None:
    assert read(EVENT, tuple(path.split("."))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`a.b`", 7),
        ("user.`a.b`", 1),
        ("user['home'].city", "Oslo"),
        ("lines.sku[1]", "B7"),
        ("lines.sku[9]", None),
        ("array_contains(lines.sku, 'B7')", True),
        ("size(lines.sku)", 4),
        ("lines.n[0] + n", 7),
        ("n > 4 AND user.name = 'Bo'", True),
        ("missing > 4", None),
        ("missing > 4 IS NULL", True),
        ("lines.sku = array('A1', 'B7', NULL, NULL)", True),
        ("array(1, NULL)", [1, None]),
        ("lower(null)", None),
        ("coalesce(missing, n)", 5),
    ],
)
def test_texts(text: str, expected: Any) -> None:
    assert value(text, EVENT) == expected


def test_the_notification_may_be_any_mapping() -> None:
    assert value("a = 1", MappingProxyType({"a": 1})) is True  # type: ignore[arg-type]
