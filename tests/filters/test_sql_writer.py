"""Expressions as text: brackets only where they are needed, and values as they are written."""

from __future__ import annotations

import datetime as dt
import math
import random
from typing import Any

import pytest
from tests.filters import strategies

from tidings import parse
from tidings.filters.dialects import Context
from tidings.filters.dialects.sql.dialect import parse_term
from tidings.filters.language.expression import And, Attribute, Call, Compare, Literal, Not, Or
from tidings.filters.language.sql_writer import RESERVED, literal_text, name_text, text_of

SAME = """\
a
a.b.c
`odd name`.`a``b`
`1st`
`LIKE`.`not`.any
`naïve`
a = 1
a != 'x'
a <=> NULL
(a = b) = c
a = (b = c)
(a = b) IS NULL
a IS NOT NULL
(a IS NULL) = b
a IS TRUE
a IS NOT FALSE
(a AND b) IS TRUE
(NOT a) IS TRUE
a IS DISTINCT FROM b
(a IS DISTINCT FROM b) = c
a + b + c
a - (b - c)
a - (b + c)
a + b * c
(a + b) * c
a * (b / c)
a * b / c
a % b div c
a div (b % c)
-a
- -a
-(a + b)
-a * b
-(a * b)
a - -1
a * -1
-1 * a
a + b > c * d
NOT a
NOT NOT a
NOT (a = 1)
NOT (a AND b)
NOT (a OR b)
NOT contains(a, 'x')
a AND b OR c AND d
(a OR b) AND (c OR d)
a AND NOT b
NOT a AND b
a = 1 OR b = 2 OR c = 3
a IN (1, 2)
a NOT IN ('x', NULL)
a + 1 IN (b, c * 2)
(a = 1) IN (true, false)
a IN (b OR c, d = 1)
a BETWEEN 1 AND 2
a NOT BETWEEN b + 1 AND c
(a BETWEEN 1 AND 2) = b
a LIKE 'x%'
a NOT LIKE b
a ILIKE 'x_'
a RLIKE '^x'
a NOT RLIKE 'x'
(a LIKE 'x%') = b
(a LIKE 'x') IS NULL
concat(a, 'b', c) = 'x'
get(a, 0) = get(b, -1)
substring(a, 1, 2)
array_contains(a, 1) AND isnan(b)
a = array(1, 'x', NULL)
size(a) = 1
subject('a.*.>')
isa(topic, 'sports')
cidr(ip, '10.0.0.0/8')
within_box(lat, lon, -20, 170, 0, -170)
coalesce(a, b + 1, NULL)
year(at) = 2024
at >= TIMESTAMP '2024-02-29 10:30:00.500000'
day < DATE '2024-02-29'
x = double('NaN')
x < double('-Infinity')
x = -1.5
x = 1e+30
a = 'it\\'s'
a = '\\\\'
a = '\\n\\t\\r'
a = '\\u000012'
a = "é😀"
true
NULL"""


def again(text: str) -> str:
    return text_of(parse_term(text, Context()))


@pytest.mark.parametrize("text", SAME.split("\n"))
def test_texts_that_print_as_themselves(text: str) -> None:
    assert again(text) == text.replace('"', "'")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("((a)) = (1)", "a = 1"),
        ("(a AND b) AND c", "a AND b AND c"),
        ("a OR (b AND c)", "a OR b AND c"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("NOT a = 1", "NOT (a = 1)"),
        ("!a", "NOT a"),
        ("NOT (a IS NULL)", "a IS NOT NULL"),
        ("NOT (a IN (1))", "a NOT IN (1)"),
        ("NOT (a LIKE 'x')", "a NOT LIKE 'x'"),
        ("NOT (a <=> b)", "a IS DISTINCT FROM b"),
        ("a IS NOT DISTINCT FROM b", "a <=> b"),
        ("(a - b) - c", "a - b - c"),
        ("a == b <> c", "(a = b) != c"),
        ("+a", "a"),
        ("-(-(a))", "- -a"),
        ("-(-1)", "1"),
        ("a || b", "concat(a, b)"),
        ("a[0]", "get(a, 0)"),
        ("a['b'].c", "a.b.c"),
        ("LOWER(a)", "lower(a)"),
        ("mod(a, 2)", "a % 2"),
        ("a is unknown", "a IS NULL"),
        ("a like 'a!%' escape '!'", r"a LIKE 'a\\%'"),
        ("a = 60 * 60", "a = 3600"),
        ("a = 5L", "a = 5"),
        ("a = 1.50", "a = 1.5"),
        ("a = CAST('5' AS int)", "a = 5"),
        ("a /* b */ = 1 -- c", "a = 1"),
    ],
)
def test_texts_that_print_otherwise(text: str, expected: str) -> None:
    assert again(text) == expected
    assert again(expected) == expected


