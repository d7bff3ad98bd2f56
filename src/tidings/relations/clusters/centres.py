"""Ordered indexes over the centres of clusters: sorted numbers, searched by bisection.

The number of a time is its middle, and the number of a place is its number on the space-filling
curve.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator


class Centres:
    """Clusters, sorted by the numbers of their centres. Several centres may have the same number.

    Cost: a search takes O(log n) for each range, and a change moves O(n) numbers in memory.
    """

    def __init__(self) -> None:
        self._sorted: list[tuple[float, int]] = []

    def add(self, place: float, cluster: int) -> None:
        insort(self._sorted, (place, cluster))

    def remove(self, place: float, cluster: int) -> None:
        at = bisect_left(self._sorted, (place, cluster))
        if at == len(self._sorted) or self._sorted[at] != (place, cluster):
            raise KeyError((place, cluster))
        del self._sorted[at]

    def within(self, ranges: Iterable[tuple[float, float]]) -> Iterator[int]:
        """The clusters whose centres are in these ranges. The ranges are disjoint, and include both
        of their ends."""
        for first, last in ranges:
            start = bisect_left(self._sorted, first, key=_number)
            stop = bisect_right(self._sorted, last, lo=start, key=_number)
            for _, cluster in self._sorted[start:stop]:
                yield cluster

    def count(self, ranges: Iterable[tuple[float, float]]) -> int:
        """How many centres are in these ranges, which must not overlap."""
        found = 0
        for first, last in ranges:
            start = bisect_left(self._sorted, first, key=_number)
            found += bisect_right(self._sorted, last, lo=start, key=_number) - start
        return found

    def __len__(self) -> int:
        return len(self._sorted)


def _number(entry: tuple[float, int]) -> float:
    return entry[0]
