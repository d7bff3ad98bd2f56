"""Dotted subjects: fields, patterns, wildcards against a regular expression."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from tidings.filters.values.subjects import MAX_FIELDS, field, isa, length, matches, pattern_problem
from tidings.filters.values.topics import Ontology


@pytest.mark.parametrize(
    ("subject", "fields"),
    [
        ("a", ["a"]),
        ("a.b.c", ["a", "b", "c"]),
        ("", [""]),
        ("a..b", ["a", "", "b"]),
        (".", ["", ""]),
    ],
)
def test_fields(subject: str, fields: list[str]) -> None:
    assert length(subject) == len(fields)
    assert [field(subject, index) for index in range(len(fields))] == fields
    assert field(subject, len(fields)) is None
    assert field(subject, -1) is None


@pytest.mark.parametrize("value", [None, 5, ["a"], b"a", {"a": 1}])
def test_what_is_no_subject(value: Any) -> None:
    assert length(value) is None
    assert field(value, 0) is None
    assert matches(value, ">") is None
    assert matches("a", value) is None
    assert isa(None, value, "a") is None
    assert isa(None, "a", value) is None


SUBJECTS = ("quotes", "quotes.sne", "quotes.sne.nyse")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("quotes", (True, False, False)),
        ("quotes.*", (False, True, False)),
        ("quotes.>", (False, True, True)),
        ("quotes.*.nyse", (False, False, True)),
        (">", (True, True, True)),
        ("*", (True, False, False)),
        ("*.>", (False, True, True)),
        ("*.*.>", (False, False, True)),
        ("*.sne", (False, True, False)),
        ("Quotes.>", (False, False, False)),
        ("quote.>", (False, False, False)),
    ],
)
def test_matches(pattern: str, expected: tuple[bool, ...]) -> None:
    assert tuple(matches(subject, pattern) for subject in SUBJECTS) == expected
    assert pattern_problem(pattern) is None


def regex(pattern: str) -> str:
    parts = [
        {"*": "[^.]*", ">": r"[^.]*(\.[^.]*)*"}.get(f, re.escape(f)) for f in pattern.split(".")
    ]
    return r"\.".join(parts)


def test_wildcards_agree_with_a_regular_expression(seed: int) -> None:
    rng = random.Random(seed)
    hits = 0
    for _ in range(5_000):
        subject = ".".join(rng.choices(("a", "b", "", "*", "a+"), k=rng.randint(1, 4)))
        pattern = ".".join(rng.choices(("a", "b", "*", "*", "a+"), k=rng.randint(1, 4)))
        pattern += rng.choice(("", "", ".>"))
        expected = re.fullmatch(regex(pattern), subject) is not None
        assert matches(subject, pattern) is expected, (subject, pattern)
        hits += expected
    assert 100 < hits < 4_900


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("", "have empty fields"),
        ("a.", "have empty fields"),
        (".a", "have empty fields"),
        ("a..b", "have empty fields"),
        (">.a", "must come last"),
        ("a.>.b", "must come last"),
        ("a*", "not a part of 'a*'"),
        ("a.b>", "not a part of 'b>'"),
        ("**", "not a part of"),
        (".".join("a" * (MAX_FIELDS + 1)), f"at most {MAX_FIELDS} fields"),
    ],
)
def test_patterns_that_are_refused(pattern: str, problem: str) -> None:
    assert problem in (pattern_problem(pattern) or "")


def test_the_longest_pattern() -> None:
    assert pattern_problem(".".join("a" * MAX_FIELDS)) is None


TOPICS = Ontology({"chess": ["games", "sports"], "sports.mlb": "sports"})


@pytest.mark.parametrize(
    ("ontology", "name", "topic", "expected"),
    [
        (None, "sports", "sports", True),
        (None, "sports.mlb", "sports", True),
        (None, "sports.mlb.x", "sports.mlb", True),
        (None, "sportswear", "sports", False),
        (None, "sports", "sports.mlb", False),
        (TOPICS, "chess", "games", True),
        (TOPICS, "chess", "sports", True),
        (TOPICS, "games", "chess", False),
        (TOPICS, "sports.nba", "sports", None),  # dots say nothing here
    ],
)
def test_isa(ontology: Ontology | None, name: str, topic: str, expected: bool | None) -> None:
    assert isa(ontology, name, topic) is expected
