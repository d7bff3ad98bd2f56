"""Any text gives a filter or a FilterError that points into it, soon, whatever the text.

What is accepted must also have a canonical form soon, and both of its texts must read as itself
again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import pytest
from tests.filters import strategies
from tests.repeats import slow_but

from tidings import Filter, FilterError, parse
from tidings.filters.language.builders import TYPE_NAMES
from tidings.filters.language.expression import Expression, children
from tidings.filters.language.functions import ALIASES, FUNCTIONS
from tidings.filters.language.tokens import MAX_LENGTH

DEEP = 20  # levels of an expression whose texts may need more levels than there may be
STACK = 300  # frames that the caller has used up already
# For reading a text, its canonical form, both of its texts, and reading and canonising those again.
HANGING = 20.0  # limit on hanging
SECONDS = 1.0  # limits on speed, which `make bench` checks
LONG_SECONDS = 8.0  # of half a megabyte
LIMITS = [HANGING, pytest.param(LONG_SECONDS, marks=pytest.mark.bench)]


def at_depth(frames: int, action: Callable[[], str]) -> str:
    return action() if frames == 0 else at_depth(frames - 1, action)


def tried(text: str) -> str:
    """What became of a text: "refused" or "accepted"; anything else is raised."""
    try:
        one = parse(text)
    except FilterError as problem:
        return refused(problem, text)
    again_as_itself(one, one.sql())
    again_as_itself(one, one.canonical().sql())
    assert repr(one).startswith("Filter(")
    return "accepted"


def refused(problem: FilterError, text: str) -> str:
    assert 0 <= problem.position <= len(text), (problem.position, text)
    assert problem.text == text
    assert problem.reason
    assert len(problem.pointer().split("\n")) == 2
    return "refused"


def again_as_itself(one: Filter, text: str) -> None:
    """Its text gives the filter again, unless it is too long, or, for a deep filter, too deep."""
    try:
        assert parse(text) == one, text
    except FilterError as problem:
        too_long = len(text) > MAX_LENGTH
        too_deep = height(one.expression) > DEEP and "nested more than" in problem.reason
        if not (too_long or too_deep):
            raise


def height(node: Expression) -> int:
    return 1 + max(map(height, children(node)), default=0)


class Watch:
    """Runs texts deep in the stack and knows the slowest."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.slowest = (0.0, "")
        self.outcomes = {"refused": 0, "accepted": 0}

    def run(self, text: str) -> None:
        start = time.process_time()  # not the clock: others may be using the machine
        try:
            outcome = at_depth(STACK, lambda: tried(text))
        except AssertionError:
            raise
        except Exception as problem:
            what = f"{type(problem).__name__}: {problem}"
            raise AssertionError(f"{what} on {text[:2000]!r}") from problem
        took = time.process_time() - start
        self.outcomes[outcome] += 1
        self.slowest = max(self.slowest, (took, text[:200]))
        assert took < self.most, f"{took:.1f} s for {text[:500]!r}"


# -- random texts ------------------------------------------------------------------------------

KEYWORDS = """AND OR NOT IN IS LIKE ILIKE RLIKE REGEXP BETWEEN NULL TRUE FALSE UNKNOWN DISTINCT
    FROM ESCAPE DIV ANY SOME ALL CAST AS DATE TIMESTAMP array subject a b c x.y `q` `a``b` r"""
OPERATORS = """= == != <> < <= > >= <=> + - * / % || ! ( ) ( ) [ ] , . ; : & | ^ ~ ? @ # $ { } -- /*
    */ \\"""
WORDS = (
    *KEYWORDS.split(), *OPERATORS.split(), *FUNCTIONS, *ALIASES, *TYPE_NAMES,
    "'a'", '"b"', "r'\\d'", "''", "'%a_'", "'2020-01-01'", "'10.0.0.0/8'", "'a.*.>'", "'", '"', "`",
    "0", "1", "1.5", "-2", "1e400", "5L", "5X", ".5", "3.", "9" * 30, "1e-400", "0x1F", "1_000",
    "\n", "\t", "\0", "\u00a0", "\u2028", "é", "ı", "ſ", "٣", "²", "😀", "\ud800", "\ufeff",
)  # fmt: skip


def token_soup(rng: random.Random) -> str:
    gap = rng.choice(("", " ", " "))
    return gap.join(rng.choices(WORDS, k=rng.randint(1, 12)))


def any_characters(rng: random.Random) -> str:
    tops = (0x7F, 0x7F, 0xFF, 0xFFFF, 0x10FFFF)
    return "".join(chr(rng.randint(0, rng.choice(tops))) for _ in range(rng.randint(0, 20)))


