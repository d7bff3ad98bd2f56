"""Turn an expression into a tree of AllOf and AnyOf over tests "term in set".

A *term* is an attribute, or a value computed from attributes (`reverse(name)`, `price * volume`,
`hour(at)`); its text is its identity. A test is plain set membership: true or false, never unknown.
To eliminate unknown, the builder answers one of four questions about each condition: is it true, is
it false, is it not true, or is it not false?

    NOT (price > 5)      is `price > 5` false?           price in [-Infinity, 5]
    price > 5 IS NULL    is the whole condition true?    price in everything but the numbers
"""

from __future__ import annotations

import msgspec

from tidings.filters.canonical.condition_sets import sets_of, simple_test
from tidings.filters.canonical.implied import add_implied
from tidings.filters.canonical.rewrites import rewrite
from tidings.filters.language.attributes import Attributes
from tidings.filters.language.evaluation import truth
from tidings.filters.language.expression import (
    CONDITIONS,
    And,
    Attribute,
    Call,
    Compare,
    Expression,
    IsNull,
    IsTruth,
    Not,
    Or,
    reads_any,
)
from tidings.filters.language.sql_writer import text_of
from tidings.filters.language.static_types import is_unbounded, static_type_of
from tidings.filters.values import sets
from tidings.filters.values.sets import ValueSet
from tidings.model import INT_MAX, INT_MIN

Want = int
IS_TRUE, IS_FALSE, NOT_TRUE, NOT_FALSE = range(4)
_NEGATED = (IS_FALSE, IS_TRUE, NOT_FALSE, NOT_TRUE)

_DOMAINS = {
    "boolean": sets.BOOLEANS,
    "integer": sets.NUMBERS,
    "double": sets.NUMBERS,
    "decimal": sets.NUMBERS,
    "number": sets.NUMBERS,
    "string": sets.STRINGS,
    "date": sets.TIMES,
    "timestamp": sets.TIMES,
    "list": sets.LISTS,
    "struct": sets.LISTS,
    "map": sets.LISTS,
}


class Test(msgspec.Struct, frozen=True):
    """Tests whether the value of a term lies in a set."""

    term: str
    values: ValueSet


class AllOf(msgspec.Struct, frozen=True):
    items: tuple[Node, ...]


class AnyOf(msgspec.Struct, frozen=True):
    items: tuple[Node, ...]


Node = Test | AllOf | AnyOf
ALWAYS = AllOf(())
NEVER = AnyOf(())


