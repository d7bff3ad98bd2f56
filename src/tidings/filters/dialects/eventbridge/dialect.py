"""The dialect `eventbridge`: event patterns of AWS EventBridge as expressions.

A leaf may be the value of an attribute, or may lie in an array. If no leaf lies in an array, the
pattern is a plain condition on attributes, which an index handles well. If a leaf lies in an array,
a program matches the pattern against the arrays. So a pattern that tests `a` and `b` becomes this
condition:

    a = 'x' AND b > 5
    OR (isnested(a) OR isnested(b)) AND event_pattern('{...}')

The condition before the OR has the same boxes as a filter written in SQL. The condition after the
OR applies only if `a` or `b` is nested, so it is never evaluated for an event without nested
values. An attribute that is declared with a type other than list or struct is never nested; if all
attributes are declared with such types, the OR and the condition after the OR are omitted.
"""

from __future__ import annotations

from typing import Any

from tidings.filters.dialects.eventbridge import own_words
from tidings.filters.dialects.eventbridge.bound_pattern import BoundPattern
from tidings.filters.dialects.eventbridge.flat_pattern import (
    NEVER,
    is_single,
    list_above,
    plain_condition,
)
from tidings.filters.dialects.eventbridge.pattern import (
    EXACT,
    NUMERIC,
    Alternative,
    Path,
    Pattern,
    PatternField,
)
from tidings.filters.dialects.eventbridge.pattern_reader import (
    path_text,
    position,
    read_pattern,
    show_json,
)
from tidings.filters.language.attributes import Attributes, family
from tidings.filters.language.dialect import Context, Embedded, OwnWords
from tidings.filters.language.expression import And, Attribute, Call, Expression, Literal, Or
from tidings.filters.language.foreign import programs_of
from tidings.filters.language.sql_writer import name_text, text_of
from tidings.model import FilterError, LimitError, article, type_of

MOST_ELEMENTS = 8  # for at most this many values, a declared list is tested value by value


def parse(text: str, context: Context) -> Expression:
    """Parse an event pattern."""
    pattern = read_pattern(text)
    if sum(len(field.alternatives) for field in pattern.all_fields()) > context.most_parts:
        raise LimitError(
            f"the pattern has more than {context.most_parts:,} alternatives; use several filters",
            text,
        )
    if context.attributes is not None:
        _check(pattern, context.attributes, text)
    return expression_of(pattern, context.attributes)


def embed(text: str, context: Context) -> Embedded:
    """Parse the pattern inside `event_pattern('{...}')` and return a call to its program."""
    pattern = read_pattern(text)
    if context.attributes is not None:
        _check(pattern, context.attributes, text)
    parts = sum(len(field.alternatives) for field in pattern.all_fields())
    return Embedded(BoundPattern(pattern).call(), parts)


def expression_of(pattern: Pattern, attributes: Attributes | None) -> Expression:
    """Translate a pattern to a condition on plain values, combined with a program for nested
    values."""
    plain = plain_condition(pattern, attributes)
    fields = {field.path: field for field in pattern.all_fields()
              if not is_single(field.path, attributes)}  # fmt: skip
    if not fields:
        return plain
    # the keys are texts or paths, not values, because 1 and true would be the same key of a dict
    guards: dict[object, Expression] = {}
    for path, field in fields.items():
        # `in` can't be used here, because it treats 1 and true as equal
        if _is_listed(field, attributes) and any(field is one for one in pattern.fields):
            guards |= {text_of(one): one for one in _containment_tests(field)}
        else:
            nested = Attribute(list_above(path, attributes) or path)
            guards[nested.path] = Call("isnested", (nested,))
    distinct = tuple(guards.values())
    either = distinct[0] if len(distinct) == 1 else Or(distinct)
    held = And((either, BoundPattern(pattern, plain).call()))
    return held if plain is NEVER else Or((plain, held))


def _is_listed(field: PatternField, attributes: Attributes | None) -> bool:
    """Whether a field tests a declared list for a few values; if so, each value gets its own
    test."""
    if attributes is None or field.values is None or len(field.values) > MOST_ELEMENTS:
        return False
    return attributes.type(field.path) == "list" and list_above(field.path, attributes) is None


def _containment_tests(field: PatternField) -> list[Expression]:
    leaves = Call("leaves", (Attribute(field.path),))
    return [Call("array_contains", (leaves, Literal(value))) for value in field.values or ()]


def restore(node: Expression) -> str | None:
    """The first pattern that an expression calls."""
    programs = (one for one in programs_of(node) if isinstance(one, BoundPattern))
    return next((one.text for one in programs), None)


WORDS = OwnWords(own_words.explain, own_words.list_fields, restore)


# -- declared attributes -------------------------------------------------------------------------


def _check(pattern: Pattern, attributes: Attributes, text: str) -> None:
    """Raise FilterError if a field is not declared or has a type that can't match the pattern."""
    for field in pattern.fields:
        problem = attributes.problem(field.path)
        if problem is None and is_single(field.path, attributes):
            problem = _describe_mismatch(field, str(attributes.type(field.path)))
        if problem is not None:
            raise FilterError(
                f"{path_text(field.path)}: {problem}", text, _find_place(text, field.path)
            )
    for choice in pattern.choices:
        for option in choice.options:
            _check(option, attributes, text)


def _find_place(text: str, path: Path) -> int:
    try:
        return position(text, path)
    except (ValueError, IndexError):  # inside $or, the text has levels that `path` does not have
        return max(text.rfind(f'"{path[-1]}"'), 0)


def _describe_mismatch(field: PatternField, kind: str) -> str | None:
    name = name_text(field.path)
    for one in field.alternatives:
        for value in _needed_values(one):
            if family(type_of(value)) != family(kind):
                return f"{name} is {article(kind)} and can't be {_describe_test(one, value)}"
    return None


def _needed_values(one: Alternative) -> tuple[Any, ...]:
    """Sample values of the type that an alternative requires."""
    if one.kind == NUMERIC:
        return tuple(number for _, number in one.values)
    return one.values


def _describe_test(one: Alternative, value: Any) -> str:
    if one.kind == EXACT:
        return f"compared with {show_json(value)}"
    return f"tested with {one.kind.partition('/')[0]}"
