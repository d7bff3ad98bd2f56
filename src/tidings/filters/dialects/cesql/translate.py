"""Translate nodes of CloudEvents SQL to expressions of tidings.

The translator answers three questions about each condition: is it true, is it false, is it free of
errors? Each answer is an expression that is true if, and only if, the answer is yes. An event
matches if the whole filter is true without an error. AND and OR may skip their right side, so their
answers are:

    a OR b   true     a is true, or b is true and a has no error
             false    both are false
    a AND b  true     both are true
             false    a is false, or b is false and a has no error

A comparison of an attribute with a constant becomes a test on the attribute, if that gives the same
answer for every value. For example, `type = 'com.example'` can be true only if the type is a
string. But `x = '5'` is also true if x is the integer 5, so this comparison becomes a test on
`cesql('STRING(x)')`. Every other condition becomes a program.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidings.filters.dialects.cesql import syntax
from tidings.filters.dialects.cesql.cesql_values import (
    INT_MAX,
    INT_MIN,
    CastError,
    Kind,
    cast,
    kind_of,
    only_strings_are,
    only_strings_match,
    pattern_parts,
    to_integer,
    to_string,
)
from tidings.filters.dialects.cesql.machine import run, static_kind
from tidings.filters.dialects.cesql.program import call_of
from tidings.filters.dialects.cesql.syntax import Node, Scalar
from tidings.filters.language.attributes import Attributes
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
    children,
    is_absent,
)
from tidings.filters.values import like

# Answers may have MOST_NODES nodes, or MOST_TIMES as many nodes as the filter, whichever is more.
# Larger answers are replaced by a call to a program.
MOST_NODES = 2_000
MOST_TIMES = 16
MOST_LEVELS = 40
_NEGATED: dict[str, Comparison] = {"=": "!=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_FLIPPED: dict[str, Comparison] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CASTS: dict[Kind, str] = {"string": "STRING", "integer": "INT", "boolean": "BOOL"}


class Answers(msgspec.Struct, frozen=True):
    """The three answers. `fine` (no error) is a conjunction; it has no conditions if no error is
    possible."""

    true: Expression
    false: Expression
    fine: tuple[Expression, ...]


def answers(true: Expression, false: Expression, fine: Iterable[Expression]) -> Answers:
    return Answers(true, false, tuple(dict.fromkeys(fine)))


def _size(nodes: Iterable[Expression], most: int) -> int:
    """How many nodes, except constants, are at or below the given ones; a number above `most` if
    there are more than `most`, or if they are nested too deeply."""
    size, level, levels = 0, list(nodes), 0
    while level and size <= most:
        size += len(level)
        levels += 1
        if levels > MOST_LEVELS:
            return most + 1
        level = [c for one in level for c in children(one) if type(c) is not Literal]
    return size


class Translator:
    def __init__(self, attributes: Attributes | None = None) -> None:
        self.attributes = attributes

    # -- conditions ----------------------------------------------------------------------------

    def true(self, node: Node) -> Expression:
        """A condition that is true if the node is true without an error. For AND, every item must
        be true."""
        if isinstance(node, syntax.Logic) and node.op == "AND":
            return _join_all([self.true(item) for item in node.items])
        return self.condition(node).true

    def condition(self, node: Node) -> Answers:
        """The answers for a node, cast to Boolean if it has another type."""
        if not syntax.names_of(node):
            return _answer_constant(node)
        match node:
            case syntax.Logic():
                joined = self._answer_xor(node) if node.op == "XOR" else self._answer_chain(node)
                return self._limit_size(node, joined)
            case syntax.Not(item) if self.kind(item) == "boolean":
                return _swap(self.condition(item))
            case syntax.Exists(name):
                attribute = Attribute((name,))
                return answers(Not(is_absent(attribute)), is_absent(attribute), ())
            case syntax.Compare("!=", left, right):
                return _swap(self._answer_equal(left, right))
            case syntax.Compare("=", left, right):
                return self._answer_equal(left, right)
            case syntax.Compare(op, left, right):
                return self._answer_ordered(op, left, right)
            case syntax.Like(item, pattern):
                return self.like(item, pattern_parts(pattern))
            case syntax.In(item, options):
                return self._answer_member(node, item, options)
            case syntax.Function("BOOL", (item,)):
                return self.condition(item)
            case syntax.Name(name) if self.kind(node) == "boolean":
                return _answer_value(Attribute((name,)), "=", True)
        return _answer_by_program(
            node if static_kind(node) == "boolean" else _cast(node, "boolean")
        )

    def _limit_size(self, node: Node, found: Answers) -> Answers:
        """Return the answers, or a call to a program if the answers are too large."""
        most = _most_nodes(node)
        large = _size((found.true, found.false, *found.fine), most) > most
        return _answer_by_program(node) if large else found

    def _answer_chain(self, node: syntax.Logic) -> Answers:
        """AND and OR. An item decides the outcome of the chain if no item before it has an
        error."""
        found = [self.condition(item) for item in node.items]
        if node.op == "AND":
            found = [_swap(one) for one in found]
        false = _join_all([one.false for one in found])
        size, most = 0, _most_nodes(node)
        before: dict[Expression, None] = {}
        decided: list[Expression] = []
        for one in found:
            rest = [part for part in before if part not in one.fine]
            decided.append(_join_all([*rest, one.true]))
            before.update(dict.fromkeys(one.fine))
            size += _size((one.true, one.false, *one.fine, *rest), most)
            if size > most:  # `decided` may grow with the square of the filter's size
                opaque = _answer_by_program(node)
                if node.op == "AND":
                    return answers(false, opaque.false, opaque.fine)
                return answers(opaque.true, false, opaque.fine)
        true = _join_any(decided)
        first = found[0].fine
        others = [part for part in before if part not in first]
        fine = (*first, _join_any([true, _join_all(others)])) if others else first
        chain = answers(true, false, fine)
        return chain if node.op == "OR" else _swap(chain)

    def _answer_xor(self, node: syntax.Logic) -> Answers:
        found = self.condition(node.items[0])
        for item in node.items[1:]:
            other = self.condition(item)
            found = answers(
                _join_any(
                    [_join_all([found.true, other.false]), _join_all([found.false, other.true])]
                ),
                _join_any(
                    [_join_all([found.true, other.true]), _join_all([found.false, other.false])]
                ),
                (*found.fine, *other.fine),
            )
            if _size((found.true, found.false), MOST_NODES) > MOST_NODES:
                return _answer_by_program(node)
        return found

    # -- comparisons ---------------------------------------------------------------------------

    def _answer_equal(self, left: Node, right: Node) -> Answers:
        """Equality: the left side is cast to the type of the right side."""
        if not syntax.names_of(right):
            value, error = run(right, {})
            return NEVER if error else self._answer_equals(left, value)
        kind = self.kind(right)
        if not syntax.names_of(left):
            value, error = run(left, {})
            if error:
                return NEVER
            if kind is None:  # the constant is cast to the type of the attribute, as it is for IN
                return self._answer_member(syntax.Compare("=", left, right), right, (left,))
            return (
                NEVER
                if _casts([value], kind) is None
                else self._answer_equals(right, cast(value, kind))
            )
        if kind in ("string", "integer"):
            one, two = self.term(left, kind), self.term(right, kind)
            whole = Compare("=", one, two)
            return answers(whole, Not(whole), (Not(IsNull(one)), Not(IsNull(two))))
        return _answer_by_program(syntax.Compare("=", left, right))

    def _answer_equals(self, node: Node, value: Scalar) -> Answers:
        """Whether a node, cast to the type of a constant, equals the constant."""
        kind = kind_of(value)
        if kind == "boolean":
            found = self.condition(node)
            return found if value else _swap(found)
        if kind == "integer":
            return self._answer_number(node, "=", int(value))
        test = Literal(value)
        if self._is_open(node) and only_strings_are(str(value)):
            attribute = self.attribute(node)
            there = Not(IsNull(attribute))
            other = _join_all([there, Not(Compare("<=>", attribute, test))])
            return answers(Compare("=", attribute, test), other, (there,))
        term = self.term(node, "string")
        return self._answer_text(node, Compare("=", term, test), Compare("!=", term, test))

    def _answer_ordered(self, op: Comparison, left: Node, right: Node) -> Answers:
        """For an order comparison, both sides are cast to Integer."""
        for one, other, way in ((left, right, op), (right, left, _FLIPPED[op])):
            if not syntax.names_of(other):
                found, error = run(other, {})
                values = None if error else _casts([found], "integer")
                return NEVER if values is None else self._answer_number(one, way, int(values[0]))
        low, high = self.term(left, "integer"), self.term(right, "integer")
        whole = Compare(op, low, high)
        return answers(whole, Not(whole), (Not(IsNull(low)), Not(IsNull(high))))

    def _answer_number(self, node: Node, op: Comparison, value: int) -> Answers:
        if isinstance(node, syntax.Name) and self.find_declared(node) == "integer":
            return _answer_bounded(self.attribute(node), op, value)
        return _answer_value(self.term(node, "integer"), op, value)

    def like(self, node: Node, parts: tuple[like.Part, ...]) -> Answers:
        """Whether the String of a node matches a pattern."""
        pattern = Literal(like.join(parts))
        if self._is_open(node) and only_strings_match(parts):
            test = Call("like", (self.attribute(node), pattern))
            there = Not(IsNull(self.attribute(node)))
            return answers(test, _join_all([there, Not(IsTruth(test, True))]), (there,))
        test = Call("like", (self.term(node, "string"), pattern))
        return self._answer_text(node, test, Not(test))

    def _answer_text(self, node: Node, true: Expression, false: Expression) -> Answers:
        """The answers for a test on a node that is cast to a String; if the cast has an error, the
        String is null. An attribute that is present can always be converted to a String."""
        term = self.attribute(node) if isinstance(node, syntax.Name) else self.term(node, "string")
        return answers(true, false, (Not(IsNull(term)),))

    def _answer_member(self, node: Node, item: Node, options: tuple[Node, ...]) -> Answers:
        """IN: the options are cast to the type of the item on the left."""
        if any(syntax.names_of(option) for option in options):
            return _answer_by_program(node)
        outcomes = [run(option, {}) for option in options]
        if any(error for _, error in outcomes):
            return NEVER
        values = [value for value, _ in outcomes]
        kind = self.kind(item)
        if kind in ("string", "integer"):
            cast_ = _casts(values, kind)
            if cast_ is None:
                return NEVER
            term = self.term(item, kind)
            test = In(term, tuple(map(Literal, cast_)))
            return answers(test, Not(test), (Not(IsNull(term)),))
        opaque = _answer_by_program(node)
        if kind is None and isinstance(item, syntax.Name):
            found = _members(values)
            declared = self.find_declared(item)
            if found is not None and declared is not None:
                wanted = "integer" if declared in ("integer", "double") else ""
                found = [value for value in found if kind_of(value) == wanted]
            if found is not None:
                true = _one_of(self.attribute(item), found)
                return answers(true, opaque.false, opaque.fine)
        return opaque

    # -- terms ---------------------------------------------------------------------------------

    def find_declared(self, node: syntax.Name) -> str | None:
        return self.attributes.type((node.name,)) if self.attributes else None

    def kind(self, node: Node) -> Kind | None:
        """The type of a node, if that is the same for every event; for an attribute, its declared
        type."""
        if isinstance(node, syntax.Name):
            match self.find_declared(node):
                case "string":
                    return "string"
                case "boolean":
                    return "boolean"
            return None
        return static_kind(node)

    def _is_open(self, node: Node) -> bool:
        """Whether a node is an attribute that may have a value of any type."""
        return isinstance(node, syntax.Name) and self.find_declared(node) is None

    def attribute(self, node: Node) -> Attribute:
        assert isinstance(node, syntax.Name)
        return Attribute((node.name,))

    def term(self, node: Node, kind: Kind) -> Expression:
        """The node as a term of a given type; the term is null if its evaluation has an error."""
        if isinstance(node, syntax.Name) and self.kind(node) == kind:
            return self.attribute(node)
        return call_of(node if static_kind(node) == kind else _cast(node, kind))


NEVER = Answers(Literal(False), Literal(False), (Literal(False),))


def _answer_constant(node: Node) -> Answers:
    value, error = run(node, {})
    truths = None if error else _casts([value], "boolean")
    if truths is None:
        return NEVER
    return answers(Literal(truths[0]), Literal(not truths[0]), ())


def _cast(node: Node, kind: Kind) -> Node:
    return syntax.Function(_CASTS[kind], (node,))


def _casts(values: list[Scalar], kind: Kind) -> list[Scalar] | None:
    """All these values, cast to one type; None if one of them can't be cast."""
    try:
        return list(dict.fromkeys(cast(value, kind) for value in values))
    except CastError:
        return None


