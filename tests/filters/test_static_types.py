"""The type of an expression, as far as it is known without a notification."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest
from tests.filters import strategies
from tests.repeats import draws

from tidings import Attributes, parse
from tidings.filters.dialects import Context
from tidings.filters.dialects.sql.dialect import parse_term
from tidings.filters.language.attributes import family
from tidings.filters.language.evaluation import evaluate
from tidings.filters.language.expression import Expression, Literal, children
from tidings.filters.language.static_types import is_condition, static_type_of
from tidings.model import type_of

DECLARED = Attributes(
    {"n": "integer", "m": "integer", "x": "double", "s": "string", "day": "date", "at": "timestamp",
     "tags": "list", "u.b": "boolean"}
)  # fmt: skip
OPEN = Context(Attributes({}, closed=False), {"own": len})
CLOSED = Context(DECLARED, {"own": len})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("n", "integer"),
        ("u.b", "boolean"),
        ("u", "struct"),
        ("subject", "string"),
        ("n + m", "number"),
        ("n * x", "number"),
        ("n % 2", "number"),
        ("-n", "number"),
        ("abs(n)", "number"),
        ("n / m", "double"),
        ("n DIV m", "integer"),
        ("floor(x)", "integer"),
        ("lower(s)", "string"),
        ("length(s)", "integer"),
        ("reverse(s)", "string"),
        ("reverse(tags)", "list"),
        ("size(tags)", "integer"),
        ("tags[0]", None),
        ("hour(at)", "integer"),
        ("array_contains(tags, 1)", "boolean"),
        ("s LIKE 'a'", "boolean"),
        ("n > 1", "boolean"),
        ("n IS NULL", "boolean"),
        ("n IN (1) AND u.b", "boolean"),
        ("own(s)", None),
        ("coalesce(n, m)", "integer"),
        ("coalesce(n, NULL)", "integer"),
        ("coalesce(n, 1)", "integer"),
        ("coalesce(n, x)", "number"),
        ("coalesce(n, n + 1)", "number"),
        ("coalesce(day, at)", "timestamp"),
        ("coalesce(n, s)", None),
        ("coalesce(tags[0], n)", None),
        ("coalesce(s, lower(s))", "string"),
        ("coalesce(coalesce(n, x), 1)", "number"),
        ("inet(s)", "string"),
        ("within_km(x, n, 1, 2, 3)", "boolean"),
    ],
)
def test_the_type_of_an_expression(text: str, kind: str | None) -> None:
    assert static_type_of(parse_term(text, CLOSED), DECLARED) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("n", None),
        ("subject", None),
        ("reverse(s)", None),
        ("coalesce(n, 1)", None),
        ("n + m", "number"),
        ("lower(s)", "string"),
    ],
)
def test_without_a_declaration(text: str, kind: str | None) -> None:
    assert static_type_of(parse_term(text, OPEN), None) == kind


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "boolean"),
        (1, "integer"),
        (1.5, "double"),
        ("a", "string"),
        (dt.date(2024, 1, 1), "date"),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "timestamp"),
        ((1, 2), "list"),
        (None, None),
    ],
)
def test_constants(value: Any, kind: str | None) -> None:
    assert static_type_of(Literal(value), DECLARED) == kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", True),
        ("a IN (1)", True),
        ("a BETWEEN 1 AND 2", True),
        ("a IS NULL", True),
        ("a IS TRUE", True),
        ("NOT a", True),
        ("a AND b", True),
        ("a OR b", True),
        ("a RLIKE 'x'", True),
        ("isnan(a)", True),
        ("array_contains(a, 1)", True),
        ("a", False),  # what an attribute holds is not known
        ("true", False),
        ("NULL", False),
        ("lower(a)", False),
        ("coalesce(a, true)", False),
        ("own(a)", False),
        ("a[0]", False),
        ("a + 1", False),
    ],
)
def test_conditions(text: str, expected: bool) -> None:
    assert is_condition(parse_term(text, OPEN)) is expected


def test_values_are_of_the_type_that_was_foretold(seed: int) -> None:
    """Of every part of random filters, on random notifications that fit the declaration."""
    rng = random.Random(seed)
    schema = strategies.schema(rng, dotted=False)
    declared = schema.attributes()
    writer = strategies.Writer(rng, schema, declared=True)
    events = [strategies.event(rng, schema) for _ in range(10)]
    seen = 0
    for _ in draws(200, lambda: seen > 1000):
        stack: list[Expression] = [parse(writer.filter(), attributes=declared).expression]
        while stack:
            node = stack.pop()
            stack.extend(children(node))
            kind = static_type_of(node, declared)
            for event in events:
                found = evaluate(node, event)
                if kind is not None and found is not None:
                    assert family(type_of(found)) == family(kind), (node, found)
                    assert kind != "integer" or isinstance(found, int)
                    seen += 1
    assert seen > 1_000
