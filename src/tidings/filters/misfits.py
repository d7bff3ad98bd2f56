"""Tests that don't fit the type of a column: `city > 5` on strings, `length(qty)` on numbers.

A comparison with a value of another family is unknown, and so is a function call with an argument
of the wrong type. On a column of a single type such a test never passes, so the filter never
matches, and no error says so. If types are declared, the parser refuses such a filter. If types are
not declared, the functions of this module find the filter later, when a table with typed columns
arrives.

    a test is a misfit    if no value of the column's type passes it, but some other value would
    a term is a misfit    if one of its functions or comparisons does not take the column's type

Each filter is checked on its own, over all its boxes: `x = 5 OR x = 'a'` fits a column of numbers
as well as one of strings. Other dialects have tests that take values of any type:
{"ip": [{"suffix": ".9"}]} becomes `endswith(ip, '.9')` for strings and a program for lists. Such a
filter fits a column if at least one of its tests fits.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidings.filters.canonical import Form, Node, Test
from tidings.filters.language import FUNCTIONS, article, attributes_of
from tidings.filters.language.attributes import family
from tidings.filters.language.expression import (
    Between,
    Call,
    Compare,
    Expression,
    In,
    children,
)
from tidings.filters.language.foreign import program_of
from tidings.filters.language.sql_writer import text_of
from tidings.filters.language.static_types import Types, static_type_of
from tidings.filters.values import sets
from tidings.filters.values.sets import ValueSet

Path = tuple[str, ...]

FAMILIES: dict[str, ValueSet] = {
    "boolean": sets.BOOLEANS, "number": sets.NUMBERS, "string": sets.STRINGS, "time": sets.TIMES,
    "list": sets.LISTS, "struct": sets.LISTS,
    "map": sets.LISTS,
}  # fmt: skip
_PLURALS = {
    "boolean": "booleans", "number": "numbers", "string": "strings", "time": "dates or times",
    "list": "lists",
}  # fmt: skip


class Misfit(msgspec.Struct, frozen=True):
    """What a filter expects of a column whose type differs."""

    path: Path
    expected: str  # "numbers", "a string"
    function: str = ""  # the function that takes the column as an argument; "" for a comparison

    def describe(self, many: bool = True) -> str:
        """The expectation in words: "filters compare it with numbers", "length takes a string"."""
        if self.function:
            return f"{self.function} takes {self.expected}"
        return f"{'filters compare' if many else 'the filter compares'} it with {self.expected}"


def misfits_of(form: Form, types: Types) -> list[Misfit]:
    """The misfits of one filter, without duplicates, sorted by column."""
    allowed: dict[str, ValueSet] = {}
    for term, values in _tests(form):
        allowed[term] = allowed[term] | values if term in allowed else values
    found: set[Misfit] = set()
    elsewhere: set[Path] = set()  # the columns that a program of another dialect reads
    fitting: set[Path] = set()  # columns that have a test that fits, or a test that null passes
    for term, values in allowed.items():
        node = form.terms[term]
        if program_of(node) is not None:
            elsewhere |= attributes_of(node)
            continue
        wrong = misfit_of_term(node, types)
        one = wrong or misfit_of_test(node, values, types)
        if one is not None:
            found.add(one)
        if one is None or (wrong is None and values & sets.NULL):
            fitting |= attributes_of(node)
    kept = [one for one in found if one.path not in elsewhere & fitting]
    return sorted(kept, key=lambda one: (one.path, one.function, one.expected))


def misfit_of_test(term: Expression, values: ValueSet, types: Types) -> Misfit | None:
    """The misfit of a test, if no value of the term's type passes it. `values` contains all values
    of the term that at least one test of the filter allows."""
    domain = domain_of(term, types)
    if domain is None or domain & values or not values - sets.NULL:
        return None
    return Misfit(_first_path(term), _describe(values))


def domain_of(term: Expression, types: Types) -> ValueSet | None:
    """All values that a term can have, apart from null; None if that is not known."""
    return FAMILIES.get(family(static_type_of(term, types)) or "")


def misfit_of_term(node: Expression, types: Types) -> Misfit | None:
    """The first function or comparison in a term that can't take the type of a column."""
    if isinstance(node, Call):
        function = FUNCTIONS[node.name]
        if function.any_type:
            return None
        for place, arg in enumerate(node.args[: len(function.takes)]):
            wanted = function.takes[place]
            have = family(static_type_of(arg, types))
            if have not in (None, "null", wanted) and attributes_of(arg):
                return Misfit(_first_path(arg), article(wanted), node.name)
    elif isinstance(node, (Compare, In, Between)):
        item, *others = children(node)
        for other in others:
            found = _compare(item, other, types) or _compare(other, item, types)
            if found is not None:
                return found
    return next((one for child in children(node) if (one := misfit_of_term(child, types))), None)


def _compare(item: Expression, other: Expression, types: Types) -> Misfit | None:
    """The misfit of a comparison between two different families; `item` reads the column."""
    have, wanted = (family(static_type_of(one, types)) for one in (item, other))
    if have in (None, "null") or wanted in (None, "null", have) or not attributes_of(item):
        return None
    return Misfit(_first_path(item), f"{text_of(other)[:60]}, {article(wanted)}")


def _first_path(node: Expression) -> Path:
    return min(attributes_of(node), default=())


def _describe(values: ValueSet) -> str:
    names = [_PLURALS[name] for name in _PLURALS if values & FAMILIES[name]]
    return " or ".join(names)


def _tests(form: Form) -> Iterator[tuple[str, ValueSet]]:
    if form.boxes is not None:
        for box in form.boxes:
            yield from box.items()
    elif form.tree is not None:
        yield from _tests_of(form.tree)


def _tests_of(node: Node) -> Iterator[tuple[str, ValueSet]]:
    if isinstance(node, Test):
        yield node.term, node.values
    else:
        for item in node.items:
            yield from _tests_of(item)