def mutated(rng: random.Random, text: str) -> str:
    """A valid text with some of it cut, doubled, swapped, or replaced."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        start = rng.randint(0, len(text))
        end = min(len(text), start + rng.choice((0, 1, 1, 2, 5, 20)))
        roll = rng.random()
        if roll < 0.25:
            text = text[:start] + text[end:]
        elif roll < 0.45:
            text = text[:start] + rng.choice(WORDS) + text[start:]
        elif roll < 0.6:
            text = text[:start] + rng.choice(WORDS) + text[end:]
        elif roll < 0.7:
            text = text[:end] + text[start:]
        elif roll < 0.8:
            text = text[:start]
        elif roll < 0.9:
            text = text[start:]
        else:
            text = text[:start] + chr(rng.randint(0, 0x2FF)) + text[end:]
    return text


def random_texts(rng: random.Random) -> Iterator[str]:
    writers = []
    for spark in (True, False):
        schema = strategies.schema(rng)
        writers.append(strategies.Writer(rng, schema, spark=spark))
    while True:
        for _ in range(20):
            valid = rng.choice(writers).filter(depth=2)
            if rng.random() < 0.1:
                yield valid
            for _ in range(12):
                yield mutated(rng, valid)
        for _ in range(150):
            yield token_soup(rng)
        for _ in range(40):
            yield any_characters(rng)


def run_random(seed: int | str, count: int, most: float) -> Watch:
    rng = random.Random(seed)
    watch = Watch(most)
    texts = random_texts(rng)
    for _ in range(count):
        watch.run(next(texts))
    assert min(watch.outcomes.values()) > count // 100, watch.outcomes
    return watch


@pytest.mark.parametrize("most", [HANGING, pytest.param(SECONDS, marks=pytest.mark.bench)])
def test_random_texts_are_accepted_or_refused(seed: int, most: float) -> None:
    run_random(seed, 5_000, most)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_random_texts_are_accepted_or_refused(seed: int) -> None:
    run_random(f"{seed} soak", 2_000_000, HANGING)


# -- deep texts --------------------------------------------------------------------------------

# (before, middle, after): the first and last repeated
NESTS = {
    "brackets": ("(", "a = 1", ")"),
    "NOT": ("NOT ", "a", ""),
    "NOT with brackets": ("NOT (", "a = 1", ")"),
    "!": ("!", "a", ""),
    "minus": ("- ", "a = 1", ""),
    "minus with brackets": ("-(", "a", ")"),
    "plus": ("+ ", "a = 1", ""),
    "CAST": ("CAST(", "1", " AS INT)"),
    "function": ("lower(", "a", ")"),
    "function of two": ("coalesce(1, ", "a", ")"),
    "array": ("array(", "1", ")"),
    "index in index": ("a[", "0", "]"),
    "index of index": ("", "a", "[0]"),
    "names": ("", "a", ".b"),
    "IS NULL": ("(", "a", " IS NOT NULL)"),
    "IS TRUE": ("(", "a", " IS NOT TRUE)"),
    "IS DISTINCT": ("(", "a", " IS DISTINCT FROM b)"),
    "comparison": ("(", "a = 1", " = b)"),
    "comparison with true": ("(", "a = 1", " <= true)"),
    "comparison to the right": ("(b = ", "a", ")"),
    "chain of comparisons": ("", "a", " = b"),
    "sum": ("", "a", " + 1"),
    "sum to the right": ("(1 + ", "a", ")"),
    "concat": ("", "a", " || 'x'"),
    "BETWEEN": ("(", "a = 1", " BETWEEN false AND true)"),
    "BETWEEN inside": ("(a BETWEEN ", "0", " AND 1)"),
    "IN": ("(", "a = 1", " IN (true, false))"),
    "IN inside": ("a IN (", "0", ")"),
    "LIKE": ("(a LIKE ", "b", ")"),
    "AND and OR": ("a = 1 AND (b = 1 OR ", "c = 1", ")"),
    "AND of OR of AND": ("(a = 1 OR b = 1) AND (c = 1 AND d = 1 OR ", "e = 1", ")"),
    "unknown": ("(", "a = 1", " AND b = 1) IS NULL"),
    "AND, OR, unknown": ("(a = 1 OR (", "b = 1", " AND c = 2) IS NOT TRUE)"),
}
DEPTHS = (1, 2, 10, 24, 32, 33, 40, 48, 49, 50, 51, 66, 67, 90, 98, 99, 100, 101, 150, 1_000)


def run_nest(watch: Watch, what: str, depth: int) -> None:
    before, middle, after = NESTS[what]
    watch.run(before * depth + middle + after * depth)
    watch.run(before * depth + middle + after * depth + " = 1")
    watch.run(before * depth + middle + after * depth + " IS NULL")
    watch.run(before * depth)
    watch.run(before * depth + middle)


@pytest.mark.parametrize("what", NESTS)
@pytest.mark.parametrize("most", LIMITS)
def test_deep_texts_are_accepted_or_refused(what: str, most: float) -> None:
    watch = Watch(most)
    for depth in DEPTHS:
        run_nest(watch, what, depth)
    assert watch.outcomes["accepted"] > 0
    assert watch.outcomes["refused"] > 0


@pytest.mark.parametrize("what", slow_but(("NOT", "chain of comparisons", "AND and OR"), NESTS))
@pytest.mark.parametrize("most", LIMITS)
def test_ten_thousand_levels_are_accepted_or_refused(what: str, most: float) -> None:
    watch = Watch(most)
    run_nest(watch, what, 10_000)
    assert watch.outcomes["refused"] > 0


# -- long texts --------------------------------------------------------------------------------


def joined(by: str, count: int, item: Callable[[int], str]) -> str:
    return by.join(item(number) for number in range(count))


def spiral(turns: int) -> str:
    """Boxes that merge one after the other into one: a rectangle that grows at two sides."""
    boxes = ["x >= 0 AND x < 1 AND y >= 0 AND y < 1"]
    for n in range(1, turns):
        boxes.append(f"x >= {n} AND x < {n + 1} AND y >= 0 AND y < {n}")
        boxes.append(f"x >= 0 AND x < {n + 1} AND y >= {n} AND y < {n + 1}")
    return " OR ".join(boxes)


LONG: dict[str, Callable[[], str]] = {
    "AND": lambda: joined(" AND ", 10_000, lambda n: f"a{n} = {n}"),
    "AND of one attribute": lambda: joined(" AND ", 15_000, lambda n: f"a != {n}"),
    "OR": lambda: joined(" OR ", 10_000, lambda n: f"a{n} = {n}"),
    "OR of one attribute": lambda: joined(" OR ", 20_000, lambda n: f"a = {n}"),
    "OR of ranges": lambda: joined(" OR ", 10_000, lambda n: f"a BETWEEN {3 * n} AND {3 * n + 1}"),
    "OR of NULL": lambda: joined(" OR ", 50_000, lambda _: "NULL"),
    "sum": lambda: joined(" + ", 10_000, lambda _: "a") + " = 1",
    "sum of constants": lambda: joined(" + ", 99, lambda _: "1") + " = a",
    "comparisons": lambda: joined(" = ", 10_000, lambda _: "a"),
    "IN of numbers": lambda: f"a IN ({joined(', ', 50_000, str)})",
    "IN of strings": lambda: f"a IN ({joined(', ', 30_000, lambda n: repr(str(n)))})",
    "IN of attributes": lambda: f"a IN ({joined(', ', 15_000, lambda n: f'b{n}')})",
    "IN with a long item": lambda: f"coalesce(a, '{'x' * 400_000}') IN (b, c, d, 'e', f, g, h)",
    "IN with a long item of attributes": lambda: (
        f"coalesce(a, '{'x' * 400_000}') IN ({joined(', ', 20_000, lambda n: f'b{n}')})"
    ),
    "LIKE ANY": lambda: f"a LIKE ANY ({joined(', ', 15_000, lambda n: repr(f'x{n}%'))})",
    "LIKE ANY of a long item": lambda: (
        f"coalesce(a, '{'x' * 400_000}') LIKE ANY ({joined(', ', 20_000, lambda n: repr(f'x{n}'))})"
    ),
    "arrays_overlap": lambda: f"arrays_overlap(a, array({joined(', ', 50_000, str)}))",
    "arrays_overlap of 500": lambda: f"arrays_overlap(a, array({joined(', ', 500, str)}))",
    "boxes of their own terms": lambda: joined(" OR ", 3_000, lambda n: f"a{n} = 1 AND b{n} = 1"),
    "boxes of their own terms, 250": lambda: (
        joined(" OR ", 250, lambda n: f"a{n} = 1 AND b{n} = 1")
    ),
    "nested boxes": lambda: joined(" OR ", 5_000, lambda n: f"a > {n} AND b < {n}"),
    "nested boxes, 500": lambda: joined(" OR ", 500, lambda n: f"a > {n} AND b < {n}"),
    "spiral": lambda: spiral(250),
    "boxes of many terms": lambda: joined(
        " OR ", 2, lambda m: f"({joined(' AND ', 5_000, lambda n: f'a{n} = {m}')})"
    ),
    "100 boxes of 100 terms": lambda: joined(
        " OR ", 100, lambda m: f"({joined(' AND ', 100, lambda n: f'a{n} = {int(m == n)}')})"
    ),
    "pairs": lambda: joined(" AND ", 5_000, lambda n: f"(a{n} = 1 OR b{n} = 1)"),
    "product of two": lambda: (
        f"({joined(' OR ', 5_000, lambda n: f'a{n} = 1')}) AND "
        f"({joined(' OR ', 5_000, lambda n: f'b{n} = 1')})"
    ),
    "factors that change little": lambda: (
        f"({joined(' OR ', 60, lambda n: f'(a > {n} AND b < {n})')}) AND "
        + joined(" AND ", 2_000, lambda n: f"(b < 1000{n} OR c{n} = 1 AND d = {n})")
    ),
    "LIKE of many %": lambda: f"a LIKE '{'%a' * 50_000}'",
    "LIKE of many % on a constant": lambda: f"'{'a' * 5_000}' LIKE '{'%a' * 1_000}b'",
    "ILIKE": lambda: f"a ILIKE '{'%A_' * 50_000}'",
    "LIKE of many _": lambda: f"a LIKE '{'_' * 500_000}'",
    "regular expression of brackets": lambda: f"a RLIKE '{'(' * 900}{')' * 900}'",
    "regular expression of repeats": lambda: f"a RLIKE '{'a{1000}' * 280}'",
    "regular expression of 3,000": lambda: f"a RLIKE '{'a' * 3_000}'",
    "subject": lambda: f"subject('{joined('.', 100_000, lambda _: 'a')}.>')",
    "subject of 100": lambda: f"subject('{joined('.', 99, lambda n: 'a*'[n % 2])}.>')",
    "isa": lambda: f"isa(t, '{'a.' * 100_000}a')",
    "unknown function": lambda: f"{'f' * 500_000}(a) = 1",
    "many arguments": lambda: f"coalesce({joined(', ', 50_000, lambda _: 'a')}) = 1",
    "networks": lambda: joined(" OR ", 2_000, lambda n: f"cidr(a, '10.{n // 256}.{n % 256}.0/24')"),
    "circles": lambda: joined(" OR ", 2_000, lambda n: f"within_km(a, b, {n % 90}, {n % 180}, 9)"),
    "pinned": lambda: (
        f"a IN ({joined(', ', 60, lambda n: repr(f'x{n}'))}) AND "
        + joined(" AND ", 300, lambda n: f"substring(a, 1, {n}) != 'q{n}'")
    ),
    "name at the limit": lambda: f"{'a' * (MAX_LENGTH - 4)} = 1",
    "string at the limit": lambda: f"a = '{'x' * (MAX_LENGTH - 6)}'",
    "string of escapes at the limit": lambda: "a = '" + "\\\\" * ((MAX_LENGTH - 6) // 2) + "'",
    "comment at the limit": lambda: f"a = 1/*{'*' * (MAX_LENGTH - 9)}*/",
    "open comment": lambda: f"a = 1/*{'*' * (MAX_LENGTH - 7)}",
    "open string": lambda: "a = '" + "''" * 400_000,
    "open name": lambda: "`" + "``" * 400_000,
    "space at the limit": lambda: f"a = 1{' ' * (MAX_LENGTH - 5)}",
    "strings side by side": lambda: "a = " + "'x' " * 200_000,
    "digits": lambda: "a = " + "9" * 500_000,
    "400 digits": lambda: "a = " + "9" * 400,
    "exponent": lambda: "a = 1e" + "9" * 390,
    "past the limit": lambda: "a" * (MAX_LENGTH + 1),
}  # fmt: skip


# each of a second, and like another
LIKE_OTHERS = {
    "boxes of many terms",
    "100 boxes of 100 terms",
    "boxes of their own terms",
    "factors that change little",
    "IN of attributes",
    "LIKE ANY",
    "LIKE of many %",
    "nested boxes",
    "networks",
    "OR",
    "product of two",
}


@pytest.mark.parametrize("what", slow_but(LONG.keys() - LIKE_OTHERS, LONG))
@pytest.mark.parametrize("most", LIMITS)
def test_long_texts_are_accepted_or_refused(what: str, most: float) -> None:
    Watch(most).run(LONG[what]())


@pytest.mark.bench
def test_length_makes_no_more_than_its_share_of_work() -> None:
    """Twice the text takes about twice the time: nothing in between is quadratic."""

    def seconds(count: int, item: Callable[[int], str], by: str) -> float:
        text = joined(by, count, item)
        times = []
        for _ in range(3):
            start = time.process_time()
            assert len(parse(text).key) == 16
            times.append(time.process_time() - start)
        return min(times)

    shapes: list[tuple[Callable[[int], str], str]] = [
        (lambda n: f"a = {n}", " OR "),
        (lambda n: f"a != {n}", " AND "),
        (lambda n: f"a{n} = 1 AND b{n} = 1", " OR "),
        (lambda n: f"a{n} = 1", " AND "),
        (lambda n: f"(a{n} = 1 OR b{n} = 1)", " AND "),
        (lambda n: f"a > {n} AND b < {n}", " OR "),
    ]
    for item, by in shapes:
        short, long = seconds(1_000, item, by), seconds(4_000, item, by)
        assert long < 10 * short, (item(7), by, short, long)
