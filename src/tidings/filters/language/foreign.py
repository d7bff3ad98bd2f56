"""Conditions of other languages inside an expression: the hooks of a dialect's own programs.

Where a dialect can say something that no expression can, its text stays one piece and becomes a
call of the function `foreign`, bound to a program that the dialect made of the text:

    cesql('INT(n) + 1')      Call("foreign", (Literal("INT(n) + 1"), Attribute(("n",))), program)

Everything that is asked about such a call (its name in SQL, its type, its value) is asked of the
program. So nothing here, and nothing in `canonical`, names a dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from tidings.filters.language.attributes import Attributes, Path
from tidings.filters.language.expression import Attribute, Call, Expression, Literal

FOREIGN = "foreign"
"""The name of the call; no text can write it."""


class NestedSplit(msgspec.Struct, frozen=True):
    """A filter that is a plain condition on single values, and a program on nested ones:

    plain OR (isnested(a) OR isnested(b)) AND program
    """

    plain: Expression
    nested: list[Path]
    """The attributes that the second line asks about, here a and b."""
    bounded: list[Path]
    """Attributes that lie in their set of `plain`, or are nested, when the program is true."""


class ForeignProgram(Protocol):
    """What a call of `foreign` is bound to. Programs of equal texts are equal."""

    @property
    def function(self) -> str:
        """The function by which SQL writes it: `cesql` in `cesql('INT(n) + 1')`."""

    @property
    def kind(self) -> str | None:
        """The type of its value; None where that depends on the notification."""

    def value(self, values: Sequence[Any]) -> Any:
        """Its value on the attributes that the call names, in the call's order."""

    def necessary(self, attributes: Attributes | None) -> list[Expression]:
        """Conditions without programs that hold whenever it is true; an index uses them."""

    def split_nested(self, node: Expression, attributes: Attributes | None) -> NestedSplit | None:
        """The parts of a filter that ends with this program; None when it has another shape."""

    def where_single(self) -> Expression | None:
        """The same condition where no value is nested; None when it is needed there too."""


def call_program(program: ForeignProgram, text: str, paths: Iterable[Path]) -> Call:
    """The call of a program, with the attributes that it reads."""
    return Call(FOREIGN, (Literal(text), *map(Attribute, paths)), program)


def program_of(node: Expression) -> ForeignProgram | None:
    """The program that a node calls; None for any other node."""
    if type(node) is not Call or node.name != FOREIGN:
        return None
    program: ForeignProgram = node.bound
    return program
