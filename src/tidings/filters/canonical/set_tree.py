"""Conditions as sets: an expression becomes a tree of All and Any over tests "term in set".

A *term* is what is tested: an attribute, or something computed from attributes (`reverse(name)`,
`price * volume`, `hour(at)`), known by its text. A condition that no set can say anything about (a
regular expression, `a < b`) is a Boolean term of its own, opaque but for its outcome. A test is
plain membership, true or false and never unknown: SQL's third value is gone once it is known which
of four questions is asked of a condition. Is it true? Is it false? Is it not true? Is it not
false?

    NOT (price > 5)      is it false?      price in [-Infinity, 5]
    price > 5 IS NULL    neither           price in everything but the numbers
"""

from __future__ import annotations

import msgspec

from tidings.filters.canonical import rewrites
from tidings.filters.language.attributes import Attributes
from tidings.filters.language.evaluation import evaluate, truth
from tidings.filters.language.expression import (
    CONDITIONS,
    FLIPPED,
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
    reads_any,
)
from tidings.filters.language.sql_writer import text_of
from tidings.filters.language.static_types import is_condition, is_unbounded, kind_of
from tidings.filters.values import sets
from tidings.filters.values.sets import ValueSet
from tidings.model import INT_MAX, INT_MIN

Want = int
IS_TRUE, IS_FALSE, NOT_TRUE, NOT_FALSE = range(4)
_LISTS = (tuple, list)
_NEGATED = (IS_FALSE, IS_TRUE, NOT_FALSE, NOT_TRUE)

_DOMAINS = {
    "boolean": sets.BOOLEANS,
    "integer": sets.NUMBERS,
    "double": sets.NUMBERS,
    "number": sets.NUMBERS,
    "string": sets.STRINGS,
    "date": sets.TIMES,
    "timestamp": sets.TIMES,
    "list": sets.LISTS,
    "struct": sets.LISTS,
}


class Test(msgspec.Struct, frozen=True):
    """The value of a term lies in a set."""

    term: str
    values: ValueSet


class All(msgspec.Struct, frozen=True):
    items: tuple[Node, ...]


class Any(msgspec.Struct, frozen=True):
    items: tuple[Node, ...]


Node = Test | All | Any
ALWAYS = All(())
NEVER = Any(())


