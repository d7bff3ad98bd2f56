"""One event to codes: the short way from a mapping to rank space.

Twenty attributes take a few microseconds here, which is as long as the kernel takes for the rest;
so the common types of the common terms are looked up in place, in one loop.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from tidings.filters.evaluate import evaluate
from tidings.filters.expression import Attribute, Expression
from tidings.matching.ranks import Ranks
from tidings.model import Event
from tidings.model.values import INT_MAX, INT_MIN

# (attribute or None, codes of strings, code of other strings or -1, code of null, code of the
# least number, thresholds of integers, everything else)
Lookup = tuple[str | None, dict[str, int], int, int, int, list[int], Callable[[Event], int]]


def lookup_of(node: Expression, ranks: Ranks | None) -> Lookup:
    """How the code of a term is found; None for the ranks of elements, which are not looked up."""
    if ranks is None:
        return None, {}, 0, 0, 0, [], lambda _event: 0

    def slow(event: Event) -> int:
        return ranks.code(evaluate(node, event))

    name = node.path[0] if isinstance(node, Attribute) and len(node.path) == 1 else None
    unknown = -1 if ranks.ordered else ranks.unknown_string
    return (
        name, ranks.strings, unknown, ranks.null, ranks.number_base, ranks.integer_list, slow,
    )  # fmt: skip


def codes_of_event(lookups: list[Lookup], event: Event) -> list[int]:
    """The codes of all columns, column 0 first."""
    codes = [0]
    add = codes.append
    get = event.get
    for name, strings, unknown, null, base, thresholds, slow in lookups:
        if name is not None:
            value: Any = get(name)
            kind = type(value)
            if kind is str:
                code = strings.get(value, unknown)
                if code >= 0:
                    add(code)
                    continue
            elif kind is int:
                if INT_MIN <= value <= INT_MAX:
                    add(base + bisect_right(thresholds, value))
                    continue
            elif value is None:
                add(null)
                continue
        add(slow(event))
    return codes
