"""Encode one event as codes: the fast path from a mapping to rank space.

Encoding twenty attributes takes a few microseconds, which is as long as the kernel needs for the
event. So common types of common terms are looked up inline, in one loop. Integers are left to the
kernel, because a bisection in Python would cost more than all other work. If filters test far more
attributes than an event has, its codes are a copy of the codes of an empty event, and only the
attributes of the event are looked up.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import repeat
from operator import itemgetter
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple

from tidings.filters.language import Attribute, Expression, attributes_of, term_value
from tidings.matching.array_fields import ArrayField, Int64, UInt32
from tidings.matching.rank_space.encoder import Encoder
from tidings.matching.rank_space.rank_kernels import IntegerColumn
from tidings.matching.rank_space.ranks import Ranks
from tidings.model import ABSENT, Event

# (column; attribute or None; codes of strings; code of other strings, or -1; codes of null and of
# absent; ranks; function for all other values; attributes that the term reads)
Lookup = tuple[
    int, str | None, dict[str, int], int, int, int, Ranks, Callable[[Event], int], frozenset[str]
]
Array = npt.NDArray[Any]
# An event is sparse if there are more columns than SPARSE times its number of attributes plus
# WORTH.
SPARSE = 4
WORTH = 64
_INT64 = np.dtype(np.int64)
_UNFIT = re.compile(r'["\\\x00-\x1f\x7f-\x9f]')  # msgspec does not support such field names


def lookup_of(column: int, node: Expression, ranks: Ranks, elements: bool) -> Lookup:
    """How to find the code of a term. Terms on elements of lists are encoded by lists.py."""
    if elements:
        return column, None, {}, 0, 0, 0, ranks, lambda _event: 0, frozenset()

    def slow(event: Event) -> int:
        return ranks.code(term_value(node, event))

    name = node.path[0] if isinstance(node, Attribute) and len(node.path) == 1 else None
    unknown = -1 if ranks.ordered else ranks.unknown_string
    names = frozenset(path[0] for path in attributes_of(node))
    return column, name, ranks.strings, unknown, ranks.null, ranks.absent, ranks, slow, names


class IntegerCodes(NamedTuple):
    """The tables in which the kernel looks up the codes of integers."""

    columns: Annotated[Array, ArrayField(np.int64, len(IntegerColumn))]  # [C]
    table: UInt32
    thresholds: Int64


def integer_codes(encoders: Sequence[Encoder | None]) -> IntegerCodes:
    """Build the tables for integers; for a column of list elements, the encoder is None."""
    numbers = np.zeros((len(encoders) + 1, len(IntegerColumn)), np.int64)
    tables, thresholds = [np.zeros(0, np.uint32)], [np.zeros(0, np.int64)]
    in_table, in_thresholds = 0, 0
    for at, encoder in enumerate(encoders, 1):
        if encoder is None:
            continue
        if encoder.integer_table is not None:
            lowest, table = encoder.integer_table
            base, first, end = lowest, in_table, in_table + len(table)
            tables.append(table)
            in_table = end
        else:
            found = encoder.ranks.integers
            base, first = encoder.ranks.number_base, in_thresholds
            end = in_thresholds + len(found)
            thresholds.append(found)
            in_thresholds = end
        numbers[at, IntegerColumn.BASE] = base
        numbers[at, IntegerColumn.FIRST], numbers[at, IntegerColumn.END] = first, end
        numbers[at, IntegerColumn.IN_TABLE] = encoder.integer_table is not None
    return IntegerCodes(numbers, np.concatenate(tables), np.concatenate(thresholds))


class EventReader:
    """Turns events into the int64 values that the kernel takes: first a value for each column, from
    column 0 on; then the numbers of the columns whose value is an integer instead of a code."""

    def __init__(self, lookups: Sequence[Lookup]) -> None:
        self._lookups = list(lookups)
        self._names = [name for _, name, *_ in self._lookups]
        self._all: Callable[[Any], tuple[Any, ...]] | None = None
        self._decode: Callable[[str | bytes], Any] | None = None
        if len(self._names) > 1 and None not in self._names:
            self._all = itemgetter(*self._names)
            names = [str(name) for name in self._names]
            if not any(_UNFIT.search(name) for name in names):
                self._decode = _decoder(names)

    def of_event(self, event: Event) -> Array:
        if len(self._lookups) > SPARSE * len(event) + WORTH:
            return self._code_sparse(event)
        values: Iterable[Any]
        if self._all is not None and type(event) is dict:
            try:
                values = self._all(event)
            except KeyError:
                values = map(event.get, self._names, repeat(ABSENT))
        else:
            values = [None if name is None else event.get(name, ABSENT) for name in self._names]
        return self._code_values(values, event)

    @cached_property
    def _reading(self) -> dict[str, list[Lookup]]:
        """For each attribute, the lookups of the columns whose terms read it."""
        found: dict[str, list[Lookup]] = {}
        for lookup in self._lookups:
            for name in lookup[-1]:
                found.setdefault(name, []).append(lookup)
        return found

    @cached_property
    def _empty(self) -> Array:
        """The codes of an event without attributes."""
        return np.array([0, *(slow({}) for *_, slow, _ in self._lookups)], _INT64)

    def _code_sparse(self, event: Event) -> Array:
        """The codes of an event that has few of the tested attributes."""
        codes = self._empty.copy()
        for column, *_, slow, _ in self._read_by(event):
            codes[column] = slow(event)
        return codes

    def _read_by(self, event: Event) -> Iterator[Lookup]:
        reading = self._reading
        for name in event:
            yield from reading.get(name, ())

    def of_json(self, text: str | bytes) -> Array | None:
        """The codes of an event from its JSON text; only the tested attributes are decoded. None if
        the whole event is needed, or if the text can't be decoded."""
        # msgspec does not check that the strings that it skips are valid UTF-8
        if self._decode is None or not text.isascii():
            return None
        try:
            values = astuple(self._decode(text))
        except (msgspec.DecodeError, RecursionError):
            return None
        return self._code_values(values, None)

    def _code_values(self, values: Iterable[Any], event: Event | None) -> Array:
        codes: list[Any] = [0]
        integers: list[int] = []
        add = codes.append
        for value, lookup in zip(values, self._lookups, strict=True):
            column, name, strings, unknown, null, absent, ranks, slow, _ = lookup
            if name is not None:
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
                elif value is ABSENT:
                    add(absent)
                    continue
                elif value is None:
                    add(null)
                    continue
                elif kind is float and value == value:  # not NaN
                    add(ranks.number_base + bisect_right(ranks.double_list, value))
                    continue
            add(slow({str(name): value} if event is None else event))
        try:
            return np.array(codes + integers, _INT64)
        except OverflowError:  # for an integer that does not fit in 64 bits
            return self._one_by_one(codes, integers)

    def _one_by_one(self, codes: list[Any], integers: list[int]) -> Array:
        for column in integers:
            codes[column] = self._lookups[column - 1][6].code(codes[column])
        return np.array(codes, np.int64)


def _decoder(names: Sequence[str]) -> Callable[[str | bytes], Any]:
    """A decoder that reads the values of these names from JSON text and skips all others."""
    fields = [(f"f{at}", Any, ABSENT) for at in range(len(names))]
    renamed = {f"f{at}": name for at, name in enumerate(names)}
    kind = msgspec.defstruct("Tested", fields, rename=renamed, gc=False)
    decode: Callable[[str | bytes], Any] = msgspec.json.Decoder(kind).decode
    return decode
