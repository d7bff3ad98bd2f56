"""Events in which anything may be absent or null, and filters that tell the two apart.

Each filter comes with an oracle that shares no code with the engine: the definition of event
patterns, the judge of CloudEvents SQL, and a few lines for SQL, to which the two are the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from tests.filters import cesql_judge, eventbridge_oracle

PAIR = pa.struct([("x", pa.string()), ("y", pa.int64())])
SCHEMA = pa.schema([
    ("a", pa.string()), ("n", pa.int64()), ("s", PAIR), ("l", pa.list_(pa.string())),
    ("o", pa.list_(PAIR)), ("m", pa.map_(pa.string(), pa.int64())),
    ("p", pa.map_(pa.string(), PAIR)),
])  # fmt: skip
LEAVES = (
    ("a",), ("n",), ("s", "x"), ("s", "y"), ("l",), ("o", "x"), ("o", "y"), ("m", "n"), ("m", "y"),
    ("p", "k", "x"), ("p", "k", "y"),
)  # fmt: skip
WORDS, NUMBERS = ("", "x", "xy", "null"), (0, 1, 5)
Event = dict[str, Any]
Wanted = Callable[[Event], bool]


def some(dice: random.Random, out: Event, name: str, make: Callable[[], Any]) -> None:
    """Absent, null or a value."""
    roll = dice.random()
    if roll > 0.3:
        out[name] = None if roll < 0.6 else make()


def draw_struct(dice: random.Random) -> Event:
    out: Event = {}
    some(dice, out, "x", lambda: dice.choice(WORDS))
    some(dice, out, "y", lambda: dice.choice(NUMBERS))
    return out


def draw_map(dice: random.Random) -> Event:
    out: Event = {}
    for name in ("n", "y", "z"):
        some(dice, out, name, lambda: dice.choice(NUMBERS))
    return out


def draw_maps(dice: random.Random) -> Event:
    out: Event = {}
    for name in ("k", "j"):
        some(dice, out, name, lambda: draw_struct(dice))
    return out


def draw_event(dice: random.Random) -> Event:
    out: Event = {}
    some(dice, out, "a", lambda: dice.choice(WORDS))
    some(dice, out, "n", lambda: dice.choice(NUMBERS))
    some(dice, out, "s", lambda: draw_struct(dice))
    few = range(dice.randrange(3))
    some(dice, out, "l", lambda: [dice.choice((*WORDS, None)) for _ in few])
    some(dice, out, "o", lambda: [dice.choice((None, draw_struct(dice))) for _ in few])
    some(dice, out, "m", lambda: draw_map(dice))
    some(dice, out, "p", lambda: draw_maps(dice))
    return out


def draw_alternatives(dice: random.Random, path: tuple[str, ...]) -> list[Any]:
    values: tuple[Any, ...] = NUMBERS if path[-1] in ("n", "y") else WORDS
    kinds: list[Any] = [
        None, {"exists": True}, {"exists": False}, {"anything-but": dice.choice(values)},
        {"anything-but": list(values[:2])}, dice.choice(values),
    ]  # fmt: skip
    if values is WORDS:
        kinds += [{"anything-but": {"prefix": "x"}}, {"prefix": "x"}, {"wildcard": "*y"}]
    return dice.sample(kinds, dice.choice((1, 1, 2)))


def draw_pattern(dice: random.Random) -> tuple[str, str, Wanted]:
    pattern: Event = {}
    for path in dice.sample(LEAVES, dice.choice((1, 1, 2, 3))):
        above = pattern
        for step in path[:-1]:
            above = above.setdefault(step, {})
        above[path[-1]] = draw_alternatives(dice, path)
    if len(pattern) > 1 and dice.random() < 0.3:
        pattern = {"$or": [{name: one} for name, one in pattern.items()]}
    return "eventbridge", json.dumps(pattern), lambda e: eventbridge_oracle.matches(pattern, e)


def draw_cesql(dice: random.Random) -> tuple[str, str, Wanted]:
    parts = [
        dice.choice((("exists", "a"), ("not", ("exists", "n")), ("=", ("attr", "a"), ("lit", "x")),
                     (">", ("attr", "n"), ("lit", 0))))
        for _ in range(2)
    ]  # fmt: skip
    tree = (dice.choice(("and", "or", "xor")), *parts)

    def wanted(event: Event) -> bool:
        try:
            return cesql_judge.worth(tree, event) is True
        except cesql_judge.Error:
            return False

    return "cesql", cesql_judge.text(tree, dice), wanted


SQL: list[tuple[str, Wanted]] = [
    ("a IS NULL", lambda e: e.get("a") is None),
    ("a <=> NULL", lambda e: e.get("a") is None),
    ("s.x IS NOT NULL", lambda e: (e.get("s") or {}).get("x") is not None),
    ("NOT (n > 0)", lambda e: e.get("n") is not None and e["n"] <= 0),
    ("coalesce(n, 5) = 5", lambda e: e.get("n") is None or e["n"] == 5),
    ("isabsent(a)", lambda e: "a" not in e),
    ("NOT isabsent(s.x)", lambda e: "x" in (e.get("s") or {})),
    ("a IS NULL AND NOT isabsent(a)", lambda e: "a" in e and e["a"] is None),
    ("isabsent(a) OR a = 'x'", lambda e: "a" not in e or e["a"] == "x"),
    ("isabsent(m.n)", lambda e: "n" not in (e.get("m") or {})),
    ("m.y IS NULL AND NOT isabsent(m.y)", lambda e: (e.get("m") or {}).get("y", 0) is None),
    ("isabsent(p.k.x) = (n > 0)",
     lambda e: e.get("n") is not None
     and ("x" not in ((e.get("p") or {}).get("k") or {})) == (e["n"] > 0)),
    ("isabsent(a) <=> isabsent(n)", lambda e: ("a" in e) == ("n" in e)),
    ("isabsent(a) = (n > 0)", lambda e: e.get("n") is not None and ("a" not in e) == (e["n"] > 0)),
    ("(length(a) = 1 OR isabsent(a)) AND (n = 1 OR isabsent(n))",
     lambda e: ("a" not in e or (e["a"] is not None and len(e["a"]) == 1))
     and ("n" not in e or e["n"] == 1)),
]  # fmt: skip


def draw_filters(dice: random.Random, count: int) -> list[tuple[str, str, Wanted]]:
    drawn = [draw_pattern(dice) if dice.random() < 0.8 else draw_cesql(dice) for _ in range(count)]
    return drawn + [("sql", text, wanted) for text, wanted in SQL]
