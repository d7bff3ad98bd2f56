"""Hulls: the box around each of many filters, as flat arrays in rank space.

    hull      its tests lie side by side, by column; attributes are the first columns, computed
              terms the rest
    test      a column, and the *spans* of codes that its set is: one for an interval, several for
              `x IN (1, 3)` or `x != 2`
    code      of one column as in ranks.py, 0 for "not tested"; the codes of column c are
              base[c] .. base[c + 1] of one line, so that a test has one place among all tests

Honest cost, one hull of k tests: 8 bytes, and 21 for each test, 8 more for each further span.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Hulls(NamedTuple):
    """n hulls with T tests of S spans in all, over C columns. Kernels read it by its fields."""

    starts: Array  # int64 [n + 1]: the tests of a hull
    computed: Array  # int64 [n]: where its tests of computed terms begin
    column: Array  # uint32 [T]
    pinned: Array  # uint8 [T]: whether the set is a few points; said of what computed terms read
    spans: Array  # int64 [T + 1]: the spans of a test
    low: Array  # uint32 [S], from 1
    high: Array  # uint32 [S]
    one_box: Array  # uint8 [n]: the filter is its hull, so what the hull holds it covers
    base: Array  # int64 [C + 1]
    reads: Array  # int64 [C + 1]: the attributes that a column is computed from ...
    read: Array  # int64: ... as columns; -1 for one that no hull tests
    attributes: int  # how many columns are attributes

    @property
    def hull_count(self) -> int:
        return len(self.one_box)

    def take(self, numbers: Array) -> Hulls:
        """These hulls, in this order."""
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
        """The first of these."""
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
        """Two measures of the attributes of each hull, or of its computed terms too: how many are
        tested, and how many codes the tests leave. Of two hulls that differ, the one around the
        other has fewer tests, or as many and more codes."""
        ends = self.starts[1:] if computed else self.computed
        widths = self.high.astype(np.int64) - self.low + 1
        total = np.concatenate([[0], np.cumsum(widths)])
        first, last = self.spans[self.starts[:-1]], self.spans[ends]
        return ends - self.starts[:-1], total[last] - total[first]


class Boxes(msgspec.Struct, frozen=True):
    """The hulls of n forms, and behind them the boxes of those that have several."""

    rows: Hulls
    starts: Array  # int64 [n + 1]: the boxes of a form; none if it is its hull, or is wide


def bounds(sizes: Array) -> Array:
    """Where each of these begins, one after the other, and where the last one ends."""
    out = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def ranges(first: Array, last: Array) -> Array:
    """first[0] .. last[0] - 1, first[1] .. last[1] - 1, and so on."""
    sizes: Array = last - first
    ends = np.cumsum(sizes)
    out: Array = np.arange(int(sizes.sum())) + np.repeat(first - (ends - sizes), sizes)
    return out
