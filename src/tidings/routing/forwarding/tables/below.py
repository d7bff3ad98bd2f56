"""The nodes below one, for questions about others.

If there are few, they are found once, by a search downwards. Some nodes have very many below them,
and most have few above them: then the search goes upwards from each node in question. It remembers
what it has found out, and visits most nodes only once.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidings.routing.forwarding.tables.edges import Edges
from tidings.routing.forwarding.tables.slots import Slots

FEW = 1000  # nodes below


class Below:
    """The nodes below a slot, by number. It is not to be asked after an edge has changed."""

    def __init__(self, edges: Edges, slots: Slots, slot: int) -> None:
        self._edges = edges
        self._slots = slots
        self._slot = slot
        self._all: set[int] | None = None  # numbers, if there are few
        self._yes: set[int] = set()  # slots, if there are many; none before the first question
        self._no: set[int] = set()

    def has_any(self, numbers: Iterable[int]) -> bool:
        """Is one of these nodes below? A node is not below itself."""
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
