"""An index for unions of boxes: it finds the filters that a given union may cover, and the unions
that may cover a given filter.

`c = 5 OR pair = 'ours' AND n > 7` has a free hull: there is no attribute that all its boxes test.
So each filter gets a *witness*, which is a point in one of its boxes: the first value of each
attribute that the box tests; all other attributes count as absent. If a filter covers another, one
of the boxes of the first filter contains the witness of the second.

    test       found at              A box is indexed under one of its tests that fail if the
    c = 5      (c,) and (c, 5)       attribute is absent, and a witness under each of its values. If
    n > 7      (n,) and (n, WIDE)    a test allows more than a few points, any value may match.

So a union can cover a filter only if one of the union's boxes contains the filter's witness. Both
searches rely on this. Two kinds of filters are always candidates. One kind is a union in which some
box has no test on an attribute that must be present, such as `a IS NULL OR b = 1`. The other kind
is a filter whose boxes all have a computed test, because such a box may be empty. Cost: two entries
for each attribute of a witness or box.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from tidings.filters.canonical.boxes import Box
from tidings.filters.canonical.form import Form
from tidings.filters.language.expression import Attribute
from tidings.filters.values.sets import ABSENT_KEY, Key

MOST_POINTS = 8
MANY = range(MOST_POINTS + 1)  # represents a set that has too many points to list
WIDE: Key = ()

Item = TypeVar("Item")
Tested = tuple[str, list[Key] | None]  # a term, and the points of its set if there are only a few
Place = tuple[str] | tuple[str, Key]
Places = dict[Place, dict[Item, None]]


class UnionIndex(Generic[Item]):
    """An index of hashable items by the items' witnesses; an item with a free hull is also indexed
    by its boxes."""

    def __init__(self) -> None:
        self.free: dict[Item, None] = {}  # items whose hulls have no test
        self._anywhere: dict[Item, None] = {}  # those items of `free` that are always candidates
        self._boxes: Places[Item] = {}
        self._witnesses: Places[Item] = {}
        self._hidden: dict[Item, None] = {}  # items that have no witness

    def add(self, item: Item, form: Form) -> None:
        witness = _witness_of(form)
        if witness is None:
            self._hidden[item] = None
        else:
            _put(self._witnesses, _places_of(witness), item)
        if not form.hull:
            self.free[item] = None
            tests = _access_tests(form)
            if tests is None:
                self._anywhere[item] = None
            else:
                _put(self._boxes, _places_of(tests), item)

    def discard(self, item: Item, form: Form) -> None:
        for place in _places_of(_witness_of(form) or ()):
            drop(self._witnesses, place, item)
        for place in _places_of(_access_tests(form) or () if not form.hull else ()):
            drop(self._boxes, place, item)
        for group in (self._hidden, self.free, self._anywhere):
            group.pop(item, None)

    def may_cover(self, form: Form) -> Iterator[Item]:
        """Items that have a free hull and whose form may cover this form; an item may occur
        twice."""
        witness = _witness_of(form)
        if witness is None:
            yield from self.free
            return
        yield from self._anywhere
        for test in witness:
            for group in _look_up(self._boxes, test):
                yield from group

    def may_be_covered(self, form: Form) -> list[dict[Item, None]] | None:
        """Groups of items whose form this form may cover; None if every item is a candidate."""
        found = [self._hidden]
        for box in form.boxes or ({},):
            groups = (_look_up(self._witnesses, test) for test in _tests(box, form))
            best = min(groups, key=count_of, default=None)
            if best is None:
                return None
            found += best
        return found


def _witness_of(form: Form) -> list[Tested] | None:
    """The witness of a form: the attributes of the smallest box that tests only attributes, with
    their values if these are known."""
    terms = form.terms
    plain = (
        box for box in form.boxes or () if all(isinstance(terms[term], Attribute) for term in box)
    )
    box = min(plain, key=len, default=None)
    if box is None:
        return None
    points = ((term, values.points(MOST_POINTS)) for term, values in box.items())
    return [(term, some and some[:1]) for term, some in points]


def _access_tests(form: Form) -> list[Tested] | None:
    """The test under which each box of a union is indexed; None if a box has no such test."""
    found = []
    for box in form.boxes or ({},):
        best = min(_tests(box, form), key=lambda test: len(test[1] or MANY), default=None)
        if best is None:
            return None
        found.append(best)
    return found


def _tests(box: Box, form: Form) -> Iterator[Tested]:
    """The attributes that can't be absent if a box matches, with the points of their sets if there
    are only a few."""
    for term, values in box.items():
        if ABSENT_KEY not in values and isinstance(form.terms[term], Attribute):
            yield term, values.points(MOST_POINTS)


def _places_of(tests: Iterable[Tested]) -> Iterator[Place]:
    for term, points in tests:
        yield (term,)
        for point in points or (WIDE,):
            yield (term, point)


def _look_up(places: Places[Item], test: Tested) -> list[dict[Item, None]]:
    """The groups of items indexed under this term whose values may overlap those of the test."""
    term, points = test
    there: list[Place] = [(term, one) for one in (*points, WIDE)] if points else [(term,)]
    return [places[one] for one in there if one in places]


def count_of(groups: list[dict[Item, None]]) -> int:
    return sum(map(len, groups))


def _put(places: Places[Item], there: Iterable[Place], item: Item) -> None:
    for place in there:
        places.setdefault(place, {})[item] = None


def drop(places: dict[Any, dict[Any, None]], place: object, item: object) -> None:
    """Remove an item from the group under a key, if it is there; also remove a group that becomes
    empty."""
    group = places.get(place)
    if group is not None:
        group.pop(item, None)
        if not group:
            del places[place]
