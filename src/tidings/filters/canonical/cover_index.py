"""An index of the nodes that may cover a filter, be covered by it, or match a notification.

The hull of a filter is one box that contains the whole filter. If one hull contains another, then
on every attribute, the set of the first contains the set of the second. So it is enough to look up
one well-chosen attribute of either hull:

    access   (attribute, point)  the nodes whose hull allows only a few points there
             (term,)             the nodes whose hull restricts the term in another way
    free     see unions.py       the nodes whose hull is free
    tested   (attribute,)        the nodes whose hull tests it
             (attribute, point)  the nodes whose hull allows only points there, by the first point

Results are candidates: they include every correct node, and usually few others. A node costs one
entry for each access point, two entries for each attribute of its hull, and two for each value of
its witness (see unions.py). A lookup under (term,) takes time linear in the number of nodes there;
the room `matching` does this part in rank space instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from tidings.filters.canonical.form import Form, reads
from tidings.filters.canonical.unions import MOST_POINTS, UnionIndex, count_of, drop
from tidings.filters.language.evaluation import term_value
from tidings.filters.language.expression import Attribute, Expression, attributes_of
from tidings.filters.language.sql_writer import name_text
from tidings.filters.values.sets import ABSENT_KEY, NULL_KEY, OTHER, Key, ValueSet, key
from tidings.model import Event

Item = TypeVar("Item")
Place = tuple[str | Key, ...]


class AccessIndex(Generic[Item]):
    """Finds the items that may match a notification; each item is indexed by one test of its
    hull."""

    def __init__(self) -> None:
        self.places: dict[Place, dict[Item, None]] = {}
        self.terms: dict[str, Expression] = {}  # the terms under which items are indexed
        self._uses: dict[str, int] = {}
        self._by_name: dict[str, dict[str, None]] = {}  # top-level attribute -> its terms
        self._computed: dict[str, None] = {}  # terms that are not attributes
        # by term, the items that may match a notification without the term's attribute
        self._absent: dict[str, dict[Item, None]] = {}
        self._nullable: set[str] = set()  # terms of items that may match a null; never removed
        self._free: dict[Item, None] = {}  # items whose hull tests nothing

    def add(self, item: Item, form: Form) -> str | None:
        """Add an item under a term; return the term if it had no item before."""
        if form.never:
            return None
        term, places = _access_of(form)
        if term is None:
            self._free[item] = None
            return None
        for place in places:
            self.places.setdefault(place, {})[item] = None
        if ABSENT_KEY in form.hull[term]:
            self._absent.setdefault(term, {})[item] = None
        if NULL_KEY in form.hull[term]:
            self._nullable.add(term)
        self._uses[term] = self._uses.get(term, 0) + 1
        if self._uses[term] > 1:
            return None
        node = self.terms[term] = form.terms[term]
        if type(node) is Attribute:
            self._by_name.setdefault(node.path[0], {})[term] = None
        else:
            self._computed[term] = None
        return term

    def discard(self, item: Item, form: Form) -> str | None:
        """Remove an item; return its term if no other item is left under it."""
        if form.never:
            return None
        term, places = _access_of(form)
        if term is None:
            del self._free[item]
            return None
        for place in places:
            drop(self.places, place, item)
        if item in self._absent.get(term, ()):
            drop(self._absent, term, item)
        self._uses[term] -= 1
        if self._uses[term]:
            return None
        node = self.terms[term]
        if type(node) is Attribute:
            drop(self._by_name, node.path[0], term)
        else:
            del self._computed[term]
        del self._uses[term], self.terms[term]
        return term

    @property
    def is_loose(self) -> bool:
        """Whether there is an item that may match any notification, whatever the notification's
        values are."""
        return bool(self._free or self._computed)

    def allows_absent(self, term: str) -> bool:
        """Whether an item under a term may match a notification in which the term is absent or
        null."""
        return term in self._absent or term in self._nullable

    def may_take(self, term: str, place: Key) -> bool:
        """Whether an item under a term may match the value with this key, which is not null."""
        return (term,) in self.places or (term, place) in self.places

    def may_hold(self, event: Event, values: dict[str, Key]) -> Iterator[Item]:
        """Items that may match this notification; `values` caches the values of terms."""
        yield from self._free
        for term in self._computed:
            yield from self._at(term, event, values)
        for name in event if len(event) < len(self._by_name) else self._by_name:
            if name in event and name in self._by_name:
                for term in self._by_name[name]:
                    yield from self._at(term, event, values)
        for term, items in self._absent.items():
            node = self.terms[term]
            if type(node) is Attribute and node.path[0] not in event:
                yield from items

    def _at(self, term: str, event: Event, values: dict[str, Key]) -> Iterator[Item]:
        """The items under a term that may match an event, given that the event has the term's
        attribute."""
        place = values.get(term)
        if place is None:
            place = values[term] = key(term_value(self.terms[term], event))
        if place == ABSENT_KEY:
            yield from self._absent.get(term, ())
            return
        places = self.places
        if (term,) in places:
            yield from places[term,]
        if (term, place) in places:
            yield from places[term, place]


class HullIndex(Generic[Item]):
    """Like AccessIndex, but also finds the items that may cover a filter or be covered by it."""

    def __init__(self) -> None:
        self._access: AccessIndex[Item] = AccessIndex()
        self._computed: dict[str, dict[str, None]] = {}  # attribute -> access terms that read it
        self._tested: dict[Place, dict[Item, None]] = {}
        self._reading: dict[str, dict[Item, None]] = {}
        self._unions: UnionIndex[Item] = UnionIndex()
        self._all: dict[Item, None] = {}
        self._never: dict[Item, None] = {}  # items that match nothing: every filter covers them

    def add(self, item: Item, form: Form) -> None:
        self._all[item] = None
        if form.never:
            self._never[item] = None
            return
        term = self._access.add(item, form)
        if term is not None and not isinstance(form.terms[term], Attribute):
            for path in attributes_of(form.terms[term]):
                self._computed.setdefault(name_text(path), {})[term] = None
        self._unions.add(item, form)
        for place in _tested_places(form):
            self._tested.setdefault(place, {})[item] = None
        for path in reads(form):
            self._reading.setdefault(name_text(path), {})[item] = None

    def discard(self, item: Item, form: Form) -> None:
        del self._all[item]
        if form.never:
            del self._never[item]
            return
        term = self._access.discard(item, form)
        if term is not None:
            for path in attributes_of(form.terms[term]):
                if term in self._computed.get(name_text(path), {}):
                    drop(self._computed, name_text(path), term)
        self._unions.discard(item, form)
        for place in _tested_places(form):
            drop(self._tested, place, item)
        for path in reads(form):
            drop(self._reading, name_text(path), item)

    def may_cover(self, form: Form) -> Iterator[Item]:
        """The items whose forms may cover the given form."""
        if form.never:
            yield from self._all
            return
        yield from dict.fromkeys(self._unions.may_cover(form))
        places, terms = self._access.places, self._access.terms
        wanted = dict.fromkeys(form.terms)
        # if the form restricts these attributes to points, the values of terms that are computed
        # from the attributes are known
        for name in _tested_everywhere(form):
            wanted.update(self._computed.get(name, {}))
        # if a part of a tree can't match anything, forms that test other terms may cover the tree
        # too
        if form.boxes is None:
            wanted.update((t, None) for t, n in terms.items() if not isinstance(n, Attribute))
        for term in wanted:
            yield from places.get((term,), ())
            values = form.hull.get(term)
            points = _points(values) if values is not None else None
            if points:
                yield from places.get((term, points[0]), ())

    def may_be_covered(self, form: Form) -> Iterable[Item]:
        """The items whose forms the given form may cover."""
        if form.never:
            return list(self._never)
        best: list[dict[Item, None]] | None = None
        size = len(self._all)
        for term, values in form.hull.items():
            node = form.terms[term]
            if not isinstance(node, Attribute):
                continue
            points = _points(values, MOST_POINTS)
            places: list[Place] = [(term,)] if points is None else [(term, p) for p in points]
            found = [self._tested[place] for place in places if place in self._tested]
            count = sum(map(len, found))
            if best is None or count < size:
                best, size = found, count
        # the form tests only computed terms; `paths` is empty if none of these terms reads an
        # attribute
        if best is None and form.hull:
            paths = reads(form)
            if paths:
                best = [self._reading.get(name_text(path), {}) for path in paths]
        if form.boxes is not None and len(form.boxes) > 1:
            union = self._unions.may_be_covered(form)
            if union is not None and (best is None or count_of(union) < count_of(best)):
                best = union
        if best is None:
            return list(self._all)
        # an item may be in several groups, but is returned only once
        return list(dict.fromkeys([*self._never, *(item for group in best for item in group)]))

    def may_hold(self, event: Event, values: dict[str, Key]) -> Iterator[Item]:
        """See `AccessIndex.may_hold`."""
        return self._access.may_hold(event, values)


def _tested_everywhere(form: Form) -> list[str]:
    """The attributes that all boxes of a form test; for a tree, all attributes that it reads."""
    if form.boxes is None:
        return [name_text(path) for path in reads(form)]
    first, *others = form.boxes
    return [term for term in first if all(term in box for box in others)]


def _access_of(form: Form) -> tuple[str | None, list[Place]]:
    """The term and places under which a form is indexed: if possible, a few points of an attribute;
    otherwise an attribute; otherwise a computed term."""
    best: tuple[int, str, list[Place]] | None = None
    for term, values in form.hull.items():
        plain = isinstance(form.terms[term], Attribute)
        points = _points(values, MOST_POINTS) if plain else None
        rank = 2 if not plain else 0 if points is not None else 1
        places: list[Place] = [(term,)] if points is None else [(term, p) for p in points]
        if best is None or (rank, len(places)) < (best[0], len(best[2])):
            best = (rank, term, places)
            if rank == 0 and len(places) == 1:  # nothing is better
                break
    return (best[1], best[2]) if best is not None else (None, [])


def _tested_places(form: Form) -> Iterator[Place]:
    for term, values in form.hull.items():
        if isinstance(form.terms[term], Attribute):
            yield (term,)
            points = _points(values)
            if points is not None:
                yield (term, points[0])


def _points(values: ValueSet, most: int = 1 << 30) -> list[Key] | None:
    """The points of a set, if there are only a few. All nested values count as one point, so an
    event pattern that accepts either a value or a list with this value is still indexed by the
    value."""
    if values.cuts and values.cuts[-1] == (OTHER,) and len(values.cuts) & 1:
        found = ValueSet(values.cuts[:-1]).points(most)
        return None if found is None else [*found, (OTHER, 0, 0)]
    return values.points(most)
