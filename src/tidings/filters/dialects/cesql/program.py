"""An expression of CloudEvents SQL as a function of the attributes that it reads.

In the default dialect it is written `cesql('INT(n) + 1')`. Its value is null where the evaluation
has an error, so as a condition it is true, false or unknown like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidings.filters.dialects.cesql.machine import Trouble, static_kind, value_of
from tidings.filters.dialects.cesql.syntax import Node, Scalar, names_of, text_of
from tidings.filters.dialects.cesql.values import Kind, typed
from tidings.filters.language.expression import Attribute, Call, Expression, Literal

_NESTED = (list, tuple, Mapping)


class Program(msgspec.Struct, frozen=True):
    """What `Call("cesql", ...)` is bound to."""

    node: Node
    names: tuple[str, ...]
    kind: Kind | None

    def value(self, values: tuple[Any, ...]) -> Scalar | None:
        """What it is worth on values of the attributes; null for an error."""
        try:
            # what is nested is written once, however often it is read
            given = (typed(one) if isinstance(one, _NESTED) else one for one in values)
            return value_of(self.node, dict(zip(self.names, given, strict=True)))
        except Trouble:
            return None


def called(node: Node) -> Expression:
    """The call of a node's program; its value where it reads no attribute."""
    names = tuple(names_of(node))
    program = Program(node, names, static_kind(node))
    if not names:
        return Literal(program.value(()))
    attributes = [Attribute((name,)) for name in names]
    return Call("cesql", (Literal(text_of(node)), *attributes), program)
