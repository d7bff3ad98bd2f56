"""Filters that were probably not meant as written, because they can never match or always match.

    a filter             form            the sentence about it
    never-true           no box          names the conditions that exclude each other
    always-true          the free box    names the attributes that make no difference
    residual-only                        no index can help with one of its alternatives

All commands and rooms that report such filters take their words from this module. The form of a
filter shows whether the filter is odd. The expression of a filter is searched from the top down for
the reason why it can never match. In the first alternative, the reason is the first condition that
fails by itself, or, if there is no such condition, a minimal set of conditions that conflict.

The cost is that of computing the forms of parts: at most MOST_LEVELS times the cost of the whole
filter's form, and somewhat more for short filters. So the root can afford this search even for
filters from unknown clients.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

import msgspec

from tidings.filters.canonical.form import Form
from tidings.filters.canonical.rules import form_of
from tidings.filters.canonical.set_tree import is_opaque, narrow_to_type
from tidings.filters.language.attributes import Attributes
from tidings.filters.language.expression import (
    And,
    Compare,
    Expression,
    Literal,
    Not,
    Or,
    attributes_of,
)
from tidings.filters.language.sql_writer import literal_text, name_text, text_of
from tidings.filters.language.static_types import is_condition, static_type_of
from tidings.filters.values.sets import ValueSet, intersect
from tidings.model import Path, article, list_some

NEVER_TRUE, ALWAYS_TRUE, RESIDUAL_ONLY = "never-true", "always-true", "residual-only"
ODDITIES = {
    NEVER_TRUE: "no event can match it",
    ALWAYS_TRUE: "every event matches it",
    RESIDUAL_ONLY: "no index can help: it is evaluated on every event",
}

MOST_LEVELS = 8  # the most levels of an expression that are searched for the reason
MOST_SEARCHED = 100  # the most conditions on one term among which a minimal conflict is sought
MOST_TRIED, MOST_WEIGHT = 8, 64  # for several terms: the most conditions, and their total weight
MOST_NAMED = 4  # the most conditions that a reason names
LONGEST = 60  # the most characters of a condition that a reason quotes
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
Item = TypeVar("Item")


def oddities_of(form: Form) -> list[str]:
    """What is odd about a filter, as keys of ODDITIES."""
    if form.never:
        return [NEVER_TRUE]
    if form.always:
        return [ALWAYS_TRUE]
    boxes = [form.hull] if form.boxes is None else form.boxes
    blind = any(all(is_opaque(form.terms[term]) for term in box) for box in boxes)
    return [RESIDUAL_ONLY] if blind else []


def sentence_of(node: Expression, form: Form, attributes: Attributes | None) -> str:
    """One sentence about a filter that can never match, or that always matches although it reads
    attributes; empty for all other filters. (TRUE is not odd: a filter that is written as TRUE is
    meant to match everything.)"""
    if form.never:
        conflict = find_conflict(node, attributes)
        return f"the filter can never match: {_describe(conflict, attributes)}"
    names = [_cut(name_text(path)) for path in sorted(attributes_of(node))] if form.always else []
    if not names:
        return ""
    values = "value" if len(names) == 1 else "values"
    verb = "is" if len(names) == 1 else "are"
    return f"the filter matches every event, whatever the {values} of {list_some(names)} {verb}"


# -- why a filter can never match ------------------------------------------------------------------


class Conflict(msgspec.Struct, frozen=True):
    """Conditions that never hold together: a minimal set, unless there are many conditions."""

    conditions: tuple[Expression, ...]
    term: Expression | None = None
    """The term for which no value passes all conditions; None if the conflict is between several
    terms."""
    alternatives: int = 0
    """The number of other alternatives, none of which can match either."""


def find_conflict(
    node: Expression, attributes: Attributes | None = None, levels: int = MOST_LEVELS
) -> Conflict:
    """Find out why no event matches an expression whose form is empty."""
    node = _without_not(node)
    if isinstance(node, Or) and node.items and levels:
        first = find_conflict(node.items[0], attributes, levels - 1)
        rest = first.alternatives + len(node.items) - 1
        return msgspec.structs.replace(first, alternatives=rest)
    if isinstance(node, And) and levels:
        return _among(list(_conditions(node)), attributes, levels - 1)
    return Conflict((node,))


def _without_not(node: Expression) -> Expression:
    """The same condition with the outermost NOT moved inwards."""
    while isinstance(node, Not):
        match node.item:
            case And(items):
                node = Or(tuple(map(Not, items)))
            case Or(items):
                node = And(tuple(map(Not, items)))
            case Not(item):
                node = item
            case _:
                break
    return node


def _conditions(node: Expression) -> Iterable[Expression]:
    """The conditions that must all be true, in the order of the text."""
    if isinstance(node, And):
        for item in node.items:
            yield from _conditions(_without_not(item))
    else:
        yield node


def _among(items: list[Expression], attributes: Attributes | None, levels: int) -> Conflict:
    """A conflict among conditions that can't all hold together."""
    forms = [form_of(item, attributes) for item in items]
    tests: dict[str, list[tuple[Expression, ValueSet]]] = {}
    terms: dict[str, Expression] = {}
    for item, form in zip(items, forms, strict=True):
        if form.never:
            return find_conflict(item, attributes, levels)
        terms |= form.terms
        for term, values in form.hull.items():
            tests.setdefault(term, []).append((item, values))
    for term, found in tests.items():
        node = terms[term]
        kind = static_type_of(node, attributes)
        if not _have_common_value(found, kind):
            if len(found) <= MOST_SEARCHED:
                found = _fewest(found, lambda some: not _have_common_value(some, kind))  # noqa: B023
            return Conflict(tuple(item for item, _ in found), None if is_condition(node) else node)
    if len(items) <= MOST_TRIED and sum(form.weight for form in forms) <= MOST_WEIGHT:
        items = _fewest(items, lambda some: form_of(And(tuple(some)), attributes).never)
    return Conflict(tuple(items))


