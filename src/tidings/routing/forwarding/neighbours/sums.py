"""The sums of totals that are sent to neighbours, and the serial up to which these sums are
correct.

A *total* is the number of notifications that matched a node. Beats contain the sum of the totals of
the neighbour's nodes, so that the neighbour notices if it missed a message. Sums are updated only
before they are sent. Until then, `counted` contains the old totals that the sums still include.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidings.routing.forwarding.neighbours.context import Context, Name


class Sums:
    """Updates the sums, which are kept in the tallies of the neighbours."""

    def __init__(
        self, context: Context, wants: Mapping[int, set[Name]], total: Callable[[int], int]
    ) -> None:
        self._standing = context.standing
        self._neighbours = context.neighbours
        self._wants = wants
        self.total = total
        """How many notifications matched a node."""
        self.serial = 0
        """The serial up to which the totals of nodes are correct, except for `lagging` nodes."""
        self.is_behind = False
        """Do this node and the node above it disagree about subscriptions or totals, or do two
        nodes further up, as reported from there? While nodes on the way still lack subscriptions,
        some notifications do not reach this node, and nothing shows where they are missing."""
        self.lagging: dict[int, int] = {}
        """For each node whose total is correct only up to another serial, that serial."""
        self.counted: dict[int, int] = {}
        """Old totals that the sums still include, of nodes whose totals have changed since then."""

    def highest_seen(self) -> int:
        """The highest serial that this node has seen."""
        return max(self.serial, self._standing.serial)

    def serial_of(self, node: int) -> int:
        return self.lagging.get(node, self.serial)

    def serial_for(self, name: Name) -> int:
        """The serial up to which the totals of a neighbour's nodes are correct."""
        nodes, lagging = self._neighbours[name].nodes, self.lagging
        few, many = (lagging, nodes) if len(lagging) < len(nodes) else (nodes, lagging)
        late = (lagging[node] for node in few if node in many)
        return min(self.serial, *late, self.serial)

    def is_behind_for(self, name: Name) -> bool:
        """Could this node lack notifications of a neighbour's nodes?"""
        nodes = self._neighbours[name].nodes
        return self.is_behind or not self.lagging.keys().isdisjoint(nodes)

    def note_change(self, node: int, before: int) -> None:
        """Record that the total of a node changes."""
        self.counted.setdefault(node, before)

    def total_counted(self, node: int) -> int:
        """The total that the sums currently include for a node."""
        total = self.total(node)  # called first: `total` can change `counted`
        return self.counted.get(node, total)

    def update(self) -> None:
        """Update all sums."""
        for node, before in self.counted.items():
            for name in self._wants.get(node, ()):
                self._neighbours[name].tally.sum += self.total(node) - before
        self.counted.clear()

    def clear(self) -> None:
        self.serial = 0
        self.lagging.clear()
        self.counted.clear()
