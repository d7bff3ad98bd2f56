"""The canonical form of a filter, its bytes and its identity.

A form is either *narrow* (a union of boxes) or *wide* (a tree that would expand to too many boxes).
For example, an AND of 30 pairs such as `(a1 OR b1)` stays an AND of 30 pairs, and does not become a
billion boxes. Narrow and wide forms both have a hull: one box around the form, which is a necessary
condition that an index can use. Forms are built by rules.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from tidings.filters.canonical.boxes import Box
from tidings.filters.canonical.set_tree import AllOf, AnyOf, Node, Test, is_plain_term
from tidings.filters.language.evaluation import term_value
from tidings.filters.language.expression import Attribute, Expression, attributes_of
from tidings.filters.language.foreign import null_paths as language_null_paths
from tidings.filters.values.sets import Key, ValueSet, key, pack_number, tells_null
from tidings.model import Event

Item = TypeVar("Item")
ENCODING = 1


class Form(msgspec.Struct, frozen=True):
    """A form has either `boxes` (sorted and simplified) or a `tree`; `terms` has the expression of
    each term."""

    boxes: tuple[Box, ...] | None
    tree: Node | None
    hull: Box
    terms: Mapping[str, Expression]
    weight: int = 0
    """The cost of examining the form, counted in tests; 0 for an AND of simple tests, as most
    filters are."""

    @property
    def never(self) -> bool:
        """True if no notification can match."""
        return self.boxes == ()

    @property
    def always(self) -> bool:
        """True if every notification matches."""
        return self.boxes == ({},)

    def holds(self, event: Event, values: dict[str, Key] | None = None) -> bool:
        """Whether the notification matches. Each term is evaluated at most once.

        `values` caches the values of terms, so that many forms can share these values for one
        notification.
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

    def passes_plain_tests(self, event: Event, values: dict[str, Key]) -> bool:
        """Whether the notification passes those tests of the hull that need no computed term. If
        so, computed terms decide whether it matches. `values` caches the values of terms."""
        for term, allowed in self.hull.items():
            node = self.terms[term]
            if is_plain_term(node):
                if term not in values:
                    values[term] = key(term_value(node, event))
                if values[term] not in allowed:
                    return False
        return True

    def _inside(self, node: Node, event: Event, values: dict[str, Key]) -> bool:
        if isinstance(node, Test):
            if node.term not in values:
                values[node.term] = key(term_value(self.terms[node.term], event))
            return values[node.term] in node.values
        if isinstance(node, AllOf):
            return all(self._inside(item, event, values) for item in node.items)
        return any(self._inside(item, event, values) for item in node.items)


NEVER = Form((), None, {}, {})


def tree_of(form: Form) -> Node:
    """Any form, narrow or wide, as a tree of tests."""
    if form.tree is not None:
        return form.tree
    boxes = (tuple(Test(*item) for item in box.items()) for box in form.boxes or ())
    return AnyOf(tuple(tests[0] if len(tests) == 1 else AllOf(tests) for tests in boxes))


def sort_terms(box: dict[str, Item]) -> dict[str, Item]:
    """Sort a mapping by the text of its terms."""
    return dict(sorted(box.items()))


def count_tests(node: Node) -> int:
    return 1 if isinstance(node, Test) else sum(count_tests(item) for item in node.items)


def terms_of(node: Node) -> set[str]:
    if isinstance(node, Test):
        return {node.term}
    return set().union(*(terms_of(item) for item in node.items))


# -- bytes -------------------------------------------------------------------------------------


def encode(form: Form) -> bytes:
    """The canonical encoding: MessagePack of plain lists, specified in docs/filters.md."""
    if form.boxes is not None:
        body: Any = [[[term, values.cuts] for term, values in box.items()] for box in form.boxes]
        return msgspec.msgpack.encode([ENCODING, 0, body], enc_hook=pack_number)
    assert form.tree is not None
    return msgspec.msgpack.encode([ENCODING, 1, pack_tree(form.tree)], enc_hook=pack_number)


def digest(encoded: bytes) -> bytes:
    """The identity of a filter: 16 bytes."""
    return hashlib.blake2b(encoded, digest_size=16, person=b"tidings.filter").digest()


def pack_tree(node: Node) -> list[Any]:
    """Convert a tree to plain lists, for encoding."""
    if isinstance(node, Test):
        return [node.term, node.values.cuts]
    items = [pack_tree(item) for item in node.items]
    return [isinstance(node, AllOf), *items]


def null_paths(form: Form) -> set[tuple[str, ...]]:
    """The paths of all attributes for which a form distinguishes null from absent."""
    found = set().union(*(language_null_paths(node) for node in form.terms.values()))
    for term, values in _all_tests(form):
        node = form.terms[term]
        if type(node) is Attribute and tells_null(values):
            found.add(node.path)
    return found


def _all_tests(form: Form) -> Iterator[tuple[str, ValueSet]]:
    for box in form.boxes or ():
        yield from box.items()
    stack = [] if form.tree is None else [form.tree]
    while stack:
        node = stack.pop()
        if isinstance(node, Test):
            yield node.term, node.values
        else:
            stack.extend(node.items)


def reads(form: Form) -> set[tuple[str, ...]]:
    """The paths of all attributes that a form reads."""
    return set().union(*(attributes_of(node) for node in form.terms.values()))
