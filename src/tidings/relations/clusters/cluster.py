"""Clusters of one context: values within a radius of a centre.

    value ──> centres within the radius (ordered index) ──> join the nearest, or found a cluster
    query ──> centres within radius + near              ──> their members that are near

Each value is in exactly one cluster. After many changes, `tidy` groups all values again, into few
clusters.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from tidings.relations.clusters.centres import Centres
from tidings.relations.clusters.curve import curve_place, ranges_around
from tidings.relations.clusters.grouping import choose_centres, sweep
from tidings.relations.semantic import DAY, Place, Span, place_distance

Located = TypeVar("Located", Place, Span)


class Cluster(msgspec.Struct, Generic[Located]):
    """A centre, which may be an artificial value, and the values around it."""

    number: int
    centre: Located
    members: set[Located]


class Clusters(ABC, Generic[Located]):
    """All clusters of one context, with one radius."""

    def __init__(self, radius: float) -> None:
        self.radius = radius
        self._index = Centres()
        self._clusters: dict[int, Cluster[Located]] = {}
        self._of: dict[Located, int] = {}
        self._numbers = itertools.count(1)

    def add(self, value: Located) -> int:
        """Put a value into a cluster, and return the number of the cluster."""
        if value in self._of:
            return self._of[value]
        around = ((self.distance(value, self._clusters[one].centre), one)
                  for one in self._around(value, self.radius))  # fmt: skip
        away, number = min(around, default=(self.radius + 1, 0))
        if away > self.radius:
            number = self._start_cluster(value)
        self._clusters[number].members.add(value)
        self._of[value] = number
        return number

    def remove(self, value: Located) -> None:
        cluster = self._clusters[self._of.pop(value)]
        cluster.members.remove(value)
        if not cluster.members:
            self._drop(cluster)

    def near(self, value: Located, near: float) -> Iterator[tuple[Located, float]]:
        """The values that are less than `near` away, with their distances."""
        for number in self._around(value, self.radius + near):
            for member in self._clusters[number].members:
                away = self.distance(value, member)
                if away < near:
                    yield member, away

    def tidy(self) -> None:
        """Group all values again."""
        values = list(self._of)
        groups = self._group(values)
        for cluster in list(self._clusters.values()):
            self._drop(cluster)
        self._of.clear()
        for centre, members in groups:
            number = self._start_cluster(centre)
            self._clusters[number].members = set(members)
            self._of.update(dict.fromkeys(members, number))

    def __iter__(self) -> Iterator[Cluster[Located]]:
        return iter(self._clusters.values())

    def __len__(self) -> int:
        return len(self._clusters)

    def _start_cluster(self, centre: Located) -> int:
        number = next(self._numbers)
        self._clusters[number] = Cluster(number, centre, set())
        self._index.add(self._number(centre), number)
        return number

    def _drop(self, cluster: Cluster[Located]) -> None:
        self._index.remove(self._number(cluster.centre), cluster.number)
        del self._clusters[cluster.number]

    def _around(self, value: Located, distance: float) -> Iterator[int]:
        """The clusters whose centres may be within a distance; some may be further away."""
        return self._index.within(self._ranges(value, distance))

    @abstractmethod
    def distance(self, one: Located, other: Located) -> float: ...

    @abstractmethod
    def _number(self, value: Located) -> float:
        """The number of a centre in the index."""

    @abstractmethod
    def _ranges(self, value: Located, distance: float) -> Iterable[tuple[float, float]]: ...

    @abstractmethod
    def _group(self, values: list[Located]) -> list[tuple[Located, list[Located]]]:
        """Group values into few clusters: each centre, with its values."""


class TimeClusters(Clusters[Span]):
    """Clusters of spans of time, by their middles, in microseconds. `tidy` makes as few clusters as
    possible."""

    def __init__(self, radius_days: float) -> None:
        super().__init__(radius_days * DAY)

    def distance(self, one: Span, other: Span) -> float:
        return abs(one.middle - other.middle)

    def _number(self, value: Span) -> float:
        return value.middle

    def _ranges(self, value: Span, distance: float) -> Iterable[tuple[float, float]]:
        # the centres that `tidy` makes are rounded to microseconds
        return [(value.middle - distance - 1, value.middle + distance + 1)]

    def _group(self, values: list[Span]) -> list[tuple[Span, list[Span]]]:
        ordered = sorted(values, key=lambda one: one.middle)
        groups: list[tuple[Span, list[Span]]] = []
        at = 0
        for centre in sweep((one.middle for one in ordered), self.radius):
            start = at
            while at < len(ordered) and ordered[at].middle <= centre + self.radius:
                at += 1
            middle = round(centre)  # an artificial moment
            groups.append((Span(middle, middle), ordered[start:at]))
        return groups


class PlaceClusters(Clusters[Place]):
    """Clusters of places, by great-circle distance and altitude, in kilometres."""

    def __init__(self, radius_km: float, height: float) -> None:
        super().__init__(radius_km)
        self.height = height

    def distance(self, one: Place, other: Place) -> float:
        return place_distance(one, other, self.height)

    def _number(self, value: Place) -> float:
        return curve_place(value)

    def _ranges(self, value: Place, distance: float) -> Iterable[tuple[float, float]]:
        return ranges_around(value, distance, self.height)

    def _group(self, values: list[Place]) -> list[tuple[Place, list[Place]]]:
        index = Centres()
        for at, value in enumerate(values):
            index.add(curve_place(value), at)

        def around(value: Place) -> Iterator[Place]:
            for at in index.within(ranges_around(value, self.radius, self.height)):
                if self.distance(value, values[at]) <= self.radius:
                    yield values[at]

        return choose_centres(values, around)
