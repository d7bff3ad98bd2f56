"""Which rows of a batch may match one of the filters in a write buffer?

    filters ──boxes──> intervals of doubles, hashes of strings ─┐
    columns ─────────> doubles, hashes of strings ──────────────┴─kernel─> rows that may match

Only the rows that may match are read as events and matched exactly, which takes tens of
microseconds for each. So this check considers all tests of a filter: with events of many
attributes, nearly every row has a value that some new filter tests.

Numbers are compared as doubles, and strings by hash. Both can only make a row match that does not.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from math import nextafter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.filters.canonical import Form
from tidings.filters.language import Attribute
from tidings.filters.values import ValueSet
from tidings.filters.values.sets import NO_VALUE, NUMBER, STRING, Cut
from tidings.matching.buffer_row_kernels import (
    ANYTHING,
    NOTHING,
    NUMBER as IS_NUMBER,
    STRING as IS_STRING,
    hash_strings,
    mark_rows,
)

Array = npt.NDArray[Any]
MOST_INTERVALS = 16  # a set with more intervals counts as one that may have any value
SHORT = 64  # the most characters of a string whose hash is remembered
REMEMBERED = 1 << 10  # filters often test the same strings
Interval = tuple[int, float, float, int]  # kind, low, high, hash
_INF = float("inf")
_ANY: Interval = (ANYTHING, 0.0, 0.0, 0)


class BufferRows:
    """The boxes of filters that test only top-level attributes, none of which may be absent or
    null. Boxes are never removed: a removed filter only makes more rows match."""

    def __init__(self) -> None:
        self._terms: dict[str, int] = {}
        self._boxes, self._box_terms, self._tests = array("q", [0]), array("q"), array("q", [0])
        self._kinds, self._hashes = array("B"), array("q")
        self._low, self._high = array("d"), array("d")
        self._arrays: tuple[Array, ...] | None = None  # the same, as the kernel needs them

    @staticmethod
    def takes(form: Form) -> bool:
        """Whether a filter can be added."""
        if form.boxes is None or not all(form.boxes):
            return False
        if not all(type(one) is Attribute and len(one.path) == 1 for one in form.terms.values()):
            return False
        sets = (values for box in form.boxes for values in box.values())
        return all(one.cuts[0][0] != NO_VALUE for one in sets)

    def add(self, form: Form) -> None:
        """Add a filter that `takes` accepts."""
        for box in form.boxes or ():
            for term, values in box.items():
                node = form.terms[term]
                assert type(node) is Attribute
                (name,) = node.path
                self._box_terms.append(self._terms.setdefault(name, len(self._terms)))
                for kind, low, high, hash_ in _intervals(values):
                    self._kinds.append(kind)
                    self._low.append(low)
                    self._high.append(high)
                    self._hashes.append(hash_)
                self._tests.append(len(self._kinds))
            self._boxes.append(len(self._box_terms))
        self._arrays = None

    def find(self, batch: pa.RecordBatch) -> Array:
        """A Boolean for each row: whether a filter may match it."""
        found = np.zeros(batch.num_rows, np.uint8)
        if len(self._boxes) == 1 or not len(found):
            return found.astype(np.bool_)
        if self._arrays is None:
            self._arrays = tuple(
                np.array(one)
                for one in (self._boxes, self._box_terms, self._tests, self._kinds, self._low,
                            self._high, self._hashes)
            )  # fmt: skip
        place_of = {name: at for at, name in enumerate(batch.schema.names)}
        names = [name for name in self._terms if name in place_of]
        rank = {name: at for at, name in enumerate(names)}
        columns = np.array([rank.get(name, -1) for name in self._terms], np.int64)
        shape = max(1, len(names)), len(found)
        values = np.zeros(shape, np.uint8), np.zeros(shape), np.zeros(shape, np.int64)
        for at, name in enumerate(names):
            _read_column(batch.column(place_of[name]), *(one[at] for one in values))
        mark_rows(*self._arrays, columns, values, found)
        return found.astype(np.bool_)


def _intervals(values: ValueSet) -> list[Interval]:
    if len(values.cuts) > 2 * MOST_INTERVALS:
        return [_ANY]
    found = [_interval(low, high) for low, high in values.intervals()]
    return [_ANY] if _ANY in found else found


def _interval(low: Cut, high: Cut | None) -> Interval:
    if low[0] == NUMBER and high is not None and high <= (STRING,):
        try:
            first = -_INF if len(low) == 1 else float(low[1])
            last = _INF if high[0] > NUMBER or len(high) == 1 else float(high[1])
        except OverflowError:
            return _ANY
        # one step outwards, because a long decimal may be rounded
        return IS_NUMBER, nextafter(first, -_INF), nextafter(last, _INF), 0
    if len(low) == 3 and low[0] == STRING and high == (STRING, low[1], 1):
        return IS_STRING, 0.0, 0.0, _hash_short(low[1]) if len(low[1]) <= SHORT else _hash(low[1])
    return _ANY


def _hash(text: str) -> int:
    data, out = text.encode(errors="surrogatepass"), np.empty(1, np.int64)
    ends = np.array([0, len(data)], np.int64)
    ends.flags.writeable = False  # like the arrays of Arrow; else the kernel is compiled again
    hash_strings(np.frombuffer(data, np.uint8), ends, out)
    return int(out[0])


_hash_short = lru_cache(REMEMBERED)(_hash)


def _read_column(column: pa.Array, kinds: Array, numbers: Array, hashes: Array) -> None:
    """The kinds, doubles and hashes of a column's values."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_float64(kind):
        numbers[:] = column.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy()
        kinds[:] = ANYTHING if np.isnan(numbers).any() else IS_NUMBER
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = column.cast(pa.large_string())
        _, offsets, data = column.buffers()
        starts = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
        texts = np.frombuffer(data or b"\0", np.uint8)
        hash_strings(texts, starts, hashes)
        kinds[:] = IS_STRING
    else:
        kinds[:] = ANYTHING
    if column.null_count:
        kinds[pc.is_null(column).to_numpy(zero_copy_only=False)] = NOTHING
