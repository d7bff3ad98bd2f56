"""The edges of a graph between slots, in both directions.

    parents of 4:   1    2         children of 1:   6   4         at place 1 is 4
    at place        1    0         children of 2:   4             at place 0 is 4

Beside each parent stands the place that the node has among the children of that parent. So an edge
is removed without a search through the children, of which a node can have millions. Cost: an edge
takes 12 bytes and the room to grow; adding one takes a constant time, and removing one a time that
grows with the number of parents of two nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tidings.routing.forwarding.tables.slot_lists import SlotLists

ALL = 1 << 32


class Edges:
    """Invariant: `parents` and `children` have the same edges, and the places are correct."""

    def __init__(self) -> None:
        self.up = SlotLists(paired=True)
        self.down = SlotLists()
        self.add_slot()  # slot 0, which has no edges

    def add_slot(self) -> None:
        """Add the next slot, without edges."""
        self.up.add_owner()
        self.down.add_owner()

    def parents(self, slot: int) -> Sequence[int]:
        """The parents of a node; a copy."""
        return self.up.values(slot)

    def children(self, slot: int) -> Sequence[int]:
        """The children of a node; a copy."""
        return self.down.values(slot)

    def tie(self, upper: int, lower: int) -> None:
        """Add an edge that is not there."""
        self.up.append(lower, upper, self.down.append(upper, lower))

    def untie(self, upper: int, lower: int) -> None:
        """Remove an edge that is there."""
        at = self.up.find(lower, upper)
        place = self.up.second(lower, at)
        self.up.remove_at(lower, at)
        moved = self.down.remove_at(upper, place)
        if moved:
            self.up.put_second(moved, self.up.find(moved, upper), place)

    def fill(self, uppers: Any, lowers: Any, count: int) -> None:
        """Make edges between slots from 1 to `count`, all at once, in place of what was here.
        Arrays of numpy: the upper and the lower slot of each edge; the lower ones rise."""
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
        """Is one node above another? Cost: a search upwards, until it is found. Searching upwards
        is cheap: most nodes have few nodes above them, while some have very many below."""
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
