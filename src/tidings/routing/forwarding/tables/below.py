"""Tests whether nodes are below a given node.

If few nodes are below the given node, one search downwards finds all of them. Otherwise each test
searches upwards from the tested node, because most nodes have few nodes above them. Results are
kept, so most nodes are visited only once.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidings.routing.forwarding.tables.edges import Edges
from tidings.routing.forwarding.tables.slots import Slots

FEW = 1000  # nodes below the given node


class Below:
    """The nodes below a slot, by number; valid until an edge changes."""

    def __init__(self, edges: Edges, slots: Slots, slot: int) -> None:
        self._edges = edges
        self._slots = slots
        self._slot = slot
        self._all: set[int] | None = None  # the numbers of all nodes below, if there are few
        self._yes: set[int] = set()  # slots known to be below, if there are many
        self._no: set[int] = set()

    def has_any(self, numbers: Iterable[int]) -> bool:
        """Is any of these nodes below the slot? A node is not below itself."""
        if self._all is None and not self._yes:
            found = self._edges.reach_down([self._slot], FEW)
            if len(found) <= FEW:
                self._all = {*map(self._slots.numbers.__getitem__, found)}
            else:
                self._yes = found
                self._no = {self._slot, *self._edges.reach_up([self._slot])}
        if self._all is not None:
            return not self._all.isdisjoint(numbers)
        return any(map(self._search, map(self._slots.find, numbers)))

    def _search(self, slot: int) -> bool:
        yes, no, parents = self._yes, self._no, self._edges.parents
        if slot in no or slot in yes:
            return slot in yes
        found = {slot}
        todo = [slot]
        while todo:
            for upper in parents(todo.pop()):
                if upper in yes or upper == self._slot:
                    yes.add(slot)
                    return True
                if upper not in no and upper not in found:
                    found.add(upper)
                    todo.append(upper)
        no |= found
        return False
