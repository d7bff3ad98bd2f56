""""""

from tidings.filters.canonical.boxes import Box, Effort
from tidings.filters.canonical.cover_index import HullIndex
from tidings.filters.canonical.covering import MOST_BOXED, covers, covers_among
from tidings.filters.canonical.form import NEVER, Form, reads
from tidings.filters.canonical.form_to_expression import express_test, express_tree
from tidings.filters.canonical.point_images import MOST_POINTS
from tidings.filters.canonical.set_tree import All, Node, Test, is_opaque

__all__ = [
    "MOST_BOXED",
    "MOST_POINTS",
    "NEVER",
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