def _have_common_value(found: Sequence[tuple[Expression, ValueSet]], kind: str | None) -> bool:
    met = intersect([values for _, values in found])
    return bool(met if kind is None else narrow_to_type(met, kind))


def _fewest(items: list[Item], conflict: Callable[[list[Item]], bool]) -> list[Item]:
    """A minimal set of items that conflict; all items if that set would have more than MOST_NAMED.

    The last item of the shortest prefix that conflicts is needed. Bisection finds this item; the
    next needed item is then searched for among the items before it.
    """
    needed: list[int] = []
    last = len(items)
    while len(needed) <= MOST_NAMED:
        have = [items[at] for at in needed]
        if needed and conflict(have):
            return [items[at] for at in sorted(needed)]
        last = bisect_left(range(last), True, key=lambda at: conflict(items[: at + 1] + have))
        needed.append(last)
    return items


# -- in words --------------------------------------------------------------------------------------


def _describe(conflict: Conflict, attributes: Attributes | None) -> str:
    rest = conflict.alternatives
    others = "other alternative" if rest == 1 else f"other {rest:,} alternatives"
    said = _describe_conditions(conflict.conditions, conflict.term, attributes)
    return f"{said}; its {others} can't match either" if rest else said


def _describe_conditions(
    items: tuple[Expression, ...], term: Expression | None, attributes: Attributes | None
) -> str:
    first = items[0]
    if items == (Literal(False),):
        return "it is FALSE"
    if (
        items[1:] == ()
        and isinstance(first, Compare)
        and Literal(None) in (first.left, first.right)
    ):
        return f"{_text(first)} compares with NULL, which is never true; IS NULL tests for null"
    paths = set().union(*map(attributes_of, items))
    if not paths:
        return f"{_join(items)} is never true"
    if term is None and (len(items) > 1 or len(paths) > 1):
        return f"no event passes {_join(items)}"
    if term is not None:
        paths = attributes_of(term)
        after = [_after_term(term, item) for item in items]
        if 1 < len(after) <= MOST_NAMED and all(after):
            typed = _describe_type(items, paths, attributes)
            return f"no value of {_cut(text_of(term))}{typed} is {_list(after)}"
    named = name_text(*paths) if len(paths) == 1 or term is None else text_of(term)
    return (
        f"no value of {_cut(named)}{_describe_type(items, paths, attributes)} passes {_join(items)}"
    )


def _describe_type(
    items: tuple[Expression, ...], paths: Collection[Path], attributes: Attributes | None
) -> str:
    """The type of the attribute, if the conditions conflict only because of that type."""
    kind = attributes.type(*paths) if attributes is not None and len(paths) == 1 else None
    return "" if kind is None or form_of(And(items), None).never else f", {article(kind)},"


def _after_term(term: Expression, item: Expression) -> str:
    """What is left of a comparison without the term: `> 5`; empty for other conditions."""
    if not isinstance(item, Compare) or item.op not in _TURNED:
        return ""
    if item.left == term and isinstance(item.right, Literal):
        return f"{item.op} {_cut(literal_text(item.right.value))}"
    if item.right == term and isinstance(item.left, Literal):
        return f"{_TURNED[item.op]} {_cut(literal_text(item.left.value))}"
    return ""


def _join(items: Sequence[Expression]) -> str:
    if len(items) > MOST_NAMED:
        return f"{len(items):,} of its conditions at once"
    return _list([_text(item) for item in items])


def _list(parts: list[str]) -> str:
    if len(parts) < 3:
        return " and ".join(["both " + parts[0], *parts[1:]]) if parts[1:] else parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]} at once"


def _text(node: Expression) -> str:
    text = _cut(text_of(node))
    return f"({text})" if isinstance(node, Or) else text


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
