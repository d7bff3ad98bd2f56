"""Compares related deliveries with a full scan by the same formula: part of `tidings bench
relations`.

Subscriptions name places, times and tags of the examples, each with related=0.7. Messages have
cities or coordinates, a day and a tag.
"""

from __future__ import annotations

import random
import time
from collections.abc import Hashable, Sequence
from typing import Any

import msgspec

from tidings.filters import Filter, parse
from tidings.relations import (
    Reading,
    Repository,
    SemanticStore,
    Term,
    Weights,
    load_relations,
)
from tidings.relations.clusters import relate

RELATED = 0.7
Event = dict[str, Any]
READING = Reading(place="city", coordinates=("lat", "lon", "altitude"), time="day", tag="topic")


class RelatedRun(msgspec.Struct, frozen=True):
    """Related deliveries at 0.7, compared with a full scan by the same formula."""

    subscriptions: int
    messages: int
    deliveries: int
    exact: int
    recall: float
    precision: float
    find_micros: float
    scan_micros: float


def measure_related(rng: random.Random, count: int, messages: int = 100) -> RelatedRun:
    """Subscriptions to cities, days and tags of the examples, each with related=0.7."""
    semantic = load_relations(language=None)
    weights = Weights()
    repository = Repository(semantic, READING, weights=weights)
    filters: dict[int, Filter] = {}
    for number in range(count):
        filters[number] = parse(_draw_filter(rng, semantic))
        repository.subscribe(number, filters[number], rng.choice("BCD"), RELATED)
    events = [_draw_event(rng, semantic) for _ in range(messages)]
    exact = 0
    start = time.process_time()
    found: set[tuple[int, Hashable]] = set()
    for at, event in enumerate(events):
        terms = repository.reader.terms(event)
        same = repository.exact.search(event).ids()
        exact += len(same)
        found |= {(at, one.id) for one in repository.related.find(event, terms, same)}
    middle = time.process_time()
    want: set[tuple[int, Hashable]] = set()
    for at, event in enumerate(events):
        terms = repository.reader.terms(event)
        want |= {(at, number) for number, filter_ in filters.items()
                 if _is_related(semantic, weights, filter_, event, terms)}  # fmt: skip
    end = time.process_time()
    both = len(found & want)
    return RelatedRun(
        count, messages, len(found), exact, both / max(1, len(want)), both / max(1, len(found)),
        (middle - start) / messages * 1e6, (end - middle) / messages * 1e6,
    )  # fmt: skip


def _is_related(
    semantic: SemanticStore, weights: Weights, filter_: Filter, event: Event,
    terms: Sequence[Term],
) -> bool:  # fmt: skip
    """Computes the formula for one filter and one event, without an index. The filters here are
    conjunctions of equalities on contexts, and of a test of the delay."""
    if filter_.matches(event):
        return False
    best = []
    for box in filter_.form.boxes or ():
        for name, allowed in box.items():
            context: Any = {"city": "place", "day": "time", "topic": "tag"}.get(name)
            if context is None:
                if not parse(f"late > {allowed.cuts[0][1]}").matches(event):
                    return False
                continue
            points = [semantic.term(context, place[1]) for place in allowed.points() or ()]
            weighed = (relate(semantic, weights, term, point)
                       for term in terms for point in points if point is not None)  # fmt: skip
            best.append(max(weighed, default=0.0))
    return bool(best) and sum(best) / len(best) >= RELATED


def _draw_filter(rng: random.Random, semantic: SemanticStore) -> str:
    cities, tags = list(semantic.places.tree), list(semantic.tags.tree)
    tests = [
        f"city = '{rng.choice(cities)}'",
        f"day = '{rng.choice(['Christmas', 'Winter 2013', '2013-12-25', 'December 2013'])}'",
        f"topic = '{rng.choice(tags)}'",
    ]
    chosen = rng.sample(tests, rng.randint(1, 3))
    if rng.random() < 0.3:
        chosen.append(f"late > {rng.choice([0, 30, 60])}")
    return " AND ".join(chosen)


def _draw_event(rng: random.Random, semantic: SemanticStore) -> Event:
    city = rng.choice(list(semantic.places.tree))
    event: Event = {"topic": rng.choice(list(semantic.tags.tree)), "late": rng.randint(-10, 120),
                    "day": f"2013-12-{rng.randint(10, 31)}"}  # fmt: skip
    place = semantic.places.find(city)
    if place is not None and place.located and rng.random() < 0.5:
        assert place.lat is not None
        assert place.lon is not None
        lat, lon = place.lat + rng.uniform(-0.3, 0.3), place.lon + rng.uniform(-0.3, 0.3)
        return {**event, "lat": lat, "lon": lon, "altitude": place.altitude}
    return {**event, "city": city}
