"""Hulls of many filters: the box around each filter, as flat arrays in rank space.

    hull      its tests are contiguous, sorted by column; attributes are the first columns, computed
              terms the others
    test      a column, and its set as *spans* of codes: one for an interval, several for
              `x IN (1, 3)` or `x != 2`
    code      as in ranks.py, with 0 for "not tested"; on one line of all codes, column c has
              base[c] .. base[c + 1], so that tests of all columns can be sorted together

A hull costs 17 bytes, plus 21 bytes for each test, plus 8 bytes for each span of a test after the
first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Hulls(NamedTuple):
    """n hulls with T tests and S spans in total, over C columns."""

    starts: Array  # int64 [n + 1]: where the tests of a hull begin
    computed: Array  # int64 [n]: where the tests of computed terms of a hull begin
    column: Array  # uint32 [T]
    pinned: Array  # uint8 [T]: 1 if the set has few points and a computed term reads the column
    spans: Array  # int64 [T + 1]: where the spans of a test begin
    low: Array  # uint32 [S]; codes begin at 1
    high: Array  # uint32 [S]
    one_box: Array  # uint8 [n]: the filter equals its hull, so it covers all filters inside
    base: Array  # int64 [C + 1]
    reads: Array  # int64 [C + 1]: where the attributes that a column reads begin in `read`
    read: Array  # int64: the columns of these attributes; -1 for an attribute that no hull tests
    attributes: int  # the number of columns that are attributes

    @property
    def hull_count(self) -> int:
        return len(self.one_box)

    def take(self, numbers: Array) -> Hulls:
        """The hulls with these numbers, in this order."""
        tests = ranges(self.starts[numbers], self.starts[numbers + 1])
        spans = ranges(self.spans[tests], self.spans[tests + 1])
        starts = bounds(self.starts[numbers + 1] - self.starts[numbers])
        return self._replace(
            starts=starts,
            computed=starts[:-1] + self.computed[numbers] - self.starts[numbers],
            column=self.column[tests],
            pinned=self.pinned[tests],
            spans=bounds(self.spans[tests + 1] - self.spans[tests]),
            low=self.low[spans],
            high=self.high[spans],
            one_box=self.one_box[numbers],
        )

    def part(self, count: int) -> Hulls:
        """The first `count` hulls."""
        tests = self.starts[count]
        spans = self.spans[tests]
        return self._replace(
            starts=self.starts[: count + 1],
            computed=self.computed[:count],
            column=self.column[:tests],
            pinned=self.pinned[:tests],
            spans=self.spans[: tests + 1],
            low=self.low[:spans],
            high=self.high[:spans],
            one_box=self.one_box[:count],
        )

    def sizes(self, computed: bool = False) -> tuple[Array, Array]:
        """Two sizes of each hull: its number of tests, and the number of codes that the tests
        allow. Tests on computed terms count only if `computed` is true. A hull that contains a
        different hull has either fewer tests, or the same number of tests and more codes."""
        ends = self.starts[1:] if computed else self.computed
        widths = self.high.astype(np.int64) - self.low + 1
        total = np.concatenate([[0], np.cumsum(widths)])
        first, last = self.spans[self.starts[:-1]], self.spans[ends]
        return ends - self.starts[:-1], total[last] - total[first]


class Boxes(msgspec.Struct, frozen=True):
    """The hulls of n forms, followed by the boxes of forms that have several boxes."""

    rows: Hulls
    # int64 [n + 1]: the row where the boxes of each form begin; forms with one box and wide forms
    # have no such rows
    starts: Array


def bounds(sizes: Array) -> Array:
    """The start of each run, and the end of the last run, given the sizes of consecutive runs."""
    out = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def ranges(first: Array, last: Array) -> Array:
    """The numbers from first[0] to last[0] - 1, then those from first[1] to last[1] - 1, and so
    on."""
    sizes: Array = last - first
    ends = np.cumsum(sizes)
    out: Array = np.arange(int(sizes.sum())) + np.repeat(first - (ends - sizes), sizes)
    return out
