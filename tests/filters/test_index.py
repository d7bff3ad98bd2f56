"""The index of hulls: its candidates hold all that is right."""

from __future__ import annotations

import random

import pytest
from tests.graph.test_content_graph import random_event, random_filter

from tidings import parse
from tidings.filters.index import HullIndex


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
    forms = [parse(t).form for t in ("x = 1", "lower(n) = 'a' AND x > 2", "true", "false")]
    for number, form in enumerate(forms):
        index.add(number, form)
    for number, form in enumerate(forms):
        index.discard(number, form)
    assert not any(vars(index)[name] for name in ("_access", "_terms", "_tested", "_reading"))
    assert not any(index._computed.values())