class Planter:
    """Grows trees; remembers the expression of each term it meets."""

    def __init__(self, attributes: Attributes | None) -> None:
        self.attributes = attributes
        self.terms: dict[str, Expression] = {}
        self._kinds: dict[str, str | None] = {}
        self._never_null: set[str] = set()

    def grow(self, node: Expression, want: Want = IS_TRUE) -> Node:
        """The tree of "the condition is true" (or false, not true, not false)."""
        match node:
            case And(items):
                grown = [self.grow(item, want) for item in items]
                return self.all(grown) if want in (IS_TRUE, NOT_FALSE) else self.any(grown)
            case Or(items):
                grown = [self.grow(item, want) for item in items]
                return self.any(grown) if want in (IS_TRUE, NOT_FALSE) else self.all(grown)
            case Not(item):
                return self.grow(item, _NEGATED[want])
            case IsTruth(item, wanted):
                yes, no = (IS_TRUE, NOT_TRUE) if wanted else (IS_FALSE, NOT_FALSE)
                return self.grow(item, yes if want in (IS_TRUE, NOT_FALSE) else no)
            case _:
                return self._leaf(node, want)

    # -- leaves --------------------------------------------------------------------------------

    def _leaf(self, node: Expression, want: Want) -> Node:
        simple = simple_test(node) if want == IS_TRUE else None
        if simple is not None:
            return self.test(*simple)
        plain = _plainer(node)
        if plain is not node:
            return self.grow(plain, want)
        if not reads_any(node) and not is_unbounded(node):
            return self._constant(truth(node, {}), want)
        term, true, false = self._sets(node)
        test = self.test(term, true if want == IS_TRUE else (true, false, ~true, ~false)[want])
        if want == IS_TRUE and term is node:
            return self.all([test, *(self.grow(part) for part in self._necessary(node))])
        return test

    def _necessary(self, node: Expression) -> list[Expression]:
        return rewrites.necessary(node, self.attributes)

    def _constant(self, value: bool | None, want: Want) -> Node:
        answer = (value is True, value is False, value is not True, value is not False)[want]
        return ALWAYS if answer else NEVER

    def _sets(self, node: Expression) -> tuple[Expression, ValueSet, ValueSet]:
        """(term, where the condition is true, where it is false)."""
        match node:
            case Compare(op, term, Literal(value)) if _is_scalar(term, value):
                return (term, *_comparison_sets(op, value))
            case In(item, options) if _all_plain(node):
                return (item, *_membership_sets([evaluate(o, {}) for o in options]))
            case IsNull(item) if not is_condition(item):
                return item, sets.NULL, sets.NOT_NULL
            case IsNull(Compare() | In() | Between() | Call() as leaf) if _plainer(leaf) is leaf:
                term, true, false = self._sets(leaf)
                return term, ~(true | false), true | false
            case Call("startswith", (item, Literal(str() as text))):
                start = sets.prefix(text)
                return item, start, sets.STRINGS - start
            case Call("endswith", (item, Literal(str() as text))):
                start = sets.prefix(text[::-1])
                return Call("reverse", (item,)), start, sets.STRINGS - start
            case Call("isnan", (item,)):
                return item, sets.IS_NAN, ~sets.IS_NAN
            case Call("isnested", (item,)) if not is_condition(item):
                return item, sets.LISTS, ~sets.LISTS
            case Compare(op, left, right):  # between two terms: opaque, written in one way
                return _opaque_comparison(op, left, right)
            case _:
                return node, sets.TRUE, sets.FALSE

    # -- nodes ---------------------------------------------------------------------------------

    def test(self, term: Expression, values: ValueSet) -> Node:
        text = text_of(term)
        if text not in self.terms:
            self.terms[text] = term
            self._kinds[text] = kind_of(term, self.attributes)
            if _never_null(term):
                self._never_null.add(text)
        return self._tested(text, values)

    def settled(self, term: str, values: ValueSet) -> ValueSet:
        """The set in the one form that the term's type leaves open.

        What lies outside the type can't occur, so sets that differ only there are one set: the
        part inside, or "not null" when that is all of it; ends on integers for integers.
        """
        kind = self._kinds[term]
        return values if kind is None else settled(values, kind, term in self._never_null)

    def _tested(self, term: str, values: ValueSet) -> Node:
        values = self.settled(term, values)
        if not values:
            return NEVER
        return ALWAYS if values.is_everything else Test(term, values)

    def all(self, items: list[Node]) -> Node:
        """The conjunction: tests of one term intersect, nested conjunctions flatten."""
        return self._joined(items, All, NEVER)

    def any(self, items: list[Node]) -> Node:
        """The disjunction: tests of one term unite, nested disjunctions flatten."""
        return self._joined(items, Any, ALWAYS)

    def _joined(self, items: list[Node], kind: type[All] | type[Any], absorbing: Node) -> Node:
        tests: dict[str, list[ValueSet]] = {}
        rest: dict[Node, None] = {}
        stack = list(reversed(items))
        while stack:
            item = stack.pop()
            if isinstance(item, kind):
                stack.extend(reversed(item.items))
            elif isinstance(item, Test):
                tests.setdefault(item.term, []).append(item.values)
            else:
                rest[item] = None
        if absorbing in rest:
            return absorbing
        join = sets.intersect if kind is All else sets.unite
        settled = [
            Test(term, parts[0]) if len(parts) == 1 else self._tested(term, join(parts))
            for term, parts in tests.items()
        ]
        if absorbing in settled:
            return absorbing
        kept = [node for node in settled if isinstance(node, Test)]
        joined = (*kept, *rest)
        return joined[0] if len(joined) == 1 else kind(joined)


