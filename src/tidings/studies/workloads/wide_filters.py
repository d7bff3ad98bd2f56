"""Filters that would have very many boxes, filters to compare them with, and events for both."""

from __future__ import annotations

import random
from typing import Any

ATTRIBUTES, THRESHOLDS = 50, (20, 40, 60, 80)  # the values of attributes are uniform in 0 to 99
SYMBOLS, DAYS = 500, 365
Event = dict[str, Any]


def draw_clauses(rng: random.Random, least: int = 5, most: int = 15) -> str:
    """A filter of `least` to `most` clauses, each with two tests on different attributes."""
    count = rng.randint(least, most)
    tests = [f"a{at} < {rng.choice(THRESHOLDS)}" for at in rng.sample(range(ATTRIBUTES), 2 * count)]
    return " AND ".join(
        f"({one} OR {two})" for one, two in zip(tests[::2], tests[1::2], strict=True)
    )


def draw_stock(rng: random.Random, *, inside: bool = False) -> str:
    """A stock filter, which tests for a symbol, for a price inside or outside a range, and for a
    day."""
    symbol = min(int(rng.paretovariate(0.7)), SYMBOLS)
    low = 5 * rng.randint(1, 30)
    day = rng.randint(1, DAYS)
    price = f"(price < {low} OR price > {low + 20})"
    if inside:
        price = f"price >= {low} AND price <= {low + 20}"
    return f"symbol = 'S{symbol}' AND {price} AND day >= {day}"


def draw_stock_inside(rng: random.Random) -> str:
    """A stock filter with a price inside a range."""
    return draw_stock(rng, inside=True)


def draw_narrow(rng: random.Random) -> str:
    """An AND of three to five equalities and ranges."""
    some = rng.sample(range(ATTRIBUTES), rng.randint(3, 5))
    return " AND ".join(
        f"a{at} = {rng.randrange(100)}" if rng.random() < 0.5 else f"a{at} < {rng.randrange(100)}"
        for at in some
    )


def draw_event(rng: random.Random) -> Event:
    """An event that has the attributes of all workloads."""
    event: Event = {f"a{at}": rng.randrange(100) for at in range(ATTRIBUTES)}
    symbol = min(int(rng.paretovariate(0.7)), SYMBOLS)
    return {**event, "symbol": f"S{symbol}", "price": rng.randint(1, 200),
            "day": rng.randint(1, DAYS)}  # fmt: skip


def draw_stock_event(rng: random.Random) -> Event:
    """Draw an event: all symbols are equally frequent, and late days more frequent than early ones,
    so that nearly every stock filter matches some event."""
    day = max(rng.randint(1, DAYS) for _ in range(3))
    return {"symbol": f"S{rng.randint(1, SYMBOLS)}", "price": rng.randint(1, 200), "day": day}


def draw_weakened(rng: random.Random) -> list[str]:
    """A filter of 9 clauses, and two filters that cover it: in one, a resolvent replaces two of the
    clauses; in the other, the last clause is left out."""
    some = rng.sample(range(ATTRIBUTES), 16)
    pairs = [f"(a{a} = 1 OR a{b} = 1)" for a, b in zip(some[::2], some[1::2], strict=True)]
    return [
        " AND ".join([*pairs, f"(a{some[0]} = 2 OR z = 1)"]),
        " AND ".join([*pairs[1:], f"(a{some[1]} = 1 OR z = 1)"]),
        " AND ".join(pairs),
    ]


def draw_common_event(rng: random.Random) -> Event:
    """An event that matches many of the weakened filters."""
    values = rng.choices((1, 2, 0), (70, 15, 15), k=ATTRIBUTES)
    return {"z": rng.randrange(2), **{f"a{at}": value for at, value in enumerate(values)}}
