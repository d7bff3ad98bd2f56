"""Filters on values that may be nested, and the simpler conditions that suffice if no value is
nested.

A value is nested if it is a list, or if it is a struct where a single value is expected. A dialect
whose conditions look inside lists produces `plain OR isnested(a) AND program`; see foreign.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidings.filters.language.expression import (
    And,
    Attribute,
    Call,
    Expression,
    Literal,
    Not,
    Or,
    children,
)
from tidings.filters.language.foreign import program_of
from tidings.filters.language.sql_writer import name_text


def nested_attributes(node: Expression) -> list[str]:
    """The attributes whose nested values a program examines; empty if the filter has no program for
    nested values."""
    calls = list(_find_calls(node))
    programs = [program for call in calls if (program := program_of(call)) is not None]
    if all(program.where_single() is None for program in programs):
        return []
    guards = [call.args[0] for call in calls if call.name in ("isnested", "leaves")]
    return sorted({name_text(item.path) for item in guards if isinstance(item, Attribute)})


def _find_calls(node: Expression) -> Iterator[Call]:
    if isinstance(node, Call):
        yield node
    for child in children(node):
        yield from _find_calls(child)


def without_nested(node: Expression) -> Expression:
    """Simplify the condition for events in which no value is nested."""
    match node:
        case Call("isnested") | Call("array_contains", (Call("leaves"), *_)):
            return Literal(False)
        case Call():
            program = program_of(node)
            single = None if program is None else program.where_single()
            return node if single is None else without_nested(single)
        case And(items):
            return _fold(items, Literal(True), Literal(False), And)
        case Or(items):
            return _fold(items, Literal(False), Literal(True), Or)
        case Not(item):
            inner = without_nested(item)
            return Literal(not inner.value) if isinstance(inner, Literal) else Not(inner)
        case _:
            return node


def _fold(
    items: tuple[Expression, ...], empty: Literal, absorbing: Literal, kind: type[And] | type[Or]
) -> Expression:
    left = [one for one in map(without_nested, items) if one != empty]
    if absorbing in left:
        return absorbing
    return left[0] if len(left) == 1 else kind(tuple(left)) if left else empty
