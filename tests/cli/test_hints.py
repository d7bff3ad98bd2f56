"""Hints: attributes that filters test, but that events lack or have with another type."""

from __future__ import annotations

import datetime as dt
import json
import re
import shlex
from typing import Any

import pytest
from tests.cli.conftest import Run, Write

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
        (
            "a = 1",
            [{"a": "1"}, {"a": "x"}],
            ["filter 1 compares a with numbers, but"],
        ),
        ("day > '2024-01-01'", [{"day": dt.date(2024, 2, 1)}], ["--types day=string"]),
        ("day > DATE '2024-01-01'", [{"day": "2024-02-01"}], ["--types day=timestamp"]),
        ("a = 1 OR a = 'x'", [{"a": "y"}], []),
        ("a > 5", [{"a": float("nan")}, {}], []),
        ("a IS NULL", [{"b": 1}], ["filters test a, but the event has no such attribute"]),
        ("a > 1", [{"a": None}], ["filters test a, but the event has only null there"]),
        ("x.y = 1 AND lower(n) = 'a'", [{"x": {"y": 2}, "n": "A"}], []),
        ("a = 1", [], []),
        ("hour(at) = 3", [{"at": "03:00"}], ["filter 1 tests hour(at), which takes a time, but"]),
        ("length(n) > 3", [{"n": 1234}], ["--types n=string --others converts"]),
        ("exists(lines, x -> x.price > 5)", [{"lines": [{"price": 7}]}], []),
        ("forall(lines, x -> x.price > n)", [{"lines": []}], ["filters test n, but"]),
    ],
)
def test_notes(text: str, events: list[dict[str, Any]], expected: list[str]) -> None:
    watch = AttributeWatch([(1, parse(text))], texts=True)
    for event in events:
        watch.look(event)
    notes = list(watch.notes())
    assert len(notes) == len(expected)
    for note, part in zip(notes, expected, strict=True):
        assert part in note


def test_nothing_is_said_to_convert_a_list() -> None:
    watch = AttributeWatch([(1, parse("lines.gift"))])
    watch.look({"lines": [{"gift": True}]})
    (note,) = watch.notes()
    assert note.endswith(
        "compares lines.gift with booleans, but the event has lists or structs "
        "there, so these tests are unknown"
    )


def test_each_filter_is_judged_by_itself() -> None:
    texts = ["city > 5", "city = 'a'", "NOT (city < 7)", "city LIKE 'b%' AND city != 3"]
    watch = AttributeWatch((f"f{at}", parse(text)) for at, text in enumerate(texts))
    watch.look({"city": "a"})
    (note,) = watch.notes()
    assert note.startswith("2 filters (f0, f2) compare city with numbers, but the event has ")


def test_wide_filters_are_looked_into() -> None:
    text = " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(30))
    watch = AttributeWatch([(1, parse(text))])
    watch.look({f"{name}{i}": "text" for name in "ab" for i in range(30)})
    assert len(list(watch.notes())) == 60


ODD = [
    {"price": "95", "unit price": "5", "geo": {"the zone": "7"}, "it's": "9", "n": 1},
    {"price": "3", "unit price": "1", "geo": {"the zone": "1"}, "it's": "1", "n": 1},
]


@pytest.mark.parametrize(
    "text", ["price > 90", "`unit price` > 3", "geo.`the zone` > 5", "`it's` > 5"]
)
def test_advice_works_when_it_is_pasted(run: Run, write: Write, text: str) -> None:
    """In a shell, beside other filters."""
    words = ["match", "--filters", write("f.txt", f"n = 2\n{text}\n"), "--events",
             write("e.json", json.dumps(ODD)), "--json"]  # fmt: skip
    first = run(*words)
    assert first.out == ""
    found = re.search(r"; (--types .* --others) converts", first.err)
    assert found is not None, first.err
    second = run(*words, *shlex.split(found[1]))
    assert second.records == [{"event": 0, "ids": [2]}], second.err
    assert second.err == ""


@pytest.mark.parametrize(
    ("text", "events", "expected"),
    [
        ("n > 4", '{"n": 5}\n{"n": "free"}', ""),  # no type has both
        ("n > 4", '{"n": "free"}', ""),
        ("n > 4", '{"n": "6"}', "--types n=double --others"),
        ("length(n) > 3", '{"n": 1234}', ""),
    ],
)
def test_no_advice_that_does_not_work(
    run: Run, write: Write, text: str, events: str, expected: str
) -> None:
    words = ["match", "--filters", write("f.txt", text), "--events", write("e.json", events)]
    done = run(*words)
    found = re.search(r"; (--types .* --others) converts", done.err)
    assert (found[1] if found else "") == expected, done.err
    if not found:  # and there is none
        for kind in ("double", "string", "boolean", "timestamp"):
            assert run(*words, "--types", f"n={kind}", "--others").code == 2


def test_values_of_several_types(run: Run, write: Write) -> None:
    events = [{"n": 5, "x": True}, {"n": "6", "x": None}, {"x": False}]
    words = ["match", "--filters", write("f.txt", "n > 4 AND x IS NOT NULL OR n > 5"), "--events",
             write("e.json", json.dumps(events)), "--json"]  # fmt: skip
    done = run(*words)
    assert done.records == [{"event": 0, "ids": [1]}]
    assert done.err == (
        "note: the first 3 events have values of several types for n: numbers and strings; a test "
        "passes only for its own type; --types n=double --others converts all of them\n"
    )
    assert len(run(*words, "--types", "n=double", "--others").records) == 2
