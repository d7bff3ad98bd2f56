"""Questions to an index about a new filter: which filters may cover it, and which it may cover.

A filter is *plain* if it is a union of boxes over attributes alone. Its sets are then independent
of each other, and points of its boxes decide where to look:

    above    a filter that covers the new one contains every point of it, so it contains the
             *corner* of one box: the first value of each attribute that the box tests, with all
             other attributes absent
    below    the corner of a plain filter that the new one covers lies in one of the new one's
             *pieces*: in its hull, or in one of its boxes

This search finds only candidates; comparing the filters decides. A filter that computes something
covers a plain filter only if the plain filter restricts every attribute that the computation reads.
So a piece also lists attributes that a covered filter must test in any way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidings.filters.canonical import All, Box, Form, Node, Test
from tidings.filters.language import Attribute, Expression, attributes_of, name_text
from tidings.filters.values import ValueSet
from tidings.filters.values.sets import ABSENT_KEY

MOST_STEPS = 4_000  # the most steps of the search for a box in a tree


class Piece(NamedTuple):
    """Where the corners of covered filters may lie."""

    tests: Mapping[str, ValueSet]  # attributes that must be tested, and the sets around the corner
    reads: frozenset[str]  # attributes that must be tested as well
    is_tight: bool  # the whole set of a covered filter lies in the set of the piece


class Question(NamedTuple):
    """A new filter, and where to look for its neighbours."""

    form: Form
    corner: Box | None  # the attribute tests of a box in the new filter; None if none is known
    alternatives: tuple[tuple[Piece, ...], ...]
    """Each alternative is a tuple of pieces that contain all corners below. A piece without tests
    and attributes contains every corner."""
    known: dict[int, tuple[int, int, int, bool]]
    """The keys of the form's sets, by the `id` of the set; see sketches.py."""


def is_plain(form: Form) -> bool:
    """Whether a filter is a union of boxes over attributes, and not empty."""
    return bool(form.boxes) and all(type(term) is Attribute for term in form.terms.values())


def ask(form: Form) -> Question:
    """The question about a new filter, which must be able to match."""
    alternatives: list[tuple[Piece, ...]] = []
    terms = form.terms
    hull = {term: values for term, values in form.hull.items() if _is_attribute(terms[term])}
    if hull:
        alternatives.append((Piece(hull, frozenset(), True),))
    if form.boxes is not None and (len(form.boxes) > 1 or not hull):
        alternatives.append(tuple(_piece(box, terms, len(form.boxes) == 1) for box in form.boxes))
    if not alternatives:
        alternatives.append((Piece({}, frozenset(), False),))
    return Question(form, _corner_of(form), tuple(alternatives), {})


def _is_attribute(node: Expression) -> bool:
    return type(node) is Attribute


def _piece(box: Box, terms: Mapping[str, Expression], is_tight: bool) -> Piece:
    tests: dict[str, ValueSet] = {}
    reads: set[str] = set()
    for term, values in box.items():
        node = terms[term]
        if not _is_attribute(node):
            reads.update(name_text(path) for path in attributes_of(node))
        elif ABSENT_KEY not in values:  # otherwise the corner need not have the attribute
            tests[term] = values
    return Piece(tests, frozenset(reads), is_tight)


def corner_box(form: Form) -> Box:
    """The box of a plain filter whose corner is indexed: the one with the most tests."""
    return max(form.boxes or ({},), key=len)


def _corner_of(form: Form) -> Box | None:
    if form.boxes is None:
        box = None if form.tree is None else _box_in_tree(form.tree)
    else:
        box = min(form.boxes, key=len)
    if box is None:
        return None
    return {term: values for term, values in box.items() if _is_attribute(form.terms[term])}


def _box_in_tree(tree: Node) -> Box | None:
    """A box inside a tree. From each union, the first operand that fits the earlier choices is
    taken. None if no operand fits, or if the search takes too long."""
    left = MOST_STEPS

    def narrow(node: Node, box: Box) -> Box | None:
        nonlocal left
        left -= 1 + len(box) // 8
        if left < 0:
            return None
        if isinstance(node, Test):
            have = box.get(node.term)
            values = node.values if have is None else have & node.values
            return {**box, node.term: values} if values else None
        if isinstance(node, All):
            for item in node.items:
                found = narrow(item, box)
                if found is None:
                    return None
                box = found
            return box
        return next((one for item in node.items if (one := narrow(item, box)) is not None), None)

    return narrow(tree, {})
