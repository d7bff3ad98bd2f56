"""Evaluate an expression on an event: the result is a value and, if one occurred, an error.

The first error ends the evaluation ("fail fast"). The result then has this error, and usually the
zero value of the type of the whole expression. AND and OR skip their right side if the left side
decides the result. All other operators evaluate all of their operands; IN evaluates its whole list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.filters.dialects.cesql.builtins import BUILTINS, Failure
from tidings.filters.dialects.cesql.cesql_values import (
    ZEROS,
    CastError,
    Kind,
    cast,
    fits,
    kind_of,
    pattern_parts,
    scalar_of,
)
from tidings.filters.dialects.cesql.syntax import (
    Arithmetic,
    Compare,
    Constant,
    Exists,
    Function,
    In,
    Like,
    Logic,
    Minus,
    Name,
    Node,
    Not,
    Scalar,
)
from tidings.filters.values import like
from tidings.filters.values.work_limit import spend
from tidings.model import ABSENT, normalise

Outcome = tuple[Scalar, str | None]


class Trouble(Exception):
    """An error during evaluation; `value` is the result of the node in which the error occurred."""

    def __init__(self, error: str, value: Scalar | None = None) -> None:
        self.error = error
        self.value = value


def run(node: Node, event: Mapping[str, Any]) -> Outcome:
    """The value of an expression, and the name of its error as in the conformance tests; None if
    there is no error."""
    try:
        return value_of(node, event), None
    except Trouble as trouble:
        if trouble.value is not None:
            return trouble.value, trouble.error
        return ZEROS[static_kind(node) or "boolean"], trouble.error


def value_of(node: Node, event: Mapping[str, Any]) -> Scalar:
    """The value of an expression; raises Trouble for an error."""
    match node:
        case Constant(value):
            return value
        case Name(name):
            found = normalise(event.get(name))
            if found is None or found is ABSENT:
                raise Trouble("missingAttribute")
            return scalar_of(found)
        case Exists(name):
            return event.get(name, ABSENT) is not ABSENT
        case Logic():
            return _evaluate_logic(node, event)
        case Not(item):
            return _negate(_operand(item, event))
        case Compare(op, left, right):
            return _compare(op, _operand(left, event), _operand(right, event))
        case Like(item, pattern):
            return _matches(_as(_operand(item, event), "string"), pattern)
        case In(item, options):
            return _is_member(_operand(item, event), [_operand(one, event) for one in options])
        case Minus(item):
            return _whole(-_as(_operand(item, event), "integer"))
        case Arithmetic(op, left, right):
            return _compute(op, _operand(left, event), _operand(right, event))
        case Function(name, args):
            return _call(name, [_operand(arg, event) for arg in args])


def _operand(node: Node, event: Mapping[str, Any]) -> Any:
    """The value of an operand. If the operand has an error, the value of the error is dropped,
    because the node around the operand has a value of its own."""
    try:
        return value_of(node, event)
    except Trouble as trouble:
        trouble.value = None
        raise


def _as(value: Scalar, kind: Kind) -> Any:
    try:
        return cast(value, kind)
    except CastError:
        raise Trouble("cast") from None


def _whole(value: int) -> int:
    if not fits(value):
        raise Trouble("math")
    return value


def _evaluate_logic(node: Logic, event: Mapping[str, Any]) -> bool:
    outcome: bool = _as(_operand(node.items[0], event), "boolean")
    for item in node.items[1:]:
        if node.op != "XOR" and outcome == (node.op == "OR"):
            return outcome
        value: bool = _as(_operand(item, event), "boolean")
        outcome = outcome != value if node.op == "XOR" else value
    return outcome


def _negate(value: Scalar) -> bool:
    """Unlike AND, OR and BOOL, NOT does not cast an Integer; the conformance tests require this."""
    if kind_of(value) == "integer":
        raise Trouble("cast", True)
    try:
        return not cast(value, "boolean")
    except CastError:
        raise Trouble("cast", True) from None


def _compare(op: str, left: Scalar, right: Scalar) -> bool:
    """= and != cast the left side to the type of the right side; <, <=, > and >= cast both sides to
    Integer."""
    if op in ("=", "!="):
        same = _as(left, kind_of(right)) == right
        return same if op == "=" else not same
    low, high = _as(left, "integer"), _as(right, "integer")
    if op in (">", ">="):
        low, high = high, low
    return bool(low < high if op in ("<", ">") else low <= high)


def _is_member(value: Scalar, options: list[Scalar]) -> bool:
    kind = kind_of(value)
    return value in [_as(option, kind) for option in options]


def _matches(text: str, pattern: str) -> bool:
    spend(len(text))
    compiled = like.compile_pattern(like.join(pattern_parts(pattern)))
    assert compiled is not None
    held = compiled.holds(text)
    if held is None:
        raise Trouble("functionEvaluation", False)
    return held


def _compute(op: str, left: Scalar, right: Scalar) -> int:
    a, b = _as(left, "integer"), _as(right, "integer")
    if op in "/%":
        if b == 0:
            raise Trouble("math")
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return _whole(quotient if op == "/" else a - b * quotient)
    return _whole(a + b if op == "+" else a - b if op == "-" else a * b)


def _call(name: str, args: list[Scalar]) -> Scalar:
    function = BUILTINS.get(name)
    if function is None or not function.accepts(len(args)):
        raise Trouble("missingFunction", False)
    kinds = [function.parameter(place) for place in range(len(args))]
    values = [
        arg if kind is None else _as(arg, kind) for arg, kind in zip(args, kinds, strict=True)
    ]
    spend(sum(len(value) for value in values if isinstance(value, str)))
    found = function.body(*values)
    if isinstance(found, Failure):
        raise Trouble(found.error, found.value)
    return found  # type: ignore[no-any-return]


def static_kind(node: Node) -> Kind | None:
    """The type of a node, if it is the same for every event; None for an attribute."""
    match node:
        case Constant(value):
            return kind_of(value)
        case Name():
            return None
        case Minus() | Arithmetic():
            return "integer"
        case Function(name):
            return BUILTINS[name].returns if name in BUILTINS else None
        case _:
            return "boolean"
