"""The canonical form of a filter: with it, equal filters get equal bytes, and covering can be
decided.

    expression ──rewrite──> ──build──> tree of tests "term in set" ──multiply out──> boxes ──> form
                                          `── too many boxes: the tree itself, sorted

    rules.py                the rules in order, and how they are applied
    rewrites.py, implied.py    simpler conditions; what an opaque condition implies
    condition_sets.py       the sets of values on which a condition is true and false
    set_tree.py             turns an expression into a tree without NOT and without unknown
    boxes.py                the algebra of boxes: multiply out, drop, merge
    point_images.py         computed terms in a box that leaves an attribute only a few values
    form.py                 the form, its hull, its bytes and its identity
    form_to_expression.py   turns sets and boxes back into expressions
    covering.py             whether one filter covers another: sound, complete within a budget
    cover_index.py, unions.py    indexes that find candidates for covering and for matching

These modules are for other rooms; users have `Filter.canonical` and `Filter.covers`. Start at
rules.py; docs/filters.md has the same rules with the same numbers. To let an index use a function,
extend rewrites.py, condition_sets.py or implied.py.
"""

from tidings.filters.canonical.boxes import Box, WorkBudget
from tidings.filters.canonical.cover_index import AccessIndex, HullIndex
from tidings.filters.canonical.covering import AMONG_OTHERS, MOST_BOXED, covers, covers_among
from tidings.filters.canonical.form import NEVER, Form, null_paths, reads, tree_of
from tidings.filters.canonical.form_to_expression import express_test, express_tree, value_at
from tidings.filters.canonical.point_images import MOST_POINTS, image
from tidings.filters.canonical.set_tree import (
    AllOf,
    AnyOf,
    Node,
    Test,
    is_opaque,
    is_plain_term,
    is_topic_number,
)

__all__ = [
    "AMONG_OTHERS",
    "MOST_BOXED",
    "MOST_POINTS",
    "NEVER",
    "AccessIndex",
    "AllOf",
    "AnyOf",
    "Box",
    "Form",
    "HullIndex",
    "Node",
    "Test",
    "WorkBudget",
    "covers",
    "covers_among",
    "express_test",
    "express_tree",
    "image",
    "is_opaque",
    "is_plain_term",
    "is_topic_number",
    "null_paths",
    "reads",
    "tree_of",
    "value_at",
]
