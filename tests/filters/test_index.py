"""The index of hulls: its candidates include every correct node."""

from __future__ import annotations

import random

import pytest
from tests.graph.test_content_graph import random_event, random_filter

from tidings import parse
from tidings.filters.canonical.cover_index import HullIndex
from tidings.filters.canonical.covering import covers


def test_candidates_hold_every_answer(seed: int) -> None:
    rng = random.Random(seed)
    filters = [random_filter(rng) for _ in range(150)]
    index: HullIndex[int] = HullIndex()
    for number, one in enumerate(filters):
        index.add(number, one.form)
    gone = set(rng.sample(range(150), 50))
    for number in gone:
        index.discard(number, filters[number].form)
    live = [number for number in range(150) if number not in gone]
    for probe in (random_filter(rng) for _ in range(100)):
        above = set(index.may_cover(probe.form))
        below = set(index.may_be_covered(probe.form))
        assert above | below <= set(live)
        assert {n for n in live if filters[n].covers(probe)} <= above
        assert {n for n in live if probe.covers(filters[n])} <= below
    for event in (random_event(rng) for _ in range(200)):
        found = set(index.may_hold(event, {}))
        assert {n for n in live if filters[n].matches(event)} <= found


def test_points_keep_candidates_few() -> None:
    """A thousand filters on a thousand points: a probe meets one of them, not a thousand."""
    index: HullIndex[int] = HullIndex()
    for number in range(1000):
        index.add(number, parse(f"symbol = 's{number}' AND price > {number % 7}").form)
    probe = parse("symbol = 's5' AND price > 9").form
    assert list(index.may_cover(probe)) == [5]
    assert list(index.may_hold({"symbol": "s5", "price": 100}, {})) == [5]
    assert list(index.may_be_covered(parse("symbol = 's5'").form)) == [5]


def random_union(rng: random.Random) -> str:
    tests = (
        lambda a: f"{a} = {rng.randrange(4)}", lambda a: f"{a} > {rng.randrange(4)}",
        lambda a: f"{a} <= {rng.randrange(4)}", lambda a: f"{a} IS NULL",
        lambda a: f"{a} IS NOT NULL", lambda a: f"{a} IN ({rng.randrange(4)}, 9)",
        lambda a: f"abs({a}) = {rng.randrange(3)}", lambda a: f"NOT ({a} = {rng.randrange(4)})",
    )  # fmt: skip
    names = ("a", "b", "c", "s.x", "s")
    boxes = (
        " AND ".join(rng.choice(tests)(rng.choice(names)) for _ in range(rng.choice((1, 1, 2, 3))))
        for _ in range(rng.choice((1, 1, 2, 3)))
    )
    return " OR ".join(boxes)


def test_candidates_of_unions_hold_every_answer(seed: int) -> None:
    rng = random.Random(seed)
    forms = [parse(random_union(rng)).form for _ in range(300)]
    index: HullIndex[int] = HullIndex()
    for number, one in enumerate(forms):
        index.add(number, one)
    for number in range(100):
        index.discard(number, forms[number])
    live, answers = range(100, 300), 0
    for probe in (parse(random_union(rng)).form for _ in range(200)):
        above, below = set(index.may_cover(probe)), set(index.may_be_covered(probe))
        covering = {number for number in live if covers(forms[number], probe)}
        covered = {number for number in live if covers(probe, forms[number])}
        assert covering <= above <= set(live)
        assert covered <= below <= set(live)
        answers += len(covering) + len(covered)
    assert answers > 100


def test_unions_and_what_is_beside_them_are_no_candidates_of_each_other() -> None:
    index: HullIndex[str] = HullIndex()
    for number in range(1000):
        index.add(f"z{number}", parse(f"z{number} IS NULL").form)
        index.add(f"c{number}", parse(f"c = {number} OR pair = 'ours' AND n > {number}").form)
    probe = parse("c = 5 OR pair = 'ours' AND n > 7").form
    assert set(index.may_be_covered(probe)) == {"c5"}
    assert set(index.may_cover(probe)) == {"c5"}
    assert set(index.may_cover(parse("z7 IS NULL").form)) == {"z7"}
    assert set(index.may_cover(parse("pair = 'ours' AND n > 8").form)) > {"c5", "c7"}


PAIRS = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(8))  # as boxes too many


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        # a term that is computed from nothing
        ("'abc' RLIKE 'a'", "'abc' RLIKE 'a' AND x = 1"),
        ("'abc' RLIKE 'a' AND lower(n) = 'a'", "'abc' RLIKE 'a' AND n = 'A'"),
        # nothing is 'Al' and 'bo', so the inner one is empty, wherever the outer one looks
        ("lower(aa) = 'a' AND lower(n) = 'bo'", f"n = 'Al' AND lower(n) = 'bo' AND {PAIRS}"),
        # the same in each part of a tree, while its hull allows everything
        (
            "lower(aa) = 'a' AND lower(n) = 'bo' AND lower(m) = 'bo'",
            f"(n = 'Al' AND lower(n) = 'bo' OR m = 'Al' AND lower(m) = 'bo' OR a1 = 1) AND {PAIRS}"
            " AND (n = 'Al' AND lower(n) = 'bo' OR m = 'Al' AND lower(m) = 'bo')",
        ),
    ],
)
def test_what_is_covered_without_a_common_attribute(outer: str, inner: str) -> None:
    above, below = parse(outer), parse(inner)
    assert above.covers(below)
    index: HullIndex[str] = HullIndex()
    index.add("above", above.form)
    index.add("below", below.form)
    assert "above" in set(index.may_cover(below.form))
    assert "below" in set(index.may_be_covered(above.form))


def test_nothing_is_left_behind() -> None:
    index: HullIndex[int] = HullIndex()
    texts = (
        "x = 1",
        "lower(n) = 'a' AND x > 2",
        "true",
        "false",
        "x = 1 OR y = 2 OR y = 2 AND z = 1",
    )
    forms = [parse(text).form for text in texts]
    for number, form in enumerate(forms):
        index.add(number, form)
    for number, form in enumerate(forms):
        index.discard(number, form)
    assert not any(vars(index)[name] for name in ("_computed", "_tested", "_reading"))
    assert not any(vars(index._access).values())
    assert not any(index._computed.values())
    assert not any(vars(index._unions).values())