def settled(values: ValueSet, kind: str, never_null: bool = False) -> ValueSet:
    """`Planter.settled` for a term of a known type."""
    domain = _DOMAINS[kind]
    if _lies_inside(values, domain, kind):
        return values
    if kind == "integer":
        values = sets.whole_numbers(values)
    inside = values & domain
    if inside == domain:
        inside = sets.EVERYTHING if never_null else sets.NOT_NULL
    return inside if never_null else inside | (values & sets.NULL)


def _lies_inside(values: ValueSet, domain: ValueSet, kind: str) -> bool:
    """Whether a set is one interval within the type, and less than all of it: most are."""
    cuts = values.cuts
    if len(cuts) != 2 or len(domain.cuts) != 2:
        return False
    low, high = cuts
    first, last = domain.cuts
    if kind != "integer":
        return first <= low and high <= last and cuts != domain.cuts
    begins, ends = _is_whole(low, 0), _is_whole(high, 1)
    return (begins and ends) or (begins and high == last) or (low == first and ends)


def _is_whole(cut: sets.Cut, after: int) -> bool:
    """Whether a cut is before (or after) an integer that is not at the end of the integers."""
    if len(cut) != 3 or cut[0] != sets.NUMBER or cut[2] != after or type(cut[1]) is not int:
        return False
    return INT_MIN < cut[1] < INT_MAX


def simple_test(node: Expression) -> tuple[Attribute, ValueSet] | None:
    """The attribute and the set of a test that most filters are made of: where it is true.

    The short way for `attribute op constant`, BETWEEN, IN and IS NULL; None for everything else,
    and the long way gives the same for these.
    """
    kind = type(node)
    if kind is Compare:
        return _simple_comparison(node)  # type: ignore[arg-type]
    if kind is Between:
        return _simple_between(node)  # type: ignore[arg-type]
    if isinstance(node, In) and type(node.item) is Attribute and _all_plain(node):
        values = [option.value for option in node.options if isinstance(option, Literal)]
        return node.item, sets.points(sets.key(v) for v in values if v is not None)
    if isinstance(node, IsNull) and type(node.item) is Attribute:
        return node.item, sets.NULL
    if isinstance(node, Not) and isinstance(node.item, IsNull):
        item = node.item.item
        return (item, sets.NOT_NULL) if type(item) is Attribute else None
    return None


def _simple_comparison(node: Compare) -> tuple[Attribute, ValueSet] | None:
    attribute, right, op = node.left, node.right, node.op
    if type(attribute) is not Attribute or type(right) is not Literal or op == "<=>":
        return None
    value = right.value
    if value is None or isinstance(value, _LISTS):
        return None
    place = sets.key(value)
    if op == "=":
        return attribute, sets.point(place)
    if op == "!=":
        return attribute, sets.comparable(place) - sets.point(place)
    if op in ("<", "<="):
        return attribute, sets.below(place, op == "<=")
    return attribute, sets.above(place, op == ">=")


def _simple_between(node: Between) -> tuple[Attribute, ValueSet] | None:
    attribute, low, high = node.item, node.low, node.high
    if type(attribute) is not Attribute or type(low) is not Literal or type(high) is not Literal:
        return None
    first, last = low.value, high.value
    if first is None or last is None or isinstance(first, _LISTS) or isinstance(last, _LISTS):
        return None
    return attribute, sets.between(sets.key(first), sets.key(last))


def _is_list(value: object) -> bool:
    return isinstance(value, _LISTS)


def _is_scalar(term: Expression, value: object) -> bool:
    return not _is_list(value) and not is_condition(term)


def _all_plain(node: In) -> bool:
    options_plain = all(isinstance(o, Literal) and not _is_list(o.value) for o in node.options)
    return options_plain and not is_condition(node.item)


def _never_null(term: Expression) -> bool:
    return isinstance(term, IsNull) or (isinstance(term, Compare) and term.op == "<=>")


