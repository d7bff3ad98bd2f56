"""Finds the stored values that are related to a term of a message, and how strongly.

    exact, ancestor, people   the values that the term looks for, by key
    descendant                stored values below the term: indexed under the values above them
    near                      members of clusters around the term

For each term, a stored value counts only once, with its best edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tidings.relations.clusters.cluster import Cluster, PlaceClusters, TimeClusters
from tidings.relations.semantic import (
    DAY,
    Context,
    Edge,
    Place,
    SemanticStore,
    Term,
    TimeSpan,
    Value,
    Weights,
)


class Elements:
    """The stored values of all contexts. `radius_km` and `radius_days` are the radii of
    clusters."""

    def __init__(
        self,
        semantic: SemanticStore,
        weights: Weights,
        radius_km: float = 50.0,
        radius_days: float = 2.0,
    ) -> None:
        self.semantic = semantic
        self.weights = weights
        self.places = PlaceClusters(radius_km, weights.height)
        self.times = TimeClusters(radius_days)
        # the terms under which each stored value is indexed
        self._above: dict[Term, tuple[Term, ...]] = {}
        self._below: dict[Term, set[Term]] = {}

    def __contains__(self, term: Term) -> bool:
        return term in self._above

    def __len__(self) -> int:
        return len(self._above)

    def __iter__(self) -> Iterator[Term]:
        return iter(self._above)

    def add(self, term: Term) -> None:
        if term in self._above:
            return
        self._file(term)
        if isinstance(term.value, TimeSpan):
            self.times.add(term.value)
        elif isinstance(term.value, Place) and term.value.located:
            self.places.add(term.value)

    def remove(self, term: Term) -> None:
        self._unfile(term)
        if isinstance(term.value, TimeSpan):
            self.times.remove(term.value)
        elif isinstance(term.value, Place) and term.value.located:
            self.places.remove(term.value)

    def refile(self, term: Term) -> None:
        """Index a stored value again, because its tree has grown."""
        if term in self._above:
            self._unfile(term)
            self._file(term)

    def above(self, term: Term) -> tuple[Term, ...]:
        """The terms under which a stored value can be found."""
        return self._above[term]

    def tidy(self) -> None:
        """Group places and times into few clusters."""
        self.places.tidy()
        self.times.tidy()

    @property
    def is_untidy(self) -> bool:
        """Whether tidying is worth its time, because many values were added or removed."""
        return self.places.is_untidy or self.times.is_untidy

    def tidy_slowly(self) -> Iterator[None]:
        """Like `tidy`, but only for untidy contexts, and in steps of less than a millisecond.
        Between two steps, values may be added and removed."""
        if self.places.is_untidy:
            yield from self.places.tidy_slowly()
        if self.times.is_untidy:
            yield from self.times.tidy_slowly()

    def clusters(self, context: Context) -> Iterator[tuple[Value, list[Value]]]:
        """The clusters of a context; each is given as its centre and its members. A value without a
        position, such as a tag, is a cluster of its own."""
        groups: dict[str, Iterable[Cluster[Any]]] = {"place": self.places, "time": self.times}
        for cluster in groups.get(context, ()):
            yield cluster.centre, list(cluster.members)
        for term in self._above:
            in_cluster = isinstance(term.value, TimeSpan) or (
                isinstance(term.value, Place) and term.value.located
            )
            if term.context == context and not in_cluster:
                yield term.value, [term.value]

    def find_related(
        self, term: Term, wanted: Mapping[Value, Edge] | None = None
    ) -> dict[Value, Edge]:
        """The stored values that are related to a term, each with its best edge. `wanted` has the
        values that the term looks for, if the caller knows them."""
        context = term.context
        wanted = self.semantic.expand(term, self.weights) if wanted is None else wanted
        found = {value: wanted[value] for value in wanted if (context, value) in self._above}
        down = Edge(self.weights.descendant, "descendant")
        for below in self._below.get(term, ()):
            _improve(found, below.value, down)
        value = term.value
        if isinstance(value, TimeSpan):
            near = self.weights.near_days * DAY
            for span, away in self.times.near(value, near):
                if not span.contains(value) and not value.contains(span):
                    _improve(found, span, Edge(1 - away / near, "near"))
        elif isinstance(value, Place) and value.located:
            for place, away in self.places.near(value, self.weights.near_km):
                _improve(found, place, Edge(1 - away / self.weights.near_km, "near"))
        return found

    def _file(self, term: Term) -> None:
        above = self.semantic.ancestors(term, self.weights.links)
        self._above[term] = tuple(Term(term.context, one) for one in above)
        for one in self._above[term]:
            self._below.setdefault(one, set()).add(term)

    def _unfile(self, term: Term) -> None:
        for one in self._above.pop(term):
            self._below[one].remove(term)
            if not self._below[one]:
                del self._below[one]


def _improve(found: dict[Value, Edge], value: Value, edge: Edge) -> None:
    old = found.get(value)
    if old is None or edge.beats(old):
        found[value] = edge
