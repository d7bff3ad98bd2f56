"""Why a filter can never match, or always does, in words; the conditions that are named, against
the reference semantics and against forms."""

from __future__ import annotations

import random
import time

import pytest
from tests.filters import strategies
from tests.repeats import draws

from tidings import Attributes, FilterError, parse
from tidings.filters.canonical.rules import form_of
from tidings.filters.language import And, attributes_of
from tidings.filters.language.evaluation import truth
from tidings.filters.oddities import MOST_NAMED, find_conflict

NEVER = "the filter can never match: "
DECLARED = Attributes({"delay": "integer", "flag": "boolean", "price": "double"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("price > 10 AND price < 5", "no value of price is both > 10 and < 5"),
        ("5 > price AND price > 10", "no value of price is both < 5 and > 10"),
        ("a = 1 AND x = 'a' AND b = 2 AND x = 'b'", "no value of x is both = 'a' and = 'b'"),
        ("x > 1 AND x > 2 AND x < 0 AND x < -1", "no value of x is both > 1 and < 0"),
        ("price BETWEEN 10 AND 5", "no value of price passes price BETWEEN 10 AND 5"),
        ("x IS NULL AND x > 5", "no value of x passes both x IS NULL and x > 5"),
        (
            "x IN (1, 2) AND x IN (2, 3) AND x IN (1, 3)",
            "no value of x passes x IN (1, 2), x IN (2, 3) and x IN (1, 3) at once",
        ),
        (
            "NOT (x > 5 OR y = 1 OR x <= 5)",
            "no value of x passes both NOT (x > 5) and NOT (x <= 5)",
        ),
        ("length(x) > 3 AND length(x) < 4", "no value of length(x) is both > 3 and < 4"),
        (
            "name = 'Bo' AND y = 1 AND lower(name) = 'x'",
            "no event passes both name = 'Bo' and lower(name) = 'x'",
        ),
        (
            "(a = 1 OR b = 1) AND a = 2 AND c = 9 AND b = 3",
            "no event passes (a = 1 OR b = 1), a = 2 and b = 3 at once",
        ),
        (
            "cidr(ip, '10.0.0.0/8') AND cidr(ip, '11.0.0.0/8')",
            "no value of ip passes both cidr(ip, '10.0.0.0/8') and cidr(ip, '11.0.0.0/8')",
        ),
        (
            "x RLIKE 'a' AND NOT x RLIKE 'a'",
            "no event passes both x RLIKE 'a' and x NOT RLIKE 'a'",
        ),
        (
            "x > 5 AND x < 3 OR y = 1 AND y = 2",
            "no value of x is both > 5 and < 3; its other alternative can't match either",
        ),
        (
            " OR ".join(f"a{n} = 1 AND a{n} = 2" for n in range(1001)),
            "no value of a0 is both = 1 and = 2; its other 1,000 alternatives can't match either",
        ),
        (
            "z = 1 AND (x = 1 AND x = 2 OR y = 1 AND y = 2)",
            "no value of x is both = 1 and = 2; its other alternative can't match either",
        ),
        (
            "price = NULL",
            "price = NULL compares with NULL, which is never true; IS NULL tests for null",
        ),
        ("FALSE", "it is FALSE"),
        ("a = 1 AND 1 > 2", "1 > 2 is never true"),
        (
            " AND ".join(f"x != {n}" for n in range(9)) + " AND x BETWEEN 0 AND 3 AND x IN (0, 1)",
            "no value of x passes x != 0, x != 1 and x IN (0, 1) at once",
        ),
        (
            " AND ".join(f"x != {n}" for n in range(9)) + " AND x IN (0, 1, 2, 3, 4, 5)",
            "no value of x passes 10 of its conditions at once",
        ),
    ],
)
def test_why_it_can_never_match(text: str, why: str) -> None:
    found = parse(text)
    assert found.never
    assert found.note == NEVER + why
    assert found.explain({}).reason == found.note


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("delay > 3 AND delay < 4", "no value of delay, an integer, is both > 3 and < 4"),
        ("delay = 9.5", "no value of delay, an integer, passes delay = 9.5"),
        ("delay > 4 AND delay < 3", "no value of delay is both > 4 and < 3"),  # of any type
        ("price > 3 AND price < 3", "no value of price is both > 3 and < 3"),
        ("flag AND NOT flag", "no value of flag passes both flag and NOT flag"),
    ],
)
def test_a_type_is_named_if_only_it_excludes_the_conditions(text: str, why: str) -> None:
    assert parse(text, attributes=DECLARED).note == NEVER + why


