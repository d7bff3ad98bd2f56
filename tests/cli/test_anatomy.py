"""The parts of a filter, and what is odd about it."""

from __future__ import annotations

import pytest

import tidings
from tidings.cli.filters.anatomy import describe_values, dissect
from tidings.filters import oddities_of

WIDE = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(30))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a = 1", []),
        ("a > 5 AND a < 3", ["never-true"]),
        ("a IS NULL OR a IS NOT NULL", ["always-true"]),
        ("a RLIKE 'x'", ["residual-only"]),
        ("a < b", ["residual-only"]),
        ("a RLIKE 'x' OR b = 1", ["residual-only"]),
        ("a RLIKE 'x' AND b = 1", []),
        ("a + b > 5", []),
        (WIDE, ["residual-only"]),
        (f"c = 1 AND {WIDE}", []),
    ],
)
def test_oddities(text: str, found: list[str]) -> None:
    assert oddities_of(tidings.parse(text).form) == found


def test_parts_of_a_residual() -> None:
    anatomy = dissect(tidings.parse("name RLIKE 'x' AND a = 1"), "  name RLIKE 'x' AND a = 1")
    assert anatomy.filter == "name RLIKE 'x' AND a = 1"
    assert [(part.set, part.residual) for part in anatomy.boxes[0]] == [
        ("a = 1", False),
        ("name RLIKE 'x'", True),
    ]
    assert anatomy.residuals == ["name RLIKE 'x'"]


def test_values_that_a_filter_reads() -> None:
    filter_ = tidings.parse("user.city = 'Oslo' AND price * 2 > 5 AND gate IS NULL")
    event = {"user": {"city": "Oslo"}, "price": 3.5, "volume": 7}
    assert describe_values(filter_, event) == "gate = absent, price = 3.5, user.city = 'Oslo'"
