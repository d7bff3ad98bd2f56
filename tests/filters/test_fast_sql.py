"""The fast parser: if it returns an expression, the full parser returns the same one."""

from __future__ import annotations

import random
import time

import pytest
from tests.filters import strategies
from tests.filters.test_fuzz import mutated
from tests.repeats import draws

from tidings import Attributes, FilterError, parse
from tidings.filters.dialects import Context
from tidings.filters.dialects.sql import fast_sql
from tidings.filters.dialects.sql.dialect import parse_fully
from tidings.filters.language.expression import And, Attribute, Compare, Literal
from tidings.filters.language.tokens import MAX_LENGTH

DECLARED = Attributes(
    {"a": "integer", "b": "string", "c": "double", "d": "date", "f": "boolean", "x.y": "string",
     "t": "timestamp", "l": "list"}
)  # fmt: skip
CONTEXTS = (Context(), Context(DECLARED), Context(Attributes({"a": "string"}, closed=False)))

NAMES = ("a", "b", "c", "d", "f", "t", "l", "x.y", "A", "x", "x.not", "r", "date", "subject", "any",
         "not", "Null", "div", "_1", "a.b.c", "é", "`a`", "a.`b`", ".a", "1a")  # fmt: skip
CONSTANTS = (
    "0", "1", "-1", "- 1", "--1", "+1", "007", "-0", "1.5", "-0.0", "1.", ".5", "1e3", "5L", "2D",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "9" * 18, "9" * 19,
    "1" + "0" * 17 + "." + "0" * 41, "0.1", "true", "FALSE", "Null", "trueish", "'a'", "'a%'",
    "'%a'", "'a_%b'", '"b"', "''", "'it''s'", r"'\n'", "'a' 'b'", "r'x'", "'é'", "'\n'", "' AND '",
    "'2020-01-01'", "'7'", "DATE '2020-01-01'", "b", "(1)", "1 + 1", "'", '"', "٣",
)  # fmt: skip
PLAIN_NAMES = ("a", "b", "c", "x.y", "f")
PLAIN_CONSTANTS = ("0", "-7", "1.5", "true", "'a'", "'%a'", "'a%_%%b_'", '"b"', "''")
GAPS = (" ", "  ", "\n", "\t", "", "\u00a0", "/**/", "\x1c")
JOINS = ("and", "And", "OR", "", "ANDAND", "&&")
BEFORE = (" ", "(", "NOT ")
AFTER = (" ", "\n", " AND", " AND ", " IS NULL", " ESCAPE 'x'", ";", "--", ")")


class Draw:
    """Mostly what the short way reads, and often something that it should not."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def one(self, plain: tuple[str, ...], odd: tuple[str, ...]) -> str:
        return self.rng.choice(plain if self.rng.random() < 0.85 else odd)

    def constant(self) -> str:
        return self.one(PLAIN_CONSTANTS, CONSTANTS)

    def gap(self) -> str:
        return self.one((" ",), GAPS)

    def conjunction(self) -> str:
        text = self.one(("",), BEFORE) + a_test(self)
        for _ in range(self.rng.choice((0, 0, 1, 2))):
            text += self.gap() + self.one(("AND",), JOINS) + self.gap() + a_test(self)
        return text + self.one(("",), AFTER)


def a_test(draw: Draw) -> str:
    rng, gap = draw.rng, draw.gap()
    name, first, second = draw.one(PLAIN_NAMES, NAMES), draw.constant(), draw.constant()
    word = rng.choice((str.upper, str.lower, str.title))
    roll = rng.random()
    if roll < 0.5:
        op = rng.choice(("=", "==", "!=", "<>", "<", "<=", ">", ">=", "<=>", "=<"))
        return f"{name}{gap}{op}{draw.gap()}{first}"
    if roll < 0.7:
        return f"{name}{gap}{word('between')} {first} {word('and')}{gap}{second}"
    if roll < 0.85:
        comma = draw.one((",", ", ", " , "), (",,", " ", "\n,\n"))
        options = comma.join(draw.constant() for _ in range(rng.randint(1, 3)))
        return f"{name} {word('in')}{gap}({options})"
    if roll < 0.9:
        no = draw.one(("", "not "), ("notnull ", "is ", "not not "))
        return f"{name} {word('is')}{gap}{word(no)}{word('null')}"
    return f"{name} {rng.choice(('', '', 'NOT '))}{word('like')}{gap}{first}"


def agreed(text: str, context: Context) -> bool:
    """Whether the short way has an answer, which must then be the parser's."""
    found = fast_sql.read(text, context)
    if found is None:
        return False
    wanted = parse_fully(text, context)
    # types too: 1, 1.0 and true are equal
    assert repr(found) == repr(wanted), text
    assert found == wanted, text
    return True


def test_random_conjunctions_are_read_alike(seed: int) -> None:
    draw = Draw(random.Random(seed))
    answers = sum(agreed(draw.conjunction(), draw.rng.choice(CONTEXTS)) for _ in range(30_000))
    assert 3_000 < answers < 27_000


