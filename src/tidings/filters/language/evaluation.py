"""The reference semantics: the value of an expression on one notification, in three-valued logic.

This module is written for clarity, not for speed; canonical forms, indexes and Spark are all tested
against it. True, False and None stand for SQL's true, false and unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tidings.filters.language.expression import (
    And,
    Attribute,
    Between,
    Call,
    Case,
    Compare,
    Comparison,
    Exists,
    Expression,
    In,
    IsNull,
    IsTruth,
    Literal,
    Not,
    Or,
    Variable,
)
from tidings.filters.language.functions import BOUND, FUNCTIONS
from tidings.filters.values.work_limit import look, spend
from tidings.model import ABSENT, Event, compare, normalise

Truth = bool | None


def evaluate(node: Expression, event: Event) -> Any:
    """The value of an expression on a notification; a condition gives True, False or None."""
    match node:
        case Attribute(path):
            return read(event, path)
        case Literal(value):
            return list(value) if isinstance(value, tuple) else value
        case Compare(op, left, right):
            return apply_comparison(op, evaluate(left, event), evaluate(right, event))
        case And(items):
            return _evaluate_and(items, event)
        case Or(items):
            return _evaluate_or(items, event)
        case Not(item):
            return _negate(truth(item, event))
        case Call():
            return _call(node, event)
        case In(item, options):
            value = evaluate(item, event)
            return _any_of([apply_comparison("=", value, evaluate(o, event)) for o in options])
        case Between(item, low, high):
            value = evaluate(item, event)
            not_below = apply_comparison(">=", value, evaluate(low, event))
            not_above = apply_comparison("<=", value, evaluate(high, event))
            return _all_of([not_below, not_above])
        case IsNull(item):
            return evaluate(item, event) is None
        case IsTruth(item, wanted):
            return truth(item, event) is wanted
        case Variable(name, path):
            return read(event, (variable_key(name), *path))
        case Exists(items, name, condition):
            return _evaluate_exists(evaluate(items, event), name, condition, event)
        case Case(branches, default):
            for condition, value in branches:
                if truth(condition, event) is True:
                    return evaluate(value, event)
            return evaluate(default, event)


def variable_key(name: str) -> str:
    """The key under which an event holds the value of a variable; no attribute has this key."""
    return "\0" + name


class _Scope(Mapping[str, Any]):
    """An event in which a variable has a value."""

    __slots__ = ("_name", "_outer", "_value")

    def __init__(self, outer: Event, name: str, value: Any) -> None:
        self._outer, self._name, self._value = outer, variable_key(name), value

    def get(self, name: str, default: Any = None) -> Any:
        return self._value if name == self._name else self._outer.get(name, default)

    def __getitem__(self, name: str) -> Any:
        return self._value if name == self._name else self._outer[name]

    def __iter__(self) -> Iterator[str]:
        yield from (*self._outer, self._name)

    def __len__(self) -> int:
        return len(self._outer) + 1


def _evaluate_exists(items: Any, name: str, condition: Expression, event: Event) -> Truth:
    """True if the condition is true for some element; otherwise unknown if the condition is unknown
    for some element, or if there is no list; otherwise false."""
    if not isinstance(items, list):
        return None
    spend(len(items))
    unknown = False
    for item in items:
        value = truth(condition, _Scope(event, name, item))
        if value is True:
            return True
        unknown = unknown or value is None
    return None if unknown else False


def term_value(node: Expression, event: Event) -> Any:
    """The value of a term of a filter, or ABSENT if the term is an attribute that the notification
    lacks. Computing a term counts as work on the notification."""
    if type(node) is Attribute:  # the usual case, which needs no computation
        return find(event, node.path)
    look()
    return evaluate(node, event)


def truth(node: Expression, event: Event) -> Truth:
    """The value of a condition; a value that is not a Boolean counts as unknown."""
    value = evaluate(node, event)
    return value if value is True or value is False else None


def read(event: Event, path: tuple[str, ...]) -> Any:
    """The value at a path; null if a step is missing. If a path leads through a list, its value is
    a list."""
    value = find(event, path)
    return None if value is ABSENT else value


def find(event: Event, path: tuple[str, ...]) -> Any:
    """The value at a path, or ABSENT if a step is missing. If the path leads through a list,
    a missing value becomes null in the resulting list."""
    value: Any = event.get(path[0], ABSENT)
    for step in path[1:]:
        value = _step(value, step)
    return normalise(value)


def _step(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name, ABSENT)
    value = normalise(value)
    if isinstance(value, list):
        spend(len(value))
        found = [_step(one, name) for one in value]
        return [None if one is ABSENT else one for one in found]
    return ABSENT


def apply_comparison(op: Comparison, left: Any, right: Any) -> Truth:
    if type(left) is list:
        spend(len(left))
    if op == "<=>":
        if left is None or right is None:
            return left is None and right is None
        return compare(left, right) == 0
    order = compare(left, right)
    if order is None:
        return None
    match op:
        case "=":
            return order == 0
        case "!=":
            return order != 0
        case "<":
            return order < 0
        case "<=":
            return order <= 0
        case ">":
            return order > 0
        case ">=":
            return order >= 0


def _evaluate_and(items: tuple[Expression, ...], event: Event) -> Truth:
    unknown = False
    for item in items:
        value = truth(item, event)
        if value is False:
            return False
        unknown = unknown or value is None
    return None if unknown else True


def _evaluate_or(items: tuple[Expression, ...], event: Event) -> Truth:
    unknown = False
    for item in items:
        value = truth(item, event)
        if value is True:
            return True
        unknown = unknown or value is None
    return None if unknown else False


def _all_of(values: list[Truth]) -> Truth:
    if False in values:
        return False
    return None if None in values else True


def _any_of(values: list[Truth]) -> Truth:
    if True in values:
        return True
    return None if None in values else False


def _negate(value: Truth) -> Truth:
    return None if value is None else not value


def _call(node: Call, event: Event) -> Any:
    function = FUNCTIONS[node.name]
    if function.any_type:  # to all other functions, an absent attribute is null
        values = [find(event, arg.path) if type(arg) is Attribute else evaluate(arg, event)
                  for arg in node.args]  # fmt: skip
    else:
        values = [evaluate(arg, event) for arg in node.args]
    if function.strict and any(value is None for value in values):
        return None
    return function.body(node.bound, *values) if node.name in BOUND else function.body(*values)
