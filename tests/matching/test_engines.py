"""Each engine against the reference, on filters and events of other tests: sparse events, values of
types that filters don't expect, null and absent. The fixture `engine` runs more tests with both."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from tests.matching.null_events import draw_event, draw_filters
from tests.matching.test_misfits import FAMILIES, TESTS
from tests.matching.test_sparse_events import random_event, random_filter
from tests.repeats import rounds

from tidings import parse
from tidings.filters import Filter
from tidings.matching import Matcher


def matcher_of(filters: Sequence[Filter], engine: str) -> Matcher:
    matcher = Matcher(background=False)
    matcher.add_many(enumerate(filters))
    matcher.merge()
    assert matcher.engine == engine
    if engine == "bdd":
        assert matcher.stats()["diagrams"] >= len(filters) - len(matcher.never())
    return matcher


def compare(
    matcher: Matcher, filters: Sequence[Filter], events: Sequence[Mapping[str, Any]]
) -> int:
    """Compare matches with the reference; return their number."""
    told = 0
    for event in events:
        wanted = {at for at, one in enumerate(filters) if one.matches(event)}
        told += len(wanted)
        assert set(matcher.match(event)) == wanted, event
        assert set(matcher.match(json.dumps(event))) == wanted, event
        assert set(matcher.iter_matches(event)) == wanted, event
    return told


def test_sparse_events(seed: int, engine: str) -> None:
    rng = random.Random(seed)
    filters = [parse(random_filter(rng)) for _ in range(60)]
    matcher = matcher_of(filters, engine)
    assert compare(matcher, filters, [random_event(rng) for _ in rounds(40, 300)]) > 20
    for gone in range(0, 60, 2):
        matcher.remove(gone)
    matcher.merge()
    for event in [random_event(rng) for _ in range(20)]:
        wanted = {at for at in range(1, 60, 2) if filters[at].matches(event)}
        assert set(matcher.match(event)) == wanted


def test_values_of_other_types(seed: int, engine: str) -> None:
    rng = random.Random(seed)
    filters = [parse(" AND ".join(rng.sample(TESTS, rng.randint(1, 2)))) for _ in range(60)]
    matcher = matcher_of(filters, engine)
    values = [None, *(value for some in FAMILIES.values() for value in some)]
    told = 0
    for _ in rounds(60, 500):
        event = {name: rng.choice(values) for name in "ab"}
        wanted = {at for at, one in enumerate(filters) if one.matches(event)}
        assert set(matcher.match(event)) == wanted, event
        told += len(wanted)
    assert told > 20


def test_null_and_absent(seed: int, engine: str) -> None:
    rng = random.Random(seed)
    drawn = draw_filters(rng, 60)
    filters = [parse(text, dialect) for dialect, text, _ in drawn]
    matcher = matcher_of(filters, engine)
    events = [draw_event(rng) for _ in rounds(30, 200)]
    for event in events:
        wanted = {at for at, (_, _, is_wanted) in enumerate(drawn) if is_wanted(event)}
        assert set(matcher.match(event)) == wanted, event
    assert compare(matcher, filters, events) > 20
