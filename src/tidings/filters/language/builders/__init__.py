"""Checked construction of expressions: parsers call a method of `Builder` for each construct that
they read.

    Checker ──> LeafBuilder ──> ComparisonBuilder ──> CallBuilder ──> Builder

    checker.py         counts parts, refuses with a position, knows the types of expressions
    leaves.py          attributes, elements of lists, numbers, casts
    comparisons.py     comparisons, IN, BETWEEN, CASE, `exists`
    calls.py           calls of functions of the table; LIKE and RLIKE
    special_calls.py   `Builder`: function calls by name; functions with checks of their own

Each builder class inherits from the previous one and adds methods. All checks are here, and each
refusal is one sentence with a position. The builder refuses unknown attributes and functions,
arguments of the wrong type, comparisons of types that can't be compared, and patterns that do not
compile. Constants are folded: `60 * 60` becomes 3600.

This folder is used only by the parsers of dialects. Start at special_calls.py.
"""

from tidings.filters.language.builders.leaves import TYPE_NAMES
from tidings.filters.language.builders.special_calls import Builder

__all__ = [
    "TYPE_NAMES",
    "Builder",
]
