"""Compares related deliveries with a full scan by the same formula: part of `tidings bench
relations`.

Subscriptions name places, times and tags of the examples. All subscriptions have the same limit,
and several limits are measured in turn. Messages have cities or coordinates, a day and a tag.
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
LIMITS = (0.5, 0.6, RELATED, 0.8, 0.9)
ROUNDING = 1e-9  # a mean that is exactly 0.8 by the formula can be a bit less in floats
Event = dict[str, Any]
READING = Reading(place="city", coordinates=("lat", "lon", "altitude"), time="day", tag="topic")


class RelatedRun(msgspec.Struct, frozen=True):
    """Related deliveries at one limit, compared with a full scan by the same formula."""

    limit: float
    subscriptions: int
    messages: int
    deliveries: int
    exact: int
    recall: float
    precision: float
    find_micros: float
    scan_micros: float


def measure_related(rng: random.Random, count: int, messages: int = 100) -> list[RelatedRun]:
    """Measure the same subscriptions at each limit: subscriptions to cities, days and tags of the
    examples."""
    semantic = load_relations(language=None)
    weights = Weights()
    filters: list[Filter] = []
    hops: list[str] = []
    for _ in range(count):
        filters.append(parse(_draw_filter(rng, semantic)))
        hops.append(rng.choice("BCD"))
    events = [_draw_event(rng, semantic) for _ in range(messages)]
    reader = Repository(semantic, READING, weights=weights).reader
    start = time.process_time()
    weighed = {
        (at, number): _weigh(semantic, weights, filter_, event, terms)
        for at, event in enumerate(events)
        for terms in [reader.terms(event)]
        for number, filter_ in enumerate(filters)
    }
    scan_micros = (time.process_time() - start) / messages * 1e6
    runs = []
    for limit in LIMITS:
        repository = Repository(semantic, READING, weights=weights)
        for number, (filter_, hop) in enumerate(zip(filters, hops, strict=True)):
            repository.subscribe(number, filter_, hop, limit)
        found, exact, find_micros = _find_related(repository, events)
        want = {pair for pair, weight in weighed.items() if weight >= limit - ROUNDING}
        both = len(found & want)
        runs.append(RelatedRun(
            limit, count, messages, len(found), exact, both / max(1, len(want)),
            both / max(1, len(found)), find_micros, scan_micros,
        ))  # fmt: skip
    return runs


def _find_related(
    repository: Repository, events: Sequence[Event]
) -> tuple[set[tuple[int, Hashable]], int, float]:
    """The related pairs of an event and a subscription, the number of exact matches, and the
    microseconds per event."""
    exact = 0
    found: set[tuple[int, Hashable]] = set()
    start = time.process_time()
    for at, event in enumerate(events):
        terms = repository.reader.terms(event)
        same = repository.exact.search(event).ids()
        exact += len(same)
        found |= {(at, one.id) for one in repository.related.find(event, terms, same)}
    return found, exact, (time.process_time() - start) / len(events) * 1e6


def _weigh(
    semantic: SemanticStore, weights: Weights, filter_: Filter, event: Event,
    terms: Sequence[Term],
) -> float:  # fmt: skip
    """Compute the formula for one filter and one event, without an index; 0 if the event matches,
    or fails a test that has no context. Each filter here is a conjunction: equalities on contexts,
    and a test of the delay."""
    if filter_.matches(event):
        return 0.0
    best = []
    for box in filter_.form.boxes or ():
        for name, allowed in box.items():
            context: Any = {"city": "place", "day": "time", "topic": "tag"}.get(name)
            if context is None:
                if not parse(f"late > {allowed.cuts[0][1]}").matches(event):
                    return 0.0
                continue
            points = [semantic.term(context, place[1]) for place in allowed.points() or ()]
            weighed = (relate(semantic, weights, term, point)
                       for term in terms for point in points if point is not None)  # fmt: skip
            best.append(max(weighed, default=0.0))
    return sum(best) / len(best) if best else 0.0


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
