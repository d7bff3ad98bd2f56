"""Computes the correct matches of a workload from its tests alone.

This module shares no code with the engine or the peers, and is used to check all of them. Each
column of events is converted to ordered codes; a test is a range of codes, except suffix and LIKE
tests, which are evaluated one by one. For each filter, the most selective test yields the
candidates, to which the other tests are applied.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tidings.studies.workloads.conjunctions import LIKE, PREFIX, SUFFIX, Conjunctions
from tidings.studies.workloads.draws import Array
from tidings.studies.workloads.workloads import Workload

_AT_ONCE = 4_000_000  # candidates
_LAST = "\U0010ffff"


def matching_pairs(workload: Workload, events: int | None = None) -> tuple[Array, Array]:
    """All matches of the first `events` events, in order, as two arrays: events and filters."""
    found = list(_pairs(workload, events))
    rows = np.concatenate([rows for rows, _ in found])
    filters = np.concatenate([filters for _, filters in found])
    order = np.lexsort((filters, rows))
    return rows[order], filters[order]


def match_counts(workload: Workload, events: int | None = None) -> Array:
    """The number of filters that match each of the first `events` events."""
    size = workload.events.num_rows if events is None else min(events, workload.events.num_rows)
    counts = np.zeros(size, np.int64)
    for rows, _ in _pairs(workload, events):
        counts += np.bincount(rows, minlength=size)
    return counts


def _pairs(workload: Workload, events: int | None) -> Iterator[tuple[Array, Array]]:
    table = workload.events if events is None else workload.events.slice(0, events)
    columns = [_Column(table[name], kind) for name, kind in _names_and_kinds(workload.filters)]
    tests = _Tests(workload.filters, columns)
    offsets = workload.filters.offsets
    size = tests.stop - tests.start
    # The most selective test of every filter.
    by_size = np.lexsort((size, np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))))
    access = by_size[offsets[:-1]]
    ends = np.cumsum(size[access])
    first = 0
    while first < len(access):
        done = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + _AT_ONCE, "right")))
        yield _survivors(workload.filters, tests, columns, access, np.arange(first, last))
        first = last


def _survivors(
    filters: Conjunctions, tests: _Tests, columns: list[_Column], access: Array, chosen: Array
) -> tuple[Array, Array]:
    """The matches of the filters `chosen`, as two arrays: their events and their filters."""
    access = access[chosen]
    counts = tests.stop[access] - tests.start[access]
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    places += np.repeat(tests.start[access], counts)
    candidate = np.repeat(chosen, counts)
    where = np.repeat(filters.attribute[access], counts)
    event = np.empty(len(candidate), np.int64)
    for number, column in enumerate(columns):
        mine = where == number
        event[mine] = column.order[places[mine]]
    first, length = filters.offsets[candidate], np.diff(filters.offsets)[candidate]
    nth = 0
    while len(candidate) and nth < length.max():
        alive = np.ones(len(candidate), bool)
        rows = np.flatnonzero(length > nth)
        test = first[rows] + nth
        alive[rows] = tests.hold(test, event[rows])
        candidate, event = candidate[alive], event[alive]
        first, length = first[alive], length[alive]
        nth += 1
    return event, candidate


class _Column:
    """One attribute of the events as ordered codes; -1 where it is null."""

    def __init__(self, column: pa.ChunkedArray, kind: str) -> None:
        self.values: list[str] = []
        if kind == "string":
            coded = column.combine_chunks().dictionary_encode()
            found = coded.dictionary.to_pylist()
            self.values = sorted(found)
            place = {value: number for number, value in enumerate(self.values)}
            moved = np.array([place[value] for value in found] + [-1], np.float64)
            indices = coded.indices.fill_null(len(found)).to_numpy(zero_copy_only=False)
            self.codes = moved[indices]
        else:
            codes = column.cast(pa.float64()).combine_chunks().fill_null(np.nan)
            self.codes = codes.to_numpy(zero_copy_only=False)
        self.order = np.argsort(self.codes, kind="stable")
        self.sorted = self.codes[self.order]

    def text_range(self, operator: int, text: str) -> tuple[float, float]:
        """The range of codes of the values that are equal to a string, or start with it."""
        low = bisect.bisect_left(self.values, text)
        if operator == PREFIX:
            return low, bisect.bisect_left(self.values, text + _LAST) - 1
        there = low < len(self.values) and self.values[low] == text
        return (low, low) if there else (0, -1)


class _Tests:
    """All tests as ranges of codes, with the slice of the sorted events that passes each."""

    def __init__(self, filters: Conjunctions, columns: list[_Column]) -> None:
        self._filters = filters
        self._columns = columns
        self.codes = np.stack([column.codes for column in columns])
        # Open ends become infinite. A null passes no test: for strings, the code of null is -1; for
        # numbers, it is NaN.
        self.low = np.where(np.isnan(filters.low), -np.inf, filters.low)
        self.high = np.where(np.isnan(filters.high), np.inf, filters.high)
        self.loose = (filters.operator == SUFFIX) | (filters.operator == LIKE)
        self.start = np.zeros(len(self.low), np.int64)
        self.stop = np.zeros(len(self.low), np.int64)
        for number, column in enumerate(columns):
            mine = np.flatnonzero(filters.attribute == number)
            if filters.attributes[number].kind == "string":
                self._find_texts(mine, column)
            self.start[mine] = np.searchsorted(column.sorted, self.low[mine], "left")
            # NaN is sorted last, and is above infinity.
            self.stop[mine] = np.searchsorted(column.sorted, self.high[mine], "right")
        self.stop = np.maximum(self.start, self.stop)

    def _find_texts(self, tests: Array, column: _Column) -> None:
        coded = self._filters.text.take(pa.array(tests)).dictionary_encode()
        texts, indices = coded.dictionary.to_pylist(), coded.indices.to_numpy()
        for operator in np.unique(self._filters.operator[tests]):
            mine = self._filters.operator[tests] == operator
            if operator in (SUFFIX, LIKE):
                self.low[tests[mine]], self.high[tests[mine]] = 0, len(column.values)
                continue
            ranges = np.array([column.text_range(operator, text) for text in texts], np.float64)
            self.low[tests[mine]], self.high[tests[mine]] = ranges[indices[mine]].T

    def hold(self, tests: Array, events: Array) -> Array:
        """For each pair of test and event, whether the event passes."""
        codes = self.codes[self._filters.attribute[tests], events]
        passed: Array = (codes >= self.low[tests]) & (codes <= self.high[tests])
        for at in np.flatnonzero(passed & self.loose[tests]):
            passed[at] = self._fits(int(tests[at]), int(codes[at]))
        return passed

    def _fits(self, test: int, code: int) -> bool:
        attribute, operator = int(self._filters.attribute[test]), self._filters.operator[test]
        pattern = self._filters.text[test].as_py()
        value = self._columns[attribute].values[code]
        if operator == SUFFIX:
            return value.endswith(pattern)
        parts = (re.escape(part) for part in pattern.split("%"))
        return re.fullmatch(".*".join(parts), value, re.DOTALL) is not None


def _names_and_kinds(filters: Conjunctions) -> list[tuple[str, str]]:
    return [(attribute.name, attribute.kind) for attribute in filters.attributes]
