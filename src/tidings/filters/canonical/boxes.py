"""Boxes and unions of boxes: the algebra behind the canonical form and covering.

A box is a conjunction of tests, one set per term; a term without a test is free. This picture has
two terms:

    volume                           a union of two boxes that overlap:
      |     +-----+                  price in [1, 5]  AND volume in [2, 9]
      |  +--+--+  |                  price in [3, 9]  AND volume in [4, 12]
      +--------------- price

No set in a box is empty: a box with an empty set would match nothing, so it is dropped. A set in a
box is never "everything" either, because a test that everything passes is no test. Boxes are plain
dicts that are never changed after they are built.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from tidings.filters.canonical.set_tree import AllOf, AnyOf, Node, Test
from tidings.filters.values.sets import EVERYTHING, Cut, ValueSet, unite

Box = dict[str, ValueSet]
Union = list[Box]
Narrow = Callable[[str, ValueSet], ValueSet]

EFFORT = 16_384  # the most intersections for expanding one tree


def _keep_set(_term: str, values: ValueSet) -> ValueSet:
    return values


def meet(left: Box, right: Box) -> Box | None:
    """The intersection of two boxes; None if it is empty."""
    both = dict(left)
    for term, values in right.items():
        old = both.get(term)
        if old is not None:
            values = old & values
            if not values:
                return None
        both[term] = values
    return both


def contains(outer: Box, inner: Box) -> bool:
    """Whether each set of `outer` contains the set of `inner` on the same term."""
    for term, values in outer.items():
        have = inner.get(term)
        if have is None or not values >= have:
            return False
    return True


def expand(node: Node, most: int) -> Union | None:
    """Turn a tree into a union of boxes; None if there would be more than `most`, or if it takes
    more than EFFORT intersections.

    The result does not depend on the order of the operands: the smallest factors are multiplied
    first, and factors of equal size are multiplied in the order of their boxes.
    """
    return _expand(node, most, WorkBudget(EFFORT))


class WorkBudget:
    """A budget of work: a search that could take very long gives up when the budget is spent."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, work: int) -> bool:
        self.left -= work
        return self.left >= 0


def _expand(node: Node, most: int, effort: WorkBudget) -> Union | None:
    if isinstance(node, Test):
        return [{node.term: node.values}]
    if isinstance(node, AnyOf):
        union: Union = []
        for item in node.items:
            more = _expand(item, most, effort)
            if more is None or len(union) + len(more) > most:
                return None
            union.extend(more)
        return union
    return _expand_all(node, most, effort)


def _expand_all(node: AllOf, most: int, effort: WorkBudget) -> Union | None:
    union: Union = [{item.term: item.values for item in node.items if isinstance(item, Test)}]
    factors: list[Union] = []
    for item in node.items:
        if not isinstance(item, Test):
            factor = _expand(item, most, effort)
            if factor is None:
                return None
            factors.append(factor)
    if len(factors) > 1:
        if _multiply_beyond(most, union[0], factors):
            return None
        factors.sort(key=lambda factor: (len(factor), sorted(map(sort_key, factor))))
    for factor in factors:
        if not effort.spend(len(union) * len(factor)):
            return None
        met = (meet(left, right) for left in union for right in factor)
        union = absorb([box for box in met if box is not None])
        if len(union) > most:
            return None
    return union


def _multiply_beyond(most: int, box: Box, factors: list[Union]) -> bool:
    """Whether a product certainly has more than `most` boxes. This is certain only if the factors
    test different terms, because in that case no box of the product lies in another."""
    if math.prod(map(len, factors)) <= most:
        return False
    seen, size = set(box), 1
    for factor in factors:
        terms = {term for one in factor for term in one}
        if not seen.isdisjoint(terms):
            return False
        seen |= terms
        size *= len(absorb(factor))
    return size > most


def simplify(union: Iterable[Box], narrow: Narrow = _keep_set) -> Union:
    """Drop boxes that lie inside others, merge boxes that differ in only one term, and sort the
    rest.

    The result depends on the set of boxes, not on their order: each pass merges whole groups and
    processes terms in the order of their names. Passes repeat until no boxes merge; each pass looks
    only at groups with a box that the previous pass made. `narrow` brings a merged set into the
    canonical form for the type of the term.
    """
    pool = _BoxPool(absorb(list(union)), narrow)
    fresh = set(pool.boxes)
    while len(pool.boxes) > 1 and fresh:
        fresh = pool.merge_around(fresh)
        for number in fresh:
            pool.absorb_into(number)
        fresh &= pool.boxes.keys()
    return sorted(pool.boxes.values(), key=sort_key)


