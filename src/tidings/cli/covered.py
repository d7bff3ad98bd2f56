"""Which of many filters is covered by another one, without comparing all pairs.

A filter lies in its hull, one box. What covers it has a hull around that box, so it tests no other
terms, and where it wants one of a few values, the filter wants some of them:

    shape     (terms tested for a few values, other terms tested)   ->  its buckets
    bucket    one value of each of the former                       ->  the filters, swept

        a filter: carrier = 'UA' AND delay > 60     shape ({carrier}, {delay}), bucket ('UA',)
        looks at: ({carrier}, {delay}) ('UA',)   ({carrier}, {}) ('UA',)   ({}, {delay}) ()   ...

A bucket is in the order of where its sets begin on one term, so only those are compared that begin
no later and reach as far. Quadratic only where the sets of a large bucket all overlap and few
cover.

Coverings that only a computed term shows (`lower(x) = 'a'` covers `x = 'A'`) are not looked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, product
from math import prod
from typing import Any

from tidings import Filter
from tidings.filters.boxes import Box

Shape = tuple[frozenset[str], frozenset[str]]  # terms tested for a few values, other terms tested
Place = tuple[Any, ...]  # somewhere on the line of values; places compare

FEW = 16  # values of one term
MOST_BUCKETS = 64  # that one filter may be in
_END: Place = (float("inf"),)


class Coverers:
    """Filters that are all different, by their hulls."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        self._filters = filters
        members: dict[Shape, dict[Place, list[int]]] = {}
        for number, one in enumerate(filters):
            points = _fewest(_points(one.form.hull))
            buckets = members.setdefault(_shape(one.form.hull, points), {})
            for values in product(*points.values()):
                buckets.setdefault(values, []).append(number)
        self._buckets = {
            shape: {
                values: _Bucket(shape, [(number, filters[number].form.hull) for number in numbers])
                for values, numbers in buckets.items()
            }
            for shape, buckets in members.items()
        }
        self._by_term = _by_rarest_term(members)
        self._around: dict[Shape, list[Shape]] = {}  # shape -> the shapes that can cover it

    def of(self, number: int) -> Iterator[int]:
        """The numbers of the filters that cover this one; in each bucket the widest first."""
        one = self._filters[number]
        points = _points(one.form.hull)
        for shape in self._shapes_around(_shape(one.form.hull, points)):
            values = tuple(points[term][0] for term in sorted(shape[0]))
            bucket = self._buckets[shape].get(values)
            for other in bucket.around(one.form.hull) if bucket else ():
                if other != number and self._filters[other].covers(one):
                    yield other

    def _shapes_around(self, inner: Shape) -> list[Shape]:
        if inner not in self._around:
            terms = inner[0] | inner[1]
            near = [s for term in (None, *sorted(terms)) for s in self._by_term.get(term, ())]
            self._around[inner] = [s for s in near if s[0] <= inner[0] and s[1] <= terms]
        return self._around[inner]


class _Bucket:
    """Filters of one shape that share a value of each of its terms, by where they begin."""

    def __init__(self, shape: Shape, members: list[tuple[int, Box]]) -> None:
        self._term = term = _sweep_term(shape, members)
        if term is not None:
            members.sort(key=lambda member: _reach(member[1], term), reverse=True)
            members.sort(key=lambda member: member[1][term].cuts[0])
            self._begins = [hull[term].cuts[0] for _, hull in members]
            self._reaches = [_reach(hull, term) for _, hull in members]
            self._furthest = list(accumulate(self._reaches, max))
        self._numbers = [number for number, _ in members]

    def around(self, hull: Box) -> Iterator[int]:
        """Those that may contain the hull."""
        if self._term is None:
            yield from self._numbers
            return
        reach = _reach(hull, self._term)
        first = bisect_left(self._furthest, reach)
        for at in range(first, bisect_right(self._begins, hull[self._term].cuts[0])):
            if self._reaches[at] >= reach:
                yield self._numbers[at]


def _shape(hull: Box, points: Iterable[str]) -> Shape:
    few = frozenset(points)
    return few, frozenset(hull) - few


def _points(hull: Box) -> dict[str, list[Place]]:
    """The terms that are tested for a few values, in order, with the values."""
    found = {term: hull[term].points(FEW) for term in sorted(hull)}
    return {term: points for term, points in found.items() if points}


def _fewest(points: dict[str, list[Place]]) -> dict[str, list[Place]]:
    """The first of those terms, as long as they make few buckets."""
    kept: dict[str, list[Place]] = {}
    for term, values in points.items():
        if prod(map(len, kept.values())) * len(values) <= MOST_BUCKETS:
            kept[term] = values
    return kept


def _reach(hull: Box, term: str) -> Place:
    """Where the set of a term ends."""
    cuts = hull[term].cuts
    return _END if len(cuts) % 2 else cuts[-1]


def _sweep_term(shape: Shape, members: list[tuple[int, Box]]) -> str | None:
    """The term on which the sets begin and end at the most different places."""
    return max(
        sorted(shape[1]),
        key=lambda term: len({(hull[term].cuts[0], _reach(hull, term)) for _, hull in members}),
        default=None,
    )


def _by_rarest_term(shapes: Iterable[Shape]) -> dict[str | None, list[Shape]]:
    """Each shape under the one of its terms that the fewest shapes have."""
    shapes = list(shapes)
    uses: dict[str, int] = {}
    for few, others in shapes:
        for term in few | others:
            uses[term] = uses.get(term, 0) + 1
    found: dict[str | None, list[Shape]] = {}
    for shape in shapes:
        rarest = min(sorted(shape[0] | shape[1]), key=uses.__getitem__, default=None)
        found.setdefault(rarest, []).append(shape)
    return found
