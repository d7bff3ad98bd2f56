"""CloudEvents SQL from its specification, for judging: it shares no code with what it judges.

Expressions are tuples, made at random and written as text in many ways; `worth` says what one is
worth on an event, or raises Error.

    ("lit", 5)  ("attr", "a")  ("exists", "a")  ("not", x)  ("neg", x)  ("and", x, y)  ("=", x, y)
    ("+", x, y)  ("like", x, pattern)  ("in", x, [y, ...])  ("call", "LOWER", [x])
"""

from __future__ import annotations

import datetime as dt
import json
import random
from typing import Any

Tree = tuple[Any, ...]
NAMES = ("a", "b", "c", "type", "1st")
STRINGS = (
    "", "a", "abc", "ABC", "com.example", "com.ex", "5", "+5", "05", "-3", "0", "1", "true", "TRUE",
    "false", "2147483648", "1.5", "a%b", "a_b", "a\\b", "it's", 'say "x"', "é", "İ", " a ", "[1]",
    "NaN", "2024-01-01T00:00:00Z", "\x1ca\x1c", "\u2003a",
)  # fmt: skip
NUMBERS = (0, 1, -1, 5, -3, 100, 2**31 - 1, -(2**31))
OTHERS: tuple[Any, ...] = (
    1.0, 5.0, -0.0, 1.5, 2**31, 2.0**31, -(2**40), 1e22, float("nan"), float("inf"), [], [1],
    {"k": 1}, dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2024, 1, 1, 12, 30, 0, 5, tzinfo=dt.UTC),
)  # fmt: skip
PATTERNS = (
    "", "%", "_", "a%", "%c", "com.%", "a%c", "%b%", "5%", "t%", "%e", "a\\%b", "a\\_b", "a\\b",
    "_b_", "2024%", "%Z", "com.example", "5", "true", "%%", "a_%", "[%", "%\\\\%", "+%", "it's%",
)  # fmt: skip
FUNCTIONS = {
    "LENGTH": "s", "LOWER": "s", "UPPER": "s", "TRIM": "s", "INT": "x", "BOOL": "x", "STRING": "x",
    "IS_INT": "x", "IS_BOOL": "x", "ABS": "i", "LEFT": "si", "RIGHT": "si", "SUBSTRING": "si",
    "CONCAT": "ss", "CONCAT_WS": "sss",
}  # fmt: skip


class Error(Exception):
    """An evaluation that has an error."""


# -- what an expression is worth ---------------------------------------------------------------


def worth(tree: Tree, event: dict[str, Any]) -> Any:
    what, *parts = tree
    if what == "lit":
        return parts[0]
    if what == "attr":
        return seen(event, parts[0])
    if what == "exists":
        return parts[0] in event
    if what in ("and", "or"):
        left = boolean(worth(parts[0], event))
        return left if left == (what == "or") else boolean(worth(parts[1], event))
    if what == "call":
        return call(parts[0], [worth(one, event) for one in parts[1]])
    if what == "in":
        value = worth(parts[0], event)
        others = [worth(one, event) for one in parts[1]]
        return any([alike(value, to(type(value), one)) for one in others])  # noqa: C419
    values = [worth(one, event) for one in parts if isinstance(one, tuple)]
    if what == "not":
        if type(values[0]) is int:
            raise Error
        return not boolean(values[0])
    if what == "neg":
        return whole(-integer(values[0]))
    if what == "xor":
        return boolean(values[0]) != boolean(values[1])
    if what == "like":
        return fits(string(values[0]), pieces(parts[1]))
    if what in ("=", "!="):
        return alike(to(type(values[1]), values[0]), values[1]) == (what == "=")
    return computed(what, integer(values[0]), integer(values[1]))


