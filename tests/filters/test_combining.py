"""`&`, `|` and `~` of filters: SQL's AND, OR and NOT, of any dialect; the texts parse back."""

from __future__ import annotations

import random

import pytest

from tidings import Attributes, Filter, FilterError, parse
from tidings.filters.language.evaluation import truth

PRICE, NAME = parse("price > 5"), parse("name = 'a' OR name IS NULL")
PATTERN = parse({"detail": {"state": ["a", {"prefix": "b"}]}}, "eventbridge")
CESQL = parse("source = 'x' AND n < 3", "cesql")


def test_combinations_mean_what_sql_means() -> None:
    assert parse("price > 5 AND (name = 'a' OR name IS NULL)") == (PRICE & NAME)
    assert parse("price > 5 OR name = 'a' OR name IS NULL") == (PRICE | NAME)
    assert parse("NOT (price > 5)") == ~PRICE
    assert ~~PRICE == PRICE
    assert not (~PRICE).matches({})  # unknown, and so is its negation
    assert (PRICE & PRICE) == PRICE == (PRICE | PRICE)
    assert (~(PRICE & NAME)).sql() == "NOT (price > 5 AND (name = 'a' OR name IS NULL))"


def test_random_combinations_across_dialects(seed: int) -> None:
    rng = random.Random(f"{seed} combine")
    events = [
        {"price": rng.choice([3, 7, None]), "name": rng.choice(["a", "b", None]), "n": 1,
         "source": rng.choice(["x", "y"]), "detail": {"state": rng.choice(["a", ["b", "c"], 5])}}
        for _ in range(30)
    ]  # fmt: skip
    for _ in range(100):
        made: list[Filter] = [PRICE, NAME, PATTERN, CESQL]
        for _ in range(rng.randint(1, 4)):
            one, other = rng.choice(made), rng.choice(made)
            made.append(rng.choice([one & other, one | other, ~one]))
        last = made[-1]
        again, canonical = parse(last.sql()), parse(last.canonical().sql())
        assert last == again == canonical
        for event in events:
            value = truth(last.expression, event)
            assert truth(again.expression, event) is value
            assert last.form.holds(event) is (value is True)
            assert (~last).form.holds(event) is (value is False)


def test_what_can_not_be_combined() -> None:
    typed = parse("price > 5", attributes=Attributes({"price": "double"}))
    same = parse("price < 9", attributes=Attributes({"price": "double"}))
    assert (typed & same).sql() == "price > 5 AND price < 9"
    with pytest.raises(FilterError, match="parsed with different attributes"):
        typed & PRICE
    with pytest.raises(TypeError, match="unsupported operand"):
        PRICE & "price > 5"
    with pytest.raises(TypeError, match=r"use &, \| and ~"):
        _ = PRICE and NAME
    deep = PRICE
    for number in range(45):
        deep = ~(deep & parse(f"z{number} = 1"))
        assert parse(deep.sql()).sql() == deep.sql()
    for _ in range(10):
        deep = deep & PRICE | NAME if len(deep.sql()) < 10_000 else deep
        if _fails(deep):
            return
    pytest.fail("no limit was met")


def _fails(one: Filter) -> bool:
    try:
        _ = ~(~(one & PRICE) | NAME)
    except FilterError as problem:
        return "nested more than 100 levels deep" in problem.reason
    return False


def test_a_long_chain_is_flat() -> None:
    many = PRICE
    for number in range(500):
        many |= parse(f"z = {number}")
    assert parse(many.sql()) == many


def test_covering_of_the_new_expressions_is_sound() -> None:
    """What covers is checked on events; what is not related by sets does not cover."""
    assert parse("any(tags) = 'a'").covers(parse("array_contains(tags, 'a') AND n > 1"))
    assert parse("CASE WHEN n > 5 THEN 'x' ELSE 'y' END = 'x'").covers(parse("n > 7"))
    assert parse("CAST(name AS int) > 5").covers(parse("CAST(name AS int) > 7"))
    assert parse("CAST(name AS int) > 5").covers(parse("name = '8'"))
    assert not parse("exists(l, x -> x > 5)").covers(parse("exists(l, x -> x > 7)"))
    assert not parse("CAST(name AS int) = 8").covers(parse("name = 'eight'"))
    assert not parse("CAST(day AS string) = '2024-01-02'").covers(parse("day = DATE '2024-01-02'"))