def _members(values: list[Scalar]) -> list[Scalar] | None:
    """All values, of any type, for which an attribute is IN the given values; None if they can't be
    listed.

    The given values are cast to the type of the attribute's value: to Strings, Integers or
    Booleans. If one of the values can't be cast, the comparison is an error.
    """
    texts = list(dict.fromkeys(map(to_string, values)))
    for text in texts:
        if not (only_strings_are(text) or text in ("true", "false") or _is_integer(text)):
            return None
    return [*texts, *(_casts(values, "integer") or []), *(_casts(values, "boolean") or [])]


def _is_integer(text: str) -> bool:
    try:
        return to_string(to_integer(text)) == text
    except CastError:
        return False


def _one_of(term: Expression, values: list[Scalar]) -> Expression:
    if not values:
        return Literal(False)
    if len(values) == 1:
        return Compare("=", term, Literal(values[0]))
    return In(term, tuple(map(Literal, values)))


def _most_nodes(node: Node) -> int:
    """The maximum size of the answers for a node."""
    count, stack = 0, [node]
    while stack:
        count += 1
        stack.extend(syntax.children(stack.pop()))
    return max(MOST_NODES, MOST_TIMES * count)


def _answer_value(term: Expression, op: Comparison, value: Scalar) -> Answers:
    there = Not(IsNull(term))
    test = Compare(op, term, Literal(value))
    return answers(test, Compare(_NEGATED[op], term, Literal(value)), (there,))