def computed(what: str, x: int, y: int) -> Any:
    if what in ("/", "%"):
        if y == 0:
            raise Error
        rest = abs(x) % abs(y) * (-1 if x < 0 else 1)
        return rest if what == "%" else whole((x - rest) // y)
    if what in ("+", "-", "*"):
        return whole(x + y if what == "+" else x - y if what == "-" else x * y)
    return {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[what]


def seen(event: dict[str, Any], name: str) -> Any:
    """An attribute as a Boolean, an Integer or a String."""
    value = event.get(name)
    if value is None:
        raise Error
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        if value != value or value in (float("inf"), float("-inf")):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(float(value))]
        if value % 1:
            return str(value)
        return int(value) if abs(value + 0.5) < 2**31 else format(int(value), "d")
    if isinstance(value, dt.date):
        if not isinstance(value, dt.datetime):
            return f"{value:%Y-%m-%d}T00:00:00Z"
        return f"{value:%Y-%m-%dT%H:%M:%S}{f'.{value:%f}' if value.microsecond else ''}Z"
    return json.dumps(value, separators=(",", ":"))


def alike(x: Any, y: Any) -> bool:
    return type(x) is type(y) and x == y


def to(kind: type, value: Any) -> Any:
    return {bool: boolean, int: integer, str: string}[kind](value)


def string(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def integer(value: Any) -> int:
    if isinstance(value, str):
        digits = value[1:] if value[:1] in ("+", "-") else value
        if not digits or not set(digits) <= set("0123456789"):
            raise Error
        return whole(-int(digits) if value[0] == "-" else int(digits))
    return int(value)


def boolean(value: Any) -> bool:
    if isinstance(value, str):
        if value.lower() not in ("true", "false"):
            raise Error
        return value.lower() == "true"
    return bool(value)


def whole(value: int) -> int:
    if not -2147483648 <= value <= 2147483647:
        raise Error
    return value


def pieces(pattern: str) -> list[tuple[str, bool]]:
    """(character, whether it is a wildcard) of a pattern."""
    out = []
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\" and pattern[at + 1 : at + 2] in ("%", "_"):
            out.append((pattern[at + 1], False))
            at += 2
        else:
            out.append((pattern[at], pattern[at] in "%_"))
            at += 1
    return out


def fits(text: str, pattern: list[tuple[str, bool]]) -> bool:
    reached = {0}  # how much of the text the pattern so far can be
    for char, wild in pattern:
        if wild and char == "%":
            reached = set(range(min(reached), len(text) + 1)) if reached else set()
        else:
            reached = {n + 1 for n in reached if n < len(text) and (wild or text[n] == char)}
    return len(text) in reached


def call(name: str, args: list[Any]) -> Any:
    if name in ("INT", "BOOL", "STRING"):
        return {"INT": integer, "BOOL": boolean, "STRING": string}[name](args[0])
    if name in ("IS_INT", "IS_BOOL"):
        try:
            (integer if name == "IS_INT" else boolean)(args[0])
        except Error:
            return False
        return True
    if name == "ABS":
        return whole(abs(integer(args[0])))
    text = string(args[0])
    if name in ("CONCAT", "CONCAT_WS"):
        texts = [string(one) for one in args]
        return "".join(texts) if name == "CONCAT" else texts[0].join(texts[1:])
    if name == "TRIM":
        kept = [
            at for at, char in enumerate(text) if not char.isspace() or char in "\x1c\x1d\x1e\x1f"
        ]
        return text[kept[0] : kept[-1] + 1] if kept else ""
    if len(args) == 1:
        return {"LENGTH": len, "LOWER": str.lower, "UPPER": str.upper}[name](text)
    numbers = [integer(one) for one in args[1:]]
    if name == "SUBSTRING":
        if abs(numbers[0]) > len(text) or numbers[1:] < [0] * len(numbers[1:]):
            raise Error
        if numbers[0] == 0:
            return ""
        rest = text[numbers[0] - 1 :] if numbers[0] > 0 else text[numbers[0] :]
        return rest[: numbers[1]] if numbers[1:] else rest
    if numbers[0] < 0:
        raise Error
    return text[: numbers[0]] if name == "LEFT" else text[::-1][: numbers[0]][::-1]


# -- random ones -------------------------------------------------------------------------------


def condition(rng: random.Random, depth: int = 3) -> Tree:
    """An expression that is a Boolean."""
    roll = rng.random()
    if depth and roll < 0.35:
        return (
            rng.choice(("and", "or", "or", "xor")),
            condition(rng, depth - 1),
            condition(rng, depth - 1),
        )
    if depth and roll < 0.45:
        return "not", condition(rng, depth - 1)
    if roll < 0.5:
        return "exists", rng.choice(NAMES)
    if roll < 0.7:
        pair = [("attr", rng.choice(NAMES)), ("lit", constant(rng))]
        if rng.random() < 0.2:
            pair.reverse()
        return rng.choice(("=", "=", "!=", "<", "<=", ">", ">=")), *pair
    if roll < 0.78:
        return "like", value(rng, 1), rng.choice(PATTERNS)
    if roll < 0.86:
        few = rng.random() < 0.8
        options = [
            ("lit", constant(rng)) if few else value(rng, 1) for _ in range(rng.randint(1, 3))
        ]
        return "in", value(rng, 1), options
    if roll < 0.9:
        return "call", rng.choice(("IS_INT", "IS_BOOL", "BOOL")), [value(rng, 1)]
    return rng.choice(("=", "!=", "<", "<=", ">", ">=")), value(rng, depth), value(rng, depth)


def value(rng: random.Random, depth: int) -> Tree:
    """An expression of any type."""
    roll = rng.random()
    if not depth or roll < 0.5:
        return "attr", rng.choice(NAMES)
    if roll < 0.65:
        return "lit", constant(rng)
    if roll < 0.75:
        return rng.choice("+-*/%"), value(rng, depth - 1), value(rng, depth - 1)
    if roll < 0.8:
        return "neg", value(rng, depth - 1)
    if roll < 0.85:
        return condition(rng, depth - 1)
    name = rng.choice(list(FUNCTIONS))
    return "call", name, [value(rng, depth - 1) for _ in FUNCTIONS[name]]


def constant(rng: random.Random) -> Any:
    return rng.choice((rng.choice(STRINGS), rng.choice(STRINGS), rng.choice(NUMBERS), True, False))


def event(rng: random.Random, kinds: dict[str, str] | None = None) -> dict[str, Any]:
    """An event; `kinds` are the types of attributes that have one."""
    out: dict[str, Any] = {}
    for name in NAMES:
        pool = {
            "string": STRINGS, "integer": (*NUMBERS, 2**31, -(2**40)), "boolean": (True, False)
        }.get((kinds or {}).get(name, ""))  # fmt: skip
        pool = pool or rng.choice((STRINGS, STRINGS, NUMBERS, (True, False), OTHERS))
        out[name] = rng.choice(pool)
        if rng.random() < 0.2:
            del out[name]
        elif rng.random() < 0.05:
            out[name] = None
    return out


# -- text --------------------------------------------------------------------------------------

LEVELS = {"or": 1, "and": 1, "xor": 1, "=": 2, "!=": 2, "<": 2, "<=": 2, ">": 2, ">=": 2, "+": 3,
          "-": 3, "*": 4, "/": 4, "%": 4, "like": 5, "in": 5, "not": 6, "neg": 6}  # fmt: skip


def text(tree: Tree, rng: random.Random) -> str:
    """One of the texts of an expression: brackets where they must be and sometimes elsewhere."""
    return _written(tree, rng, 1)


def _written(tree: Tree, rng: random.Random, least: int) -> str:
    out = _bare(tree, rng)
    postfix = tree[0] == "not" and not out.upper().startswith("NOT")  # x NOT IN ..., x NOT LIKE ...
    level = 5 if postfix else LEVELS.get(tree[0], 7)
    return f"({out})" if level < least or rng.random() < 0.1 else out


def _bare(tree: Tree, rng: random.Random) -> str:
    what, *parts = tree
    if what == "lit":
        return _literal(parts[0], rng)
    if what == "attr":
        return _cased(parts[0], rng)
    if what == "exists":
        return f"{_cased('EXISTS', rng)} {_cased(parts[0], rng)}"
    if what == "call":
        return f"{_cased(parts[0], rng)}({', '.join(_written(one, rng, 1) for one in parts[1])})"
    if what == "not" and parts[0][0] in ("like", "in") and rng.random() < 0.5:
        inner, item, right = parts[0]
        after = _literal(right, rng) if inner == "like" else _options(right, rng)
        return f"{_written(item, rng, 5)} {_cased('NOT', rng)} {_cased(inner, rng)} {after}"
    if what == "not":
        return f"{_cased('NOT', rng)} {_written(parts[0], rng, 6)}"
    if what == "neg":
        return f"-{_written(parts[0], rng, 6)}"
    if what == "like":
        return f"{_written(parts[0], rng, 5)} {_cased('LIKE', rng)} {_literal(parts[1], rng)}"
    if what == "in":
        return f"{_written(parts[0], rng, 5)} {_cased('IN', rng)} {_options(parts[1], rng)}"
    level = LEVELS[what]
    op = _cased(what, rng) if what.isalpha() else rng.choice(("!=", "<>")) if what == "!=" else what
    return f"{_written(parts[0], rng, level)} {op} {_written(parts[1], rng, level + 1)}"


def _options(options: list[Tree], rng: random.Random) -> str:
    return f"({', '.join(_written(one, rng, 1) for one in options)})"


def _cased(word: str, rng: random.Random) -> str:
    return rng.choice((word.upper(), word.lower(), word.title()))


def _literal(one: Any, rng: random.Random) -> str:
    if isinstance(one, bool):
        return _cased(str(one), rng)
    if isinstance(one, int):
        return f"+{one}" if one >= 0 and rng.random() < 0.1 else str(one)
    quote = '"' if "'" in one else "'" if '"' in one else rng.choice("'\"")
    return f"{quote}{one}{quote}"
