"""The expression tree: a parsed filter, before it is turned into a canonical form.

Values:      Attribute  Literal  Call
Conditions:  Compare  In  Between  IsNull  IsTruth  And  Or  Not, and any Call that gives a Boolean

Trees are immutable and at most MAX_DEPTH deep (parsers refuse deeper ones), so plain recursion over
them is safe. AND and OR are flat: a chain of a thousand conditions is one node.

Leaves hold plain values, which can't be part of a cycle, so the garbage collector need not visit
them. Other nodes may refer to a function of the application, which can be.
"""

from __future__ import annotations

from typing import Any, Literal as Choice

import msgspec

MAX_DEPTH = 100

Comparison = Choice["=", "!=", "<", "<=", ">", ">=", "<=>"]
FLIPPED: dict[Comparison, Comparison] = {
    "=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "<=>": "<=>",
}  # fmt: skip
# every way to write a comparison
COMPARISONS: dict[str, Comparison] = {
    "=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
    "<=>": "<=>",
}  # fmt: skip


class Attribute(msgspec.Struct, frozen=True, gc=False):
    """An attribute of the notification; `a.b.c` is ("a", "b", "c")."""

    path: tuple[str, ...]


class Literal(msgspec.Struct, frozen=True, gc=False):
    """A constant: a plain value, or a tuple of them for a list."""

    value: Any


class Call(msgspec.Struct, frozen=True):
    """A function or an arithmetic operator by its name in functions.FUNCTIONS.

    `bound` holds an object that the function needs but the text lacks: the ontology of `isa` and
    `preorder`, the program of `foreign`, or the body of an application's function.
    """

    name: str
    args: tuple[Expression, ...]
    bound: Any = None


class Compare(msgspec.Struct, frozen=True):
    op: Comparison
    left: Expression
    right: Expression


class In(msgspec.Struct, frozen=True):
    item: Expression
    options: tuple[Expression, ...]


class Between(msgspec.Struct, frozen=True):
    item: Expression
    low: Expression
    high: Expression


class IsNull(msgspec.Struct, frozen=True):
    item: Expression


class IsTruth(msgspec.Struct, frozen=True):
    """`item IS TRUE` or `item IS FALSE`: never unknown."""

    item: Expression
    truth: bool


class And(msgspec.Struct, frozen=True):
    items: tuple[Expression, ...]


class Or(msgspec.Struct, frozen=True):
    items: tuple[Expression, ...]


class Not(msgspec.Struct, frozen=True):
    item: Expression


Expression = Attribute | Literal | Call | Compare | In | Between | IsNull | IsTruth | And | Or | Not

CONDITIONS = (Compare, In, Between, IsNull, IsTruth, And, Or, Not)


def is_absent(item: Attribute) -> Call:
    """The condition that the notification does not have the attribute, not even as null."""
    return Call("isabsent", (item,))


def children(node: Expression) -> tuple[Expression, ...]:
    """The expressions directly below this one."""
    match node:
        case Call(args=items) | And(items=items) | Or(items=items):
            return items
        case Compare(left=left, right=right):
            return (left, right)
        case In(item=item, options=options):
            return (item, *options)
        case Between(item=item, low=low, high=high):
            return (item, low, high)
        case IsNull(item=item) | IsTruth(item=item) | Not(item=item):
            return (item,)
        case _:
            return ()


def attributes_of(node: Expression) -> set[tuple[str, ...]]:
    """The paths of all attributes that an expression reads."""
    found: set[tuple[str, ...]] = set()
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, Attribute):
            found.add(one.path)
        else:
            stack.extend(children(one))
    return found


def reads_any(node: Expression) -> bool:
    """Whether an expression reads any attribute."""
    return isinstance(node, Attribute) or any(map(reads_any, children(node)))


def is_constant(node: Expression) -> bool:
    return isinstance(node, Literal)