class _BoxPool:
    """An index that finds boxes by number, and by all tests of a box except one.

    Two boxes merge on a term if their tests on all other terms are equal. `_alike` finds such boxes
    by the term and the sum of the hashes of their tests on all other terms. The index has one entry
    for each test; a box is hashed only once, not once for each term.
    """

    def __init__(self, boxes: Union, narrow: Narrow) -> None:
        self.boxes: dict[int, Box] = {}
        self._narrow = narrow
        self._sums: dict[int, int] = {}
        self._alike: dict[tuple[str, int], dict[int, None]] = {}
        self._count = 0
        for box in boxes:
            self._add(box)

    def _add(self, box: Box) -> int:
        number = self._count
        self._count += 1
        self.boxes[number] = box
        self._sums[number] = sum(map(_hash_test, box.items()))
        for place in self._places(number):
            self._alike.setdefault(place, {})[number] = None
        return number

    def _drop(self, number: int) -> None:
        for place in self._places(number):
            del self._alike[place][number]
        del self.boxes[number], self._sums[number]

    def _places(self, number: int) -> Iterator[tuple[str, int]]:
        total = self._sums[number]
        for test in self.boxes[number].items():
            yield test[0], total - _hash_test(test)

    def merge_around(self, fresh: set[int]) -> set[int]:
        """Merge each of these boxes, term by term, with all boxes that it can be merged with;
        return the numbers of the resulting boxes."""
        made: set[int] = set()
        for term in sorted({term for number in fresh for term in self.boxes[number]}):
            places = {
                (term, self._sums[number] - _hash_test((term, self.boxes[number][term])))
                for number in fresh | made
                if number in self.boxes and term in self.boxes[number]
            }
            for place in places:
                for group in self._groups(term, list(self._alike[place])):
                    made.add(self._merge(term, group))
        return made & self.boxes.keys()

    def _groups(self, term: str, numbers: list[int]) -> list[list[int]]:
        """Group the boxes whose tests on all other terms are equal. The tests themselves are
        compared, because different tests may have equal hashes."""
        groups: list[tuple[Box, list[int]]] = []
        if len(numbers) < 2:
            return []
        for number in numbers:
            rest = {t: v for t, v in self.boxes[number].items() if t != term}
            for known, group in groups:
                if known == rest:
                    group.append(number)
                    break
            else:
                groups.append((rest, [number]))
        return [group for _, group in groups if len(group) > 1]

    def _merge(self, term: str, group: list[int]) -> int:
        box = dict(self.boxes[group[0]])
        values = self._narrow(term, unite([self.boxes[number][term] for number in group]))
        for number in group:
            self._drop(number)
        if values.is_everything:
            del box[term]
        else:
            box[term] = values
        return self._add(box)

    def absorb_into(self, number: int) -> None:
        """Drop the boxes that lie inside this new box. No other box can contain the new box,
        because such a box would already have absorbed the boxes that were merged into the new
        one."""
        outer = self.boxes.get(number)
        if outer is None:
            return
        inside = [
            other
            for other, box in self.boxes.items()
            if other != number and len(box) >= len(outer) and contains(outer, box)
        ]
        for other in inside:
            self._drop(other)


def _hash_test(test: tuple[str, ValueSet]) -> int:
    """A hash of a test; the hashes of several tests are added up. The hash is squared because
    Python's hash of a tuple is itself almost a sum, so sums of unsquared hashes would collide."""
    return hash(test) ** 2


def sort_key(box: Box) -> list[tuple[str, tuple[Cut, ...]]]:
    return sorted((term, values.cuts) for term, values in box.items())