def _answer_bounded(term: Expression, op: Comparison, value: int) -> Answers:
    """The answers for a test on a 64-bit attribute: a value that does not fit in 32 bits is an
    error."""
    fits = Between(term, Literal(INT_MIN), Literal(INT_MAX))
    found = _answer_value(term, op, value)

    def inside(test: Expression) -> Expression:
        return _join_all([fits, test])

    equal = op == "="
    return answers(found.true if equal else inside(found.true), inside(found.false), (fits,))


def _answer_by_program(node: Node) -> Answers:
    program = call_of(node)
    return answers(program, Not(program), (Not(IsNull(program)),))


def _swap(found: Answers) -> Answers:
    return Answers(found.false, found.true, found.fine)


def _join_all(items: list[Expression]) -> Expression:
    flat: dict[Expression, None] = {}
    for item in items:
        flat.update(dict.fromkeys(item.items if isinstance(item, And) else [item]))
    return next(iter(flat)) if len(flat) == 1 else And(tuple(flat))


def _join_any(items: list[Expression]) -> Expression:
    flat: dict[Expression, None] = {}
    for item in items:
        flat.update(dict.fromkeys(item.items if isinstance(item, Or) else [item]))
    return next(iter(flat)) if len(flat) == 1 else Or(tuple(flat))
