"""An expression of CloudEvents SQL as a function of the attributes that it reads.

In SQL such a function is written `cesql('INT(n) + 1')`. The value is null if the evaluation has an
error, so, used as a condition, the function is true, false or unknown like any other condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from tidings.filters.dialects.cesql.cesql_values import Kind, scalar_of
from tidings.filters.dialects.cesql.machine import Trouble, static_kind, value_of
from tidings.filters.dialects.cesql.syntax import Exists, Node, Scalar, children, names_of, text_of
from tidings.filters.language.attributes import Attributes
from tidings.filters.language.expression import Expression, Literal
from tidings.filters.language.foreign import call_program
from tidings.model import ABSENT

_NESTED = (list, tuple, Mapping)
_SINGLE = frozenset({str, int, float, bool, type(None), type(ABSENT)})  # a fast check


class Program(msgspec.Struct, frozen=True):
    """An expression with the names that it reads; a ForeignProgram."""

    function: ClassVar[str] = "cesql"

    node: Node
    names: tuple[str, ...]
    kind: Kind | None

    def value(self, values: Sequence[Any]) -> Scalar | None:
        """Evaluate the expression on the values of its attributes; null for an error."""
        try:
            # convert a nested value only once, even if the expression reads it several times
            given = [one if type(one) in _SINGLE or not isinstance(one, _NESTED) else scalar_of(one)
                     for one in values]  # fmt: skip
            return value_of(self.node, dict(zip(self.names, given, strict=True)))
        except Trouble:
            return None

    def necessary(self, attributes: Attributes | None) -> list[Expression]:
        """Always empty: the translator has already turned everything that an index can use into
        sets."""
        return []

    def split_nested(self, node: Expression, attributes: Attributes | None) -> None:
        """Always None: a nested value is converted to JSON, so the program treats all values
        alike."""

    def where_single(self) -> None:
        """Always None, because single values need the program too."""

    def null_paths(self) -> list[tuple[str, ...]]:
        """The attributes that the program tests with EXISTS; for any other use, null and absent are
        both errors."""
        found, stack = list[tuple[str, ...]](), [self.node]
        while stack:
            node = stack.pop()
            if isinstance(node, Exists):
                found.append((node.name,))
            stack.extend(children(node))
        return found


def call_of(node: Node) -> Expression:
    """Build a call to the program of a node, or a constant if the node reads no attribute."""
    names = tuple(names_of(node))
    program = Program(node, names, static_kind(node))
    if not names:
        return Literal(program.value(()))
    return call_program(program, text_of(node), ((name,) for name in names))