def test_random_filters_are_read_alike(seed: int) -> None:
    rng = random.Random(seed)
    answers = 0
    for _ in draws(100, lambda: answers > 300):
        schema = strategies.schema(rng, dotted=False)
        contexts = (Context(), Context(schema.attributes()))
        writer = strategies.Writer(rng, schema, spark=False, declared=True)
        for _ in range(50):
            ways = (writer.comparison, writer.membership, writer.range, writer.pattern,
                    writer.null_test)  # fmt: skip
            text = " AND ".join(rng.choice(ways)().text for _ in range(rng.randint(1, 2)))
            for one in (text, mutated(rng, text)):
                answers += agreed(one, rng.choice(contexts))
    assert answers > 300


@pytest.mark.parametrize(
    "text",
    ["a = 1", "a=1", " a = 1 ", "a = 'x' and b >= -1.5", "a BETWEEN 1 AND 2 AND b BETWEEN 3 AND 4",
     "a in ('x',\"y\" , 3)", "a.b LIKE 'x%' AND c <> true", "a\n=\n1\nAND\nb = 2",
     "a IS NULL AND b is  not\nnull", "a = 2.0 AND b IN (-0.0, 100000000000000000.0)"],
)  # fmt: skip
def test_the_common_texts_go_the_short_way(text: str) -> None:
    assert agreed(text, Context())


@pytest.mark.parametrize(
    "text",
    ["", " ", "a", "a = 1 AND", "a = 1 AND ", "AND a = 1", "a = 1 OR b = 2", "NOT a = 1", "(a = 1)",
     "a = 1 AND not = 2", "a = b", "a = 1 + 1", "1 = a", "a = 'x' 'y'", "a = 'it''s'", "a <=> 1",
     "a = 1 -- x", "a = 1/**/", "a = NULL", "a = 1;", "a = 1 IS NULL", "a = 1AND b = 2", "a = 5L",
     "a NOT IN (1)", "a IN ()", "a LIKE 'x' ESCAPE 'y'", "a.b.c.d.e.f.g.h.i.j.k = 1", "ſ = 1",
     "a LIKE r'x'", "a = " + "9" * 19, "a" * MAX_LENGTH + " = 1"],
)  # fmt: skip
def test_all_others_are_left_to_the_parser(text: str) -> None:
    assert fast_sql.read(text, Context()) is None


def test_what_the_attributes_object_to_is_left_to_the_parser() -> None:
    context = Context(DECLARED)
    assert agreed("a = 1 AND b = 'x' AND c < 2 AND x.y IN ('p', 'q') AND f = true", context)
    for text in ("z = 1", "a = 'x'", "a = '7'", "b = 1", "d > '2020-01-01'", "c IN (1, '2')",
                 "a LIKE 'x%'", "a BETWEEN 1 AND '2'", "l = 1"):  # fmt: skip
        assert fast_sql.read(text, context) is None
    with pytest.raises(FilterError, match="there is no attribute 'bb'; did you mean b") as refused:
        parse("a = 1 AND bb = 'x'", attributes=DECLARED)
    assert refused.value.position == 10


def test_names_and_constants_are_shared_between_filters() -> None:
    one, two = (fast_sql.read(f"name = 'v' AND n{n} = 1", Context()) for n in range(2))
    assert isinstance(one, And)
    assert isinstance(two, And)
    first, second = one.items[0], two.items[0]
    assert isinstance(first, Compare)
    assert isinstance(second, Compare)
    assert first.left is second.left
    assert first.right is second.right


def test_what_is_remembered_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_sql, "MOST_REMEMBERED", 10)
    monkeypatch.setattr(fast_sql, "_names", {})
    monkeypatch.setattr(fast_sql, "_constants", {})
    for n in range(1000):
        wanted = Compare("=", Attribute((f"n{n}",)), Literal(f"v{n}"))
        assert fast_sql.read(f"n{n} = 'v{n}'", Context()) == wanted
    fast_sql.read(f"{'n' * 1000} = '{'v' * 1000}'", Context())
    assert len(fast_sql._names) <= 10
    assert len(fast_sql._constants) <= 10
    assert max(map(len, [*fast_sql._names, *fast_sql._constants])) < 10


@pytest.mark.parametrize(
    "piece",
    ["a", " ", "a.", "a = 1 AND ", "'", "''", "a IN (1, ", "1, ", "a LIKE '", "a BETWEEN 1 AND ",
     "-", "AND ", "\n=", "a =    "],
)  # fmt: skip
@pytest.mark.parametrize("most", [20, pytest.param(2, marks=pytest.mark.bench)])
def test_no_text_takes_long(piece: str, most: int) -> None:
    for text in (piece * (200_000 // len(piece)), "a IN (" + piece * (200_000 // len(piece))):
        start = time.process_time()
        fast_sql.read(text, Context())
        assert time.process_time() - start < most
