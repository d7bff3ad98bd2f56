"""Random terms of all contexts, close enough together to be related often."""

from __future__ import annotations

import datetime as dt
import random

from tidings.relations import Place, Recurring, SemanticStore, Term, TimeSpan
from tidings.relations.semantic import DAY, day_span

FIRST = dt.date(2013, 11, 20)


def draw_place(rng: random.Random, store: SemanticStore) -> Place:
    if rng.random() < 0.5:
        found = store.places.find(rng.choice(list(store.places.tree)))
        assert found is not None
        return found
    lat, lon = rng.choice([(41.9, -87.7), (89.7, 10.0), (-89.9, 0.0), (10.0, 179.8), (0.0, -180.0)])
    lat = min(90.0, max(-90.0, lat + rng.uniform(-1, 1)))
    lon = (lon + rng.uniform(-1.5, 1.5) + 540) % 360 - 180
    return Place("", round(lat, 2), round(lon, 2), rng.choice([0.0, 0.0, 4000.0, -400.0]))


def draw_time(rng: random.Random, store: SemanticStore) -> TimeSpan | Recurring:
    day = day_span(FIRST + dt.timedelta(rng.randrange(60)))
    kind = rng.randrange(6)
    if kind < 3:
        return day
    if kind == 3:
        at = day.start + rng.randrange(DAY)
        return TimeSpan(at, at)
    if kind == 4:
        start = day.start - rng.randrange(9) * DAY
        return TimeSpan(start, start + rng.randrange(1, 9) * DAY)
    names = ("Christmas", "Christmas 2013", "Winter 2013", "December 2013", "2013", "New Year",
             "New Year 2014", "Thanksgiving 2013", "November 2013")  # fmt: skip
    found = store.calendar.find(rng.choice(names))
    assert found is not None
    return found


def draw_term(rng: random.Random, store: SemanticStore) -> Term:
    context = rng.choice(("place", "time", "tag", "person"))
    if context == "place":
        return Term("place", draw_place(rng, store))
    if context == "time":
        return Term("time", draw_time(rng, store))
    if context == "tag":
        return Term("tag", rng.choice([*store.tags.tree, "other", "words"]))
    return Term("person", rng.choice(["Anna", "Ben", "Carla", "David", "Elif", "Farid", "zoe"]))


def draw_terms(rng: random.Random, store: SemanticStore, most: int = 3) -> list[Term]:
    return [draw_term(rng, store) for _ in range(rng.randint(1, most))]