def absorb(boxes: Union) -> Union:
    """Drop the boxes that lie inside another box; of several equal boxes, keep one.

    A box can lie only inside boxes that test a subset of its terms. So boxes are grouped by the
    terms that they test, and each group is found by the rarest of its terms. Two groups are
    compared by a sweep along one shared term, in the order in which the sets begin; boxes are
    compared only if they are wide enough on that term. The sweep takes quadratic time only if all
    spans are nested in each other.
    """
    if len(boxes) < 2:
        return boxes
    unique = list({tuple(sort_key(box)): box for box in boxes}.values())
    groups: dict[frozenset[str], Union] = {}
    for box in unique:
        groups.setdefault(frozenset(box), []).append(box)
    if frozenset() in groups:
        return [{}]
    uses = Counter(term for terms in groups for term in terms)
    by_rarest: dict[str, list[frozenset[str]]] = {}
    for terms in groups:
        by_rarest.setdefault(min(terms, key=lambda term: uses[term]), []).append(terms)
    inside: set[int] = set()
    for more_terms, inners in groups.items():
        for terms in (found for term in more_terms for found in by_rarest.get(term, ())):
            if terms <= more_terms:
                outers = groups[terms]
                _mark_inside(_sweep_term(outers), outers, inners, inside)
    return [box for box in unique if id(box) not in inside]


def _sweep_term(boxes: Union) -> str:
    """The term on which the sets have the largest number of different start points."""
    return max(sorted(boxes[0]), key=lambda term: len({box[term].cuts[0] for box in boxes}))


def _mark_inside(term: str, outers: Union, inners: Union, inside: set[int]) -> None:
    """Add to `inside` the ids of the inner boxes that lie in an outer box; all outer boxes test the
    same terms."""
    # The term of the sweep is compared last, because it rarely decides: all outer boxes that are
    # compared begin early enough on this term anyway.
    terms = [*(other for other in outers[0] if other != term), term]
    outers = sorted(outers, key=lambda box: box[term].cuts[0])
    inners = sorted(inners, key=lambda box: box[term].cuts[0])
    open_boxes: Union = []
    taken = 0
    for inner in inners:
        first = inner[term].cuts[0]
        while taken < len(outers) and outers[taken][term].cuts[0] <= first:
            open_boxes.append(outers[taken])
            taken += 1
        open_boxes = [box for box in open_boxes if _reaches(box[term], first)]
        for outer in open_boxes:
            if outer is inner or id(outer) in inside:
                continue
            for one in terms:
                if not outer[one] >= inner[one]:
                    break
            else:
                inside.add(id(inner))
                break


def _reaches(values: ValueSet, cut: Cut) -> bool:
    """Whether a set contains any values after a cut."""
    return len(values.cuts) % 2 == 1 or values.cuts[-1] > cut


def subtract(box: Box, union: Sequence[Box], effort: WorkBudget) -> Union | None:
    """The part of a box that lies outside a union, as disjoint boxes; None if the budget runs
    out."""
    left: Union = [box]
    for hole in union:
        rest: Union = []
        for piece in left:
            if not effort.spend(1):
                return None
            _cut_out(piece, hole, rest)
        left = rest
        if not left:
            break
    return left


def _cut_out(piece: Box, hole: Box, rest: Union) -> None:
    """Append to `rest` the part of the piece that lies outside the hole, as up to one box for each
    term."""
    if meet(piece, hole) is None:
        rest.append(piece)
        return
    core = piece
    for term, values in hole.items():
        have = core.get(term, EVERYTHING)
        outside = have - values
        if outside:
            rest.append({**core, term: outside})
            core = {**core, term: have & values}


def hull(union: Sequence[Box]) -> Box:
    """The smallest box around a union: for each term that all boxes test, the union of the sets."""
    if not union:
        return {}
    out: Box = {}
    for term in union[0]:
        if all(term in box for box in union):
            values = unite([box[term] for box in union])
            if not values.is_everything:
                out[term] = values
    return out


def hull_of_tree(node: Node) -> Box | None:
    """A box around a tree, found without expanding it; None if the tree is obviously empty."""
    if isinstance(node, Test):
        return {node.term: node.values}
    hulls = [hull_of_tree(item) for item in node.items]
    if isinstance(node, AnyOf):
        some = [box for box in hulls if box is not None]
        return hull(some) if some else None
    out: Box | None = {}
    for box in hulls:
        out = meet(out, box) if out is not None and box is not None else None
    return out