def test_a_function_of_the_application() -> None:
    text = "vowels(name, 1) > 3"
    assert parse(text, functions={"vowels": len}).sql() == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "NULL"),
        (True, "true"),
        (False, "false"),
        (-5, "-5"),
        (1.0, "1.0D"),
        (-0.0, "-0.0D"),
        (1e16, "1e+16"),
        (5e-324, "5e-324"),
        (math.nan, "double('NaN')"),
        (math.inf, "double('Infinity')"),
        (-math.inf, "double('-Infinity')"),
        ("a'b", r"'a\'b'"),
        ("\0" + "12", r"'\u000012'"),
        ('"', "'\"'"),
        ("%_", "'%_'"),
        (dt.date(1, 2, 3), "DATE '0001-02-03'"),
        (dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "TIMESTAMP '2024-01-02 03:04:05'"),
        (
            dt.datetime(2024, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            "TIMESTAMP '2024-01-02 01:00:00'",
        ),
        (dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC).replace(tzinfo=None),
         "TIMESTAMP '2024-01-02 03:00:00'"),
        ((), "array()"),
        ((1, ("a", None)), "array(1, array('a', NULL))"),
    ],
)  # fmt: skip
def test_values(value: Any, expected: str) -> None:
    assert literal_text(value) == expected


@pytest.mark.parametrize("kind", sorted(strategies.VALUES))
def test_values_are_read_as_themselves(kind: str) -> None:
    for value in strategies.VALUES[kind]:
        again = parse_term(literal_text(value), Context())
        assert isinstance(again, Literal)
        assert repr(again.value) == repr(value)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("a",), "a"),
        (("_a1", "B"), "_a1.B"),
        (("a.b",), "`a.b`"),
        (("a`b",), "`a``b`"),
        (("é",), "`é`"),
        (("1",), "`1`"),
        (("a", "order"), "a.order"),
        (("a\n",), "`a\n`"),
    ],
)
def test_names(path: tuple[str, ...], expected: str) -> None:
    assert name_text(path) == expected


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_are_quoted(word: str) -> None:
    for name in (word, word.lower(), word.title()):
        assert name_text((name,)) == f"`{name}`"
        assert parse_term(f"`{name}`", Context()) == Attribute((name,))


A, ONE = Attribute(("a",)), Literal(1)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (And(()), "true"),
        (Or(()), "false"),
        (Not(Not(Compare("=", A, ONE))), "NOT NOT (a = 1)"),
        (Not(Literal(True)), "NOT true"),
        (Not(Call("+", (A, ONE))), "NOT (a + 1)"),
        (Call("negative", (Literal(-1),)), "- -1"),
        (Call("like", (Call("+", (A, ONE)), A)), "a + 1 LIKE a"),
        (Compare("=", Not(A), ONE), "(NOT a) = 1"),
    ],
)
def test_trees_that_no_text_gives(node: Any, expected: str) -> None:
    assert text_of(node) == expected


def test_random_texts_print_as_what_prints_as_itself(seed: int) -> None:
    rng = random.Random(seed)
    writer = strategies.Writer(rng, strategies.schema(rng), spark=False)
    for _ in range(300):
        one = parse(writer.filter())
        assert again(one.sql()) == one.sql()
        assert repr(parse(one.sql()).expression) == repr(one.expression)
