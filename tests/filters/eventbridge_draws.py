"""Patterns and events at random, over few names and values so that they meet."""

from __future__ import annotations

import random
from typing import Any

NAMES = ["a", "b", "c"]
STRINGS = ["", "x", "y", "xy", "yx", "X", "xyz", "1", "10.0.0.1", "10.1.2.3", "2001:db8::1", "true"]
NUMBERS = [0, 1, 1.0, 2, -1, 2.5, 300, 3e2, 10**10, 0.1]
SCALARS: list[Any] = [*STRINGS, *NUMBERS, True, False]


def draw_scalar(dice: random.Random, nulls: bool = True) -> Any:
    return dice.choice([*SCALARS, None] if nulls else SCALARS)


def draw_value(dice: random.Random, depth: int, nulls: bool = True) -> Any:
    sort = dice.random()
    if depth == 0 or sort < 0.5:
        return draw_scalar(dice, nulls)
    if sort < 0.8:
        return [draw_value(dice, depth - 1, nulls) for _ in range(dice.randint(0, 3))]
    return draw_event(dice, depth - 1, nulls)


def draw_event(dice: random.Random, depth: int = 3, nulls: bool = True) -> dict[str, Any]:
    names = [name for name in NAMES if dice.random() < 0.75]
    return {name: draw_value(dice, depth, nulls) for name in names}


def draw_alternative(dice: random.Random, nulls: bool = True) -> Any:
    text = dice.choice(STRINGS)
    low = dice.choice(NUMBERS)
    sort = dice.randrange(17)
    if sort < 5:
        return draw_scalar(dice, nulls)
    return [
        {"prefix": text},
        {"suffix": text},
        {"equals-ignore-case": text},
        {"prefix": {"equals-ignore-case": text}},
        {"suffix": {"equals-ignore-case": text}},
        {"wildcard": dice.choice(["*", "x*", "*x", "x*z", "*y*", "", "x", r"\*", "*x*y*"])},
        {"exists": True},
        {"exists": False},
        {"cidr": dice.choice(["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"])},
        {"numeric": dice.choice([[">", low], ["<=", low], ["=", low], [">=", low, "<", low + 5]])},
        {"anything-but": dice.choice([text, [text, "x"], low, [1, 2]])},
        {"anything-but": dice.choice([{"prefix": "x"}, {"suffix": ["x", "y"]}, {"wildcard": "*y*"},
                                      {"equals-ignore-case": "X"}])},
    ][sort - 5]  # fmt: skip


def draw_field(dice: random.Random, nulls: bool = True) -> list[Any]:
    return [draw_alternative(dice, nulls) for _ in range(dice.choice([1, 1, 1, 2, 3]))]


def draw_pattern(
    dice: random.Random, depth: int = 2, nulls: bool = True, choices: bool = True
) -> dict[str, Any]:
    """No path is in it twice: there event-ruler takes the last field and forgets the others."""
    names = dice.sample(NAMES, dice.choice([1, 1, 2, 2, 3]))
    out: dict[str, Any] = {}
    for name in names:
        if depth and dice.random() < 0.4:
            out[name] = draw_pattern(dice, depth - 1, nulls, choices)
        else:
            out[name] = draw_field(dice, nulls)
    if choices and len(names) > 1 and dice.random() < 0.25:
        moved = dice.sample(names, 2)
        out["$or"] = [{name: out.pop(name)} for name in moved]
    return out
