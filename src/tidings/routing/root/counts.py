"""How many notifications each node had.

    counts    notifications that had it as a lowest node: the numbers in marks
    totals    notifications that matched it
    latest    the serial of the last notification that had it as a lowest node

A notification is numbered when it is given to the journal (`given`), and counts for neighbours when
it is on the disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidings.routing.forwarding.label_graph import Label
from tidings.routing.forwarding.neighbours import Sums
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.marks import Marks, columns
from tidings.routing.root.journal import Memory, Record

FEW = 8  # marks that are handled faster one by one


class Counts:
    """Of all nodes of a rendezvous point."""

    def __init__(self, memory: Memory, totals: dict[int, int], sums: Sums) -> None:
        self.counts = dict(memory.counts)
        self.totals = totals
        self.latest = dict(memory.latest)
        self.given = memory.serial
        """The last serial that has a number."""
        self.given_counts = dict(memory.counts)
        self.changed: dict[int, int] = {}
        """Totals that changed since the last beat."""
        self._sums = sums
        self._uncounted: dict[Label, int] = {}  # went out, and is not in the totals yet

    def number(self, lowest: Label) -> Sequence[m.Mark]:
        """The marks of the next notification; they count once `give` has them."""
        given = self.given_counts
        if len(lowest) < FEW:
            return tuple([m.Mark(node, given.get(node, 0) + 1, (node,)) for node in lowest])
        return Marks(lowest, tuple([given.get(node, 0) + 1 for node in lowest]))

    def give(self, record: Record) -> None:
        """A notification was given to the journal."""
        self.given = record.serial
        if len(record.marks) < FEW:
            for node, number, _ in record.marks:
                self.given_counts[node] = number
        else:
            self.given_counts.update(zip(*columns(record.marks), strict=True))

    def take_back(self) -> None:
        """What was given is not on the disk: no acknowledgment may speak of it."""
        self.given = self._sums.serial

    def store(self, record: Record) -> Label:
        """Count a notification that is on the disk; the nodes of its marks."""
        self._sums.serial = record.serial
        uncounted = self._uncounted
        uncounted[record.matched] = uncounted.get(record.matched, 0) + 1
        if len(record.marks) < FEW:
            for node, number, _ in record.marks:
                self.counts[node] = number
                self.latest[node] = record.serial
            return tuple([mark[0] for mark in record.marks])
        nodes, numbers = columns(record.marks)
        self.counts.update(zip(nodes, numbers, strict=True))
        self.latest.update(dict.fromkeys(nodes, record.serial))
        return nodes

    def update_totals(self) -> None:
        """Add what went out to the totals. Most notifications match the same nodes as others."""
        totals, counted, changed = self.totals, self._sums.counted, self.changed
        for matched, times in self._uncounted.items():
            for node in matched:
                before = totals.get(node, 0)
                if node not in counted:
                    counted[node] = before
                changed[node] = totals[node] = before + times
        self._uncounted.clear()

    def take_changed(self) -> dict[int, int]:
        changed, self.changed = self.changed, {}
        return changed

    def changed_since(self, nodes: Iterable[int], serial: int) -> dict[int, int]:
        """The counts of those nodes that counted since a serial."""
        return {node: self.counts[node] for node in nodes if self.latest.get(node, 0) > serial}

    def remove(self, node: int) -> None:
        for table in (self.counts, self.given_counts, self.totals, self.latest):
            table.pop(node, None)
