"""The semantic relation store: turns names into values, and finds the values related to a value.

    "Chicago"  ──term──> Place("Chicago", 41.878, -87.63, 181)  ──expand──> Illinois, United States
    "Dave"     ──term──> "David"                                ──expand──> Anna (classmate), Elif

The store has what is known before the first message: trees of places, times and tags, and a graph
of people. The store grows when it asks a dictionary about a name that it does not have.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, NamedTuple

from tidings.model import AttributesError
from tidings.relations.semantic.acquaintances import People
from tidings.relations.semantic.calendar import DAY, Calendar, day_of, day_span, moment_span
from tidings.relations.semantic.dictionary import Dictionary, Entry
from tidings.relations.semantic.gazetteer import Gazetteer, check_coordinates
from tidings.relations.semantic.term_values import (
    Context,
    Place,
    Recurring,
    Term,
    TimeSpan,
    Value,
    name_key,
)
from tidings.relations.semantic.thesaurus import Thesaurus
from tidings.relations.semantic.weights import Weights


class Edge(NamedTuple):
    """How strongly two values are related, and why: exact, near, ancestor, descendant, or the kind
    of a link between people."""

    weight: float
    reason: str

    def beats(self, other: Edge) -> bool:
        """Whether this edge is stronger than another. If the weights are equal, an exact edge is
        stronger than any other."""
        if self.weight == other.weight:
            return self.reason == "exact" != other.reason
        return self.weight > other.weight


EXACT = Edge(1.0, "exact")


class SemanticStore:
    """Places, times, tags and people."""

    def __init__(self, thesaurus: Thesaurus | None = None) -> None:
        self.places = Gazetteer()
        self.calendar = Calendar()
        self.tags = Thesaurus() if thesaurus is None else thesaurus
        self.people = People()
        self.digest = b""
        """Identifies the files from which the store was loaded; empty if there were none."""

    # -- names to values -----------------------------------------------------------------------

    def term(self, context: Context, given: Any) -> Term | None:
        """The term for a name, or for coordinates, a date or a time; None if the given value does
        not fit the context."""
        if context == "place":
            return _wrap(context, self._place(given))
        if context == "time":
            return _wrap(context, self._time(given))
        if not isinstance(given, str) or not name_key(given):
            return None
        if context == "tag":
            return Term(context, self.tags.tag(given))
        return Term(context, self.people.find(given) or name_key(given))

    def knows(self, term: Term) -> bool:
        """Whether the store knows a term, from a tree or from the graph of people. Times and
        coordinates are always known."""
        context, value = term
        if context == "place":
            return isinstance(value, Place) and (value.located or value.name in self.places.tree)
        if context == "tag":
            return str(value) in self.tags.tree
        return context == "time" or self.people.find(str(value)) is not None

    def _place(self, given: Any) -> Place | None:
        if isinstance(given, str):
            return self.places.find(given) or (Place(key) if (key := name_key(given)) else None)
        if isinstance(given, Place):
            return given
        if isinstance(given, (tuple, list)) and 2 <= len(given) <= 3:
            if any(isinstance(one, bool) or not isinstance(one, (int, float)) for one in given):
                return None
            try:
                place = Place("", *map(float, given))
                check_coordinates(place)
            except (AttributesError, OverflowError):  # JSON has integers of any size
                return None
            return place
        return None

    def _time(self, given: Any) -> TimeSpan | Recurring | None:
        if isinstance(given, str):
            return self.calendar.find(given)
        if isinstance(given, dt.datetime):
            return moment_span(given)
        if isinstance(given, dt.date):
            return day_span(given)
        return given if isinstance(given, (TimeSpan, Recurring)) else None

    # -- related values ------------------------------------------------------------------------

    def ancestors(self, term: Term, links: int) -> Mapping[Any, int]:
        """The values above a term, each with the number of links to it."""
        value = term.value
        if isinstance(value, Place):
            return self.places.ancestors(value, links)
        if isinstance(value, (TimeSpan, Recurring)):
            return self.calendar.ancestors(value, links)
        return self.tags.tree.ancestors(value, links) if term.context == "tag" else {}

    def expand(self, term: Term, weights: Weights) -> dict[Value, Edge]:
        """The values that a term of a message looks for: itself, the values above it, people one
        link away, and recurring holidays that are near."""
        found: dict[Value, Edge] = {}
        value = term.value
        if isinstance(value, TimeSpan):
            found.update(self._near_holidays(value, weights))
        if term.context == "person":
            for other, kind in self.people.links_of(str(value)).items():
                if kind in weights.people:
                    found[other] = Edge(weights.people[kind], kind)
        above = Edge(weights.ancestor, "ancestor")
        found.update(dict.fromkeys(self.ancestors(term, weights.links), above))
        found[value] = EXACT
        return found

    def _near_holidays(self, value: TimeSpan, weights: Weights) -> dict[Value, Edge]:
        found: dict[Value, Edge] = {}
        year = day_of(value.start).year
        near = weights.near_days * DAY
        for begun in (year - 1, year, year + 1):
            for span, name in self.calendar.named_in(begun):
                away = abs(span.middle - value.middle)
                if away < near and not span.contains(value) and not value.contains(span):
                    edge = Edge(1 - away / near, "near")
                    found[Recurring(name)] = max(edge, found.get(Recurring(name), edge))
        return found

    # -- growth --------------------------------------------------------------------------------

    def grow(self, context: Context, name: str, dictionary: Dictionary) -> Term | None:
        """Ask a dictionary about a name, and add the entry, with the broader names that the store
        lacks. Return the term; None if the dictionary does not know the name, or if its entry does
        not fit.
        """
        if context == "time":
            return self.term(context, name)
        entry = dictionary(context, name)
        if entry is None:
            return None
        try:
            added = self._add(context, entry, dictionary, {name_key(name), name_key(entry.name)})
        except AttributesError:
            return None
        return Term(context, added)

    def _add(
        self, context: Context, entry: Entry, dictionary: Dictionary, asked: set[str]
    ) -> Value:
        for above in entry.inside:
            if self._find_known(context, above) is None:
                found = None if name_key(above) in asked else dictionary(context, above)
                asked.add(name_key(above))
                wider = Entry(above) if found is None else found
                if self._find_known(context, wider.name) is None:
                    self._add(context, wider, dictionary, asked)
        known = self._find_known(context, entry.name)
        if known is None:
            also = [one for one in entry.also if self._find_known(context, one) is None]
            known = self._put(context, entry, also)
        for other, kind in entry.links:
            if self.people.find(other) is None:
                self.people.add(other)
            self.people.link(str(known), other, kind)
        return known

    def _find_known(self, context: Context, name: str) -> Value | None:
        if context == "place":
            return self.places.find(name)
        return self.tags.find(name) if context == "tag" else self.people.find(name)

    def _put(self, context: Context, entry: Entry, also: list[str]) -> Value:
        if context == "place":
            place = Place(entry.name, entry.lat, entry.lon, entry.altitude)
            return self.places.add(place, next(iter(entry.inside), None), also)
        if context == "tag":
            return self.tags.add(entry.name, entry.inside, also)
        return self.people.add(entry.name, also)


def _wrap(context: Context, value: Value | None) -> Term | None:
    return None if value is None else Term(context, value)
