"""The canonical form of a filter: equal filters get equal bytes, and covering can be decided.

    expression ──rewrite──> ──build──> tree of tests "term in set" ──multiply out──> boxes ──> form
                                          `── too many boxes: the tree itself, in one order

    rules.py                the rules in their order, and how they are applied
    rewrites.py, implied.py    conditions in plainer words; what an opaque condition implies
    condition_sets.py       where a condition is true and where false, as sets of one term
    set_tree.py             expression to tree; NOT and SQL's third value are gone after it
    boxes.py                the algebra of boxes: multiply out, drop, merge
    point_images.py         computed terms where a box leaves an attribute only a few values
    form.py                 the form, its hull, its bytes and its identity
    form_to_expression.py   sets and boxes back to expressions
    covering.py             whether one filter covers another: sound, complete within a budget
    cover_index.py, unions.py    candidates for covering, and for matching one event

For other rooms, not for users: they have `Filter.canonical` and `Filter.covers`. Start at rules.py;
docs/filters.md has the same rules with the same numbers. A function that an index is to use goes
into rewrites.py, condition_sets.py or implied.py.
"""

from tidings.filters.canonical.boxes import Box, Effort
from tidings.filters.canonical.cover_index import AccessIndex, HullIndex
from tidings.filters.canonical.covering import MOST_BOXED, covers, covers_among
from tidings.filters.canonical.form import NEVER, Form, reads
from tidings.filters.canonical.form_to_expression import express_test, express_tree
from tidings.filters.canonical.point_images import MOST_POINTS
from tidings.filters.canonical.set_tree import All, Node, Test, is_opaque

__all__ = [
    "MOST_BOXED",
    "MOST_POINTS",
    "NEVER",
    "AccessIndex",
    "All",
    "Box",
    "Effort",
    "Form",
    "HullIndex",
    "Node",
    "Test",
    "covers",
    "covers_among",
    "express_test",
    "express_tree",
    "is_opaque",
    "reads",
]
