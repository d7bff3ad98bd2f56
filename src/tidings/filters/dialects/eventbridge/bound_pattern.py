"""A pattern as a program that matches values; in SQL, it is written `event_pattern('{...}')`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeGuard

from tidings.filters.dialects.eventbridge.conditions import ON_THE_VALUE, condition
from tidings.filters.dialects.eventbridge.flat_pattern import list_above, plain_condition
from tidings.filters.dialects.eventbridge.pattern import (
    Path,
    Pattern,
    PatternField,
    combinations,
    text_of_pattern,
)
from tidings.filters.dialects.eventbridge.pattern_match import Need, fits, needs_by_root
from tidings.filters.language.attributes import Attributes
from tidings.filters.language.expression import And, Attribute, Call, Expression, Or
from tidings.filters.language.foreign import NestedSplit, call_program, program_of
from tidings.filters.language.sql_writer import text_of


class BoundPattern:
    """A pattern with its text and the names of the attributes that it reads; implements
    ForeignProgram."""

    function = "event_pattern"
    kind = "boolean"

    def __init__(self, pattern: Pattern, plain: Expression | None = None) -> None:
        self.pattern = pattern
        self.plain = plain  # the condition for values that are not nested, if it is known
        self.text = text_of_pattern(pattern)
        self.roots = pattern.roots()

    def call(self) -> Call:
        """The pattern as a single condition."""
        return call_program(self, self.text, ((root,) for root in self.roots))

    def value(self, values: Sequence[Any]) -> bool:
        """Whether the pattern matches, given the values of `roots`, in the order of `roots`."""
        found = dict(zip(self.roots, values, strict=True))
        return any(
            all(fits(found[root], needs) for root, needs in by_root.items())
            for by_root in self._needs
        )

    @cached_property
    def _needs(self) -> list[dict[str, tuple[Need, ...]]]:
        return [needs_by_root(fields) for fields in combinations(self.pattern)]

    def necessary(self, attributes: Attributes | None) -> list[Expression]:
        """For each field that is tested for a set of values: the condition that the field has one
        of these values or is nested."""
        out: list[Expression] = []
        for field in self._set_fields(attributes):
            item = Attribute(field.path)
            nested = Call("isnested", (item,))
            out.append(Or((condition(field.alternatives, item, single=False), nested)))
        return out

    def split_nested(self, node: Expression, attributes: Attributes | None) -> NestedSplit | None:
        """Split an expression that `expression_of` built; None if it has `$or` or a declared
        list."""
        if type(node) is not Or or len(node.items) != 2 or type(node.items[1]) is not And:
            return None
        either, pattern = node.items[1].items[0], node.items[1].items[-1]
        if len(node.items[1].items) != 2 or program_of(pattern) is not self:
            return None
        guards = either.items if type(either) is Or else (either,)
        nested: list[Path] = []
        for guard in guards:
            if not _is_call(guard, "isnested") or type(guard.args[0]) is not Attribute:
                return None
            nested.append(guard.args[0].path)
        tested = {field.path for field in self.pattern.fields}
        if self.pattern.choices or not tested >= set(nested):
            return None
        # the condition was parsed from SQL that an earlier version may have written, so the
        # texts are compared
        if node.items[0] is not self.plain:
            expected = plain_condition(self.pattern, attributes)
            if text_of(node.items[0]) != text_of(expected):
                return None
        bounded = [field.path for field in self._set_fields(attributes)]
        return NestedSplit(node.items[0], nested, bounded)

    def where_single(self) -> Expression:
        return plain_condition(self.pattern, None)

    def null_paths(self) -> list[Path]:
        return [field.path for field in self.pattern.all_fields() if field.tells_null]

    def _set_fields(self, attributes: Attributes | None) -> list[PatternField]:
        """The fields that are not inside a list and whose own value is tested against a set."""
        return [
            field
            for field in self.pattern.fields
            if not list_above(field.path, attributes)
            and all(one.kind in ON_THE_VALUE for one in field.alternatives)
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundPattern) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def _is_call(node: Expression, name: str) -> TypeGuard[Call]:
    return type(node) is Call and node.name == name
