"""Explanations: which tests passed and failed, the nearest alternative first, and their text."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest
from tests.filters import strategies

from tidings import parse
from tidings.filters.explanation import format_value
from tidings.model import ABSENT

EVENT = {"symbol": "SNE", "price": 95.0, "n": 3, "day": dt.date(2024, 2, 29), "tags": ["a", None]}

TEXTS = [
    (
        "symbol = 'SNE' AND price > 90",
        """\
matches
  passed: price > 90 (price is 95.0)
  passed: symbol = 'SNE' (symbol is 'SNE')""",
    ),
    (
        "symbol = 'SNE' AND price > 99",  # the test that failed comes first
        """\
does not match
  failed: expected price > 99, but price is 95.0
  passed: symbol = 'SNE' (symbol is 'SNE')""",
    ),
    (
        "missing = 1",
        """\
does not match
  failed: expected missing = 1, but missing is absent""",
    ),
    (
        "day > DATE '2024-03-01'",
        """\
does not match
  failed: expected day > DATE '2024-03-01', but day is DATE '2024-02-29'""",
    ),
    (
        "price > 99 AND n = 3 OR symbol = 'X' AND n = 4 AND price > 1 OR missing = 1",
        """\
does not match
alternative 1 (1 of 1 fail):
  failed: expected missing = 1, but missing is absent
alternative 2 (1 of 2 fail):
  failed: expected price > 99, but price is 95.0
  passed: n = 3 (n is 3)
alternative 3 (2 of 3 fail):
  failed: expected n = 4, but n is 3
  failed: expected symbol = 'X', but symbol is 'SNE'
  passed: price > 1 (price is 95.0)""",
    ),
    (
        "symbol = 'X' OR n = 3",
        """\
matches
alternative 1 (all pass):
  passed: n = 3 (n is 3)
alternative 2 (1 of 1 fail):
  failed: expected symbol = 'X', but symbol is 'SNE'""",
    ),
    (
        "lower(symbol) = 'sne'",
        """\
matches
  passed: lower(symbol) = 'sne' (lower(symbol) is 'sne' (symbol = 'SNE'))""",
    ),
    (
        "price / n > 40",
        """\
does not match
  failed: expected price / n > 40, but price / n is 31.666666666666668 (n = 3, price = 95.0)""",
    ),
    (
        "NOT contains(symbol, 'N')",
        """\
does not match
  failed: expected NOT contains(symbol, 'N'), but contains(symbol, 'N') is true (symbol = 'SNE')""",
    ),
    (
        "size(tags) > 1",
        """\
matches
  passed: size(tags) >= 2 (size(tags) is 2 (tags = array('a', NULL)))""",
    ),
    (
        "n = 1 AND n = 2",
        "does not match\n  the filter can never match: no value of n is both = 1 and = 2",
    ),
    ("n = 1 OR n IS NULL OR n IS NOT NULL", "matches"),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_the_text(text: str, expected: str) -> None:
    assert str(parse(text).explain(EVENT)) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("symbol = 'SNE' AND price > 99", "failed: expected price > 99, but price is 95.0"),
        ("n = 3", "passed: n = 3 (n is 3)"),
        ("n = 5 AND price = 1 OR n = 4", "failed: expected n = 4, but n is 3"),
        ("false", "the filter can never match: it is FALSE"),
        ("true", "the filter always matches"),
    ],
)
def test_the_reason(text: str, reason: str) -> None:
    assert parse(text).explain(EVENT).reason == reason


def test_the_reason_names_all_that_failed() -> None:
    reason = parse("a = 1 AND b = 2 AND n = 3").explain(EVENT).reason
    assert reason.split("; ") == [
        "failed: expected a = 1, but a is absent",
        "failed: expected b = 2, but b is absent",
    ]


WIDE = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(7))


def test_a_wide_filter_is_explained_part_by_part() -> None:
    event = {f"a{n}": 1 for n in range(7) if n != 4} | {"b4": 2}
    found = parse(WIDE).explain(event)
    assert not found.matched
    (box,) = found.boxes
    assert len(box.tests) == 7
    (failed,) = box.failed
    assert failed.expected == "a4 = 1 OR b4 = 1"
    assert failed.term == "one of a4, b4"
    assert failed.actual == "a4 = absent, b4 = 2"
    assert parse(WIDE).explain(event | {"b4": 1}).matched


def test_a_wide_filter_of_alternatives_is_one_test() -> None:
    found = parse(f"c = 1 OR ({WIDE})").explain({"c": 1})
    assert found.matched
    assert [len(box.tests) for box in found.boxes] == [1]
    assert len(found.boxes[0].tests[0].expected) == 120


def test_it_says_what_matching_says(seed: int) -> None:
    rng = random.Random(seed)
    schema = strategies.schema(rng)
    writer = strategies.Writer(rng, schema)
    events = [strategies.event(rng, schema) for _ in range(5)]
    for _ in range(200):
        one = parse(writer.filter())
        for event in events:
            found = one.explain(event)
            assert found.matched == one.matches(event), one
            counts = [(len(box.failed), len(box.tests)) for box in found.boxes]
            assert counts == sorted(counts)
            assert str(found).startswith("matches" if found.matched else "does not match")
            assert found.reason


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ABSENT, "absent"),
        (None, "null"),
        (True, "true"),
        (5, "5"),
        (1e30, "1e+30"),
        (float("nan"), "double('NaN')"),
        ("it's", r"'it\'s'"),
        (dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC), "TIMESTAMP '2024-01-01 10:00:00'"),
        ([1, None], "array(1, NULL)"),
        ({"a": 1}, "{'a': 1}"),
        (b"a", "b'a'"),
        ([1, 1j], "[1, 1j]"),
        ("x" * 118, "'" + "x" * 118 + "'"),
        ("x" * 200, "'" + "x" * 116 + "..."),
        ({"a": "x" * 200}, "{'a': '" + "x" * 110 + "..."),
    ],
)
def test_values_as_a_person_reads_them(value: Any, text: str) -> None:
    assert format_value(value) == text
