"""A router's graph: the nodes that its neighbours subscribed to, annotated with output labels.

        4  <- G             header [31] arrives:
        |  labels G: 4          F gets the header [31], a node that F subscribes to;
       31  <- F                 G gets [4], the lowest node above 31 that G subscribes to
           labels F: 31, G: 4

The *label* of a node for a neighbour is the header that the neighbour must get. If the neighbour
subscribes to the node, the label is the node itself; otherwise it is the lowest ancestors that the
neighbour subscribes to. Labels are computed when subscriptions change, so forwarding looks at the
nodes of a header and never walks the graph.

Invariants, after every call: the edges are those of CoverGraph; labels are as defined above.

Forwarding costs one lookup for each node of the header, and a step for each neighbour that has a
label at this node. A change to a subscription costs a visit to each descendant whose label changes,
and to its edges. If descendants have other labels for the neighbour, a new subscription must also
find out whether nodes of these labels are below the subscribed node. For this, it visits all
descendants if there are few, and otherwise searches upwards from the nodes of the labels. A node
costs about 60 bytes. Nodes with the same labels share one object; see the folder tables.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

from tidings.model import GraphError
from tidings.routing.forwarding.labelling import Labelling
from tidings.routing.forwarding.tables import BITS, FEW, LAST, OWN, Below, Groups, Label

__all__ = ["Groups", "Label", "LabelGraph"]

Neighbour = TypeVar("Neighbour", bound=Hashable)


class LabelGraph(Labelling[Neighbour], Generic[Neighbour]):
    """The nodes of a router by number, with their edges and labels."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        super().__init__()
        self.subscriptions: dict[Neighbour, int] = {}
        """How many nodes each neighbour subscribes to; neighbours without any are left out."""
        self._pages = self._slots.pages

    # -- notifications -------------------------------------------------------------------------

    def groups(self, label: Label) -> Groups[Neighbour]:
        """The neighbours that get a notification with this label, grouped by the label that they
        get instead; an empty label means that the label stays the same. Unknown nodes are ignored.
        The result is the same object for nodes with the same labels, and is valid until the graph
        changes."""
        if len(label) != 1:
            found: dict[Label, list[Neighbour]] = {}
            for neighbour, new in self.forward(label).items():
                found.setdefault(new, []).append(neighbour)
            return tuple((new, tuple(names)) for new, names in found.items())
        number = label[0]
        try:
            labels = self._labels[self._pages[number >> BITS][number & LAST]]
        except KeyError:
            return ()
        groups = labels.groups
        return self._pool.groups(labels) if groups is None else groups

    def labels(self, number: int) -> dict[Neighbour, Label]:
        """The label of a node for each neighbour that has one; empty if the node is unknown."""
        own = (number,)
        return {name: label or own for label, names in self.groups(own) for name in names}

    def forward(self, header: Sequence[int]) -> dict[Neighbour, Label]:
        """The header that each neighbour gets; neighbours that get none are left out. Unknown nodes
        are ignored."""
        if len(header) == 1:
            return self.labels(header[0])
        found: dict[Neighbour, Label] = {}
        mixed = set()
        for number in header:
            for neighbour, label in self.labels(number).items():
                known = found.get(neighbour)
                if known is None:
                    found[neighbour] = label
                elif known != label:
                    found[neighbour] = known + label
                    mixed.add(neighbour)
        for neighbour in mixed:
            found[neighbour] = self.lowest(found[neighbour])
        return found

    def list_subscribed(
        self, label: Iterable[int], neighbour: Neighbour, most: int
    ) -> Label | None:
        """The content list for a neighbour: every node that the neighbour subscribes to and that is
        in a label or above one of its nodes. None if more than `most` nodes are at or above the
        label."""
        found = self._reach_few(label, most)
        if found is None:
            return None
        one, every = self._pool.index.get(neighbour), self._labels
        bit = 0 if one is None else 1 << one
        return self._sort_slots(slot for slot in found if every[slot].own & bit)

    def list_for_all(self, number: int, most: int) -> Label | None:
        """The nodes at or above one node that any neighbour subscribes to; None if more than `most`
        nodes are at or above it."""
        found, every = self._reach_few((number,), most), self._labels
        if found is None:
            return None
        return self._sort_slots(slot for slot in found if every[slot].own)

    def _reach_few(self, label: Iterable[int], most: int) -> set[int] | None:
        found = {slot for slot in map(self._slots.find, label) if slot}
        todo = [*found]
        while todo:
            new = [one for one in self._edges.parents(todo.pop()) if one not in found]
            found.update(new)
            todo += new
            if len(found) > most:
                return None
        return found

    def sole_neighbour(self) -> Neighbour | None:
        """The only neighbour with subscriptions, provided that it subscribes to every node."""
        if len(self.subscriptions) == 1:
            ((neighbour, count),) = self.subscriptions.items()
            if count == len(self):
                return neighbour
        return None

    # -- subscriptions -------------------------------------------------------------------------

    def subscribers(self, number: int) -> tuple[Neighbour, ...]:
        """The neighbours that subscribe to a node."""
        return self._pool.names(self._labels[self._slot(number)])

    def is_subscribed(self, number: int, neighbour: Neighbour) -> bool:
        one = self._pool.index.get(neighbour)
        return one is not None and bool(self._labels[self._slots.find(number)].own >> one & 1)

    def subscribe(self, number: int, neighbour: Neighbour) -> bool:
        """Subscribe a neighbour to a node; return False if it was already subscribed."""
        slot = self._slots.find(number) or self._slot(number)
        labels, one = self._labels[slot], self._pool.index.get(neighbour)
        if one is None:
            one = self._pool.add(neighbour)
        elif labels.own >> one & 1:
            return False
        self.subscriptions[neighbour] = self.subscriptions.get(neighbour, 0) + 1
        label = labels.get(one)
        self._pool.change(self._labels, slot, one, {label: OWN})
        if self._edges.down.counts[slot]:
            self._lower(slot, number, one, label)
        return True

    def unsubscribe(self, number: int, neighbour: Neighbour) -> bool:
        """Unsubscribe a neighbour from a node; return False if it was not subscribed."""
        if not self.is_subscribed(number, neighbour):
            return False
        slot, one = self._slots.find(number), self._pool.index[neighbour]
        label = self._label_above(slot, one)
        self._pool.change(self._labels, slot, one, {OWN: label})
        if self._edges.down.counts[slot]:
            self._lift(slot, number, one, label)
        self.subscriptions[neighbour] -= 1
        if not self.subscriptions[neighbour]:
            del self.subscriptions[neighbour]
            self._pool.remove(neighbour)
        return True

    # -- the graph -----------------------------------------------------------------------------

    def insert(self, number: int, parents: Iterable[int], children: Iterable[int]) -> bool:
        """Insert a node between the parents that cover it and the children that it covers. If the
        node exists, add the new edges. Unknown parents and children are ignored. Return True if the
        edges of existing nodes changed."""
        is_known = number in self
        slot, changed = self._place(number, parents, children)
        if slot == len(self._labels):
            self._labels.append(self._pool.empty)
            self._pool.empty.uses += 1
        if changed:
            # A new edge shows that one existing node covers another. If the label of a lower node
            # contains both, the upper one is removed from it.
            self._relabel_all(self._in_order(changed))
        elif not is_known:  # nothing changes for existing nodes
            self._relabel_all([slot])
        return bool(changed)

    def load(self, numbers: Any, starts: Any, parents: Any) -> None:
        """Put many nodes into an empty graph, which takes a second per million nodes. The arguments
        are numpy arrays of int64: the parents of numbers[i] are parents[starts[i] : starts[i + 1]].
        Each node comes after its parents, and no parent of a node covers another parent of it."""
        if len(self):
            raise GraphError(f"found a graph of {len(self)} nodes, expected an empty graph")
        self.clear()
        self._load(numbers, starts, parents)
        self._labels *= len(numbers) + 1
        self._pool.empty.uses += len(numbers)

    def remove(self, number: int) -> None:
        """Remove a node, and connect its parents with its children."""
        slot = self._slot(number)
        if self._labels[slot].own:
            raise GraphError(f"node {number} has subscribers, expected none before its removal")
        self._take_out(number, slot)
        self._pool.put(self._labels, slot, self._pool.empty)
        self._passed.pop(slot, None)

    def parents_for(self, number: int, neighbour: Neighbour) -> Label:
        """Of the nodes that a neighbour subscribes to, those that are the parents of a node."""
        one = self._pool.index.get(neighbour, -1)
        return self._label_above(self._slot(number), one) or ()

    def around(self, number: int, neighbour: Neighbour) -> tuple[Label, Label]:
        """Of the nodes that a neighbour subscribes to, the parents and children of one of them. The
        neighbour must subscribe to the node; it needs the parents and children to put the node into
        its own graph. Cost: a visit to each node whose label contains this node, and to its
        edges."""
        slot = self._slot(number)
        if not self.is_subscribed(number, neighbour):
            raise GraphError(f"{neighbour} does not subscribe to node {number}")
        one = self._pool.index[neighbour]
        above = self._label_above(slot, one) or ()
        return above, self._sort_slots(self._highest_below(slot, number, one))

    def _highest_below(self, slot: int, number: int, neighbour: int) -> Iterable[int]:
        """The highest of the nodes below `slot` that a neighbour subscribes to."""
        every, edges, bit = self._labels, self._edges, 1 << neighbour
        below = edges.reach_down([slot], FEW)
        if len(below) <= FEW:
            wanted = {one for one in below if every[one].own & bit}
            return wanted - edges.reach_down(wanted)
        # Every path to these nodes leads through nodes whose labels contain `number`.
        found, lower = list[int](), Below(edges, self._slots, slot)
        todo, done = [*edges.children(slot)], {slot}
        while todo:
            one = todo.pop()
            if one in done:
                continue
            done.add(one)
            if every[one].own & bit:
                above = {*self._column(edges.parents(one), neighbour)}
                if not lower.has_any(chain.from_iterable(label or () for label in above)):
                    found.append(one)
            elif number in (every[one].get(neighbour) or ()):
                todo += edges.children(one)
        return found
