"""The expression tree: a parsed filter, before it is turned into a canonical form.

Values:      Attribute  Variable  Literal  Call  Case
Conditions:  Compare  In  Between  IsNull  IsTruth  Exists  And  Or  Not, and any Call or Case that
             gives a Boolean

Trees are immutable and at most MAX_DEPTH deep (parsers refuse deeper ones), so plain recursion over
them is safe. AND and OR are flat: a chain of a thousand conditions is one node.

Leaves contain only plain values, which can't be part of a reference cycle, so the garbage collector
need not visit leaves. Other nodes may refer to a function of the application, and that function can
be part of a reference cycle.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Literal as Choice

import msgspec

MAX_DEPTH = 100

Comparison = Choice["=", "!=", "<", "<=", ">", ">=", "<=>"]
FLIPPED: dict[Comparison, Comparison] = {
    "=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "<=>": "<=>",
}  # fmt: skip
# every way to write a comparison operator
COMPARISONS: dict[str, Comparison] = {
    "=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
    "<=>": "<=>",
}  # fmt: skip


class Attribute(msgspec.Struct, frozen=True, gc=False):
    """An attribute of the notification; `a.b.c` is ("a", "b", "c")."""

    path: tuple[str, ...]


class Variable(msgspec.Struct, frozen=True, gc=False):
    """The element that the condition of an Exists tests, or a field of that element: `x`,
    `x.price`."""

    name: str
    path: tuple[str, ...] = ()


class Literal(msgspec.Struct, frozen=True, gc=False):
    """A constant: a plain value or, for a list, a tuple of plain values."""

    value: Any


class Call(msgspec.Struct, frozen=True):
    """A function or an arithmetic operator, by its name in functions.FUNCTIONS.

    `bound` holds an object that the function needs but that is not part of the text: the ontology
    of `isa` and `preorder`, the program of `foreign`, or the body of an application's function.
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


class Exists(msgspec.Struct, frozen=True):
    """`exists(items, name -> condition)`: the condition is true for some element of a list.

    The variable's name differs from every attribute and every other variable in the condition.
    """

    items: Expression
    name: str
    condition: Expression


class Case(msgspec.Struct, frozen=True):
    """A CASE: pairs of a condition and a value, followed by a default value."""

    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression


class And(msgspec.Struct, frozen=True):
    items: tuple[Expression, ...]


class Or(msgspec.Struct, frozen=True):
    items: tuple[Expression, ...]


class Not(msgspec.Struct, frozen=True):
    item: Expression


Expression = (
    Attribute | Variable | Literal | Call | Case | Compare | In | Between | IsNull | IsTruth
    | Exists | And | Or | Not
)  # fmt: skip

CONDITIONS = (Compare, In, Between, IsNull, IsTruth, Exists, And, Or, Not)


def is_absent(item: Attribute) -> Call:
    """The condition that the notification does not have the attribute, not even with the value
    null."""
    return Call("isabsent", (item,))


def children(node: Expression) -> tuple[Expression, ...]:
    """The expressions directly below a node."""
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
        case Exists(items=item, condition=condition):
            return (item, condition)
        case Case(branches=branches, default=default):
            return (*(part for branch in branches for part in branch), default)
        case _:
            return ()


def with_children(node: Expression, items: Sequence[Expression]) -> Expression:
    """The same node with these expressions as its children, in the order of `children`."""
    match node:
        case Call(name=name, bound=bound):
            return Call(name, tuple(items), bound)
        case And() | Or():
            return type(node)(tuple(items))
        case Compare(op=op):
            return Compare(op, *items)
        case In():
            return In(items[0], tuple(items[1:]))
        case Between():
            return Between(*items)
        case IsNull() | Not():
            return type(node)(*items)
        case IsTruth(truth=wanted):
            return IsTruth(items[0], wanted)
        case Exists(name=name):
            return Exists(items[0], name, items[1])
        case Case():
            return Case(tuple(zip(items[:-1:2], items[1:-1:2], strict=True)), items[-1])
        case _:
            return node


def rebuild(node: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Replace each part for which `change` returns a node; if it returns None, visit the children
    of the part."""
    new = change(node)
    if new is not None:
        return new
    before = children(node)
    after = [rebuild(child, change) for child in before]
    same = all(one is other for one, other in zip(before, after, strict=True))
    return node if same else with_children(node, after)


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


def variables_of(node: Expression) -> set[str]:
    """The names of all variables that occur in an expression."""
    found = {node.name} if isinstance(node, (Variable, Exists)) else set()
    return found.union(*map(variables_of, children(node)))


def make_exists(items: Expression, name: str, condition: Expression) -> Exists:
    """Build an Exists. Its variable is called `name` in the given condition, and is renamed to the
    first of x, x2, x3 ... that the condition does not use for anything else."""
    taken = {path[0] for path in attributes_of(condition)} | variables_of(condition) - {name}
    names = ("x" if number == 1 else f"x{number}" for number in itertools.count(1))
    new = next(one for one in names if one not in taken)
    if new == name:
        return Exists(items, name, condition)

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Variable) and node.name == name:
            return Variable(new, node.path)
        return None

    return Exists(items, new, rebuild(condition, change))


def depth_of(node: Expression) -> int:
    """The number of levels of an expression."""
    return 1 + max(map(depth_of, children(node)), default=0)
