"""The sums of totals that neighbours are told, and up to which serial they are right.

A *total* is the number of notifications that matched a node. Each neighbour is told the sum over
its nodes, so that it notices when it missed something. Sums are brought up to date only before
they are told: until then it is remembered what they hold of the nodes whose totals have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidings.routing.forwarding.neighbours.context import Context, Name


class Sums:
    """Kept in the tallies of the neighbours."""

    def __init__(
        self, context: Context, wants: Mapping[int, set[Name]], total: Callable[[int], int]
    ) -> None:
        self._standing = context.standing
        self._neighbours = context.neighbours
        self._wants = wants
        self.total = total
        """How many notifications matched a node."""
        self.serial = 0
        """Up to this one the totals of nodes are right,"""
        self.lagging: dict[int, int] = {}
        """except for these nodes, whose totals are right up to the serial here."""
        self.counted: dict[int, int] = {}
        """What the sums hold of nodes whose totals have changed since."""

    def seen(self) -> int:
        """The highest serial that was heard of here."""
        return max(self.serial, self._standing.serial)

    def serial_of(self, node: int) -> int:
        return self.lagging.get(node, self.serial)

    def serial_for(self, name: Name) -> int:
        """Up to which serial the totals of a neighbour's nodes are right."""
        nodes, lagging = self._neighbours[name].nodes, self.lagging
        few, many = (lagging, nodes) if len(lagging) < len(nodes) else (nodes, lagging)
        late = (lagging[node] for node in few if node in many)
        return min(self.serial, *late, self.serial)

    def note_change(self, node: int, before: int) -> None:
        """The total of a node changes."""
        self.counted.setdefault(node, before)

    def total_counted(self, node: int) -> int:
        """What the sums hold of a node."""
        total = self.total(node)  # first, as it can change what was counted
        return self.counted.get(node, total)

    def update(self) -> None:
        """Bring all sums up to date."""
        for node, before in self.counted.items():
            for name in self._wants.get(node, ()):
                self._neighbours[name].tally.sum += self.total(node) - before
        self.counted.clear()

    def clear(self) -> None:
        self.serial = 0
        self.lagging.clear()
        self.counted.clear()