class SetTreeBuilder:
    """Builds trees, and records the expression of each term."""

    def __init__(self, attributes: Attributes | None) -> None:
        self.attributes = attributes
        self.terms: dict[str, Expression] = {}
        self._kinds: dict[str, str | None] = {}
        self._never_null: set[str] = set()

    def build(self, node: Expression) -> Node:
        """Build the tree for the question "is the condition true?"."""
        return self.remove_negation(node, IS_TRUE)

    def remove_negation(self, node: Expression, want: Want) -> Node:
        """Build the tree for one of the four questions about a condition.

        NOT (price > 5 OR symbol = 'A')   ->   price <= 5 AND symbol != 'A'
        """
        match node:
            case And(items):
                built = [self.remove_negation(item, want) for item in items]
                return self.all(built) if want in (IS_TRUE, NOT_FALSE) else self.any(built)
            case Or(items):
                built = [self.remove_negation(item, want) for item in items]
                return self.any(built) if want in (IS_TRUE, NOT_FALSE) else self.all(built)
            case Not(item):
                return self.remove_negation(item, _NEGATED[want])
            case IsTruth(item, wanted):
                yes, no = (IS_TRUE, NOT_TRUE) if wanted else (IS_FALSE, NOT_FALSE)
                return self.remove_negation(item, yes if want in (IS_TRUE, NOT_FALSE) else no)
            case _:
                return self._build_condition(node, want)

    def _build_condition(self, node: Expression, want: Want) -> Node:
        simple = simple_test(node) if want == IS_TRUE else None
        if simple is not None:
            return self.test(*simple)
        plainer = rewrite(node)
        if plainer is not node:
            return self.remove_negation(plainer, want)
        if not reads_any(node) and not is_unbounded(node):
            return self._build_constant(truth(node, {}), want)
        term, true, false = sets_of(node)
        test = self.test(term, true if want == IS_TRUE else (true, false, ~true, ~false)[want])
        if want == IS_TRUE and term is node:
            implied = add_implied(node, self.attributes)
            return self.all([test, *(self.build(part) for part in implied)])
        return test

    def _build_constant(self, value: bool | None, want: Want) -> Node:
        answer = (value is True, value is False, value is not True, value is not False)[want]
        return ALWAYS if answer else NEVER

    # -- nodes ---------------------------------------------------------------------------------

    def test(self, term: Expression, values: ValueSet) -> Node:
        """Build a test on a term, and record the expression of the term."""
        text = text_of(term)
        if text not in self.terms:
            self.terms[text] = term
            self._kinds[text] = static_type_of(term, self.attributes)
            if _never_null(term):
                self._never_null.add(text)
        return self._make_test(text, values)

    def narrow(self, term: str, values: ValueSet) -> ValueSet:
        """Bring a set into the canonical form for the term's type; see `narrow_to_type`."""
        kind = self._kinds[term]
        return values if kind is None else narrow_to_type(values, kind, term in self._never_null)

    def _make_test(self, term: str, values: ValueSet) -> Node:
        values = self.narrow(term, values)
        if not values:
            return NEVER
        return ALWAYS if values.is_everything else Test(term, values)

    def all(self, items: list[Node]) -> Node:
        """Build a conjunction: intersect tests on the same term, and flatten nested
        conjunctions."""
        return self.join_tests(items, AllOf, NEVER)

    def any(self, items: list[Node]) -> Node:
        """Build a disjunction: unite tests on the same term, and flatten nested disjunctions."""
        return self.join_tests(items, AnyOf, ALWAYS)

    def join_tests(
        self, items: list[Node], kind: type[AllOf] | type[AnyOf], absorbing: Node
    ) -> Node:
        """Join all items into one node that has one test per term.

        x > 1 AND (x < 9 AND y = 2)   ->   x BETWEEN 1 AND 9, ends excluded, AND y = 2
        x = 1 OR x IN (2, 3)          ->   x IN (1, 2, 3)
        """
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
        join = sets.intersect if kind is AllOf else sets.unite
        joined = [
            Test(term, parts[0]) if len(parts) == 1 else self._make_test(term, join(parts))
            for term, parts in tests.items()
        ]
        if absorbing in joined:
            return absorbing
        left = (*(node for node in joined if isinstance(node, Test)), *rest)
        return left[0] if len(left) == 1 else kind(left)


def narrow_to_type(values: ValueSet, kind: str, never_null: bool = False) -> ValueSet:
    """Bring a set into the canonical form for a type.

    Values of other types can't occur, so sets that differ only in such values are reduced to the
    same set. The resulting set is the part of the set that lies within the type, or "not null" if
    that part is the whole type. For an integer type, the ends of intervals become integers.

    delay > 9.5, an integer   ->   delay >= 10
    """
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
    """Whether a set is a single interval that already lies inside the type, and is not the whole
    type. For integer types, the ends must be integers. Most sets are like this, and need no further
    work."""
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
    """Whether a cut is next to an integer other than the smallest and largest: just before it if
    `after` is 0, and just after it if `after` is 1."""
    if len(cut) != 3 or cut[0] != sets.NUMBER or cut[2] != after or type(cut[1]) is not int:
        return False
    return INT_MIN < cut[1] < INT_MAX


def _never_null(term: Expression) -> bool:
    return isinstance(term, IsNull) or (isinstance(term, Compare) and term.op == "<=>")


def is_opaque(term: Expression) -> bool:
    """Whether a term is a condition that only evaluation can decide (a *residual*)."""
    if isinstance(term, Call):
        return static_type_of(term, None) == "boolean" and term.name != "array_contains"
    return isinstance(term, CONDITIONS)


def is_topic_number(term: Expression) -> bool:
    """Whether a term is the preorder number of an attribute's topic."""
    return type(term) is Call and term.name == "preorder" and type(term.args[0]) is Attribute


def is_plain_term(term: Expression) -> bool:
    """Whether a term is an attribute, or the number of its topic: its value is looked up, not
    computed."""
    return type(term) is Attribute or is_topic_number(term)
