"""How many notifications each node has received.

    counts    notifications with the node as a lowest node: the numbers in marks
    totals    notifications that matched the node
    latest    the serial of the last notification with the node as a lowest node

A notification is numbered when it is passed to the journal (`given`). The counts that neighbours
get include only notifications that are on the disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import add

import numpy as np

from tidings.routing.forwarding.label_graph import Label
from tidings.routing.forwarding.neighbours import Sums
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.marks import Marks, columns
from tidings.routing.root.journal import Memory
from tidings.routing.root.records import Block, Record

FEW = 8  # fewer marks than this are handled faster one by one
MOST_UNCOUNTED = 1000  # sets of nodes
MOST_BLOCKS = 16


class Counts:
    """The counts of all nodes of a rendezvous point."""

    def __init__(self, memory: Memory, sums: Sums) -> None:
        self._counts = dict(memory.counts)
        self._totals = dict(memory.totals)
        self._latest = dict(memory.latest)
        self.given = memory.serial
        """The last serial that was given to a notification."""
        self.given_counts = dict(memory.counts)
        self.changed: dict[int, int] = {}
        """Totals that changed since the last beat."""
        self._sums = sums
        # notifications that are stored but not counted yet:
        self._uncounted: dict[Label, int] = {}  # how often each set of nodes was matched
        self._last: dict[Label, Record] = {}  # the last notification with each set of marks
        self._blocks: list[Block] = []

    @property
    def counts(self) -> dict[int, int]:
        self.catch_up()
        return self._counts

    @property
    def totals(self) -> dict[int, int]:
        self.catch_up()
        return self._totals

    @property
    def latest(self) -> dict[int, int]:
        self.catch_up()
        return self._latest

    def number(self, lowest: Label) -> Sequence[m.Mark]:
        """The marks of the next notification. Only `give` uses up the numbers of the marks."""
        given = self.given_counts
        if len(lowest) < FEW:
            return tuple([m.Mark(node, given.get(node, 0) + 1, (node,)) for node in lowest])
        before = map(given.get, lowest, repeat(0))
        return Marks(lowest, tuple(map(add, before, repeat(1))))

    def give(self, record: Record) -> None:
        """Record that a notification was passed to the journal."""
        self.given = record.serial
        if len(record.marks) < FEW:
            for node, number, _ in record.marks:
                self.given_counts[node] = number
        else:
            self.given_counts.update(zip(*columns(record.marks), strict=True))

    def give_block(self, block: Block) -> None:
        """Record that many notifications were passed to the journal."""
        self.given = block.last_serial
        marks = block.marks
        self.given_counts.update(zip(marks.distinct.tolist(), marks.last.tolist(), strict=True))

    def take_back(self) -> None:
        """Reset `given` to the last serial on the disk, because no acknowledgment may name a later
        serial."""
        self.given = self._sums.serial

    def store(self, record: Record) -> Label:
        """Count a notification that is on the disk; return the nodes of its marks."""
        self._sums.serial = record.serial
        uncounted, last = self._uncounted, self._last
        uncounted[record.matched] = uncounted.get(record.matched, 0) + 1
        nodes = columns(record.marks)[0]
        last.pop(nodes, None)  # keeps the entries in the order of their serials
        last[nodes] = record
        return nodes

    def store_block(self, block: Block) -> None:
        """Count the notifications of a block that is on the disk."""
        self._sums.serial = block.last_serial
        self._blocks.append(block)

    def catch_up(self) -> None:
        """Count the stored notifications that are not counted yet. Notifications with the same
        nodes are counted together."""
        for matched, times in self._uncounted.items():
            for node in matched:
                self._add(node, times)
        self._uncounted.clear()
        for nodes, record in self._last.items():
            self._counts.update(zip(*columns(record.marks), strict=True))
            self._latest.update(dict.fromkeys(nodes, record.serial))
        self._last.clear()
        if self._blocks:
            self._count_blocks()

    def _count_blocks(self) -> None:
        """Count the notifications of all blocks; the count of each node is updated only once."""
        blocks, self._blocks = self._blocks[::-1], []
        matched, often = np.unique(
            np.concatenate([one.matched.distinct for one in blocks]), return_inverse=True
        )
        times = np.zeros(len(matched), np.int64)
        np.add.at(times, often, np.concatenate([one.matched.times for one in blocks]))
        for node, many in zip(matched.tolist(), times.tolist(), strict=True):
            self._add(node, many)
        # the latest block comes first, because `unique` finds the first occurrence
        nodes, at = np.unique(
            np.concatenate([one.marks.distinct for one in blocks]), return_index=True
        )
        last = np.concatenate([one.marks.last for one in blocks])[at]
        serials = np.concatenate([one.serial + one.marks.rows for one in blocks])[at]
        for node, number, serial in zip(*map(np.ndarray.tolist, (nodes, last, serials)),
                                        strict=True):  # fmt: skip
            # a record after the block may already be counted
            if number > self._counts.get(node, 0):
                self._counts[node], self._latest[node] = number, serial

    def _add(self, node: int, times: int) -> None:
        """Count notifications that matched a node."""
        before = self._totals.get(node, 0)
        self._sums.note_change(node, before)
        self.changed[node] = self._totals[node] = before + times

    def limit_uncounted(self) -> None:
        """Bound the memory for notifications that are not counted yet."""
        if len(self._uncounted) > MOST_UNCOUNTED or len(self._blocks) > MOST_BLOCKS:
            self.catch_up()

    def take_changed(self) -> dict[int, int]:
        self.catch_up()
        changed, self.changed = self.changed, {}
        return changed

    def list_changes_since(self, nodes: Iterable[int], serial: int) -> dict[int, int]:
        """The counts of the nodes whose count changed since a serial."""
        counts, latest = self.counts, self.latest
        return {node: counts[node] for node in nodes if latest.get(node, 0) > serial}

    def remove(self, node: int) -> None:
        for table in (self.counts, self.totals, self.latest, self.given_counts):
            table.pop(node, None)
