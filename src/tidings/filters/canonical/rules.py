"""The rules that turn an expression into its canonical form, in the order of docs/filters.md.

    expression --rewrite--> --build--> tree --multiply_out--> boxes --repeat--> the form
                                           `-- too many boxes: --keep_tree--> the tree itself

    stage        the rule                           is applied
    expression   simplifies a condition             to each condition, until no rule applies
    tree         turns conditions into tests        to each part, while the tree is built
    boxes        changes a union of boxes           in order; 11 and 12 until neither changes it

Fast paths give the same form in less time: `_quick_form` for an AND of simple tests (most filters),
`_single_form` for one box, `_nested_form` for event patterns and similar filters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal as Choice

import msgspec

from tidings.filters.canonical import boxes as algebra, point_images
from tidings.filters.canonical.boxes import Box, Union
from tidings.filters.canonical.condition_sets import make_residual, make_sets, simple_test
from tidings.filters.canonical.form import NEVER, Form, count_tests, pack_tree, sort_terms, terms_of
from tidings.filters.canonical.implied import add_implied
from tidings.filters.canonical.rewrites import expand_short_forms, shape_conditions
from tidings.filters.canonical.set_tree import (
    AllOf,
    AnyOf,
    Node,
    SetTreeBuilder,
    Test,
    narrow_to_type,
)
from tidings.filters.language.attributes import Attributes
from tidings.filters.language.expression import And, Attribute, Expression, Or
from tidings.filters.language.folding import fold_constants
from tidings.filters.language.foreign import program_of
from tidings.filters.language.sql_writer import name_text, text_of
from tidings.filters.values import sets
from tidings.filters.values.sets import ValueSet, intersect

MOST_BOXES = 64
MOST_OF_TESTS = 512  # a filter may have as many boxes as it has tests, but at most this many


# -- rules for boxes ---------------------------------------------------------------------------


def multiply_out(tree: Node) -> Union | None:
    """Expand a tree into boxes; None if there are too many.

    x > 5 AND (y = 1 OR z = 2)   ->   x > 5 AND y = 1 OR x > 5 AND z = 2
    """
    return algebra.expand(tree, max(MOST_BOXES, min(count_tests(tree), MOST_OF_TESTS)))


def decide_by_points(union: Union, builder: SetTreeBuilder) -> Union:
    """Remove the computed tests that the points of each box decide.

    name IN ('Bo', 'Al') AND lower(name) = 'bo'   ->   name = 'Bo'
    """
    if point_images.is_too_much(union, builder.terms):
        return union
    settled = (point_images.settle(box, builder.terms) for box in union)
    return [box for box in settled if box is not None]


def merge_boxes(union: Union, builder: SetTreeBuilder) -> Union:
    """Drop boxes inside others, and merge boxes that differ in only one term.

    a = 1 AND b = 1 OR a = 2 AND b = 1   ->   a IN (1, 2) AND b = 1
    """
    return algebra.simplify(union, builder.narrow)


def sort_boxes(union: Union) -> tuple[Box, ...]:
    """Sort the terms of each box by their texts. (The boxes were already sorted when they were
    merged.)

    b = 1 AND a = 2   ->   a = 2 AND b = 1
    """
    return tuple(sort_terms(box) for box in union)


def keep_tree(node: Node, builder: SetTreeBuilder) -> Node:
    """Sort the items of each node of a tree by their bytes, and drop duplicates.

    (b = 1 OR c = 1) AND (a = 1 OR b = 1)   ->   (a = 1 OR b = 1) AND (b = 1 OR c = 1)
    """
    if isinstance(node, Test):
        return node
    items = [keep_tree(item, builder) for item in node.items]
    joined = builder.all(items) if isinstance(node, AllOf) else builder.any(items)
    if isinstance(joined, Test):
        return joined
    ordered = tuple(sorted(joined.items, key=_encode_node))
    return AllOf(ordered) if isinstance(joined, AllOf) else AnyOf(ordered)


def _encode_node(node: Node) -> bytes:
    return msgspec.msgpack.encode(pack_tree(node), enc_hook=sets.pack_number)


# -- all rules ---------------------------------------------------------------------------------


class Rule(msgspec.Struct, frozen=True):
    """One rule; it is named after its function, whose docstring has an example."""

    stage: Choice["expression", "tree", "boxes"]
    apply: Callable[..., Any]

    @property
    def name(self) -> str:
        return self.apply.__name__


RULES: tuple[Rule, ...] = (
    Rule("expression", fold_constants),
    Rule("expression", expand_short_forms),
    Rule("expression", shape_conditions),
    Rule("tree", SetTreeBuilder.remove_negation),
    Rule("tree", make_sets),
    Rule("tree", make_residual),
    Rule("tree", add_implied),
    Rule("tree", narrow_to_type),
    Rule("tree", SetTreeBuilder.join_tests),
    Rule("boxes", multiply_out),
    Rule("boxes", decide_by_points),
    Rule("boxes", merge_boxes),
    Rule("boxes", sort_boxes),
    Rule("boxes", keep_tree),
)
REPEATED = (decide_by_points, merge_boxes)


def repeat_until_same(union: Union, builder: SetTreeBuilder) -> Union:
    """Apply rules 11 and 12 repeatedly until neither changes the union.

    Merging boxes can produce a computed test that the points of the new box decide, and removing a
    test can make further boxes mergeable. Without computed terms, merging once is enough.
    """
    terms = builder.terms
    if all(isinstance(terms[term], Attribute) for box in union for term in box):
        return merge_boxes(union, builder)
    while True:
        before = union
        for rule in REPEATED:
            union = rule(union, builder)
        if union == before:
            return union


# -- forms -------------------------------------------------------------------------------------


def form_of(node: Expression, attributes: Attributes | None) -> Form:
    """The canonical form of an expression."""
    quick = _quick_form(node, attributes)
    if quick is not None:
        return quick
    found = _nested_form(node, attributes) or _full_form(node, SetTreeBuilder(attributes))
    return msgspec.structs.replace(found, weight=_weight(found))


def _full_form(node: Expression, builder: SetTreeBuilder) -> Form:
    """The form of an expression, built with the full set of rules."""
    tree = builder.build(node)
    single = _single_form(tree, builder)
    if single is not None:
        return single
    if count_tests(tree) > MOST_OF_TESTS or _multiplies(tree):  # the form may remain a tree
        tree = keep_tree(tree, builder)
    union = multiply_out(tree)
    if union is not None:
        final = sort_boxes(repeat_until_same(union, builder))
        used = {term for box in final for term in box}
        terms = {term: builder.terms[term] for term in sorted(used)}
        return Form(final, None, _narrow_box(algebra.hull(final), builder), terms)
    around = algebra.hull_of_tree(tree)
    if around is None or point_images.settle(around, builder.terms) is None:
        return NEVER
    terms = {term: builder.terms[term] for term in sorted(terms_of(tree))}
    return Form(None, tree, _narrow_box(around, builder), terms)


def _narrow_box(box: Box, builder: SetTreeBuilder) -> Box:
    narrowed = {term: builder.narrow(term, values) for term, values in box.items()}
    return sort_terms({term: v for term, v in narrowed.items() if not v.is_everything})


def _multiplies(node: Node) -> bool:
    """Whether expanding a tree multiplies unions together, which may give too many boxes."""
    if isinstance(node, Test):
        return False
    factors = [item for item in node.items if not isinstance(item, Test)]
    return (isinstance(node, AllOf) and len(factors) > 1) or any(map(_multiplies, factors))


def _weight(form: Form) -> int:
    """The number of tests; large sets and long texts of computed terms count extra."""
    texts = (len(text) for text, node in form.terms.items() if type(node) is not Attribute)
    written = sum(texts) // 32
    if form.boxes is None:
        return written + (0 if form.tree is None else _tree_weight(form.tree))
    return written + sum(1 + len(values.cuts) // 4 for box in form.boxes for values in box.values())


def _tree_weight(node: Node) -> int:
    if isinstance(node, Test):
        return 1 + len(node.values.cuts) // 4
    return sum(map(_tree_weight, node.items))


# -- fast paths --------------------------------------------------------------------------------


def _quick_form(node: Expression, attributes: Attributes | None) -> Form | None:
    """The form of an AND of simple tests, as most filters are; None for all other expressions. This
    takes a tenth of the time that the full set of rules takes."""
    tests: dict[str, ValueSet] = {}
    terms: dict[str, Attribute] = {}
    again: dict[str, list[ValueSet]] = {}  # for each term tested more than once, all its sets
    for item in node.items if type(node) is And else (node,):
        simple = simple_test(item)
        if simple is None:
            return None
        attribute, values = simple
        term = name_text(attribute.path)
        if attributes is not None:
            values = _narrow(attributes.type(attribute.path), values)
        if not values.cuts:
            return NEVER
        if term in tests:
            again.setdefault(term, [tests[term]]).append(values)
        else:
            tests[term], terms[term] = values, attribute
    for term, parts in again.items():
        kind = attributes.type(terms[term].path) if attributes else None
        tests[term] = _narrow(kind, intersect(parts))
        if not tests[term]:
            return NEVER
    box = {term: tests[term] for term in sorted(tests)}
    return Form((box,), None, box, {term: terms[term] for term in box})


def _single_form(tree: Node, builder: SetTreeBuilder) -> Form | None:
    """The form of a tree that is a single box in simplest form; None for all other trees."""
    items = (tree,) if isinstance(tree, Test) else tree.items
    if isinstance(tree, AnyOf) or not all(isinstance(item, Test) for item in items):
        return None
    box = sort_terms({item.term: item.values for item in items if isinstance(item, Test)})
    terms = {term: builder.terms[term] for term in box}
    return Form((box,), None, box, terms) if point_images.settle(box, terms) == box else None


def _nested_form(node: Expression, attributes: Attributes | None) -> Form | None:
    """The form of a filter that is split into a plain condition on single values and a program on
    nested values, if the plain condition is a single box. The form consists of that box and, for
    each attribute, a box that requires a nested value and lets the program decide."""
    if type(node) is not Or or not node.items or not isinstance(node.items[-1], And):
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
            wide = _narrow(attributes.type(path), wide)
        if not wide.is_everything:
            around[term] = wide
    union = [box, *({**around, name_text(path): sets.LISTS} for path in split.nested)]
    final = sort_boxes(sorted(union, key=algebra.sort_key))
    terms = {**values.terms, text_of(last): last}
    terms |= {name_text(path): Attribute(path) for path in split.nested}
    return Form(final, None, sort_terms(algebra.hull(final)), sort_terms(terms))


def _narrow(kind: str | None, values: ValueSet) -> ValueSet:
    return values if kind is None else narrow_to_type(values, kind)
