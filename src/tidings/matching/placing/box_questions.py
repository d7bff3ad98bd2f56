"""Questions to an index about a new filter: which filters may cover it, and which it may cover.

A filter is *plain* if it is a union of boxes over attributes and topics alone. The term of a topic
is its number in the ontology, `preorder(topic)`, which is looked up and not computed. Points in the
boxes of plain filters determine where the search takes place:

    above    a filter that covers the new one contains every point of it, so it contains the
             *corner* of one box: the first value of each term that the box tests, with all other
             terms absent
    below    the corner of a plain filter that the new one covers lies in one of the new one's
             *pieces*: in its hull, or in one of its boxes

This search finds only candidates; comparing the filters decides. A filter that contains a
computation covers a plain filter only if the plain filter restricts every attribute that the
computation reads. So a piece also lists attributes that a covered filter must test in some way.

A topic determines its number, so `isa(topic, 'sports')` covers `topic = 'baseball'`, although their
boxes have no term in common. So if a box allows only a few topics, its corner also has the number
of a topic. If a piece tests this number, there is also a copy of the piece which only requires that
the attribute be tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tidings.filters import Attributes
from tidings.filters.canonical import (
    AllOf,
    Box,
    Form,
    Node,
    Test,
    image,
    is_plain_term,
    is_topic_number,
)
from tidings.filters.language import (
    Attribute,
    Call,
    Expression,
    Literal,
    attributes_of,
    name_text,
    text_of,
)
from tidings.filters.values import ValueSet
from tidings.filters.values.sets import ABSENT_KEY, NULL

MOST_STEPS = 4_000  # the search for a box in a tree ends after this many steps
MOST_TOPICS = 2  # the most topic numbers that a piece tests; each doubles the number of pieces


class CornerRange(NamedTuple):
    """A piece is where the corners of covered filters may lie."""

    tests: Mapping[str, ValueSet]  # terms that must be tested, with the sets around the corner
    reads: frozenset[str]  # attributes that must be tested in addition to `tests`
    is_tight: bool  # whether the sets of a covered filter must lie in the sets of the piece


class Question(NamedTuple):
    """A new filter, and where to look for its neighbours."""

    form: Form
    corner: Box | None  # the plain tests of one box of the new filter; None if no box was found
    alternatives: tuple[tuple[CornerRange, ...], ...]
    """Each alternative is a tuple of pieces; together, the pieces contain all corners of covered
    filters. If a piece has neither tests nor attributes, it contains every corner."""
    known: dict[int, tuple[int, int, int, bool]]
    """The keys of the sets of the form. Each set is found by its `id`; see sketches.py."""

    def simple_box(self) -> Box | None:
        """If the filter consists of one box, and its corner and its only piece have the same tests:
        this box."""
        boxes, corner = self.form.boxes, self.corner
        if boxes is None or len(boxes) != 1 or corner is None or len(self.alternatives) != 1:
            return None
        pieces, size = self.alternatives[0], len(boxes[0])
        if len(pieces) != 1 or not size:
            return None
        (piece,) = pieces
        is_same = len(corner) == len(piece.tests) == size and piece.is_tight and not piece.reads
        return boxes[0] if is_same else None


def is_plain(form: Form) -> bool:
    """Whether a filter is a union of boxes over plain terms, and not empty."""
    return bool(form.boxes) and all(map(is_plain_term, form.terms.values()))


def ask(form: Form, attributes: Attributes | None = None) -> Question:
    """The question to ask the index about a new filter, which must be a filter that can match.
    `attributes` are the declared attributes with which all filters of the index were parsed."""
    alternatives: list[tuple[CornerRange, ...]] = []
    terms = form.terms
    hull = {term: values for term, values in form.hull.items() if is_plain_term(terms[term])}
    whole = tuple(_pieces(hull, terms, frozenset(), is_tight=True))
    if all(one.tests or one.reads for one in whole):
        alternatives.append(whole)
    if form.boxes is not None and (len(form.boxes) > 1 or not alternatives):
        is_tight = len(form.boxes) == 1
        boxes = (_pieces_of_box(box, terms, is_tight=is_tight) for box in form.boxes)
        alternatives.append(tuple(piece for pieces in boxes for piece in pieces))
    if not alternatives:
        alternatives.append((CornerRange({}, frozenset(), False),))
    return Question(form, _corner_of(form, attributes), tuple(alternatives), {})


def _pieces_of_box(
    box: Box, terms: Mapping[str, Expression], *, is_tight: bool
) -> Iterator[CornerRange]:
    tests: dict[str, ValueSet] = {}
    reads: set[str] = set()
    for term, values in box.items():
        if not is_plain_term(terms[term]):
            reads.update(name_text(path) for path in attributes_of(terms[term]))
        elif ABSENT_KEY not in values:  # else a covered filter need not test the term
            tests[term] = values
    return _pieces(tests, terms, frozenset(reads), is_tight=is_tight)


def _pieces(
    tests: Box, terms: Mapping[str, Expression], reads: frozenset[str], *, is_tight: bool
) -> Iterator[CornerRange]:
    """Yield a piece, and the same piece with the number of each topic replaced by an attribute."""
    numbers = [term for term in tests if is_topic_number(terms[term])]
    for term in numbers[MOST_TOPICS:]:
        tests = _without(tests, term)
    return _expand(tests, terms, reads, numbers[:MOST_TOPICS], is_tight)


def _expand(
    tests: Box,
    terms: Mapping[str, Expression],
    reads: frozenset[str],
    numbers: list[str],
    is_tight: bool,
) -> Iterator[CornerRange]:
    if not numbers:
        yield CornerRange(tests, reads, is_tight)
        return
    term, rest = numbers[0], numbers[1:]
    others = _without(tests, term)
    if tests[term] & NULL:  # require nothing: several boxes together may cover a filter
        yield from _expand(others, terms, reads, rest, is_tight)
        return
    names = {name_text(path) for path in attributes_of(terms[term])}
    yield from _expand(tests, terms, reads, rest, is_tight)
    yield from _expand(others, terms, reads | names, rest, is_tight)


def _without(box: Box, term: str) -> Box:
    return {one: values for one, values in box.items() if one != term}


def corner_box(form: Form) -> Box:
    """The box whose corner represents a plain filter in the index: the box with the most tests."""
    return max(form.boxes or ({},), key=len)


def _corner_of(form: Form, attributes: Attributes | None) -> Box | None:
    if form.boxes is None:
        box = None if form.tree is None else _box_in_tree(form.tree)
    else:
        box = min(form.boxes, key=len)
    if box is None:
        return None
    found = {term: values for term, values in box.items() if is_plain_term(form.terms[term])}
    if attributes is not None:
        for term in list(found):
            node = form.terms[term]
            if type(node) is Attribute:
                _add_topic(found, box, node, attributes)
    return found


def _add_topic(corner: Box, box: Box, node: Attribute, attributes: Attributes) -> None:
    """Add to a corner the numbers of an attribute's topics, if its box allows only a few."""
    ontology = attributes.ontology(node.path)
    if ontology is None:
        return
    number = Call("preorder", (node, Literal(ontology.fingerprint)), ontology)
    term = text_of(number)
    if term not in corner:
        values = image(term, number, box)
        if values:
            corner[term] = values


def _box_in_tree(tree: Node) -> Box | None:
    """A box inside a tree. From each union, the search takes the first operand that is compatible
    with the operands it took before. None if no operand is suitable, or if the search takes too
    long."""
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
        if isinstance(node, AllOf):
            for item in node.items:
                found = narrow(item, box)
                if found is None:
                    return None
                box = found
            return box
        return next((one for item in node.items if (one := narrow(item, box)) is not None), None)

    return narrow(tree, {})
