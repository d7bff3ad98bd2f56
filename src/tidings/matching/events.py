"""One event to codes: the short way from a mapping to rank space.

Twenty attributes take a few microseconds here, which is as long as the kernel takes for the rest;
so the common types of the common terms are looked up in place, in one loop. Integers are left for
the kernel: a bisection over Python's integers costs more than all else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.filters.evaluate import evaluate
from tidings.filters.expression import Attribute, Expression
from tidings.matching.encoder import Encoder
from tidings.matching.ranks import Ranks
from tidings.model import Event

# (column, attribute or None, codes of strings, code of other strings or -1, code of null, ranks,
# everything else)
Lookup = tuple[int, str | None, dict[str, int], int, int, Ranks, Callable[[Event], int]]
Array = npt.NDArray[Any]


def lookup_of(column: int, node: Expression, ranks: Ranks, elements: bool) -> Lookup:
    """How the code of a term is found; the elements of lists are not looked up."""
    if elements:
        return column, None, {}, 0, 0, ranks, lambda _event: 0

    def slow(event: Event) -> int:
        return ranks.code(evaluate(node, event))

    name = node.path[0] if isinstance(node, Attribute) and len(node.path) == 1 else None
    unknown = -1 if ranks.ordered else ranks.unknown_string
    return column, name, ranks.strings, unknown, ranks.null, ranks, slow


def numbers_of(encoders: Sequence[Encoder | None]) -> tuple[Array, Array, Array]:
    """How the kernel finds the codes of integers; None for columns that have none.

    numbers int64 [C, 4]: value of the first place, first and last place in `table` (uint32), 1;
    or code of the least number, first and last place in `thresholds` (int64), 0.
    """
    numbers = np.zeros((len(encoders) + 1, 4), np.int64)
    tables, thresholds = [np.zeros(0, np.uint32)], [np.zeros(0, np.int64)]
    in_table, in_thresholds = 0, 0
    for at, encoder in enumerate(encoders, 1):
        if encoder is None:
            continue
        if encoder.integer_table is not None:
            lowest, table = encoder.integer_table
            numbers[at] = lowest, in_table, in_table + len(table), 1
            tables.append(table)
            in_table += len(table)
        else:
            found = encoder.ranks.integers
            beyond = in_thresholds + len(found)
            numbers[at] = encoder.ranks.number_base, in_thresholds, beyond, 0
            thresholds.append(found)
            in_thresholds = beyond
    return numbers, np.concatenate(tables), np.concatenate(thresholds)


def values_of_event(lookups: list[Lookup], event: Event) -> Array:
    """The codes of all columns, column 0 first; then the columns where an integer stands instead
    of its code."""
    codes: list[Any] = [0]
    integers: list[int] = []
    add = codes.append
    get = event.get
    for column, name, strings, unknown, null, ranks, slow in lookups:
        if name is not None:
            value: Any = get(name)
            kind = type(value)
            if kind is str:
                code = strings.get(value, unknown)
                if code >= 0:
                    add(code)
                    continue
            elif kind is int:
                add(value)
                integers.append(column)
                continue
            elif value is None:
                add(null)
                continue
            elif kind is float and value == value:  # not NaN
                add(ranks.number_base + bisect_right(ranks.double_list, value))
                continue
        add(slow(event))
    try:
        return np.array(codes + integers, np.int64)
    except OverflowError:  # an integer that is none of 64 bits
        return np.array([0, *(slow(event) for *_, slow in lookups)], np.int64)
