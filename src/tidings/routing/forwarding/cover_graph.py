"""Which nodes cover which: the nodes of a router and the edges between them, without labels.

Invariant, after every call: the edges are the transitive reduction of the known part of "covers"
among the nodes of the graph. Whether one node covers another never changes, so an edge can be
missing for a while but is never wrong.

Cost: inserting a node with children takes a search upwards from its parents, and from each child
that has other parents. Inserting a node with one parent and no children takes no search. If an edge
between existing nodes is new, the nodes below its lower end are visited too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from tidings.model import GraphError
from tidings.routing.forwarding.tables import BITS, LAST, Edges, Label, Slots


class CoverGraph:
    """Nodes by number, with their edges. Internally, nodes are slots: indexes in arrays."""

    def __init__(self) -> None:
        self._slots = Slots()
        self._edges = Edges()

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, node: int) -> bool:
        page = self._slots.pages.get(node >> BITS)
        return page is not None and page[node & LAST] != 0

    def __iter__(self) -> Iterator[int]:
        """The numbers of all nodes, in no particular order."""
        return iter(self._slots)

    def parents(self, number: int) -> Label:
        return self._sort_slots(self._edges.parents(self._slot(number)))

    def children(self, number: int) -> Label:
        return self._sort_slots(self._edges.children(self._slot(number)))

    def ancestors(self, number: int) -> set[int]:
        """All other nodes that cover a node."""
        return self._numbers(self._edges.reach_up([self._slot(number)]))

    def descendants(self, number: int) -> set[int]:
        """All other nodes that a node covers."""
        return self._numbers(self._edges.reach_down([self._slot(number)]))

    def at_and_below(self, number: int, most: int) -> set[int] | None:
        """A node and all nodes below it; None if more than `most` nodes are below it. A node that
        is not in the graph has no nodes below it."""
        found = self._edges.reach_down([self._slots.find(number)], most)
        return None if len(found) > most else {number, *self._numbers(found)}

    def lowest(self, numbers: Iterable[int]) -> Label:
        """The given nodes, without those that cover another given node."""
        given = set(numbers)
        if len(given) > 1:
            there = [slot for slot in map(self._slots.find, given) if slot]
            given -= self._numbers(self._edges.reach_up(there))
        return tuple(sorted(given))

    def in_order(self, numbers: Collection[int]) -> list[int]:
        """The known nodes among `numbers`; each node comes after all nodes that cover it."""
        there = {slot for slot in map(self._slots.find, numbers) if slot}
        name = self._slots.numbers
        return [name[slot] for slot in self._in_order(there) if slot in there]

    # -- changes -------------------------------------------------------------------------------

    def _place(
        self, number: int, parents: Iterable[int], children: Iterable[int]
    ) -> tuple[int, set[int]]:
        """Put a node between the parents that cover it and the children that it covers. If the node
        exists, add the new edges. Unknown parents and children are ignored.

        Return the slot of the node, and the set of slots at which, and below which, labels must be
        computed again. The set is empty if only the new node needs labels. If a child covers the
        node, or the node covers a parent, raise GraphError and change nothing."""
        find, edges = self._slots.find, self._edges
        above = {slot for one in parents if (slot := find(one)) and one != number}
        below = {slot for one in children if (slot := find(one)) and one != number}
        there = find(number)
        uppers: set[int] = set()  # the parents and all nodes above them
        if below or there or len(above) > 1:
            higher = edges.reach_up([*above])
            uppers = above | higher
            self._refuse_circles(number, there, above, uppers, below)
            above -= higher
        kept = None if there else self._find_highest(below, above, uppers)
        if kept is not None:
            slot = self._add(number)
            for parent in above:
                edges.tie(parent, slot)
            for child in kept:
                for parent in edges.parents(child):
                    if parent in uppers:
                        edges.untie(parent, child)
                edges.tie(slot, child)
            return slot, set()
        slot = there or self._add(number)
        changed: set[int] = set()
        for parent in above:
            changed |= self._tie(parent, slot)
        for child in below:
            changed |= self._tie(slot, child)
        if not there:
            changed.add(slot)
        return slot, changed

    def _load(self, numbers: Any, starts: Any, parents: Any) -> None:
        """Put many nodes into an empty graph. If a parent is not one of these nodes, or does not
        precede its child, raise GraphError and change nothing."""
        import numpy as np

        order = np.argsort(numbers)
        ranked = numbers[order]
        if len(twice := np.flatnonzero(ranked[1:] == ranked[:-1])):
            raise GraphError(f"found node {ranked[twice[0]]} twice, expected each node once")
        lowers = np.repeat(np.arange(len(numbers)), np.diff(starts))
        at = np.searchsorted(ranked, parents).clip(max=max(len(numbers) - 1, 0))
        uppers = order[at] if len(numbers) else at
        is_wrong = (uppers >= lowers) | (numbers[uppers] != parents)
        if len(wrong := np.flatnonzero(is_wrong)):
            parent, node = parents[wrong[0]], numbers[lowers[wrong[0]]]
            raise GraphError(
                f"found parent {parent} of node {node}, expected each parent before its child"
            )
        self._slots.fill(numbers)
        self._edges.fill(uppers + 1, lowers + 1, len(numbers))

    def _refuse_circles(
        self, number: int, slot: int, above: set[int], uppers: set[int], below: set[int]
    ) -> None:
        name, edges = self._slots.numbers, self._edges
        if slot in uppers:
            one = next(one for one in above if edges.covers(slot, one))
            raise GraphError(
                f"found node {name[one]} as a parent of node {number}, expected a node that "
                f"node {number} does not cover"
            )
        for child in below & (uppers | edges.reach_up([slot])):
            raise GraphError(
                f"found node {name[child]} as a child of node {number}, expected a node that does "
                f"not cover node {number}"
            )

    def _find_highest(self, below: set[int], above: set[int], uppers: set[int]) -> list[int] | None:
        """The highest of the nodes in `below`, all of which a new node covers. Return None if one
        of them is not known to be below all nodes of `above`, the parents of the new node."""
        kept: list[int] = []
        for child in below:
            over = self._edges.parents(child)
            if uppers.issuperset(over):  # so nodes of `above` that cover the child are its parents
                if not above.issubset(over):
                    return None
                kept.append(child)
                continue
            higher = self._edges.reach_up([child])
            if not above <= higher:
                return None
            if below.isdisjoint(higher):
                kept.append(child)
        return kept

    def _tie(self, upper: int, lower: int) -> set[int]:
        """Add an edge unless there is a path already, and remove the edges that become redundant;
        return the nodes whose parents changed."""
        edges = self._edges
        if edges.covers(upper, lower):
            return set()
        uppers = edges.reach_up([upper]) | {upper}
        changed = {lower}
        for one in (lower, *edges.reach_down([lower])):
            for parent in edges.parents(one):
                if parent in uppers:
                    edges.untie(parent, one)
                    changed.add(one)
        edges.tie(upper, lower)
        return changed

    def _take_out(self, number: int, slot: int) -> None:
        """Remove a node, and connect its parents with its children."""
        edges = self._edges
        parents, children = edges.parents(slot), edges.children(slot)
        for parent in parents:
            edges.untie(parent, slot)
        for child in children:
            edges.untie(slot, child)
            # No parent covers another parent, and no child covers another child.
            # So a new edge creates no path to another parent or child.
            above = edges.reach_up([child]) if parents else ()
            for parent in parents:
                if parent not in above:
                    edges.tie(parent, child)
        self._slots.remove(number)

    # -- slots ---------------------------------------------------------------------------------

    def _add(self, number: int) -> int:
        slot = self._slots.add(number)
        if slot == len(self._edges.up.counts):
            self._edges.add_slot()
        return slot

    def _slot(self, number: int) -> int:
        slot = self._slots.find(number)
        if not slot:
            raise GraphError(f"node {number} is not in the graph")
        return slot

    def _numbers(self, slots: Iterable[int]) -> set[int]:
        return {*map(self._slots.numbers.__getitem__, slots)}

    def _sort_slots(self, slots: Iterable[int]) -> Label:
        return tuple(sorted(map(self._slots.numbers.__getitem__, slots)))

    def _in_order(self, starts: Iterable[int]) -> Iterator[int]:
        """The given slots and all slots below them; each slot comes after its parents."""
        parents, children = self._edges.parents, self._edges.children
        found = {*starts}
        found |= self._edges.reach_down([*found])
        waiting = {slot: sum(one in found for one in parents(slot)) for slot in found}
        ready = [slot for slot, count in waiting.items() if not count]
        while ready:
            slot = ready.pop()
            yield slot
            for child in children(slot):
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
