"""Filters that are refused because another one does not cover them. The text that is offered
instead is always accepted, and matches nothing outside."""

from __future__ import annotations

import itertools
import random

from tidings.filters import parse, refuse_outside

WORLD = [{"a": a, "b": b} for a, b in itertools.product((*range(4), None), repeat=2)]


def draw(dice: random.Random, depth: int = 2) -> str:
    if depth == 0 or dice.random() < 0.3:
        return f"{dice.choice('ab')} {dice.choice(('=', '<', '>=', '!='))} {dice.randrange(4)}"
    parts = [f"({draw(dice, depth - 1)})" for _ in range(2)]
    return f" {dice.choice(('AND', 'OR'))} ".join(parts)


def test_nothing_outside_is_accepted(seed: int) -> None:
    """Tried on every event of a small world; and the text that is offered means both filters."""
    dice = random.Random(seed)
    accepted = 0
    for _ in range(200):
        one, limit = parse(draw(dice)), parse(draw(dice))
        refused = refuse_outside(one, [limit.sql()])
        if refused:
            both = parse(refused.partition("write: ")[2])
            assert not refuse_outside(both, [limit.sql()]), (one, limit)
            for event in WORLD:
                assert both.matches(event) == (one.matches(event) and limit.matches(event))
        else:
            accepted += 1
            assert all(limit.matches(event) for event in WORLD if one.matches(event))
    assert 5 < accepted < 195


def test_the_text_to_write_is_accepted() -> None:
    limits = ["region = 'EU'", "price > 3 OR vip"]
    refused = refuse_outside(parse("price > 5 OR city = 'B'"), limits[:1])
    text = refused.partition("write: ")[2]
    assert text == "(price > 5 OR city = 'B') AND (region = 'EU')"
    assert not refuse_outside(parse(text), limits[:1])
    assert "price > 3 OR vip" in refuse_outside(parse(text), limits)
    assert not refuse_outside(parse("price > 5 AND region = 'EU'"), limits)


def test_a_limit_that_can_not_be_read_admits_nothing() -> None:
    assert "limits your right to subscribe, is not valid" in refuse_outside(parse("a = 1"), ["a ="])
