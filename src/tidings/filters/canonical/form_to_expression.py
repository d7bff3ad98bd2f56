"""Turn sets and forms back into expressions, in the style in which a person would write them.

`express_test` turns a term and a set into a condition that is true for exactly the values in the
set. If the text of the condition is parsed, the result is the same set.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from tidings.filters.canonical.boxes import Box
from tidings.filters.canonical.form import Form
from tidings.filters.canonical.set_tree import AllOf, Node, Test
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
from tidings.filters.language.static_types import is_condition
from tidings.filters.values import inet, sets
from tidings.filters.values.sets import Cut, Key, ValueSet
from tidings.model import from_micros

_FAMILIES = (sets.BOOLEANS, sets.NUMBERS, sets.STRINGS, sets.TIMES)
_EPOCH = dt.date(1970, 1, 1)


def express_form(form: Form) -> Expression:
    """Turn a form into an expression: an OR of ANDs, or the tree unchanged."""
    if form.tree is not None:
        return express_tree(form.tree, form.terms)
    assert form.boxes is not None
    if not form.boxes:
        return Literal(False)
    return _join_any([express_box(box, form.terms) for box in form.boxes])


def express_box(box: Box, terms: Mapping[str, Expression]) -> Expression:
    tests = [express_test(terms[term], values) for term, values in box.items()]
    return _join_all(tests) if tests else Literal(True)


def express_tree(node: Node, terms: Mapping[str, Expression]) -> Expression:
    if isinstance(node, Test):
        return express_test(terms[node.term], node.values)
    parts = [express_tree(item, terms) for item in node.items]
    return _join_all(parts) if isinstance(node, AllOf) else _join_any(parts)


def express_test(term: Expression, values: ValueSet) -> Expression:
    """A condition on the term that is true exactly if its value is in the set."""
    if values.is_everything:
        return Literal(True)
    if not values:
        return Literal(False)
    if values == sets.NOT_NULL:
        return Not(IsNull(term))
    if values == sets.IS_PRESENT:
        return Not(_is_absent(term))
    if values.cuts[-1] == (sets.OTHER,) and len(values.cuts) % 2 == 1 and not is_condition(term):
        nested = Call("isnested", (term,))
        rest = ValueSet(values.cuts[:-1])
        return _join_any([express_test(term, rest), nested]) if rest else nested
    # the set is unbounded above, so write the negation of its complement
    if len(values.cuts) % 2 == 1:
        missing = sets.NOT_NULL - values
        other = [Not(IsTruth(express_test(term, missing), True))] if missing else []
        # the negation also holds for absent and null values
        return _join_all([*_exclude_nulls(term, values), *other])
    if is_condition(term):
        return _express_outcome(term, values)
    pieces: list[Expression] = []
    if values >= sets.NULL:
        pieces.append(IsNull(term))
    elif sets.ABSENT_KEY in values:
        pieces.append(_is_absent(term))
    elif sets.NULL_KEY in values:
        pieces.append(And((IsNull(term), Not(_is_absent(term)))))
    for family in _FAMILIES:
        pieces.extend(_express_family(term, values & family, family))
    return _join_any(pieces)


def _exclude_nulls(term: Expression, values: ValueSet) -> list[Expression]:
    """The conditions that exclude absent and null values, unless the set contains these values."""
    if values >= sets.NULL:
        return []
    if sets.ABSENT_KEY in values:
        return [Or((_is_absent(term), Not(IsNull(term))))]
    return [Not(_is_absent(term)) if sets.NULL_KEY in values else Not(IsNull(term))]


def _is_absent(term: Expression) -> Expression:
    assert isinstance(term, Attribute)  # a computed term is never absent
    return is_absent(term)


def _express_outcome(term: Expression, values: ValueSet) -> Expression:
    """A condition that is true if the outcome of a term is one of the given ones: one or two of
    true, false and unknown."""
    null = sets.NULL_KEY in values
    if values >= sets.TRUE:
        return Not(IsTruth(term, False)) if null else term
    if values >= sets.FALSE:
        return Not(IsTruth(term, True)) if null else Not(term)
    return IsNull(term)


def _express_family(term: Expression, values: ValueSet, family: ValueSet) -> list[Expression]:
    if not values:
        return []
    if values == family:
        return [_express_whole_family(term, family)]
    missing = (family - values).points()
    most = max(1, len(values.cuts) // 2 - 1) if family != sets.BOOLEANS else 0
    if missing is not None and len(missing) <= most:
        return [_is_none_of(term, missing)]
    points: list[Key] = []
    ranges: list[Expression] = []
    for low, high in values.intervals():
        single = ValueSet((low,) if high is None else (low, high))
        places = single.points()
        if places is not None:
            points.extend(places)
        else:
            assert high is not None
            ranges.append(_express_range(term, low, high))
    equal = [_is_one_of(term, points)] if points else []
    return equal + ranges


def _express_whole_family(term: Expression, family: ValueSet) -> Expression:
    if family == sets.BOOLEANS:
        return In(term, (Literal(False), Literal(True)))
    if family == sets.NUMBERS:
        return Compare("<=", term, Literal(float("nan")))
    if family == sets.STRINGS:
        return Compare(">=", term, Literal(""))
    return Or((Compare("<", term, Literal(_EPOCH)), Compare(">=", term, Literal(_EPOCH))))


def value_at(place: Key | Cut) -> Any:
    if place[0] == sets.NAN:
        return float("nan")
    return from_micros(place[1]) if place[0] == sets.TIME else place[1]


def _is_one_of(term: Expression, points: list[Key]) -> Expression:
    if len(points) == 1 and isinstance(term, Call) and term.name == "inet":
        place = points[0][1:]
        network = inet.network_between(place, (place[0], 1))
        if network is not None:
            return Call("cidr", (term.args[0], Literal(network)))
    if len(points) == 1:
        return Compare("=", term, Literal(value_at(points[0])))
    return In(term, tuple(Literal(value_at(place)) for place in points))


def _is_none_of(term: Expression, points: list[Key]) -> Expression:
    if len(points) == 1:
        return Compare("!=", term, Literal(value_at(points[0])))
    return Not(In(term, tuple(Literal(value_at(place)) for place in points)))


def _express_range(term: Expression, low: Cut, high: Cut) -> Expression:
    starts_at_text = len(low) == 3 and low[0] == sets.STRING and low[2] == 0
    if starts_at_text and sets.prefix(low[1]) == ValueSet((low, high)):
        return _express_prefix(term, low[1])
    if isinstance(term, Call) and term.name == "inet":
        network = inet.network_between(low[1:], high[1:])
        if network is not None:
            return Call("cidr", (term.args[0], Literal(network)))
    below = _express_end(term, high, ("<=", "<"))
    above = _express_end(term, low, (">", ">="))
    if below is None or above is None:
        found = below or above
        assert found is not None  # whole families were handled by _express_whole_family
        return found
    if above.op == ">=" and below.op == "<=":
        return Between(term, above.right, below.right)
    return And((above, below))


def _express_end(term: Expression, cut: Cut, ops: tuple[Comparison, Comparison]) -> Compare | None:
    """The comparison for one end of a range; None if, at that end, the range goes to the end of the
    family."""
    if len(cut) == 3:
        return Compare(ops[0] if cut[2] else ops[1], term, Literal(value_at(cut)))
    if cut == (sets.NAN,):  # the cut between all other numbers and NaN
        return Compare(ops[1], term, Literal(float("nan")))
    return None


def _express_prefix(term: Expression, text: str) -> Expression:
    if isinstance(term, Call) and term.name == "reverse":
        return Call("endswith", (term.args[0], Literal(text[::-1])))
    return Call("startswith", (term, Literal(text)))


def _join_all(items: list[Expression]) -> Expression:
    flat: list[Expression] = []
    for item in items:
        flat.extend(item.items if isinstance(item, And) else [item])
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def _join_any(items: list[Expression]) -> Expression:
    flat: list[Expression] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Or) else [item])
    return flat[0] if len(flat) == 1 else Or(tuple(flat))
