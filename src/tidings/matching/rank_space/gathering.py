"""Gather the tests of one term, one filter after another; then turn all tests into codes at once.

While filters are being added, the rank of a cut is not known yet, so cuts are numbered in the order
in which they first occur. A test is then three small integers in flat arrays, and the memory of its
set can be freed: for a million filters, only the distinct cuts remain as objects.

    cuts      (2, 90, 0)  (2, 110, 1)  (2, 100, 1)      numbers 0, 1, 2; ranks 0, 2, 1
    tests     box 0: 0..1   box 1: 0..2                 codes 1..2 and 1..1
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.filters.language import Expression
from tidings.filters.values import NUMBER, STRING, Cut, ValueSet
from tidings.matching.array_fields import Int64, UInt32
from tidings.matching.rank_space.ranks import Ranks, asks_order

Array = npt.NDArray[Any]
FEW = 1000  # fewer cuts than this are sorted as Python objects
_END = 0xFFFFFFFF  # the upper end of all values, which is not a cut


class TestRows(NamedTuple):
    """The tests of one term, one row per test."""

    box: UInt32
    column: UInt32
    low: UInt32
    high: UInt32
    several: Int64  # the number of the set if it has several intervals, else -1


class TermTests:
    """The tests of one term while they are being gathered, as one row per test. `several` contains
    the sets that are not a single interval, by row."""

    __slots__ = ("boxes", "first", "last", "node", "numbers", "ordered", "several")

    def __init__(self, node: Expression) -> None:
        self.node = node
        self.boxes = array("I")
        self.first = array("I")  # the number of the first cut
        self.last = array("I")  # the number of the last cut
        self.numbers: dict[Cut, int] = {}
        self.ordered = False
        self.several: dict[int, ValueSet] = {}

    def add(self, box: int, values: ValueSet) -> None:
        numbers = self.numbers
        cuts = values.cuts
        self.boxes.append(box)
        if len(cuts) != 2:
            self._add_other(values)
            return
        low, high = cuts
        self.first.append(numbers.setdefault(low, len(numbers)))
        self.last.append(numbers.setdefault(high, len(numbers)))
        if not self.ordered and (low[0] == STRING or high[0] == STRING):
            is_point = len(low) == len(high) == 3 and low[1] == high[1]
            self.ordered = not is_point and asks_order(values)

    def _add_other(self, values: ValueSet) -> None:
        numbers, cuts = self.numbers, values.cuts
        if len(cuts) > 2:
            self.several[len(self.first)] = values
        for cut in cuts:
            numbers.setdefault(cut, len(numbers))
        self.first.append(numbers[cuts[0]])
        self.last.append(_END if len(cuts) % 2 else numbers[cuts[-1]])
        self.ordered = self.ordered or asks_order(values)

    def to_codes(self, column: int, several: list[list[tuple[int, int]]]) -> tuple[Ranks, TestRows]:
        """The rank space of all gathered cuts, and the gathered rows with codes of this rank space.
        For sets with several intervals, the intervals are appended to `several`."""
        cuts = list(self.numbers)
        order = order_of_cuts(cuts)
        rank = np.empty(len(cuts) + 1, np.uint32)
        rank[order] = np.arange(len(cuts))
        rank[-1] = len(cuts)
        ranks = Ranks([cuts[at] for at in order.tolist()], self.ordered)
        boxes = np.array(self.boxes, np.uint32)
        first = np.array(self.first, np.uint32)
        last = np.minimum(np.array(self.last, np.uint32), np.uint32(len(cuts)))
        which = np.full(len(boxes), -1, np.int64)
        which[list(self.several)] = len(several) + np.arange(len(self.several))
        several.extend(map(ranks.intervals, self.several.values()))
        columns = np.full(len(boxes), column, np.uint32)
        return ranks, TestRows(boxes, columns, rank[first] + 1, rank[last], which)


def order_of_cuts(cuts: list[Cut]) -> Array:
    """The indexes that sort the cuts."""
    inner = [at for at, cut in enumerate(cuts) if cut[0] == NUMBER and len(cut) == 3]
    values = np.array([cuts[at][1] for at in inner], np.float64)
    # below 2**53, doubles represent all integers exactly, so sorting the doubles sorts the numbers
    if len(inner) < FEW or np.abs(values).max() >= 2.0**53:
        return np.array(sorted(range(len(cuts)), key=cuts.__getitem__), np.int64)
    after = np.array([cuts[at][2] for at in inner], np.uint8)
    numbers = np.array(inner, np.int64)[np.lexsort((after, values))]
    others = set(range(len(cuts))).difference(inner)
    around = sorted(others, key=cuts.__getitem__)
    before = [at for at in around if cuts[at] <= (NUMBER,)]
    return np.concatenate([before, numbers, around[len(before) :]]).astype(np.int64)
