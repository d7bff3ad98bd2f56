"""The counters of nodes, added up since a position in the log.

    single notifications ──> dictionaries      blocks of many ──> a hash table, by kernels

The sizes of the dictionaries and of the table depend only on the number of different nodes. The
numbers at a node increase, so the higher of two numbers is the later one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidings.routing.root import Block, Record
from tidings.store.journal.state import Counter, JournalState
from tidings.store.journal.upkeep.counter_columns import Counted

SMALLEST = 1 << 10  # places in a table

Numbers = npt.NDArray[np.int64]


class CounterSums:
    """Counts notifications in the order in which they were written."""

    def __init__(self) -> None:
        self._times: dict[int, int] = {}
        self._last: dict[int, tuple[int, int]] = {}  # by node: the last number, and its serial
        self._keys: Numbers = np.zeros(0, np.int64)
        self._table: Numbers = np.zeros((0, len(Counted)), np.int64)
        self._used = 0  # the number of keys in the table
        self._highest = 0  # the highest node number in any notification

    def add(self, record: Record) -> None:
        times, last, highest = self._times, self._last, self._highest
        for node in record.matched:
            times[node] = times.get(node, 0) + 1
            highest = max(highest, node)
        for mark in record.marks:
            last[mark.node] = mark.number, record.serial
            highest = max(highest, mark.node)
        self._highest = highest

    def add_block(self, block: Block) -> None:
        # imported late, because Numba compiles it
        from tidings.store.journal.upkeep import counter_kernels as kernels

        marks, matched = block.marks, block.matched
        self._make_room(len(marks.distinct) + len(matched.distinct))
        keys, table = self._keys, self._table
        self._used += kernels.add_times(matched.distinct, matched.times, keys, table)
        self._used += kernels.set_last(
            marks.distinct, marks.last, marks.rows, block.serial, keys, table
        )

    def _make_room(self, more: int) -> None:
        """Make room for `more` further nodes."""
        from tidings.store.journal.upkeep import counter_kernels as kernels

        size = max(SMALLEST, 1 << (2 * (self._used + more)).bit_length())
        if size > len(self._keys):
            keys, table = np.zeros(size, np.int64), np.zeros((size, len(Counted)), np.int64)
            kernels.move(self._keys, self._table, keys, table)
            self._keys, self._table = keys, table

    def forget(self, node: int) -> None:
        """Restart the count of a node that was added or removed."""
        self._times.pop(node, None)
        self._last.pop(node, None)
        if self._used:
            from tidings.store.journal.upkeep import counter_kernels as kernels

            kernels.clear(node, self._keys, self._table)

    def apply(self, state: JournalState) -> None:
        """Add everything to the counters of a state."""
        counters = state.counters
        for node, times in self._times.items():
            counters.setdefault(node, Counter()).total += times
        for node, (number, serial) in self._last.items():
            counter = counters.setdefault(node, Counter())
            counter.count, counter.latest = number, serial
        there = np.flatnonzero(self._table.any(axis=1))
        for node, row in zip(self._keys[there].tolist(), self._table[there].tolist(), strict=True):
            number, serial = row[Counted.NUMBER], row[Counted.SERIAL]
            counter = counters.setdefault(node, Counter())
            counter.total += row[Counted.TIMES]
            # `_last` may have a later number than the table; if `_last` has no number of this node,
            # the number in the table counts, even if it is lower than that in the counter
            if number and (number > counter.count or node not in self._last):
                counter.count, counter.latest = number, serial
        highest = int(self._keys.max(initial=0))
        state.last_node = max(state.last_node, self._highest, highest)
