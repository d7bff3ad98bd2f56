"""The values of the terms of a message: places, times, tags and people.

    context    value
    place      Place("Chicago", 41.878, -87.630, 181.0)
    time       TimeSpan(start, stop), or Recurring("Christmas"), which has a span in each year
    tag        a word of the thesaurus, or the stem of another word
    person     the name of a person

Two terms of one context are the same if their values are equal.
"""

from __future__ import annotations

import math
import unicodedata
from typing import Literal, NamedTuple

import msgspec

from tidings.filters.values import distance_km

Context = Literal["place", "time", "tag", "person"]
CONTEXTS: tuple[Context, ...] = ("place", "time", "tag", "person")


class Place(msgspec.Struct, frozen=True):
    """A place. Countries and other areas have no coordinates; a place without a name is identified
    by its coordinates."""

    name: str
    lat: float | None = None
    lon: float | None = None
    altitude: float = 0.0
    """Metres above the sea."""

    @property
    def located(self) -> bool:
        return self.lat is not None and self.lon is not None


class TimeSpan(msgspec.Struct, frozen=True):
    """A stretch of time: microseconds since 1970 in UTC, from `start` up to `stop`. For a moment,
    `start` equals `stop`."""

    start: int
    stop: int

    @property
    def middle(self) -> float:
        return (self.start + self.stop) / 2

    def contains(self, other: TimeSpan) -> bool:
        return self.start <= other.start and other.stop <= self.stop


class Recurring(msgspec.Struct, frozen=True):
    """A holiday or a season, in every year."""

    name: str


Value = Place | TimeSpan | Recurring | str


class Term(NamedTuple):
    """One value of a message, in its context."""

    context: Context
    value: Value


def name_key(name: str) -> str:
    """The key by which a name is looked up: case, spacing and the encoding of accents don't
    matter."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def place_distance(one: Place, other: Place, height: float) -> float:
    """Kilometres between two places with coordinates: the great-circle distance, combined with the
    difference in altitude. A kilometre of difference in altitude counts as `height` kilometres of
    distance."""
    flat = distance_km(*_coordinates(one), *_coordinates(other))
    return math.hypot(flat, (one.altitude - other.altitude) / 1000 * height)


def _coordinates(place: Place) -> tuple[float, float]:
    if place.lat is None or place.lon is None:
        raise ValueError(f"{place.name} has no coordinates")
    return place.lat, place.lon
