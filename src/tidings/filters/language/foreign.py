"""Conditions in other languages inside an expression: the interface of a dialect's programs.

Some conditions of a dialect can't be written as an expression. The text of such a condition stays
in one piece. It becomes a call to the function `foreign`, bound to a program that the dialect
compiled from the text:

    cesql('INT(n) + 1')      Call("foreign", (Literal("INT(n) + 1"), Attribute(("n",))), program)

The program provides the call's name in SQL, its type and its value. So nothing here or in
`canonical` depends on a particular dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from tidings.filters.language.attributes import Attributes
from tidings.filters.language.expression import (
    Attribute,
    Call,
    Expression,
    Literal,
    attributes_of,
    children,
)
from tidings.model import Path

FOREIGN = "foreign"
"""The name of the call; a filter's text can't use it."""


class NestedSplit(msgspec.Struct, frozen=True):
    """A filter that is split into a plain condition on single values and a program on nested
    values.

    The whole filter is `plain OR (isnested(a) OR isnested(b)) AND program`.
    """

    plain: Expression
    nested: list[Path]
    """The attributes that `isnested` tests, here a and b."""
    bounded: list[Path]
    """If the program is true, each of these attributes is nested, or has a value in the set that
    `plain` allows."""


class ForeignProgram(Protocol):
    """The program that a call to `foreign` is bound to. Programs with equal texts are equal."""

    @property
    def function(self) -> str:
        """The SQL function that embeds the program: `cesql` in `cesql('INT(n) + 1')`."""

    @property
    def kind(self) -> str | None:
        """The type of the program's value; None if that depends on the notification."""

    def value(self, values: Sequence[Any]) -> Any:
        """Run the program on the values of the attributes that the call reads, in the order of the
        call."""

    def necessary(self, attributes: Attributes | None) -> list[Expression]:
        """For an index: conditions that contain no program and hold whenever the program is
        true."""

    def split_nested(self, node: Expression, attributes: Attributes | None) -> NestedSplit | None:
        """Split a filter that ends with a call to this program; None if the filter has a different
        structure."""

    def where_single(self) -> Expression | None:
        """A condition that is equivalent to the program if no value is nested; None if the program
        is needed even then."""

    def null_paths(self) -> list[Path]:
        """The attributes for which the program distinguishes null from absent, including those of
        structs in lists."""


def call_program(program: ForeignProgram, text: str, paths: Iterable[Path]) -> Call:
    """Build the call to a program, with the attributes that the program reads."""
    return Call(FOREIGN, (Literal(text), *map(Attribute, paths)), program)


def null_paths(node: Expression) -> set[Path]:
    """The attributes for which an expression distinguishes null from absent."""
    if type(node) is not Call:
        return set().union(*map(null_paths, children(node)))
    if node.name == FOREIGN:
        return set(node.bound.null_paths())
    if node.name == "isabsent":
        return attributes_of(node)
    return set().union(*map(null_paths, node.args))


def program_of(node: Expression) -> ForeignProgram | None:
    """The program that a node calls; None for any other node."""
    if type(node) is not Call or node.name != FOREIGN:
        return None
    program: ForeignProgram = node.bound
    return program


def programs_of(node: Expression) -> Iterator[ForeignProgram]:
    """The programs that an expression calls, in the order of the calls."""
    program = program_of(node)
    if program is not None:
        yield program
    for one in children(node):
        yield from programs_of(one)
