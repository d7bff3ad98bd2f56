"""Hints: attributes that filters test, but that events lack or have with another type."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from tidings import parse
from tidings.cli.filters.hints import AttributeWatch


@pytest.mark.parametrize(
    ("text", "events", "expected"),
    [
        (
            "orign = 'EWR'",
            [{"origin": "EWR"}],
            ["test orign, but the event has no"],
        ),
        ("a = 1", [{"a": "1"}, {"a": "x"}], ["compare a with numbers, but the first 2 events"]),
        ("day > '2024-01-01'", [{"day": dt.date(2024, 2, 1)}], ["--types day=string"]),
        ("day > DATE '2024-01-01'", [{"day": "2024-02-01"}], ["--types day=timestamp"]),
        ("a = 1 OR a = 'x'", [{"a": "y"}], []),
        ("a > 5", [{"a": float("nan")}, {}], []),
        ("a IS NULL", [{"b": 1}], ["filters test a, but"]),
        ("x.y = 1 AND lower(n) = 'a'", [{"x": {"y": 2}, "n": "A"}], []),
        ("a = 1", [], []),
    ],
)
def test_notes(text: str, events: list[dict[str, Any]], expected: list[str]) -> None:
    watch = AttributeWatch([parse(text)])
    for event in events:
        watch.look(event)
    notes = list(watch.notes())
    assert len(notes) == len(expected)
    for note, part in zip(notes, expected, strict=True):
        assert part in note


def test_wide_filters_are_looked_into() -> None:
    text = " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(30))
    watch = AttributeWatch([parse(text)])
    watch.look({f"{name}{i}": "text" for name in "ab" for i in range(30)})
    assert len(list(watch.notes())) == 60
