"""Translate the alternatives for one leaf of an event pattern to a condition on one attribute."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tidings.filters.dialects.eventbridge.pattern import (
    ABSENT,
    CIDR,
    EXACT,
    EXISTS,
    NULL,
    NUMERIC,
    PREFIX,
    PREFIX_LETTERS,
    SAME_LETTERS,
    SUFFIX,
    SUFFIX_LETTERS,
    Alternative,
)
from tidings.filters.language.expression import (
    And,
    Attribute,
    Between,
    Call,
    Compare,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTruth,
    Literal,
    Not,
    Or,
    is_absent,
)
from tidings.filters.values import like

ON_THE_VALUE = frozenset({EXACT, NULL, EXISTS, ABSENT, NUMERIC, PREFIX})
"""The kinds that test the attribute's own value against a set."""

_WILD = re.compile(r"\\([\\*])|(\*)|([^\\*]+)")


def condition(alternatives: Iterable[Alternative], item: Attribute, *, single: bool) -> Expression:
    """A condition that is true for values that match an alternative and are not nested.

    `single` says that no value is nested.
    """
    tests = [_test(one, item, single) for one in alternatives]
    return tests[0] if len(tests) == 1 else Or(tuple(tests))


def _test(one: Alternative, item: Attribute, single: bool) -> Expression:
    if one.kind == ABSENT:
        return is_absent(item)
    if one.kind == EXISTS:
        return _is_there(item, single)
    test = _test_values(one.kind, one.values, item)
    if not one.but:
        return test
    # for null and for values of other types, the test is unknown, but `anything-but` matches such
    # values
    other = Not(IsTruth(test, True))
    there = _is_there(item, single)
    return And((*(there.items if isinstance(there, And) else (there,)), other))


def _is_there(item: Attribute, single: bool) -> Expression:
    there = Not(is_absent(item))
    return there if single else And((there, Not(Call("isnested", (item,)))))


def _test_values(kind: str, values: tuple[Any, ...], item: Attribute) -> Expression:
    if kind == NULL:
        return And((IsNull(item), Not(is_absent(item))))
    if kind == EXACT:
        options = tuple(Literal(value) for value in values)
        return Compare("=", item, options[0]) if len(options) == 1 else In(item, options)
    if kind == NUMERIC:
        return _test_numbers(values, item)
    tests = [_test_text(kind, str(value), item) for value in values]
    return tests[0] if len(tests) == 1 else Or(tuple(tests))


def _test_numbers(pairs: tuple[tuple[Comparison, float], ...], item: Attribute) -> Expression:
    tests = [Compare(op, item, Literal(number)) for op, number in pairs]
    if len(tests) == 1:
        return tests[0]
    low, high = tests
    if low.op == ">=" and high.op == "<=":
        return Between(item, low.right, high.right)
    return And((low, high))


def _test_text(kind: str, value: str, item: Attribute) -> Expression:
    if kind == PREFIX:
        return Call("startswith", (item, Literal(value)))
    if kind == SUFFIX:
        return Call("endswith", (item, Literal(value)))
    if kind == CIDR:
        return Call("cidr", (item, Literal(value)))
    lowered = Call("lower", (item,))
    if kind == SAME_LETTERS:
        return Compare("=", lowered, Literal(value.lower()))
    if kind == PREFIX_LETTERS:
        return Call("startswith", (lowered, Literal(value.lower())))
    if kind == SUFFIX_LETTERS:
        return Call("endswith", (lowered, Literal(value.lower())))
    return Call("like", (item, Literal(_like_pattern(value))))


def _like_pattern(wildcard: str) -> str:
    """Convert a wildcard pattern to a LIKE pattern."""
    parts: list[like.Part] = []
    text = ""
    for escaped, star, run in _WILD.findall(wildcard):
        if star:
            parts += [("text", text)] * bool(text) + [(like.ANY, like.ANY)]
            text = ""
        else:
            text += escaped or run
    return like.join((*parts, *[("text", text)] * bool(text)))
