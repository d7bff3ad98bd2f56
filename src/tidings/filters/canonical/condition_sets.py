"""For a condition on one term: the set of values on which it is true, and the set on which it is
false.

    price > 5         price    true in (5, NaN]      false in [-Infinity, 5]
    endswith(x, 'b')  reverse(x)   true in the strings from 'b' up to 'c', false in all others

For all other values, the condition is unknown. A condition that no set can describe is a
*residual*: a term of its own, with the sets {true} and {false}.
"""

from __future__ import annotations

from tidings.filters.canonical.rewrites import LISTS, are_constants, rewrite
from tidings.filters.language.evaluation import evaluate
from tidings.filters.language.expression import (
    FLIPPED,
    Attribute,
    Between,
    Call,
    Compare,
    Comparison,
    Exists,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
)
from tidings.filters.language.sql_writer import text_of
from tidings.filters.language.static_types import is_condition
from tidings.filters.values import sets
from tidings.filters.values.sets import ValueSet

Sets = tuple[Expression, ValueSet, ValueSet]
"""A term, the set of values for which the condition is true, and the set for which it is false."""


def sets_of(node: Expression) -> Sets:
    """The term of a condition, the set of values on which the condition is true, and the set on
    which it is false. The condition must be one that no rewrite changes."""
    return make_sets(node) or make_residual(node)


def make_sets(node: Expression) -> Sets | None:
    """The sets of a condition on one term; None if no set of values describes it.

    price > 5       ->   price in (5, NaN]
    price IS NULL   ->   price in {absent, null}
    """
    match node:
        case Compare(op, term, Literal(value)) if not (
            isinstance(value, LISTS) or is_condition(term)
        ):
            return (term, *_comparison_sets(op, value))
        case In(item, options) if are_constants(options) and not is_condition(item):
            return (item, *_membership_sets([evaluate(o, {}) for o in options]))
        case IsNull(item) if not is_condition(item):
            return item, sets.NULL, sets.NOT_NULL
        case IsNull(Compare() | In() | Between() | Call() | Exists() as inner) if (
            rewrite(inner) is inner
        ):
            term, true, false = sets_of(inner)
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
        case Call("isabsent", (item,)):
            return item, sets.IS_ABSENT, sets.IS_PRESENT
    return None


def make_residual(node: Expression) -> Sets:
    """Make the condition a term of its own; a comparison of two terms is normalised first.

    b >= a          ->   a > b in {false}
    x RLIKE '^a'    ->   x RLIKE '^a' in {true}
    """
    if not isinstance(node, Compare):
        return node, sets.TRUE, sets.FALSE
    op, left, right = node.op, node.left, node.right
    if text_of(right) < text_of(left):
        op, left, right = FLIPPED[op], right, left
    positive: dict[Comparison, Comparison] = {"!=": "=", ">=": "<", "<=": ">"}
    if op in positive:
        return Compare(positive[op], left, right), sets.FALSE, sets.TRUE
    return Compare(op, left, right), sets.TRUE, sets.FALSE


def _comparison_sets(op: Comparison, value: object) -> tuple[ValueSet, ValueSet]:
    if value is None:
        return (sets.NULL, sets.NOT_NULL) if op == "<=>" else (sets.NOTHING, sets.NOTHING)
    if op == "<=>":
        true = sets.points([sets.key(value)])
        return true, ~true
    place = sets.key(value)
    domain = sets.comparable_with(place)
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
    """The sets of an IN: the IN is true for each of the listed values, and false for a value that
    is comparable with all of them and equals none."""
    places = [sets.key(value) for value in values if value is not None]
    true = sets.points(places)
    if len(places) < len(values):
        return true, sets.NOTHING
    domains = {sets.comparable_with(place) for place in places}
    return true, (domains.pop() - true if len(domains) == 1 else sets.NOTHING)


def simple_test(node: Expression) -> tuple[Attribute, ValueSet] | None:
    """The attribute of a simple test, and the set on which the test is true.

    This function is a fast path for `attribute op constant`, BETWEEN, IN and IS NULL, of which most
    filters consist; it returns None for all other conditions. `sets_of` gives the same result for
    these conditions.
    """
    kind = type(node)
    if kind is Compare:
        return _simple_comparison(node)  # type: ignore[arg-type]
    if kind is Between:
        return _simple_between(node)  # type: ignore[arg-type]
    if isinstance(node, In) and type(node.item) is Attribute and are_constants(node.options):
        values = [option.value for option in node.options if isinstance(option, Literal)]
        return node.item, sets.points(sets.key(v) for v in values if v is not None)
    if isinstance(node, IsNull) and type(node.item) is Attribute:
        return node.item, sets.NULL
    if kind is Not:
        return _simple_negation(node.item)  # type: ignore[union-attr]
    if kind is Call and node.name == "isabsent":  # type: ignore[union-attr]
        return node.args[0], sets.IS_ABSENT  # type: ignore[union-attr,return-value]
    return None


def _simple_negation(item: Expression) -> tuple[Attribute, ValueSet] | None:
    if isinstance(item, IsNull) and type(item.item) is Attribute:
        return item.item, sets.NOT_NULL
    if isinstance(item, Call) and item.name == "isabsent" and type(item.args[0]) is Attribute:
        return item.args[0], sets.IS_PRESENT
    return None


def _simple_comparison(node: Compare) -> tuple[Attribute, ValueSet] | None:
    attribute, right, op = node.left, node.right, node.op
    if type(attribute) is not Attribute or type(right) is not Literal or op == "<=>":
        return None
    value = right.value
    if value is None or isinstance(value, LISTS):
        return None
    place = sets.key(value)
    if op == "=":
        return attribute, sets.point(place)
    if op == "!=":
        return attribute, sets.comparable_with(place) - sets.point(place)
    if op in ("<", "<="):
        return attribute, sets.below(place, op == "<=")
    return attribute, sets.above(place, op == ">=")


def _simple_between(node: Between) -> tuple[Attribute, ValueSet] | None:
    attribute, low, high = node.item, node.low, node.high
    if type(attribute) is not Attribute or type(low) is not Literal or type(high) is not Literal:
        return None
    first, last = low.value, high.value
    if first is None or last is None or isinstance(first, LISTS) or isinstance(last, LISTS):
        return None
    return attribute, sets.between(sets.key(first), sets.key(last))