def _plainer(node: Expression) -> Expression:
    """The same condition in plainer words, equal in all three truths; a leaf comes back as it is.

    An opaque leaf must come back here as itself, and so must `leaf IS NULL`: that is what makes
    the text of a canonical form read as that form again.
    """
    match node:
        case Call():
            return rewrites.written_out(node)
        case Between(item, low, high) if not is_condition(item):
            return And((Compare(">=", item, low), Compare("<=", item, high)))
        case Compare():
            return _plainer_comparison(node)
        case In(item) if is_condition(item):
            return _outcome_in(node)
        case In(item, options) if not _all_plain(node) and rewrites.affordable(item, len(options)):
            return Or(tuple(Compare("=", item, option) for option in options))
        case IsNull(Not(item)) if is_condition(item):
            return IsNull(item)
        case IsNull(IsNull() | IsTruth()):
            return Literal(False)
        case IsNull(Compare() | In() | Between() | Call() as item) if is_condition(item):
            plain = _plainer(item)
            return node if plain is item or isinstance(plain, (And, Or)) else IsNull(plain)
        case _:
            return node


# `condition op constant`, where that is the condition itself or its negation
_KEEPS = {("=", True), (">=", True), ("!=", False), (">", False)}
_NEGATES = {("!=", True), ("<", True), ("=", False), ("<=", False)}


def _plainer_comparison(node: Compare) -> Expression:
    """The constant on the right; a condition compared with a constant is that condition, or not."""
    op, left, right = node.op, node.left, node.right
    if isinstance(left, Literal) and not isinstance(right, Literal):
        return Compare(FLIPPED[op], right, left)
    if not isinstance(right, Literal) or not is_condition(left):
        return node
    if right.value is None:
        return IsNull(left) if op == "<=>" else Literal(None)
    if op == "<=>":
        return IsTruth(left, right.value)
    if (op, right.value) in _KEEPS:
        return left
    return Not(left) if (op, right.value) in _NEGATES else node


def _outcome_in(node: In) -> Expression:
    """A condition in a list of constants; with both true and false among them it stays opaque."""
    truths = {option.value for option in node.options if isinstance(option, Literal)}
    if not all(isinstance(option, Literal) for option in node.options) or {True, False} <= truths:
        return node
    if truths == {None}:
        return Literal(None)
    plain = node.item if True in truths else Not(node.item)
    return Or((plain, Literal(None))) if None in truths else plain


def _comparison_sets(op: Comparison, value: object) -> tuple[ValueSet, ValueSet]:
    if op == "<=>":
        true = sets.points([sets.key(value)])
        return true, ~true
    if value is None:
        return sets.NOTHING, sets.NOTHING
    place = sets.key(value)
    domain = sets.comparable(place)
    match op:
        case "=" | "!=":
            true = sets.points([place])
        case "<" | ">=":
            true = sets.below(place, inclusive=False)
        case "<=" | ">":
            true = sets.below(place, inclusive=True)
    false = domain - true
    return (true, false) if op in ("=", "<", "<=") else (false, true)


def _membership_sets(values: list[object]) -> tuple[ValueSet, ValueSet]:
    """IN: true on any of the values; false where the item compares with all and equals none."""
    places = [sets.key(value) for value in values if value is not None]
    true = sets.points(places)
    if len(places) < len(values):
        return true, sets.NOTHING
    domains = {sets.comparable(place) for place in places}
    return true, (domains.pop() - true if len(domains) == 1 else sets.NOTHING)


def _opaque_comparison(
    op: Comparison, left: Expression, right: Expression
) -> tuple[Expression, ValueSet, ValueSet]:
    """One of =, <, >, <=> with the sides in the order of their texts, or its negation."""
    if text_of(right) < text_of(left):
        op, left, right = FLIPPED[op], right, left
    positive: dict[Comparison, Comparison] = {"!=": "=", ">=": "<", "<=": ">"}
    if op in positive:
        return Compare(positive[op], left, right), sets.FALSE, sets.TRUE
    return Compare(op, left, right), sets.TRUE, sets.FALSE


def is_opaque(term: Expression) -> bool:
    """Whether a term is a condition that only evaluation can decide (a *residual*)."""
    if isinstance(term, Call):
        return kind_of(term, None) == "boolean" and term.name != "array_contains"
    return isinstance(term, CONDITIONS)
