"""A router's graph: the nodes that its neighbours subscribed to, annotated with output labels.

        4  <- G             header [31] comes in:
        |  labels G: 4          F gets it with the header [31], which F subscribed to;
       31  <- F                 G gets it with [4], the lowest above 31 that G subscribed to
           labels F: 31, G: 4

The *label* of a node for a neighbour is the header that the neighbour must get: the node itself if
it subscribes to that, or else the lowest ancestors that it subscribes to. Labels are computed when
subscriptions change, so forwarding looks at the nodes of a header and never walks the graph.

Invariants, after every call: the edges are those of CoverGraph; labels are as defined above.

Forwarding costs one look-up for each node of the header, and a step for each neighbour with a label
there. A subscription costs a visit to each descendant whose label changes, and to its edges, and a
search upwards from each distinct label. A node costs about 60 bytes, and its labels cost nothing
more if another node has the same ones; see the folder tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from itertools import chain
from typing import Generic, TypeVar

from tidings.model import GraphError
from tidings.routing.forwarding.cover_graph import CoverGraph
from tidings.routing.forwarding.tables import (
    BITS,
    LAST,
    Groups,
    Inherited,
    Label,
    LabelPool,
    Labels,
    pairs,
    with_label,
    without,
)

Neighbour = TypeVar("Neighbour", bound=Hashable)
MOST_PASSED = 256  # nodes for which it is remembered what they pass on to their children


class LabelGraph(CoverGraph, Generic[Neighbour]):
    """The nodes of a router by number, with their edges and labels."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        super().__init__()
        self.subscriptions: dict[Neighbour, int] = {}
        """How many nodes each neighbour subscribes to; only those with at least one."""
        self._pool = LabelPool[Neighbour]()
        self._labels = [self._pool.empty]  # by slot
        self._pages = self._slots.pages
        self._passed: dict[int, tuple[Labels[Neighbour], Inherited]] = {}

    # -- notifications -------------------------------------------------------------------------

    def groups(self, label: Label) -> Groups[Neighbour]:
        """The neighbours that get a header, by the header that they get; None stands for the same
        header. Unknown nodes are ignored. Nodes with the same labels return the same object. Read
        it before the graph changes."""
        if len(label) != 1:
            found: dict[Label, list[Neighbour]] = {}
            for neighbour, new in self.forward(label).items():
                found.setdefault(new, []).append(neighbour)
            return tuple((new, tuple(names)) for new, names in found.items())
        page = self._pages.get(label[0] >> BITS)
        if page is None:
            return ()
        labels = self._labels[page[label[0] & LAST]]
        groups = labels.groups
        return self._pool.groups(labels) if groups is None else groups

    def labels(self, number: int) -> dict[Neighbour, Label]:
        """The label of a node for each neighbour that has one; none if the node is unknown."""
        own = (number,)
        return {
            neighbour: own if label is None else label
            for label, names in self.groups(own)
            for neighbour in names
        }

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
        """The content list of a neighbour: all nodes at or above those of a label that it
        subscribes to. None if the graph is deep, with more than `most` nodes above."""
        return self._list(label, self._pool.bits.get(neighbour, 0), most)

    def list_for_all(self, number: int, most: int) -> Label | None:
        """The same for one node, with all nodes that anybody subscribes to."""
        return self._list((number,), -1, most)

    def _list(self, label: Iterable[int], mask: int, most: int) -> Label | None:
        """All nodes at or above those of a label that one of these neighbours subscribes to."""
        found = {slot for slot in map(self._slots.find, label) if slot}
        todo = [*found]
        while todo:
            new = [one for one in self._edges.parents(todo.pop()) if one not in found]
            found.update(new)
            todo += new
            if len(found) > most:
                return None
        return self._sorted(slot for slot in found if self._labels[slot].own & mask)

    def sole_neighbour(self) -> Neighbour | None:
        """The neighbour that subscribes to every node, if no other subscribes to any."""
        if len(self.subscriptions) == 1:
            ((neighbour, count),) = self.subscriptions.items()
            if count == len(self):
                return neighbour
        return None

    # -- subscriptions -------------------------------------------------------------------------

    def subscribers(self, number: int) -> tuple[Neighbour, ...]:
        """The neighbours that subscribe to a node."""
        return self._pool.names(self._labels[self._slot(number)].own)

    def is_subscribed(self, number: int, neighbour: Neighbour) -> bool:
        bit = self._pool.bits.get(neighbour, 0)
        return self._labels[self._slots.find(number)].own & bit != 0

    def nodes_of(self, neighbour: Neighbour) -> list[int]:
        """The nodes that a neighbour subscribes to. Cost: it visits every node."""
        bit, numbers = self._pool.bits.get(neighbour, 0), self._slots.numbers
        return [numbers[slot] for slot, one in enumerate(self._labels) if one.own & bit]

    def subscribe(self, number: int, neighbour: Neighbour) -> bool:
        """Subscribe a neighbour to a node; False if it was subscribed before."""
        slot = self._slot(number)
        labels, bit = self._labels[slot], self._pool.add(neighbour)
        if labels.own & bit:
            return False
        self.subscriptions[neighbour] = self.subscriptions.get(neighbour, 0) + 1
        label = labels.inherited_by(bit)
        self._relabel(slot, labels.own | bit, without(labels.inherited, bit))
        self._lower(slot, number, bit, label)
        return True

    def unsubscribe(self, number: int, neighbour: Neighbour) -> bool:
        """Unsubscribe a neighbour from a node; False if it was not subscribed."""
        slot, bit = self._slots.find(number), self._pool.bits.get(neighbour, 0)
        labels = self._labels[slot]
        if not labels.own & bit:
            return False
        label = self._label_above(slot, bit)
        inherited = with_label(labels.inherited, bit, label) if label else labels.inherited
        self._relabel(slot, labels.own ^ bit, inherited)
        self._lift(slot, number, bit, label)
        self.subscriptions[neighbour] -= 1
        if not self.subscriptions[neighbour]:
            del self.subscriptions[neighbour]
            self._pool.remove(neighbour)
        return True

    # -- the graph -----------------------------------------------------------------------------

    def insert(self, number: int, parents: Iterable[int], children: Iterable[int]) -> None:
        """Insert a node between the parents that cover it and the children that it covers. If it
        exists, add the new edges. Unknown parents and children are ignored."""
        is_known = number in self
        slot, changed = self._place(number, parents, children)
        if slot == len(self._labels):
            self._labels.append(self._pool.empty)
            self._pool.empty.uses += 1
        if changed:
            # The graph learned that one existing node covers another. Each label below that
            # contains both loses the upper one.
            for one in self._in_order(changed):
                own = self._labels[one].own
                self._relabel(one, own, self._inherit(one, own))
        elif not is_known:  # nothing changes for existing nodes
            self._relabel(slot, 0, self._inherit(slot, 0))

    def remove(self, number: int) -> None:
        """Remove a node. Its parents still cover its children."""
        slot = self._slot(number)
        if self._labels[slot].own:
            raise GraphError(f"node {number} has subscribers, expected none before it is removed")
        self._take_out(number, slot)
        self._relabel(slot, 0, ())
        self._passed.pop(slot, None)

    def parents_for(self, number: int, neighbour: Neighbour) -> Label:
        """The parents of a node among the nodes that a neighbour subscribes to."""
        return self._label_above(self._slot(number), self._pool.bits.get(neighbour, 0))

    def around(self, number: int, neighbour: Neighbour) -> tuple[Label, Label]:
        """The parents and children of a node among the nodes that a neighbour subscribes to, which
        it needs to put the node into its own graph. The neighbour must subscribe to the node.
        Cost: a visit to each node whose label is this one, and to its edges."""
        slot, bit = self._slot(number), self._pool.bits.get(neighbour, 0)
        if not self._labels[slot].own & bit:
            raise GraphError(f"{neighbour} does not subscribe to node {number}")
        return self._label_above(slot, bit), self._sorted(self._highest_below(slot, number, bit))

    def _highest_below(self, slot: int, number: int, bit: int) -> list[int]:
        """The highest nodes below one that a neighbour subscribes to. Every path to them leads
        through nodes that have the upper one in their label."""
        children, found = self._edges.children, list[int]()
        is_lower = self._below(slot)
        todo, done = [*children(slot)], {slot}
        while todo:
            one = todo.pop()
            if one in done:
                continue
            done.add(one)
            if not self._labels[one].own & bit:
                if number in self._labels[one].inherited_by(bit):
                    todo += children(one)
            elif not any(map(is_lower, self._labels_above(one, bit))):
                found.append(one)
        return found

    # -- labels --------------------------------------------------------------------------------

    def _relabel(self, slot: int, own: int, inherited: Inherited) -> None:
        new = self._pool.get(own, inherited)
        if new is not self._labels[slot]:
            self._pool.replace(self._labels, slot, new)

    def _lower(self, slot: int, number: int, bit: int, label: Label) -> None:
        """Update labels after a neighbour subscribed to a node, where it had this label. In every
        label below that has no lower node, the node replaces those that cover it."""
        own, is_lower = (number,), self._below(slot)

        def lowered(old: Label) -> Label | None:
            # What covers the node and is in a label below, is in the node's own old label too.
            # If there is such a node, there is none between it and the lower label.
            if old == label:
                return own
            if number in old:
                return None
            left = [one for one in old if one not in label]
            if len(left) == len(old) and any(map(is_lower, left)):
                return None
            return tuple(sorted((number, *left)))

        self._change_below(slot, bit, lowered)

    def _lift(self, slot: int, number: int, bit: int, label: Label) -> None:
        """Update labels after a neighbour unsubscribed from a node, where it now has this label. In
        every label below that has the node, those of the new label replace it that cover none of
        the others."""

        def lifted(old: Label) -> Label | None:
            if number not in old:
                return None
            left = [one for one in old if one != number]
            return self.lowest((*left, *label)) if left else label

        self._change_below(slot, bit, lifted)

    def _change_below(self, slot: int, bit: int, change: Callable[[Label], Label | None]) -> None:
        """Change the labels of a neighbour below a node, down to where `change` returns None or the
        neighbour subscribes. It returns None for the labels that it made. Cost: a visit to each
        node that changes and to its children; `change` is called once for equal labels."""
        every, pool, children = self._labels, self._pool, self._edges.children
        known: dict[Labels[Neighbour], Labels[Neighbour] | None] = {}
        todo = [*children(slot)]
        while todo:
            one = todo.pop()
            labels = every[one]
            if labels.own & bit:
                continue
            if labels not in known:
                old = labels.inherited_by(bit)
                label = change(old)
                if label is None:
                    known[labels] = None
                    continue
                inherited = without(labels.inherited, bit) if old else labels.inherited
                if label:
                    inherited = with_label(inherited, bit, label)
                known[labels] = pool.get(labels.own, inherited)
            new = known[labels]
            if new is not None:
                pool.replace(every, one, new)
                todo += children(one)

    def _below(self, slot: int) -> Callable[[int], bool]:
        """Is a node below this one? Results are remembered, as long as no edge changes."""
        known: dict[int, bool] = {}
        find, covers = self._slots.find, self._edges.covers

        def is_below(number: int) -> bool:
            found = known.get(number)
            if found is None:
                found = known[number] = covers(slot, find(number))
            return found

        return is_below

    def _inherit(self, slot: int, own: int) -> Inherited:
        """The labels that a node gets from its parents, for all neighbours but some."""
        parents = self._edges.parents(slot)
        if not parents:
            return ()
        first, *others = map(self._pass_on, parents)
        if all(one == first for one in others):
            return without(first, own)
        # What neighbours have at the parents: all their labels there, and who has exactly these
        pieces: list[tuple[list[Label], int]] = []
        for label, mask in chain(pairs(first), *map(pairs, others)):
            left = mask & ~own
            for at, (labels, there) in enumerate([*pieces]):
                both = there & left
                if both and label not in labels:
                    pieces[at] = labels, there ^ both
                    pieces.append(([*labels, label], both))
                left &= ~there
            if left:
                pieces.append(([label], left))
        found: Inherited = ()
        for labels, mask in pieces:
            if mask:
                found = with_label(found, mask, self._merge(labels, parents))
        return found

    def _pass_on(self, slot: int) -> Inherited:
        """The labels that a node passes on to its children."""
        labels = self._labels[slot]
        if not labels.own:
            return labels.inherited
        known = self._passed.get(slot)
        if known is None or known[0] is not labels:
            own = (self._slots.numbers[slot],)
            if len(self._passed) >= MOST_PASSED:
                self._passed.clear()
            known = self._passed[slot] = labels, with_label(labels.inherited, labels.own, own)
        return known[1]

    def _labels_above(self, slot: int, bit: int) -> Iterable[int]:
        """The nodes in the labels of a neighbour at the parents of a node."""
        return chain.from_iterable(self._each_above(slot, bit))

    def _each_above(self, slot: int, bit: int) -> set[Label]:
        found: set[Label] = set()
        for parent in self._edges.parents(slot):
            labels = self._labels[parent]
            if labels.own & bit:
                found.add((self._slots.numbers[parent],))
            else:
                found.add(labels.inherited_by(bit))
        return found

    def _label_above(self, slot: int, bit: int) -> Label:
        """The label that a neighbour has at a node if it does not subscribe to it."""
        found = [label for label in self._each_above(slot, bit) if label]
        return self._merge(found, self._edges.parents(slot)) if found else ()

    def _merge(self, labels: Collection[Label], parents: Sequence[int]) -> Label:
        """The lowest nodes of the different labels that the parents of a node have."""
        if len(labels) == 1:
            return next(iter(labels))
        found = {*chain.from_iterable(labels)}
        if found <= self._numbers(parents):  # no parent covers another one
            return tuple(sorted(found))
        return self.lowest(found)
