"""Any text gives a filter of CloudEvents SQL or a FilterError that points into it, and soon."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest
from tests.filters import cesql_judge as judge
from tests.repeats import slow_but

from tidings import FilterError, parse
from tidings.filters.dialects.cesql.builtins import BUILTINS
from tidings.filters.language.tokens import MAX_LENGTH

HANGING = 20.0  # limit on hanging
SECONDS = 1.0  # limits on speed, which `make bench` checks
LONG_SECONDS = 8.0
LIMITS = [HANGING, pytest.param(LONG_SECONDS, marks=pytest.mark.bench)]
DEEP = 12  # levels of what was written whose texts in the default dialect may be too deep
KEYWORDS = "AND OR XOR NOT LIKE EXISTS IN TRUE FALSE a b type 1st x_y F1 NULL IS"
OPERATORS = "= == != <> < <= > >= + - * / % ( ) ( ) , . ; ! | & [ ] ` @"
WORDS = (
    *BUILTINS, *KEYWORDS.split(), *OPERATORS.split(),
    "'a'", '"b"', "''", "'%a_'", "'\\'", "'it\\'s'", "'", '"', "\\", "0", "1", "-2", "+3", "007",
    "2147483647", "2147483648", "-2147483648", "9" * 400, "1.5", "1e5", "\n", "\t", "\0", "\u00a0",
    "é", "ı", "٣", "²", "😀", "\ud800", "\ufeff",
)  # fmt: skip


def tried(text: str, most: float, deep: bool = False) -> bool:
    """Whether a text was accepted; whatever it is, in time, and its own texts read as itself."""
    start = time.process_time()
    try:
        one = parse(text, "cesql")
    except FilterError as problem:
        return refused(problem, text)
    for again in (one.sql(), one.canonical().sql()):
        try:
            assert parse(again) == one, text
        except FilterError as problem:
            if len(again) <= MAX_LENGTH and not (deep and "nested more than" in problem.reason):
                raise
    one.matches({"a": "5", "type": True})
    took = time.process_time() - start
    assert took < most, f"{took:.1f} s for {text[:300]!r}"
    return True


def refused(problem: FilterError, text: str) -> bool:
    assert 0 <= problem.position <= len(text), text
    assert problem.text == text
    assert problem.reason
    return False


def mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        start = rng.randint(0, len(text))
        end = min(len(text), start + rng.choice((0, 1, 1, 2, 5, 20)))
        middle = rng.choice(("", rng.choice(WORDS), rng.choice(WORDS), text[start:end] * 2))
        text = text[:start] + middle + text[end:]
    return text


def random_texts(rng: random.Random) -> Iterator[str]:
    while True:
        valid = judge.text(judge.condition(rng, depth=2), rng)
        yield valid
        for _ in range(5):
            yield mutated(rng, valid)
        for _ in range(4):
            yield rng.choice(("", " ")).join(rng.choices(WORDS, k=rng.randint(1, 12)))
        yield "".join(chr(rng.randint(0, rng.choice((0x7F, 0xFFFF)))) for _ in range(12))


@pytest.mark.parametrize("most", [HANGING, pytest.param(SECONDS, marks=pytest.mark.bench)])
def test_random_texts_are_accepted_or_refused(seed: int, most: float) -> None:
    rng = random.Random(seed)
    texts = random_texts(rng)
    accepted = sum(tried(next(texts), most) for _ in range(4_000))
    assert 300 < accepted < 3_000


# (before, middle, after): the first and last repeated
NESTS = {
    "brackets": ("(", "a = 1", ")"),
    "NOT": ("NOT ", "a", ""),
    "NOT with brackets": ("NOT (", "a = 1", ")"),
    "minus": ("-", "a", ""),
    "minus of brackets": ("-(", "a", ")"),
    "function": ("LOWER(", "a", ")"),
    "function of two": ("CONCAT('x', ", "a", ")"),
    "comparisons": ("", "a", " = b"),
    "comparisons to the right": ("(b = ", "a", ")"),
    "comparison with true": ("(", "a", " = TRUE)"),
    "sum": ("", "a", " + 1"),
    "sum to the right": ("(1 + ", "a", ")"),
    "IN": ("", "a", " IN (TRUE)"),
    "IN inside": ("a IN (", "b", ")"),
    "LIKE": ("", "a", " LIKE 't%'"),
    "NOT LIKE": ("", "a", " NOT LIKE 't%'"),
    "AND": ("a = 1 AND (", "b = 1", ")"),
    "AND and OR": ("a = 1 AND (b = 'x' OR ", "c = 1", ")"),
    "AND, OR, to the left": ("(", "c = 1", " AND a = 'x') OR b = 'x'"),
    "XOR": ("a = 1 XOR (", "b = 1", ")"),
    "XOR and AND": ("a = 1 XOR (b = 'x' AND ", "c = 1", ")"),
}


@pytest.mark.parametrize("what", NESTS)
@pytest.mark.parametrize("most", LIMITS)
def test_deep_texts_are_accepted_or_refused(what: str, most: float) -> None:
    before, middle, after = NESTS[what]
    found = [
        tried(before * depth + middle + after * depth + end, most, depth > DEEP)
        for depth in (1, 2, 10, 20, 33, 49, 50, 98, 99, 100, 101, 1_000, 10_000)
        for end in ("", " = 'x'")
    ]
    assert any(found)
    assert not all(found)
    with pytest.raises(FilterError):
        parse(before * 20_000, "cesql")


LONG = {
    "AND": " AND ".join(f"a{n} = 'x{n}'" for n in range(8_000)),
    "OR of one attribute": " OR ".join(f"a = 'x{n}'" for n in range(8_000)),
    "OR of numbers": " OR ".join(f"a = {n}" for n in range(8_000)),
    "OR": " OR ".join(f"a{n} = 'x'" for n in range(8_000)),
    "XOR": " XOR ".join(f"a{n} = 'x'" for n in range(8_000)),
    "AND and OR by turns": "".join(f"a{n} = 'x' {('AND', 'OR')[n % 2]} " for n in range(98))
    + "b = 'x'",
    "too many turns": "".join(f"a{n} = 'x' {('AND', 'OR')[n % 2]} " for n in range(8_000))
    + "b = 'x'",
    "IN": f"a IN ({', '.join(map(repr, map(str, range(20_000))))})",
    "IN of numbers": f"a IN ({', '.join(map(str, range(20_000)))})",
    "IN of attributes": f"a IN ({', '.join(f'b{n}' for n in range(10_000))})",
    "LIKE": f"a LIKE '{'%a' * 50_000}'",
    "LIKE on a constant": f"'{'a' * 5_000}' LIKE '{'%a' * 1_000}b'",
    "CONCAT": f"CONCAT({', '.join('a' for _ in range(20_000))}) = 'x'",
    "name": "a" * (MAX_LENGTH - 4) + " = 1",
    "digits": "a = " + "9" * 200_000,
    "zeros": "a = " + "0" * 200_000 + "1",
    "open string": "a = '" + "\\'" * 100_000,
    "past the limit": "a" * (MAX_LENGTH + 1),
}


@pytest.mark.parametrize("what", slow_but(LONG.keys() - {"OR of numbers"}, LONG))  # like others
@pytest.mark.parametrize("most", LIMITS)
def test_long_texts_are_accepted_or_refused(what: str, most: float) -> None:
    tried(LONG[what], most)
