"""The type of an expression, as far as it is known without a notification."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tidings.filters.language.attributes import family
from tidings.filters.language.evaluation import variable_key
from tidings.filters.language.expression import (
    CONDITIONS,
    Attribute,
    Call,
    Case,
    Expression,
    Literal,
    Variable,
    children,
)
from tidings.filters.language.foreign import FOREIGN
from tidings.filters.language.functions import FUNCTIONS, OPERATORS
from tidings.filters.values.casts import CAST_TYPES
from tidings.model import type_of


class Types(Protocol):
    """Anything that provides the types of attributes: a declaration, or the columns of a table."""

    def type(self, path: tuple[str, ...]) -> str | None:
        """The type or family of an attribute; None if it is not known."""


def static_type_of(node: Expression, attributes: Types | None) -> str | None:
    """The type of an expression; "number" for arithmetic, or None if the type depends on the
    notification."""
    if isinstance(node, Attribute):
        return attributes.type(node.path) if attributes else None
    if isinstance(node, Literal):
        return type_of(node.value)
    if isinstance(node, Call):
        return FUNCTIONS[node.name].returns or _type_of_call(node, attributes)
    if isinstance(node, Case):
        return _common_type((*(value for _, value in node.branches), node.default), attributes)
    if isinstance(node, Variable):
        return attributes.type((variable_key(node.name), *node.path)) if attributes else None
    return "boolean"


def _common_type(nodes: Iterable[Expression], attributes: Types | None) -> str | None:
    """The common type of all these values, if there is one; nulls don't count."""
    kinds = {static_type_of(node, attributes) for node in nodes if node != Literal(None)}
    if len(kinds) == 1:
        return kinds.pop()
    families = {family(kind) for kind in kinds}
    return _JOINED.get(families.pop() or "") if len(families) == 1 else None


def _type_of_call(node: Call, attributes: Types | None) -> str | None:
    """The type of a call whose result type depends on its arguments."""
    if node.name == "coalesce":
        return _common_type(node.args, attributes)
    if node.name == "cast":
        target = node.args[1]
        return CAST_TYPES[target.value] if isinstance(target, Literal) else None
    if node.name == "reverse":
        return static_type_of(node.args[0], attributes)
    if node.name == FOREIGN:
        kind: str | None = node.bound.kind
        return kind
    return "number" if node.name in OPERATORS or node.name == "abs" else None


# the common type of values of one family but different types
_JOINED = {"number": "number", "time": "timestamp"}


def is_condition(node: Expression) -> bool:
    """Whether the node itself is a condition; an attribute that may contain a Boolean is not."""
    if isinstance(node, Call):
        returns = FUNCTIONS[node.name].returns
        if node.name == FOREIGN:
            returns = node.bound.kind
        return returns == "boolean" or (node.name == "cast" and node.args[1] == Literal("boolean"))
    if isinstance(node, Case):
        return static_type_of(node, None) == "boolean"
    return isinstance(node, CONDITIONS)


def is_unbounded(term: Expression) -> bool:
    """Whether computing a term may take unlimited time, because it calls an application's function
    or uses a regular expression.

    Unbounded terms are evaluated only for events, never in advance.
    """
    if isinstance(term, Call) and term.name in ("apply", "rlike"):
        return True
    return any(is_unbounded(part) for part in children(term))
