"""Which rows of a batch may match one of the filters in a write buffer?

    filters ──boxes──> intervals of doubles, hashes of strings ─┐
    columns ─────────> doubles, hashes of strings ──────────────┴─kernel─> rows that may match

Only the rows that may match are read as events and matched exactly, which takes tens of
microseconds for each. So this check considers all tests of a filter: with events of many
attributes, nearly every row has a value that some new filter tests.

All values are compared as doubles: of a string, the first bytes. A test for one string compares
hashes. Both can only make a row match that does not. Each box is compared with each row, so of a
filter with many boxes, only the hull is kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from functools import lru_cache
from math import nextafter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.filters.canonical import Form
from tidings.filters.language import Attribute
from tidings.filters.values import ValueSet, sets
from tidings.filters.values.sets import Cut
from tidings.matching.buffer_row_kernels import (
    ANYTHING,
    BOOLEAN,
    NOTHING,
    NUMBER,
    PREFIX,
    STRING,
    STRINGS,
    TIME,
    hash_strings,
    mark_rows,
)

Array = npt.NDArray[Any]
MOST_BOXES = 4  # of a filter with more boxes, only the hull is compared
MOST_IN_ALL = 1 << 13  # the most intervals of all filters together
# of a set with more intervals, only the first and last value are compared; the second limit holds
# if the filters have half of the intervals that they may have
MOST_INTERVALS = 64, 16
MOST_REMOVED = 64  # so many intervals of removed filters may stay, however few others there are
SHORT = 64  # the most characters of a string whose hash is remembered
REMEMBERED = 1 << 10  # filters often test the same strings
Interval = tuple[int, float, float, int]  # kind, low, high, hash
Box = dict[str, list[Interval]]  # by attribute
_INF = float("inf")
_ANY: Interval = (ANYTHING, 0.0, 0.0, 0)


class BufferRows:
    """The boxes of filters that test only top-level attributes, none of which may be absent or
    null. The boxes of a removed filter only make more rows match, so they stay until they have more
    intervals than the others."""

    def __init__(self) -> None:
        self._filters: dict[int, list[Box]] = {}
        self._live = 0  # intervals of these boxes
        self._clear()

    def _clear(self) -> None:
        self.size = 0  # intervals, with those of removed filters that are still here
        self._terms: dict[str, int] = {}
        self._boxes, self._box_terms, self._tests = array("q", [0]), array("q"), array("q", [0])
        self._kinds, self._hashes = array("B"), array("q")
        self._low, self._high = array("d"), array("d")
        self._arrays: tuple[Array, ...] | None = None  # the same, as the kernel needs them

    def add(self, number: int, form: Form) -> bool:
        """Add a filter; False if the filter is not taken."""
        boxes = _boxes_of(form, MOST_INTERVALS[self._live > MOST_IN_ALL // 2])
        if boxes is None or self._live + _size(boxes) > MOST_IN_ALL:
            return False
        self._filters[number] = boxes
        self._live += _size(boxes)
        self._append(boxes)
        return True

    def discard(self, number: int) -> None:
        """Remove a filter if it was taken."""
        boxes = self._filters.pop(number, None)
        if boxes is None:
            return
        self._live -= _size(boxes)
        if self.size - self._live > max(self._live, MOST_REMOVED):
            self._clear()
            for some in self._filters.values():
                self._append(some)

    def _append(self, boxes: list[Box]) -> None:
        self.size += _size(boxes)
        for box in boxes:
            for name, intervals in box.items():
                self._box_terms.append(self._terms.setdefault(name, len(self._terms)))
                for kind, low, high, hash_ in intervals:
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
        if not self._filters or not len(found):
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


def _boxes_of(form: Form, most: int) -> list[Box] | None:
    """Boxes that contain a filter; None if they would not restrict it enough."""
    if form.boxes is not None and len(form.boxes) <= MOST_BOXES:
        found = [_plain_tests(form, box, most) for box in form.boxes]
        is_whole = all(found) and list(map(len, found)) == list(map(len, form.boxes))
        return found if is_whole else None
    hull = _plain_tests(form, form.hull, most)
    return [hull] if hull else None


def _plain_tests(form: Form, box: Mapping[str, ValueSet], most: int) -> Box:
    """The tests of top-level attributes, by attribute, for values that are there."""
    found: Box = {}
    for term, values in box.items():
        node = form.terms[term]
        is_there = not values.cuts or values.cuts[0][0] != sets.NO_VALUE
        if type(node) is Attribute and len(node.path) == 1 and is_there:
            found[node.path[0]] = _intervals(values, most)
    return found


def _size(boxes: list[Box]) -> int:
    """How many intervals boxes have."""
    return sum(len(intervals) for box in boxes for intervals in box.values())


def _intervals(values: ValueSet, most: int) -> list[Interval]:
    if values == sets.NOT_NULL:
        return [_ANY]
    found: list[Interval] = []
    intervals = [*values.intervals()]
    if len(intervals) > most:
        intervals = [(intervals[0][0], intervals[-1][1])]
    for low, high in intervals:
        for family, end in _FAMILIES.items():
            first = max(low, (family,))
            last = (end,) if high is None else min(high, (end,))
            if first < last:
                found.append(_interval(family, first, last))
    return found


# The families whose values the kernel compares, each with the family that follows. It takes any
# value of another family for one that may match.
_FAMILIES = {
    sets.BOOLEAN: sets.NUMBER,
    sets.NUMBER: sets.NAN,
    sets.STRING: sets.TIME,
    sets.TIME: sets.OTHER,
}


def _interval(family: int, low: Cut, high: Cut) -> Interval:
    """The interval between two cuts of one family."""
    if family == sets.BOOLEAN:
        return BOOLEAN, float(len(low) == 3), float(high[0] != family), 0
    if family == sets.STRING:
        text = low[1] if len(low) == 3 else ""
        if high == (family, text, 1) and (len(low) == 1 or low[2] == 0):
            return STRING, 0.0, 0.0, _hash_short(text) if len(text) <= SHORT else _hash(text)
        return STRINGS, _prefix(text), _prefix(high[1]) if len(high) == 3 else _INF, 0
    try:
        first = float(low[1]) if len(low) == 3 else -_INF
        last = float(high[1]) if len(high) == 3 else _INF
    except OverflowError:
        return _ANY
    # one step outwards, because a long number may be rounded
    kind = NUMBER if family == sets.NUMBER else TIME
    return kind, nextafter(first, -_INF), nextafter(last, _INF), 0


def _prefix(text: str) -> float:
    """The first bytes of a string as a number; the kernel computes the same."""
    data = text[:PREFIX].encode(errors="surrogatepass")[:PREFIX]
    return float(int.from_bytes(data.ljust(PREFIX, b"\0"), "big"))


def _hash(text: str) -> int:
    data, hashes = text.encode(errors="surrogatepass"), np.empty(1, np.int64)
    hash_strings(
        _fixed(np.frombuffer(data or b"\0", np.uint8)),
        _fixed(np.array([0, len(data)], np.int64)),
        hashes,
        np.empty(1),
    )
    return int(hashes[0])


_hash_short = lru_cache(REMEMBERED)(_hash)


def _fixed(array: Array) -> Array:
    """Make an array read-only. Arrow allows writing to some buffers only, and the kernel would be
    compiled again for each combination."""
    array.flags.writeable = False
    return array


def _read_column(column: pa.Array, kinds: Array, numbers: Array, hashes: Array) -> None:
    """The kinds, doubles and hashes of a column's values."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_float64(kind):
        numbers[:] = column.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy()
        kinds[:] = np.where(np.isnan(numbers), ANYTHING, NUMBER)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = column.cast(pa.large_string())
        _, offsets, data = column.buffers()
        starts = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
        texts = np.frombuffer(data or b"\0", np.uint8)
        hash_strings(_fixed(texts), _fixed(starts), hashes, numbers)
        kinds[:] = STRING
    elif pa.types.is_boolean(kind):
        numbers[:] = column.cast(pa.uint8()).fill_null(0).to_numpy()
        kinds[:] = BOOLEAN
    elif pa.types.is_date32(kind) or (pa.types.is_timestamp(kind) and kind.unit == "us"):
        times = column.cast(pa.timestamp("us", kind.tz if pa.types.is_timestamp(kind) else None))
        numbers[:] = times.cast(pa.int64()).fill_null(0).to_numpy()
        kinds[:] = TIME
    else:
        kinds[:] = ANYTHING
    if column.null_count:
        kinds[pc.is_null(column).to_numpy(zero_copy_only=False)] = NOTHING
