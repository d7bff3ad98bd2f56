"""The clusters of one context. A cluster contains values within a radius of its centre.

    value ──> centres within the radius (ordered index) ──> join the nearest, or start a cluster
    query ──> centres within radius + near              ──> their members that are near

Each value is in exactly one cluster. After many changes, `tidy` groups all values again, into few
clusters. A running node does this in short steps: queries use the old clusters until the new ones
are complete. The way in which values are grouped has no influence on which values a query finds.
"""

from __future__ import annotations

import copy
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar

import msgspec

from tidings.relations.clusters.centres import Centres
from tidings.relations.clusters.curve import curve_place, ranges_around
from tidings.relations.clusters.grouping import STEP, choose_slowly, sweep_slowly
from tidings.relations.semantic import DAY, Place, TimeSpan, place_distance

Located = TypeVar("Located", Place, TimeSpan)
MOST_MEANWHILE = 10_000  # `tidy_slowly` gives up after more changes than this
FEW_CHANGES = 16
EARTH_KM = 6371.0088
WIDER = 1.001  # cubes are a little larger than the radius, because of rounding
SMALLEST = 0.001  # the size of the smallest cube, in kilometres
Cell = tuple[int, int, int]
TOUCHING = tuple(itertools.product((-1, 0, 1), repeat=3))
SHARE = 4  # clusters are untidy if there were more changes than a quarter of the values


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
        self.changes = 0
        """How many values were added or removed since the clusters were last tidied."""
        # the changes while the clusters are being tidied: each value, and whether it was added
        self._meanwhile: list[tuple[Located, bool]] | None = None

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
        self._note_change(value, came=True)
        return number

    def remove(self, value: Located) -> None:
        cluster = self._clusters[self._of.pop(value)]
        cluster.members.remove(value)
        if not cluster.members:
            self._drop(cluster)
        self._note_change(value, came=False)

    def _note_change(self, value: Located, *, came: bool) -> None:
        self.changes += 1
        if self._meanwhile is not None:
            self._meanwhile.append((value, came))
            if len(self._meanwhile) > MOST_MEANWHILE:
                self._meanwhile = None

    def near(self, value: Located, near: float) -> Iterator[tuple[Located, float]]:
        """The values at a distance of less than `near`, with their distances."""
        for number in self._around(value, self.radius + near):
            for member in self._clusters[number].members:
                away = self.distance(value, member)
                if away < near:
                    yield member, away

    @property
    def is_untidy(self) -> bool:
        """Whether tidying is worth its time, because many values were added or removed."""
        return self.changes > FEW_CHANGES + len(self._of) // SHARE

    def tidy(self) -> None:
        """Group all values again in one call."""
        for _ in self.tidy_slowly():
            pass

    def tidy_slowly(self) -> Iterator[None]:
        """Group all values again, in short steps. If too many values are added or removed
        meanwhile, the clusters stay as they are. If several of these iterators run, only the one
        that was started last has an effect."""
        fresh = copy.copy(self)
        fresh._index, fresh._clusters, fresh._of = Centres(), {}, {}
        meanwhile = self._meanwhile = []
        fresh._meanwhile = None
        for group in self._group(list(self._of)):
            if self._meanwhile is not meanwhile:
                return
            if group is not None:
                yield from fresh._take_group(*group)
            yield
        done = 0
        while self._meanwhile is meanwhile and done < len(meanwhile):
            value, came = meanwhile[done]
            (fresh.add if came else fresh.remove)(value)
            done += 1
            yield
        if self._meanwhile is not meanwhile:
            return
        old = self._clusters, self._of
        self._index, self._clusters, self._of = fresh._index, fresh._clusters, fresh._of
        self._meanwhile = None
        self.changes = 0
        for table in old:  # dropping a large table at once would take long
            while table:
                for _ in range(min(STEP, len(table))):
                    table.popitem()
                yield

    def _take_group(self, centre: Located, members: list[Located]) -> Iterator[None]:
        number = self._start_cluster(centre)
        cluster = self._clusters[number]
        for at in range(0, len(members), STEP):
            some = members[at : at + STEP]
            cluster.members.update(some)
            self._of.update(dict.fromkeys(some, number))
            yield

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
        """The clusters whose centres may be within a distance. The centres of some of them may be
        further away."""
        return self._index.within(self._ranges(value, distance))

    @abstractmethod
    def distance(self, one: Located, other: Located) -> float: ...

    @abstractmethod
    def _number(self, value: Located) -> float:
        """The number by which the index sorts a centre."""

    @abstractmethod
    def _ranges(self, value: Located, distance: float) -> Iterable[tuple[float, float]]: ...

    @abstractmethod
    def _group(self, values: list[Located]) -> Iterator[tuple[Located, list[Located]] | None]:
        """Group values into few clusters. Yields the centre of each cluster with its values, and
        None after each step that completes no cluster."""


class TimeClusters(Clusters[TimeSpan]):
    """Clusters of spans of time. The distance of two spans is that of their middles, in
    microseconds. `tidy` makes as few clusters as possible."""

    def __init__(self, radius_days: float) -> None:
        super().__init__(radius_days * DAY)

    def distance(self, one: TimeSpan, other: TimeSpan) -> float:
        return abs(one.middle - other.middle)

    def _number(self, value: TimeSpan) -> float:
        return value.middle

    def _ranges(self, value: TimeSpan, distance: float) -> Iterable[tuple[float, float]]:
        # the centres that `tidy` makes are rounded to microseconds
        return [(value.middle - distance - 1, value.middle + distance + 1)]

    def _group(self, values: list[TimeSpan]) -> Iterator[tuple[TimeSpan, list[TimeSpan]] | None]:
        for group in sweep_slowly(values, lambda one: one.middle, self.radius):
            if group is not None:
                middle = round(group[0])  # an artificial moment
                yield TimeSpan(middle, middle), group[1]
            else:
                yield None


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

    def _group(self, values: list[Place]) -> Iterator[tuple[Place, list[Place]] | None]:
        cells: dict[Cell, list[Place]] = {}
        for at, value in enumerate(values):
            cells.setdefault(self._cell(value), []).append(value)
            if at % STEP == STEP - 1:
                yield None

        def neighbours(value: Place) -> Iterator[list[Place]]:
            x, y, z = self._cell(value)
            for dx, dy, dz in TOUCHING:
                found = cells.get((x + dx, y + dy, z + dz))
                if found:
                    yield found

        def bound(value: Place) -> int:
            return sum(map(len, neighbours(value)))

        def around(value: Place) -> Iterator[Place | None]:
            for looked, one in enumerate(chain.from_iterable(neighbours(value)), 1):
                if self.distance(value, one) <= self.radius:
                    yield one
                if looked % STEP == 0:
                    yield None

        yield from choose_slowly(values, bound, around)

    def _cell(self, value: Place) -> Cell:
        """The cube that contains this place; the edges of cubes are as long as the radius. A place
        that is less than a radius away is in the same cube or in one that touches it, because the
        straight line between two places, through the globe, is not longer than the way along its
        surface."""
        assert value.lat is not None
        assert value.lon is not None
        lat, lon = math.radians(value.lat), math.radians(value.lon)
        size = EARTH_KM / max(self.radius * WIDER, SMALLEST)
        flat = math.cos(lat) * size
        return (
            math.floor(flat * math.cos(lon)),
            math.floor(flat * math.sin(lon)),
            math.floor(math.sin(lat) * size),
        )
