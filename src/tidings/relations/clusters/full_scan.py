"""A store that compares a query with every record: the reference for tests. This store shares no
code with the clustering store, and computes the relation of two values from the two values
alone."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any

from tidings.relations.semantic import Place, Recurring, SemanticStore, Term, TimeSpan, Weights

_DAY = 24 * 3600 * 1_000_000


class FullScan:
    """A list of records, each with its terms, hop and ids."""

    def __init__(
        self, semantic: SemanticStore, weights: Weights, least: int, most: int, keep: float
    ) -> None:
        self._semantic = semantic
        self._weights = weights
        self._least, self._most, self._keep = least, most, keep
        self._made = 0
        self.records: list[dict[str, Any]] = []

    def learn(
        self, terms: Iterable[Term], hop: Hashable, ids: Iterable[Hashable], now: float
    ) -> None:
        wanted, ids = set(terms), set(ids)
        for record in self.records:
            if record["terms"] == wanted and record["hop"] == hop:
                record["ids"] |= ids
                record["uses"] += 1
                record["last"] = max(record["last"], now)
                return
        if not wanted or len(ids) < max(1, self._least):
            return
        if len(self.records) >= self._most:
            self.records.remove(
                min(self.records, key=lambda one: (one["uses"], one["last"], one["made"]))
            )
        self._made += 1
        self.records.append(
            {"terms": wanted, "hop": hop, "ids": ids, "uses": 1, "last": now, "made": self._made}
        )

    def use(self, terms: Iterable[Term], now: float) -> None:
        terms = set(terms)
        for record in self.records:
            if terms & record["terms"]:
                record["uses"] += 1
                record["last"] = max(record["last"], now)

    def cancel(self, id_: Hashable) -> None:
        for record in self.records:
            record["ids"].discard(id_)
        self.records = [record for record in self.records if record["ids"]]

    def age(self, now: float) -> None:
        self.records = [one for one in self.records if one["last"] >= now - self._keep]
        for record in self.records:
            record["uses"] = max(1, record["uses"] // 2)

    def find(self, terms: Iterable[Term]) -> dict[tuple[frozenset[Term], Hashable], float]:
        """For each record that is related to the terms, its merit."""
        terms = set(terms)
        found = {}
        for record in self.records:
            merits = [
                max((relate(self._semantic, self._weights, term, held) for held in record["terms"]),
                    default=0.0)
                for term in terms
            ]  # fmt: skip
            if sum(merits) > 0:
                found[frozenset(record["terms"]), record["hop"]] = sum(merits)
        return found


def relate(semantic: SemanticStore, weights: Weights, asked: Term, held: Term) -> float:
    """How strongly a term of a message is related to a stored term."""
    if asked.context != held.context:
        return 0.0
    if asked.value == held.value:
        return 1.0
    options = [0.0]
    if _climbs(semantic, asked, held, weights.links):
        options.append(weights.ancestor)
    if _climbs(semantic, held, asked, weights.links):
        options.append(weights.descendant)
    one, other = asked.value, held.value
    if asked.context == "person":
        kind = semantic.people.links_of(str(one)).get(str(other))
        options.append(weights.people.get(str(kind), 0.0))
    if isinstance(one, Place) and isinstance(other, Place) and one.located and other.located:
        options.append(1 - _kilometres(one, other, weights.height) / weights.near_km)
    if isinstance(one, TimeSpan) and isinstance(other, TimeSpan):
        options.append(_closeness(one, other, weights))
    if isinstance(one, TimeSpan) and isinstance(other, Recurring):
        year = 1970 + int(one.start / _DAY / 365.2425)
        for near in range(year - 2, year + 3):
            for span, name in semantic.calendar.named_in(near):
                if name == other.name:
                    options.append(_closeness(one, span, weights))
    return max(options)


def _closeness(one: TimeSpan, other: TimeSpan, weights: Weights) -> float:
    if one.start <= other.start and other.stop <= one.stop:
        return 0.0
    if other.start <= one.start and one.stop <= other.stop:
        return 0.0
    apart = abs(one.start + one.stop - other.start - other.stop) / 2
    return 1 - apart / (weights.near_days * _DAY)


def _climbs(semantic: SemanticStore, low: Term, high: Term, links: int) -> bool:
    """Whether `high` can be reached from `low` over at most `links` links upwards."""
    if links == 0:
        return False
    above: list[Any] = []
    if isinstance(low.value, Place):
        parents = semantic.places.tree.parents(low.value.name)
        above = [semantic.places.find(name) for name in parents]
    elif isinstance(low.value, (TimeSpan, Recurring)):
        above = list(semantic.calendar.parents(low.value))
    elif low.context == "tag":
        above = list(semantic.tags.tree.parents(low.value))
    return any(
        one == high.value or _climbs(semantic, Term(low.context, one), high, links - 1)
        for one in above
    )


def _kilometres(one: Place, other: Place, height: float) -> float:
    """The distance, computed from the angle between two vectors instead of by haversines."""
    first, second = _vector(one), _vector(other)
    cross = (
        first[1] * second[2] - first[2] * second[1],
        first[2] * second[0] - first[0] * second[2],
        first[0] * second[1] - first[1] * second[0],
    )
    dot = sum(a * b for a, b in zip(first, second, strict=True))
    flat = 6371.0088 * math.atan2(math.hypot(*cross), dot)
    rise = (one.altitude - other.altitude) / 1000 * height
    return math.sqrt(flat * flat + rise * rise)


def _vector(place: Place) -> tuple[float, float, float]:
    lat, lon = math.radians(place.lat or 0.0), math.radians(place.lon or 0.0)
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)
