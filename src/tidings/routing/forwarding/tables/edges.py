"""The edges of a graph between slots, in both directions.

    parents of 4:   1    2         children of 1:   6   4         4 is at position 1
    at position     1    0         children of 2:   4             4 is at position 0

Each parent is stored with the position of the node among the children of that parent. So an edge
can be removed without a search through the children; a node can have millions of children. Cost: an
edge takes 12 bytes, plus the spare room of the lists. Adding an edge takes constant time. Removing
an edge takes a search through the parents of two nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tidings.routing.forwarding.tables.slot_lists import SlotLists

ALL = 1 << 32


class Edges:
    """Invariant: `up` and `down` have the same edges, and the positions in `up` are correct."""

    def __init__(self) -> None:
        self.up = SlotLists(paired=True)
        self.down = SlotLists()
        self.add_slot()  # slot 0, which has no edges

    def add_slot(self) -> None:
        """Add the next slot, without edges."""
        self.up.add_owner()
        self.down.add_owner()

    def parents(self, slot: int) -> Sequence[int]:
        """A copy of the parents of a node."""
        return self.up.values(slot)

    def children(self, slot: int) -> Sequence[int]:
        """A copy of the children of a node."""
        return self.down.values(slot)

    def tie(self, upper: int, lower: int) -> None:
        """Add an edge, which must not exist yet."""
        self.up.append(lower, upper, self.down.append(upper, lower))

    def untie(self, upper: int, lower: int) -> None:
        """Remove an edge, which must exist."""
        at = self.up.find(lower, upper)
        place = self.up.second(lower, at)
        self.up.remove_at(lower, at)
        moved = self.down.remove_at(upper, place)
        if moved:
            self.up.put_second(moved, self.up.find(moved, upper), place)

    def fill(self, uppers: Any, lowers: Any, count: int) -> None:
        """Replace all edges with the given edges, between slots from 1 to `count`. The numpy arrays
        `uppers` and `lowers` have the two slots of each edge; `lowers` is in ascending order."""
        import numpy as np

        order = np.argsort(uppers, kind="stable")
        owners = uppers[order]
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order)) - np.searchsorted(owners, owners)
        self.down.fill(owners, lowers[order], None, count)
        self.up.fill(lowers, uppers, places, count)

    def reach_up(self, slots: Iterable[int]) -> set[int]:
        """All nodes above the given ones."""
        return _reach(self.up, slots, ALL)

    def reach_down(self, slots: Iterable[int], most: int = ALL) -> set[int]:
        """All nodes below the given ones; only some of them if there are more than `most`."""
        return _reach(self.down, slots, most)

    def covers(self, upper: int, lower: int) -> bool:
        """Is `upper` above `lower`? Cost: a search upwards from `lower`. Searching upwards is
        cheap: most nodes have few nodes above them, while some have very many below them."""
        counts, firsts, pool = self.up.counts, self.up.firsts, self.up.pool
        found = {lower}
        todo = [lower]
        while todo:
            slot = todo.pop()
            count, first = counts[slot], firsts[slot]
            for one in pool[first : first + count] if count > 1 else (first,) * count:
                if one == upper:
                    return True
                if one not in found:
                    found.add(one)
                    todo.append(one)
        return False


def _reach(lists: SlotLists, slots: Iterable[int], most: int) -> set[int]:
    counts, firsts, pool = lists.counts, lists.firsts, lists.pool
    found: set[int] = set()
    todo = [*slots]
    while todo:
        one = todo.pop()
        count = counts[one]
        if count == 1:
            other = firsts[one]
            if other not in found:
                found.add(other)
                todo.append(other)
        elif count == 2:  # faster than a slice
            first = firsts[one]
            other = pool[first]
            if other not in found:
                found.add(other)
                todo.append(other)
            other = pool[first + 1]
            if other not in found:
                found.add(other)
                todo.append(other)
        elif count:
            first = firsts[one]
            for other in pool[first : first + count]:
                if other not in found:
                    found.add(other)
                    todo.append(other)
            if len(found) > most:
                break
    return found
