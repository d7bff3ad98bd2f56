"""Filters that are expensive to place, to keep or to match, each within 64 KiB."""

from __future__ import annotations

import random
from collections.abc import Callable

LARGEST = 64 << 10  # bytes: the limit `filter_bytes`
MEDIUM = 12_000


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def joined(piece: Callable[[int], str], between: str, size: int) -> str:
    """As many pieces as fit."""
    found: list[str] = []
    left = size
    while left > 0:
        found.append(piece(len(found)))
        left -= len(found[-1]) + len(between)
    return between.join(found[:-1])


def everything(number: int) -> str:
    """Matches whatever there is, and covers none of its kind."""
    return f"z{number} IS NULL"


def backtracking(number: int) -> str:
    patterns = ("(a+)+$", "(a|aa)+$", "(a|a?)+$", "(.*a){12}", "(x+x+)+y", "([a-z]+)*[0-9]$",
                "^(([a-z])+.)+[A-Z]([a-z])+$", "(a{1,30}){1,30}$", "(?:a*)*b")  # fmt: skip
    pattern = patterns[number % len(patterns)]
    return f"s RLIKE '{pattern}' AND k{number} IS NULL"


def cesql(number: int, size: int = MEDIUM) -> str:
    """Expressions of CloudEvents SQL that no set can say."""
    shapes = (
        lambda: joined(lambda n: f"a{n % 40} + {n} > b{n % 7}", " OR ", size),
        lambda: joined(lambda n: f"(a{n} LIKE '%x{n}%_')", " XOR ", size),
        lambda: joined(lambda n: f"NOT (a{n % 9} = b{n % 11})", " AND ", size),
        lambda: "a IN (" + joined(lambda n: f"b{n}", ", ", size) + ")",
        lambda: "CONCAT(" + joined(lambda n: f"UPPER(s{n % 5})", ", ", size) + ") = 'x'",
        lambda: "(" * 60 + f"a{number}" + " = b)" * 60 + joined(lambda n: f" OR c = {n}", "", size),
    )
    text = shapes[number % len(shapes)]()
    return f"cesql({quoted(text)}) AND y{number} IS NULL"


def event_pattern(number: int, size: int = LARGEST - 300) -> str:
    shapes = (
        lambda: '{"s": [' + joined(lambda n: f'{{"prefix": "p{n}"}}', ",", size) + "]}",
        lambda: '{"$or": [' + joined(lambda n: f'{{"f{n}": [{n}]}}', ",", 1200) + "]}",
        lambda: '{"s": [' + joined(lambda n: f'{{"wildcard": "*a*{n}*b*"}}', ",", size) + "]}",
        lambda: '{"s": [{"anything-but": [' + joined(lambda n: f'"v{n}"', ",", size) + "]}]}",
        lambda: "{" + joined(lambda n: f'"f{n}": [{{"exists": false}}]', ",", 2500) + "}",
    )
    text = shapes[number % len(shapes)]()
    return f"event_pattern({quoted(text)})"


def large(number: int, size: int = LARGEST - 200) -> str:
    """Of the default dialect: nested calls, lists, patterns, alternatives."""

    def nested() -> str:
        text = "s"
        for _ in range(12):
            text = f"concat({', '.join([text] * 2)})" if len(text) < size // 2 else text
        return f"length({text}) > {number}"

    def deep() -> str:
        text = "s"
        for _ in range(20):
            inner = text if len(text) < size // 3 else "s, s, s"
            text = f"concat({text}, {inner})"
        return f"{text} = 'x{number}'"

    shapes = (
        nested,
        deep,
        lambda: f"k{number} IN (" + joined(lambda n: f"'v{n}-{number}'", ", ", size) + ")",
        lambda: joined(lambda n: f"f{n % 50} = 'v{n}'", " OR ", size),
        lambda: joined(lambda n: f"(f{n} = 1 OR g{n} = {number})", " AND ", size),
        lambda: joined(lambda n: f"f{n} < g{n}", " AND ", size),
        lambda: f"s LIKE '{joined(lambda n: f'{n}%', '_', size)}'",
        lambda: joined(lambda n: f"s LIKE '%{n}%{number}%'", " OR ", size),
        lambda: joined(lambda n: f"NOT (s LIKE '%a{n}%')", " AND ", size),
        lambda: "(" * 90 + "s = 'a'" + f" OR k{number} = 1)" * 90,
        lambda: joined(lambda n: f"arrays_overlap(l{n}, array(1, 2, {n}))", " OR ", size),
    )  # fmt: skip
    return shapes[number % len(shapes)]()


def like(number: int) -> str:
    return f"s LIKE '%{number}a%_b%c{number}'"


def any_of(chance: random.Random, number: int) -> str:
    """Any of them, of any size up to the limit."""
    size = chance.choice((200, 2000, MEDIUM, LARGEST - 300))
    return chance.choice((
        lambda: cesql(number, size), lambda: event_pattern(number, size),
        lambda: large(number, size), lambda: backtracking(number), lambda: like(number),
    ))()  # fmt: skip
