"""Compare filters for which hulls do not decide whether one covers the other: filters that have
several boxes or computed terms, and filters that are trees.

On attributes, the hull of a covering filter is at least as wide as the hull of the covered filter.
So filters that cover each other have the same hull, and their hulls do not say which of them comes
first. This module puts filters with the same hull in order, before the join. A filter that equals
its hull and tests only attributes is *certain*: it covers all other filters with the same hull.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import Form, covers_among
from tidings.matching.covering.by_boxes import Decider
from tidings.matching.covering.cover_join import HullPairs, hulls_alike
from tidings.matching.covering.cover_kernels import MAYBE, YES
from tidings.matching.covering.hulls import Boxes, Hulls

Array = npt.NDArray[Any]
ROOM = 1 << 20  # the most pairs with the same hull that are compared together
KEPT = 1 << 20  # the most answers that are kept for the join


class Resolver:
    """Decides whether a filter covers another filter with a hull inside its own: by boxes if
    possible (by_boxes.py), otherwise by comparing the filters."""

    def __init__(self, forms: Sequence[Form], boxes: Boxes) -> None:
        self._forms = forms
        self._decider = Decider(boxes)
        self._known: dict[int, bool] = {}

    def confirm(self, found: HullPairs, keep: bool = False) -> Array:
        """Which of the pairs are coverings. With `keep`, answers are stored, and only one thread
        may call this."""
        answers = self._decider.decide(found)
        kept: Array = answers == YES
        for at in np.nonzero(answers == MAYBE)[0].tolist():
            above, below = int(found.above[at]), int(found.below[at])
            pair = above * len(self._forms) + below
            answer = self._known.get(pair)
            if answer is None:
                answer = covers_among(self._forms[above], self._forms[below])
                if keep and len(self._known) < KEPT:
                    self._known[pair] = answer
            kept[at] = answer
        return kept


class HullOrder(msgspec.Struct, frozen=True):
    """For n forms: which of them are equal, and the order of those with the same hull."""

    first: Array  # int64 [n]: for each form, the first form that equals it
    hull: Array  # int64 [n]: the group of forms with the same hull; -1 for a form in no group
    rank: Array  # int64 [n]: in a group, no form covers one of lower rank; equal forms share a rank
    candidates: int


def order_by_hull(hulls: Hulls, boxes: Boxes, never: Array, resolver: Resolver) -> HullOrder:
    """Order the filters of each group with the same hull, unless all of them are certain.

    Sorting filters by size nearly always gives an order in which no filter covers an earlier one;
    no pair then needs to be stored. Otherwise, the range of filters in which pairs violate the
    order is searched for equal filters; this needs memory for all coverings in that range.
    """
    certain = (hulls.one_box != 0) & (hulls.computed == hulls.starts[1:])
    first, rank = np.arange(hulls.hull_count), np.zeros(hulls.hull_count, np.int64)
    hull = np.full(hulls.hull_count, -1, np.int64)
    seen = 0
    asked = ~certain & ~never
    sizes = _likely_order(boxes, certain) if asked.any() else ()
    for number, group in enumerate(_of_one_hull(hulls, asked, ~never)):
        members = group[np.lexsort([size[group] for size in sizes])]
        hull[members] = number
        rank[members] = np.arange(len(members))
        alike = _SameHull(hulls.take(members), members, np.nonzero(asked[members])[0], resolver)
        low, high = alike.find_disorder()
        seen += alike.seen
        if low > high:
            continue
        equals = _order_equals(alike.pairs(low, high), low, high, certain[members])
        for place, places in enumerate(equals):
            rank[members[places]] = low + place
            first[members[places]] = members[places].min()
    return HullOrder(first, hull, rank, seen)


def _likely_order(boxes: Boxes, certain: Array) -> tuple[Array, ...]:
    """Sort keys for `lexsort`, the most significant last, that put covering filters first in most
    cases: by whether a filter is certain, then by few tests per box, then by many codes."""
    tests, codes = boxes.rows.sizes(computed=True)
    count = len(certain)
    own = np.arange(count)
    several = np.diff(boxes.starts)
    first = np.where(several > 0, boxes.starts[:-1], own)
    last = np.where(several > 0, boxes.starts[1:], own + 1)
    total_tests, total_codes = (np.concatenate([[0], np.cumsum(one)]) for one in (tests, codes))
    return (
        total_codes[first] - total_codes[last],
        (total_tests[last] - total_tests[first]) / (last - first),
        ~certain,
    )


def _of_one_hull(hulls: Hulls, asked: Array, chosen: Array) -> Iterator[Array]:
    """Groups of chosen filters with the same hull on attributes. A group is left out if it has only
    one member, or no member in `asked`."""
    tests, codes = hulls.sizes()
    size = tests.astype(np.int64) << 40 | codes
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for number in np.nonzero(chosen & np.isin(size, size[asked]))[0].tolist():
        groups.setdefault(_attribute_tests(hulls, number), []).append(number)
    for group in groups.values():
        members = np.array(group)
        if len(members) > 1 and asked[members].any():
            yield members


def _attribute_tests(hulls: Hulls, number: int) -> tuple[bytes, ...]:
    first, last = hulls.starts[number], hulls.computed[number]
    begin, end = hulls.spans[first], hulls.spans[last]
    return (
        hulls.column[first:last].tobytes(),
        (hulls.spans[first:last] - begin).tobytes(),
        hulls.low[begin:end].tobytes(),
        hulls.high[begin:end].tobytes(),
    )


class _SameHull:
    """Filters with the same hull. This class finds the coverings among them, by position."""

    def __init__(self, hulls: Hulls, members: Array, asked: Array, resolver: Resolver) -> None:
        self.seen = 0
        self._hulls = hulls
        self._members = members
        self._asked = asked
        self._resolver = resolver

    def find_disorder(self) -> tuple[int, int]:
        """The lowest and the highest position in any pair that violates the order. If there is no
        such pair, the result is (the number of filters, -1)."""
        low, high = len(self._members), -1
        for above, below in self._each_block():
            against = above > below
            if against.any():
                low = min(low, int(below[against].min()))
                high = max(high, int(above[against].max()))
        return low, high

    def pairs(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """The coverings among the positions from `low` to `high`."""
        for above, below in self._each_block():
            between = (above >= low) & (above <= high) & (below >= low) & (below <= high)
            yield from zip(above[between].tolist(), below[between].tolist(), strict=True)

    def _each_block(self) -> Iterator[tuple[Array, Array]]:
        count = max(1, ROOM // len(self._members))
        for at in range(0, len(self._asked), count):
            outers = self._asked[at : at + count]
            self.seen += len(outers) * len(self._members)
            found = hulls_alike(self._hulls, outers)
            numbers = HullPairs(self._members[found.above], self._members[found.below], found.sure)
            kept = self._resolver.confirm(numbers, keep=True)
            yield found.above[kept], found.below[kept]


def _order_equals(
    pairs: Iterable[tuple[int, int]], low: int, high: int, certain: Array
) -> list[list[int]]:
    """The positions from `low` to `high`, as groups of equal filters; a covering group comes before
    the groups that it covers."""
    groups = list(_groups(pairs, certain))[::-1]
    groups.sort(key=lambda group: not certain[group].any())
    alone = set(range(low, high + 1)).difference(*groups)
    return [*groups, *([place] for place in sorted(alone))]


def _groups(pairs: Iterable[tuple[int, int]], certain: Array) -> Iterator[list[int]]:
    """Groups of equal forms among these pairs; all forms have the same hull, and a group comes
    after all groups that it covers. (Tarjan's strongly connected components, without recursion.)"""
    below: dict[int, list[int]] = {}
    above: dict[int, list[int]] = {}
    for one, other in pairs:
        below.setdefault(one, []).append(other)
        below.setdefault(other, [])
        above.setdefault(other, []).append(one)
    for one in [number for number in above if certain[number]]:
        below[one] += _reach(one, above)
    index: dict[int, int] = {}
    lowest: dict[int, int] = {}
    open_: dict[int, None] = {}
    for root, under in below.items():
        if root in index:
            continue
        work = [(root, iter(under))]
        index[root] = lowest[root] = len(index)
        open_[root] = None
        while work:
            node, rest = work[-1]
            for child in rest:
                if child not in index:
                    index[child] = lowest[child] = len(index)
                    open_[child] = None
                    work.append((child, iter(below[child])))
                    break
                if child in open_:
                    lowest[node] = min(lowest[node], index[child])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == index[node]:
                    group: list[int] = []
                    while not group or group[-1] != node:
                        group.append(open_.popitem()[0])
                    yield group


def _reach(one: int, above: dict[int, list[int]]) -> list[int]:
    """All forms above this one. If this form is certain, it covers all of those forms too, because
    they have the same hull."""
    seen = {one}
    stack = [one]
    while stack:
        for other in above.get(stack.pop(), ()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return sorted(seen - {one})
