"""The dialect `eventbridge`: event patterns of AWS EventBridge as expressions.

A leaf may be a value or lie in an array. Where all are values, which is what an index is good at,
the pattern is a plain condition on attributes; where one of them is nested, the pattern is held
against the arrays as it stands. So a pattern on `a` and `b` is

    a = 'x' AND b > 5
    OR (isnested(a) OR isnested(b)) AND event_pattern('{...}')

The first line is what it would be in SQL, and its boxes are the same. The others are about `a` or
`b` being nested, so an event of plain values never comes near them. An attribute that is declared
as anything but a list or a struct is never nested, and the second line is gone when all are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

from tidings.filters.dialects.eventbridge.conditions import ON_THE_VALUE, condition
from tidings.filters.dialects.eventbridge.pattern import (
    EXACT,
    NUMERIC,
    Alternative,
    Field,
    Path,
    Pattern,
)
from tidings.filters.dialects.eventbridge.pattern_match import BoundPattern
from tidings.filters.dialects.eventbridge.pattern_reader import (
    path_text,
    position,
    read_pattern,
    shown,
)
from tidings.filters.dialects.registry import Context
from tidings.filters.language.attributes import Attributes, article, family
from tidings.filters.language.expression import (
    And,
    Attribute,
    Call,
    Expression,
    IsNull,
    Literal,
    Not,
    Or,
    children,
)
from tidings.filters.language.sql_writer import name_text, text_of
from tidings.model import FilterError, LimitError, type_of

MOST_ELEMENTS = 8  # values that a nested field is looked up by, one by one
_NESTED = ("list", "struct")
_NEVER = Literal(False)


def parse_eventbridge(text: str, context: Context) -> Expression:
    """The expression of an event pattern."""
    pattern = read_pattern(text)
    if sum(len(field.alternatives) for field in pattern.all_fields()) > context.most_parts:
        raise LimitError(
            f"the pattern has more than {context.most_parts:,} alternatives; use several filters",
            text,
        )
    if context.attributes is not None:
        _check(pattern, context.attributes, text)
    return expression_of(pattern, context.attributes)


def bound_pattern(text: str, attributes: Attributes | None) -> BoundPattern:
    """The pattern of a text, checked and ready to be held against values."""
    pattern = read_pattern(text)
    if attributes is not None:
        _check(pattern, attributes, text)
    return BoundPattern(pattern)


def expression_of(pattern: Pattern, attributes: Attributes | None) -> Expression:
    """A pattern as conditions on values, and what it is where values are nested."""
    plain = _joined(_plain(pattern, attributes))
    fields = {field.path: field for field in pattern.all_fields()
              if not is_single(field.path, attributes)}  # fmt: skip
    if not fields:
        return plain
    guards: dict[object, Expression] = {}  # by what tells them apart: 1 and true are equal
    for path, field in fields.items():
        # not `in`, which takes 1 and true for one value
        if _is_listed(field, attributes) and any(field is one for one in pattern.fields):
            guards |= {text_of(one): one for one in _containing(field)}
        else:
            nested = Attribute(_list_above(path, attributes) or path)
            guards[nested.path] = Call("isnested", (nested,))
    distinct = tuple(guards.values())
    either = distinct[0] if len(distinct) == 1 else Or(distinct)
    held = And((either, residual(BoundPattern(pattern))))
    return held if plain is _NEVER else Or((plain, held))


def residual(bound: BoundPattern) -> Call:
    """The pattern as a condition of its own."""
    roots = tuple(Attribute((root,)) for root in bound.roots)
    return Call("event_pattern", (Literal(bound.text), *roots), bound)


def nested_pattern(node: Expression) -> tuple[Expression, list[Path], Call] | None:
    """What `expression_of` made: the plain condition, what may be nested, the pattern. None for
    anything else, and where there is `$or` or a declared list."""
    if type(node) is not Or or len(node.items) != 2 or type(node.items[1]) is not And:
        return None
    either, pattern = node.items[1].items[0], node.items[1].items[-1]
    if len(node.items[1].items) != 2 or not _is_call(pattern, "event_pattern"):
        return None
    guards = either.items if type(either) is Or else (either,)
    nested: list[Path] = []
    for guard in guards:
        if not _is_call(guard, "isnested") or type(guard.args[0]) is not Attribute:
            return None
        nested.append(guard.args[0].path)
    tested = {field.path for field in pattern.bound.pattern.fields}
    if pattern.bound.pattern.choices or not tested >= set(nested):
        return None
    return node.items[0], nested, pattern


def _is_call(node: Expression, name: str) -> TypeGuard[Call]:
    return type(node) is Call and node.name == name


def on_the_value(pattern: Call, attributes: Attributes | None) -> list[Path]:
    """The paths of the fields that are a set of values, and not below a list."""
    return [
        field.path
        for field in pattern.bound.pattern.fields
        if not _list_above(field.path, attributes) and _is_set(field)
    ]


def _is_set(field: Field) -> bool:
    return all(one.kind in ON_THE_VALUE for one in field.alternatives)


def necessary(bound: BoundPattern, attributes: Attributes | None) -> list[Expression]:
    """What is so when a pattern holds: each field that is a set of values is in it, or nested."""
    out: list[Expression] = []
    for field in bound.pattern.fields:
        if not _list_above(field.path, attributes) and _is_set(field):
            item = Attribute(field.path)
            nested = Call("isnested", (item,))
            out.append(Or((condition(field.alternatives, item, single=False), nested)))
    return out


def is_single(path: Path, attributes: Attributes | None) -> bool:
    """Whether what is declared says that a path leads to one value."""
    if attributes is None or attributes.type(path) in (None, *_NESTED):
        return False
    return _list_above(path, attributes) is None


def _is_nested(path: Path, attributes: Attributes | None) -> bool:
    """Whether what is declared says that a path never leads to a value that is not nested."""
    if attributes is None:
        return False
    return attributes.type(path) in _NESTED or _list_above(path, attributes) is not None


def _list_above(path: Path, attributes: Attributes | None) -> Path | None:
    """The declared list that a path leads through: what is there is nested, whatever its type."""
    if attributes is not None:
        for size in range(1, len(path)):
            if attributes.type(path[:size]) == "list":
                return path[:size]
    return None


def _is_listed(field: Field, attributes: Attributes | None) -> bool:
    """Whether a field wants few values of a declared list: there it is found by its elements."""
    if attributes is None or field.values is None or len(field.values) > MOST_ELEMENTS:
        return False
    return attributes.type(field.path) == "list"


def _containing(field: Field) -> list[Expression]:
    leaves = Call("leaves", (Attribute(field.path),))
    return [Call("array_contains", (leaves, Literal(value))) for value in field.values or ()]


def _plain(pattern: Pattern, attributes: Attributes | None) -> list[Expression]:
    """The tests of a pattern on values that are not nested."""
    tests: list[Expression] = []
    for field in pattern.fields:
        item = Attribute(field.path)
        if _is_nested(field.path, attributes):
            tests.append(IsNull(item) if field.may_be_absent else _NEVER)
            continue
        single = is_single(field.path, attributes)
        test = condition(field.alternatives, item, single=single, typed=single)
        tests += test.items if isinstance(test, And) else (test,)
    for choice in pattern.choices:
        options = [_joined(_plain(one, attributes)) for one in choice.options]
        some = tuple(option for option in options if option is not _NEVER)
        tests.append(Or(some) if len(some) > 1 else some[0] if some else _NEVER)
    return tests


def _joined(tests: list[Expression]) -> Expression:
    if any(test is _NEVER for test in tests):
        return _NEVER
    return tests[0] if len(tests) == 1 else And(tuple(tests))


# -- without nested values -----------------------------------------------------------------------


def nested_attributes(node: Expression) -> list[str]:
    """The attributes that a filter holds an event pattern against as it stands; they are those
    that may be nested. Empty where SQL has words for all of it."""
    calls = list(_calls(node))
    if not any(call.name == "event_pattern" for call in calls):
        return []
    guards = [call.args[0] for call in calls if call.name in ("isnested", "leaves")]
    return sorted({name_text(item.path) for item in guards if isinstance(item, Attribute)})


def _calls(node: Expression) -> Iterator[Call]:
    if isinstance(node, Call):
        yield node
    for child in children(node):
        yield from _calls(child)


def without_nested(node: Expression) -> Expression:
    """The condition where no value is nested: a list, or a struct where a value is looked for."""
    match node:
        case Call("isnested" | "event_pattern") | Call("array_contains", (Call("leaves"), *_)):
            return Literal(False)
        case And(items):
            return _folded(items, Literal(True), Literal(False), And)
        case Or(items):
            return _folded(items, Literal(False), Literal(True), Or)
        case Not(item):
            inner = without_nested(item)
            return Literal(not inner.value) if isinstance(inner, Literal) else Not(inner)
        case _:
            return node


def _folded(
    items: tuple[Expression, ...], empty: Literal, absorbing: Literal, kind: type[And] | type[Or]
) -> Expression:
    left = [one for one in map(without_nested, items) if one != empty]
    if absorbing in left:
        return absorbing
    return left[0] if len(left) == 1 else kind(tuple(left)) if left else empty


# -- declared attributes -------------------------------------------------------------------------


def _check(pattern: Pattern, attributes: Attributes, text: str) -> None:
    """FilterError for a field that is not declared, or that can't be what the pattern asks for."""
    for field in pattern.fields:
        problem = attributes.problem(field.path)
        if problem is None and is_single(field.path, attributes):
            problem = _mismatch(field, str(attributes.type(field.path)))
        if problem is not None:
            raise FilterError(f"{path_text(field.path)}: {problem}", text, _place(text, field.path))
    for choice in pattern.choices:
        for option in choice.options:
            _check(option, attributes, text)


def _place(text: str, path: Path) -> int:
    try:
        return position(text, path)
    except (ValueError, IndexError):  # within $or, where the path is not that of the text
        return max(text.rfind(f'"{path[-1]}"'), 0)


def _mismatch(field: Field, kind: str) -> str | None:
    name = name_text(field.path)
    for one in field.alternatives:
        for value in _needed(one):
            if family(type_of(value)) != family(kind):
                return f"{name} is {article(kind)} and can't be {_asked(one, value)}"
    return None


def _needed(one: Alternative) -> tuple[Any, ...]:
    """Values of the type that an alternative is about."""
    if one.kind == NUMERIC:
        return tuple(number for _, number in one.values)
    return one.values


def _asked(one: Alternative, value: Any) -> str:
    if one.kind == EXACT:
        return f"compared with {shown(value)}"
    return f"tested with {one.kind.partition('/')[0]}"
