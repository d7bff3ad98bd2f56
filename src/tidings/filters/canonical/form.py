"""The canonical form of a filter, its bytes and its identity.

Steps, in order (each is a function of its own; docs/filters.md has the rules):

    expression --grow--> tree of sets --expand--> boxes --settle--> --simplify--> the form
                                      `-- too many boxes: --arrange--> the tree itself, in one order

A form is *narrow* (a union of boxes) or *wide* (a tree that would make more boxes than it has
tests and more than MOST_BOXES, or more than MOST_OF_TESTS: `(a1 OR b1) AND ... AND (a30 OR b30)`
is 30 pairs, not a billion boxes). Either has a hull: one box around it, the necessary condition
that an index can use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any as Anything, TypeVar

import msgspec

from tidings.filters.canonical import boxes as algebra, point_images
from tidings.filters.canonical.boxes import Box
from tidings.filters.canonical.set_tree import All, Any, Node, Planter, Test, settled, simple_test
from tidings.filters.language.attributes import Attributes
from tidings.filters.language.evaluation import term_value
from tidings.filters.language.expression import And, Attribute, Expression, Or, attributes_of
from tidings.filters.language.foreign import program_of
from tidings.filters.language.sql_writer import name_text, text_of
from tidings.filters.values import sets
from tidings.filters.values.sets import Key, ValueSet, intersect, key
from tidings.model import Event

Item = TypeVar("Item")
MOST_BOXES = 64
MOST_OF_TESTS = 512  # a union of boxes that is written out may have this many
ENCODING = 1


class Form(msgspec.Struct, frozen=True):
    """Either `boxes` (sorted, simplified) or `tree`; `terms` has the expression of each term."""

    boxes: tuple[Box, ...] | None
    tree: Node | None
    hull: Box
    terms: Mapping[str, Expression]
    weight: int = 0
    """What it takes to look into it, in tests of one value each; 0 for one box of attributes."""

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
        if self.boxes is None:
            return self.tree is not None and self._inside(self.tree, event, values)
        for box in self.boxes:
            for term, allowed in box.items():
                place = values.get(term)
                if place is None:
                    place = values[term] = key(term_value(self.terms[term], event))
                if place not in allowed:
                    break
            else:
                return True
        return False

    def _inside(self, node: Node, event: Event, values: dict[str, Key]) -> bool:
        if isinstance(node, Test):
            if node.term not in values:
                values[node.term] = key(term_value(self.terms[node.term], event))
            return values[node.term] in node.values
        if isinstance(node, All):
            return all(self._inside(item, event, values) for item in node.items)
        return any(self._inside(item, event, values) for item in node.items)


NEVER = Form((), None, {}, {})


def form_of(node: Expression, attributes: Attributes | None) -> Form:
    """The canonical form of an expression."""
    quick = _quick_form(node, attributes)
    if quick is not None:
        return quick
    found = _nested_form(node, attributes) or _full_form(node, Planter(attributes))
    return msgspec.structs.replace(found, weight=_weight(found))


def _weight(form: Form) -> int:
    """Tests, with what their sets and the texts of what they compute have beyond the usual."""
    texts = (len(text) for text, node in form.terms.items() if type(node) is not Attribute)
    written = sum(texts) // 32
    if form.boxes is None:
        return written + (0 if form.tree is None else _tree_weight(form.tree))
    return written + sum(1 + len(values.cuts) // 4 for box in form.boxes for values in box.values())


def _tree_weight(node: Node) -> int:
    if isinstance(node, Test):
        return 1 + len(node.values.cuts) // 4
    return sum(map(_tree_weight, node.items))


def _quick_form(node: Expression, attributes: Attributes | None) -> Form | None:
    """The form of a conjunction of simple tests, which is what most filters are, in a tenth of the
    time; None for all others."""
    tests: dict[str, ValueSet] = {}
    terms: dict[str, Attribute] = {}
    again: dict[str, list[ValueSet]] = {}  # all sets of a term that is tested more than once
    for item in node.items if type(node) is And else (node,):
        simple = simple_test(item)
        if simple is None:
            return None
        attribute, values = simple
        term = name_text(attribute.path)
        if attributes is not None:
            values = _settled_as(attributes.type(attribute.path), values)
        if not values.cuts:
            return NEVER
        if term in tests:
            again.setdefault(term, [tests[term]]).append(values)
        else:
            tests[term], terms[term] = values, attribute
    for term, parts in again.items():
        kind = attributes.type(terms[term].path) if attributes else None
        tests[term] = _settled_as(kind, intersect(parts))
        if not tests[term]:
            return NEVER
    box = {term: tests[term] for term in sorted(tests)}
    return Form((box,), None, box, {term: terms[term] for term in box})


def _nested_form(node: Expression, attributes: Attributes | None) -> Form | None:
    """The form of a plain condition on single values and a program on nested ones, where the plain
    one is one box: that box, and for each attribute one in which it is nested and the program
    decides."""
    if type(node) is not Or or not isinstance(node.items[-1], And):
        return None
    last = node.items[-1].items[-1]
    program = program_of(last)
    split = None if program is None else program.split_nested(node, attributes)
    if split is None:
        return None
    if attributes is not None and any(attributes.type(path) for path in split.nested):
        return None
    values = form_of(split.plain, attributes)
    if values.boxes is None or len(values.boxes) != 1:
        return None
    (box,) = values.boxes
    around = {text_of(last): sets.TRUE}
    for path in split.bounded:
        term = name_text(path)
        wide = box.get(term, sets.EVERYTHING) | sets.LISTS
        if attributes is not None:
            wide = _settled_as(attributes.type(path), wide)
        if not wide.is_everything:
            around[term] = wide
    union = [box, *({**around, name_text(path): sets.LISTS} for path in split.nested)]
    final = tuple(_in_order(one) for one in sorted(union, key=algebra.sort_key))
    terms = {**values.terms, text_of(last): last}
    terms |= {name_text(path): Attribute(path) for path in split.nested}
    return Form(final, None, _in_order(algebra.hull(final)), _in_order(terms))


def _settled_as(kind: str | None, values: ValueSet) -> ValueSet:
    return values if kind is None else settled(values, kind)


def _full_form(node: Expression, planter: Planter) -> Form:
    tree = planter.grow(node)
    single = _single_form(tree, planter)
    if single is not None:
        return single
    if count_tests(tree) > MOST_OF_TESTS or _multiplies(tree):  # it may come out wide
        tree = arrange(tree, planter)
    union = algebra.expand(tree, max(MOST_BOXES, min(count_tests(tree), MOST_OF_TESTS)))
    if union is not None:
        final = tuple(_in_order(box) for box in _simplified(union, planter))
        used = {term for box in final for term in box}
        terms = {term: planter.terms[term] for term in sorted(used)}
        return Form(final, None, _settled(algebra.hull(final), planter), terms)
    around = algebra.hull_of_tree(tree)
    if around is None or point_images.settle(around, planter.terms) is None:
        return NEVER
    terms = {term: planter.terms[term] for term in sorted(terms_of(tree))}
    return Form(None, tree, _settled(around, planter), terms)


def _single_form(tree: Node, planter: Planter) -> Form | None:
    """The form of a tree that is one box, where there is nothing to simplify."""
    items = (tree,) if isinstance(tree, Test) else tree.items
    if isinstance(tree, Any) or not all(isinstance(item, Test) for item in items):
        return None
    box = _in_order({item.term: item.values for item in items if isinstance(item, Test)})
    terms = {term: planter.terms[term] for term in box}
    return Form((box,), None, box, terms) if point_images.settle(box, terms) == box else None


def _simplified(union: algebra.Union, planter: Planter) -> algebra.Union:
    """Boxes without computed tests that their points decide, and merged as far as it goes.

    A merge can make a test one that the points decide, and the other way round, so both repeat
    until neither finds anything. Without computed terms there is nothing to decide.
    """
    terms = planter.terms
    if all(isinstance(terms[term], Attribute) for box in union for term in box):
        return algebra.simplify(union, planter.settled)
    while True:
        pinned: list[Box | None] = list(union)
        if not point_images.is_too_much(union, terms):
            pinned = [point_images.settle(box, terms) for box in union]
        simple = algebra.simplify((b for b in pinned if b is not None), planter.settled)
        if simple == union:
            return simple
        union = simple


def _settled(box: Box, planter: Planter) -> Box:
    settled = {term: planter.settled(term, values) for term, values in box.items()}
    return _in_order({term: v for term, v in settled.items() if not v.is_everything})


def _multiplies(node: Node) -> bool:
    """Whether expanding a tree means multiplying unions, which may be more than is possible."""
    if isinstance(node, Test):
        return False
    factors = [item for item in node.items if not isinstance(item, Test)]
    return (isinstance(node, All) and len(factors) > 1) or any(map(_multiplies, factors))


def _in_order(box: dict[str, Item]) -> dict[str, Item]:
    return dict(sorted(box.items()))


def count_tests(node: Node) -> int:
    return 1 if isinstance(node, Test) else sum(count_tests(item) for item in node.items)


def terms_of(node: Node) -> set[str]:
    if isinstance(node, Test):
        return {node.term}
    return set().union(*(terms_of(item) for item in node.items))


def arrange(node: Node, planter: Planter) -> Node:
    """The tree with the items of each node in the order of their bytes, each once."""
    if isinstance(node, Test):
        return node
    items = [arrange(item, planter) for item in node.items]
    joined = planter.all(items) if isinstance(node, All) else planter.any(items)
    if isinstance(joined, Test):
        return joined
    ordered = tuple(sorted(joined.items, key=_packed))
    return All(ordered) if isinstance(joined, All) else Any(ordered)


def _packed(node: Node) -> bytes:
    return msgspec.msgpack.encode(_packed_tree(node))


# -- bytes -------------------------------------------------------------------------------------


def encode(form: Form) -> bytes:
    """The one byte encoding: MessagePack of plain lists, read in docs/filters.md."""
    if form.boxes is not None:
        body: Anything = [
            [[term, values.cuts] for term, values in box.items()] for box in form.boxes
        ]
        return msgspec.msgpack.encode([ENCODING, 0, body])
    assert form.tree is not None
    return msgspec.msgpack.encode([ENCODING, 1, _packed_tree(form.tree)])


def digest(encoded: bytes) -> bytes:
    """The identity of a filter: 16 bytes."""
    return hashlib.blake2b(encoded, digest_size=16, person=b"tidings.filter").digest()


def _packed_tree(node: Node) -> list[Anything]:
    if isinstance(node, Test):
        return [node.term, node.values.cuts]
    items = [_packed_tree(item) for item in node.items]
    return [isinstance(node, All), *items]


def reads(form: Form) -> set[tuple[str, ...]]:
    """The paths of the attributes that a form looks at."""
    return set().union(*(attributes_of(node) for node in form.terms.values()))