def test_other_dialects_are_quoted_as_sql() -> None:
    found = parse("x = 1 AND x = 2", "cesql")
    assert found.note == NEVER + "no value of cesql('INT(x)') is both = 1 and = 2"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("a IS NULL OR a IS NOT NULL", "whatever the value of a is"),
        ("a <=> a OR b IS NULL OR b IS NOT NULL", "whatever the values of a, b are"),
    ],
)
def test_a_filter_that_always_matches(text: str, note: str) -> None:
    assert parse(text).note == f"the filter matches every event, {note}"


@pytest.mark.parametrize("text", ["TRUE", "1 < 2", "a = 1", "a < b AND a > b", "a RLIKE 'x'"])
def test_nothing_to_say(text: str) -> None:
    assert parse(text).note == ""


def test_a_slim_filter_keeps_its_note() -> None:
    found = parse("price > 10 AND price < 5")
    found.slim()
    assert found.sql() == "false"
    assert found.note == NEVER + "no value of price is both > 10 and < 5"


def test_long_names_and_values_are_cut() -> None:
    name, text = "n" * 5_000, "x" * 5_000
    for one in (
        f"{name} = 1 AND {name} = 2",
        f"a = '{text}' AND a = 'y{text}'",
        f"{name} IS NULL OR {name} IS NOT NULL",
        " AND ".join(f"({name}{n} = 1 OR {name} = 2)" for n in range(4)) + f" AND {name} = NULL",
    ):
        assert 0 < len(parse(one).note) < 600


@pytest.mark.parametrize(
    "text",
    [
        " AND ".join(f"x != {n}" for n in range(3000)) + " AND x = 4",
        " AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(100)) + " AND x = 4 AND x = 5",
        " OR ".join(f"a{n} = 1 AND a{n} = 2" for n in range(1000)),
        "(" * 30 + "x = 1 AND x = 2" + "".join(f" OR y = {n}) AND y = -1" for n in range(30)),
    ],
    ids=["one term", "factors", "alternatives", "nested"],
)
@pytest.mark.parametrize(
    ("times", "more"), [(0, 20), pytest.param(40, 0.2, marks=pytest.mark.bench)]
)
def test_the_reason_does_not_take_long(text: str, times: int, more: float) -> None:
    """The limit of `make test` is one on hanging; the other compares with the canonical form."""
    found = parse(text)
    begin = time.process_time()
    assert found.never
    made = time.process_time() - begin
    assert found.note
    assert time.process_time() - begin - made < times * made + more


def test_named_conditions_exclude_each_other_and_are_all_needed(seed: int) -> None:
    chance = random.Random(seed)
    seen = 0
    for _ in draws(300, lambda: seen > 20):
        of = strategies.schema(chance, dotted=False)
        declared = chance.random() < 0.5
        attributes = of.attributes() if declared else None
        events = [strategies.event(chance, of) for _ in range(10)]
        write = strategies.Writer(chance, of, spark=False, declared=declared)
        text = " AND ".join(f"({write.filter(2)})" for _ in range(chance.randrange(1, 7)))
        try:
            parsed = parse(text, attributes=attributes)
        except FilterError:
            continue
        assert bool(parsed.note) == (
            parsed.never or (parsed.always and bool(attributes_of(parsed.expression)))
        )
        if not parsed.never:
            continue
        seen += 1
        conflict = find_conflict(parsed.expression, attributes)
        items = conflict.conditions
        assert form_of(And(items), attributes).never
        for event in events:
            assert not all(truth(item, event) is True for item in items)
        if 1 < len(items) <= MOST_NAMED and conflict.term is not None:
            for item in items:
                rest = tuple(one for one in items if one is not item)
                assert not form_of(And(rest), attributes).never
    assert seen > 20
