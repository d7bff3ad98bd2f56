"""What type an expression has, as far as that is known before any notification is seen."""

from __future__ import annotations

from tidings.filters.attributes import Attributes
from tidings.filters.expression import Attribute, Call, Expression, Literal
from tidings.filters.functions import FUNCTIONS, OPERATORS
from tidings.model import type_of


def kind_of(node: Expression, attributes: Attributes | None) -> str | None:
    """A type, "number" for arithmetic, or None where it depends on the notification."""
    if isinstance(node, Attribute):
        return attributes.type(node.path) if attributes else None
    if isinstance(node, Literal):
        return type_of(node.value)
    if isinstance(node, Call):
        return FUNCTIONS[node.name].returns or ("number" if node.name in OPERATORS else None)
    return "boolean"
