"""The canonical form of a filter, its bytes and its identity.

Steps, in order (each is a function of its own; docs/filters.md has the rules):

    expression --grow--> tree of sets --expand--> boxes --settle--> --simplify--> the form
                                      `-- too many boxes: --arrange--> the tree itself, in one order

A form is *narrow* (a union of boxes) or *wide* (a tree that would make more boxes than it has
tests, and more than MOST_BOXES: `(a1 OR b1) AND ... AND (a30 OR b30)` is 30 pairs, not a billion
boxes). Either has a hull: one box around it, the necessary condition that an index can use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any as Anything

import msgspec

from tidings.filters import boxes as algebra, pins
from tidings.filters.attributes import Attributes
from tidings.filters.boxes import Box
from tidings.filters.evaluate import evaluate
from tidings.filters.expression import Call, Expression, attributes_of, children
from tidings.filters.sets import Key, ValueSet, key
from tidings.filters.tree import All, Any, Node, Planter, Test
from tidings.model import Event

MOST_BOXES = 64
ENCODING = 1


class Form(msgspec.Struct, frozen=True):
    """Either `boxes` (sorted, simplified) or `tree`; `terms` has the expression of each term."""

    boxes: tuple[Box, ...] | None
    tree: Node | None
    hull: Box
    terms: Mapping[str, Expression]

    @property
    def never(self) -> bool:
        """No notification can match."""
        return self.boxes == ()

    @property
    def always(self) -> bool:
        """Every notification matches."""
        return self.boxes == ({},)

    def holds(self, event: Event, values: dict[str, Key] | None = None) -> bool:
        """Whether the notification lies in the form: each term is evaluated at most once.

        `values` keeps what terms were worth, to be shared by many forms on one notification.
        """
        values = {} if values is None else values

        def test(term: str, allowed: ValueSet) -> bool:
            if term not in values:
                values[term] = key(evaluate(self.terms[term], event))
            return values[term] in allowed

        if self.boxes is not None:
            return any(all(test(t, v) for t, v in box.items()) for box in self.boxes)

        def inside(node: Node) -> bool:
            if isinstance(node, Test):
                return test(node.term, node.values)
            if isinstance(node, All):
                return all(inside(item) for item in node.items)
            return any(inside(item) for item in node.items)

        return self.tree is not None and inside(self.tree)


def form_of(node: Expression, attributes: Attributes | None) -> Form:
    """The canonical form of an expression."""
    planter = Planter(attributes)
    tree = planter.grow(node)
    union = algebra.expand(tree, max(MOST_BOXES, count_tests(tree)))
    if union is not None:
        pinned = (pins.settle(box, planter.terms) for box in union)
        simple = algebra.simplify(box for box in pinned if box is not None)
        final = tuple(_in_order(box) for box in simple)
        used = {term for box in final for term in box}
        terms = {term: planter.terms[term] for term in sorted(used)}
        return Form(final, None, _in_order(algebra.hull(final)), terms)
    around = algebra.hull_of_tree(tree)
    if around is None:
        return Form((), None, {}, {})
    arranged = arrange(tree)
    terms = {term: planter.terms[term] for term in sorted(terms_of(arranged))}
    return Form(None, arranged, _in_order(around), terms)


def _in_order(box: Box) -> Box:
    return dict(sorted(box.items()))


def count_tests(node: Node) -> int:
    return 1 if isinstance(node, Test) else sum(count_tests(item) for item in node.items)


def terms_of(node: Node) -> set[str]:
    if isinstance(node, Test):
        return {node.term}
    return set().union(*(terms_of(item) for item in node.items))


def arrange(node: Node) -> Node:
    """The tree with the items of each node in the order of their bytes, each once."""
    if isinstance(node, Test):
        return node
    items = {msgspec.msgpack.encode(_packed_tree(i)): i for i in map(arrange, node.items)}
    ordered = tuple(items[packed] for packed in sorted(items))
    if len(ordered) == 1:
        return ordered[0]
    return All(ordered) if isinstance(node, All) else Any(ordered)


# -- bytes -------------------------------------------------------------------------------------


def encode(form: Form) -> bytes:
    """The one byte encoding: MessagePack of plain lists, read in docs/filters.md."""
    names = {term: _identity(term, node) for term, node in form.terms.items()}
    if form.boxes is not None:
        body: Anything = [
            [[names[term], values.cuts] for term, values in box.items()] for box in form.boxes
        ]
        return msgspec.msgpack.encode([ENCODING, 0, body])
    assert form.tree is not None
    return msgspec.msgpack.encode([ENCODING, 1, _packed_tree(form.tree, names)])


def digest(encoded: bytes) -> bytes:
    """The identity of a filter: 16 bytes."""
    return hashlib.blake2b(encoded, digest_size=16, person=b"tidings.filter").digest()


def _packed_tree(node: Node, names: Mapping[str, str] | None = None) -> list[Anything]:
    if isinstance(node, Test):
        return [names[node.term] if names else node.term, node.values.cuts]
    items = [_packed_tree(item, names) for item in node.items]
    return [isinstance(node, All), *items]


def _identity(term: str, node: Expression) -> str:
    """A term's text, with the fingerprints of the ontologies that its numbers come from."""
    marks = []
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, Call) and hasattr(one.bound, "fingerprint"):
            marks.append(one.bound.fingerprint)
        stack.extend(children(one))
    return "@".join([term, *marks])


def reads(form: Form) -> set[tuple[str, ...]]:
    """The paths of the attributes that a form looks at."""
    return set().union(*(attributes_of(node) for node in form.terms.values()))
