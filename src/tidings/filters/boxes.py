"""Boxes and unions of boxes: the algebra behind the canonical form and covering.

A box is a conjunction of tests, one set per term; a term without a test is free. As a picture, over
two terms:

    volume                           a union of two boxes, one inside the other's shadow:
      |     +-----+                  price in [1, 5]  AND volume in [2, 9]
      |  +--+--+  |                  price in [3, 9]  AND volume in [4, 12]
      +--------------- price

Sets are never empty in a box (a box with an empty set is nothing and is dropped), and never
"everything" (that is no test). Boxes are plain dicts and are not changed once made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidings.filters.sets import EVERYTHING, Cut, ValueSet
from tidings.filters.tree import All, Any, Node, Test

Box = dict[str, ValueSet]
Union = list[Box]


def meet(left: Box, right: Box) -> Box | None:
    """The intersection of two boxes; None when it is empty."""
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
    """Whether each of outer's sets contains inner's set on that term."""
    for term, values in outer.items():
        have = inner.get(term)
        if have is None or not values >= have:
            return False
    return True


def expand(node: Node, most: int) -> Union | None:
    """The boxes whose union the tree is; None as soon as there would be more than `most`.

    Cost: the number of boxes made, at most `most` squared for one conjunction of two large unions.
    """
    if isinstance(node, Test):
        return [{node.term: node.values}]
    if isinstance(node, Any):
        union: Union = []
        for item in node.items:
            more = expand(item, most)
            if more is None or len(union) + len(more) > most:
                return None
            union.extend(more)
        return union
    return _expand_all(node, most)


def _expand_all(node: All, most: int) -> Union | None:
    union: Union = [{item.term: item.values for item in node.items if isinstance(item, Test)}]
    for item in node.items:
        if isinstance(item, Test):
            continue
        factor = expand(item, most)
        if factor is None or len(union) * len(factor) > most * most:
            return None
        met = (meet(left, right) for left in union for right in factor)
        union = absorb([box for box in met if box is not None])
        if len(union) > most:
            return None
    return union


def simplify(union: Iterable[Box]) -> Union:
    """No box inside another, none that differ in one term only; in one order.

    The result depends on the set of boxes, not on their order: each pass merges whole groups, and
    terms are taken in the order of their names. Passes repeat until nothing merges, at most once
    per box.
    """
    boxes = absorb(list(union))
    while True:
        merged = boxes
        for term in sorted({term for box in boxes for term in box}):
            merged = _merge_on(term, merged)
        if len(merged) == len(boxes):
            return sorted(merged, key=sort_key)
        boxes = absorb(merged)


def _merge_on(term: str, boxes: Union) -> Union:
    """Unite the boxes that are alike in every other term."""
    groups: dict[tuple[tuple[str, ValueSet], ...], Union] = {}
    for box in boxes:
        rest = tuple(sorted(((t, v) for t, v in box.items() if t != term), key=_by_term))
        groups.setdefault(rest, []).append(box)
    if len(groups) == len(boxes):
        return boxes
    out: Union = []
    for group in groups.values():
        if len(group) == 1:
            out.append(group[0])
            continue
        values = group[0].get(term, EVERYTHING)
        for box in group[1:]:
            values = values | box.get(term, EVERYTHING)
        first = {t: v for t, v in group[0].items() if t != term}
        if not values.is_everything:
            first[term] = values
        out.append(first)
    return out


def _by_term(item: tuple[str, ValueSet]) -> str:
    return item[0]


def sort_key(box: Box) -> list[tuple[str, tuple[Cut, ...]]]:
    return sorted((term, values.cuts) for term, values in box.items())


def absorb(boxes: Union) -> Union:
    """The boxes that lie in no other one; of equal boxes, one.

    A box can only lie in one that tests a subset of its terms, so boxes are grouped by their terms;
    within two groups they are swept in the order of where their sets begin on one shared term, and
    only those whose span there is wide enough are compared. Quadratic only when all spans nest.
    """
    if len(boxes) < 2:
        return boxes
    unique = list({tuple(sort_key(box)): box for box in boxes}.values())
    groups: dict[frozenset[str], Union] = {}
    for box in unique:
        groups.setdefault(frozenset(box), []).append(box)
    if frozenset() in groups:
        return [{}]
    inside: set[int] = set()
    for terms, outers in groups.items():
        for more_terms, inners in groups.items():
            if terms <= more_terms:
                _mark_inside(_sweep_term(outers), outers, inners, inside)
    return [box for box in unique if id(box) not in inside]


def _sweep_term(boxes: Union) -> str:
    """The term on which the boxes begin at the most different places."""
    return max(sorted(boxes[0]), key=lambda term: len({box[term].cuts[0] for box in boxes}))


def _mark_inside(term: str, outers: Union, inners: Union, inside: set[int]) -> None:
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
            if outer is not inner and id(outer) not in inside and contains(outer, inner):
                inside.add(id(inner))
                break


def _reaches(values: ValueSet, cut: Cut) -> bool:
    """Whether a set has anything after a cut."""
    return len(values.cuts) % 2 == 1 or values.cuts[-1] > cut


def subtract(box: Box, union: Sequence[Box], budget: int) -> Union | None:
    """What of a box lies outside a union, as disjoint boxes; None when that takes over `budget`."""
    left: Union = [box]
    for hole in union:
        rest: Union = []
        for piece in left:
            _cut_out(piece, hole, rest)
            if len(rest) > budget:
                return None
        left = rest
        if not left:
            break
    return left


def _cut_out(piece: Box, hole: Box, rest: Union) -> None:
    """Append to rest what of the piece is outside the hole, one slab per term."""
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
    """The smallest box around a union: per term that all of them test, the union of the sets."""
    if not union:
        return {}
    out = dict(union[0])
    for box in union[1:]:
        for term in list(out):
            values = box.get(term)
            both = out[term] | values if values is not None else EVERYTHING
            if both.is_everything:
                del out[term]
            else:
                out[term] = both
    return out


def hull_of_tree(node: Node) -> Box | None:
    """A box around a tree, without expanding it; None when the tree is plainly nothing."""
    if isinstance(node, Test):
        return {node.term: node.values}
    hulls = [hull_of_tree(item) for item in node.items]
    if isinstance(node, Any):
        some = [box for box in hulls if box is not None]
        return hull(some) if some else None
    out: Box | None = {}
    for box in hulls:
        out = meet(out, box) if out is not None and box is not None else None
    return out
