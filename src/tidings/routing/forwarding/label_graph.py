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
search upwards from each node of a different label there. A node costs about 60 bytes, and its
labels cost nothing more if another node has the same ones; see the folder tables.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar, cast

from tidings.model import GraphError
from tidings.routing.forwarding.cover_graph import CoverGraph
from tidings.routing.forwarding.tables import (
    BITS,
    FEW,
    KEEP,
    LAST,
    OWN,
    Below,
    Changes,
    Groups,
    Label,
    LabelPool,
    Labels,
    What,
    Who,
)

Neighbour = TypeVar("Neighbour", bound=Hashable)
Column = tuple[Label | None, ...]
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
        self._passed: dict[int, tuple[What, What]] = {}

    # -- notifications -------------------------------------------------------------------------

    def groups(self, label: Label) -> Groups[Neighbour]:
        """The neighbours that get a header, by the header that they get; an empty one stands for
        the header itself. Unknown nodes are ignored. Nodes with the same labels return the same
        object. Read it before the graph changes."""
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
        """The content list of a neighbour: all nodes at or above those of a label that it
        subscribes to. None if the graph is deep, with more than `most` nodes above."""
        found = self._reach_few(label, most)
        if found is None:
            return None
        one, every = self._pool.index.get(neighbour), self._labels
        bit = 0 if one is None else 1 << one
        return self._sorted(slot for slot in found if every[slot].own & bit)

    def list_for_all(self, number: int, most: int) -> Label | None:
        """The same for one node, with all nodes that anybody subscribes to."""
        found, every = self._reach_few((number,), most), self._labels
        if found is None:
            return None
        return self._sorted(slot for slot in found if every[slot].own)

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
        """The neighbour that subscribes to every node, if no other subscribes to any."""
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

    def nodes_of(self, neighbour: Neighbour) -> list[int]:
        """The nodes that a neighbour subscribes to. Cost: it visits every node."""
        one, numbers = self._pool.index.get(neighbour), self._slots.numbers
        if one is None:
            return []
        return [numbers[at] for at, labels in enumerate(self._labels) if labels.own >> one & 1]

    def subscribe(self, number: int, neighbour: Neighbour) -> bool:
        """Subscribe a neighbour to a node; False if it was subscribed before."""
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
        """Unsubscribe a neighbour from a node; False if it was not subscribed."""
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
            reached = _Reached(self)
            for one in self._in_order(changed):
                self._relabel(one, reached)
        elif not is_known:  # nothing changes for existing nodes
            self._relabel(slot, _Reached(self))

    def remove(self, number: int) -> None:
        """Remove a node. Its parents still cover its children."""
        slot = self._slot(number)
        if self._labels[slot].own:
            raise GraphError(f"node {number} has subscribers, expected none before it is removed")
        self._take_out(number, slot)
        self._pool.put(self._labels, slot, self._pool.empty)
        self._passed.pop(slot, None)

    def parents_for(self, number: int, neighbour: Neighbour) -> Label:
        """The parents of a node among the nodes that a neighbour subscribes to."""
        one = self._pool.index.get(neighbour, -1)
        return self._label_above(self._slot(number), one) or ()

    def around(self, number: int, neighbour: Neighbour) -> tuple[Label, Label]:
        """The parents and children of a node among the nodes that a neighbour subscribes to, which
        it needs to put the node into its own graph. The neighbour must subscribe to the node.
        Cost: a visit to each node with this one in its label, and to its edges."""
        slot = self._slot(number)
        if not self.is_subscribed(number, neighbour):
            raise GraphError(f"{neighbour} does not subscribe to node {number}")
        one = self._pool.index[neighbour]
        above = self._label_above(slot, one) or ()
        return above, self._sorted(self._highest_below(slot, number, one))

    def _highest_below(self, slot: int, number: int, neighbour: int) -> Iterable[int]:
        """The highest nodes below one that a neighbour subscribes to."""
        every, edges, bit = self._labels, self._edges, 1 << neighbour
        below = edges.reach_down([slot], FEW)
        if len(below) <= FEW:
            wanted = {one for one in below if every[one].own & bit}
            return wanted - edges.reach_down(wanted)
        # Every path to them leads through nodes that have the upper one in their label.
        found, lower = list[int](), Below(edges, self._slots, slot)
        todo, done = [*edges.children(slot)], {slot}
        while todo:
            one = todo.pop()
            if one in done:
                continue
            done.add(one)
            if every[one].own & bit:
                above = {*self._column(edges.parents(one), neighbour)} - {None}
                if not lower.has_any(chain(*above)):
                    found.append(one)
            elif number in (every[one].get(neighbour) or ()):
                todo += edges.children(one)
        return found

    # -- labels --------------------------------------------------------------------------------

    def _lower(self, slot: int, number: int, neighbour: int, label: Label | None) -> None:
        """Update labels after a neighbour subscribed to a node, where it had this label. In every
        label below that has no lower node, the node replaces those that cover it: these are in the
        label that it had."""
        own, above = (number,), frozenset(label or ())
        lower = Below(self._edges, self._slots, slot)

        def lowered(old: Label | None) -> Label:
            if old is None or old == label:
                return own
            if number in old or lower.has_any(old):
                return KEEP
            left = [one for one in old if one not in above]
            return tuple(sorted((number, *left))) if left else own

        self._change_below(slot, neighbour, Changes(lowered))

    def _lift(self, slot: int, number: int, neighbour: int, label: Label | None) -> None:
        """Update labels after a neighbour unsubscribed from a node, where it now has this label. In
        every label below that has the node, those of the new label replace it that cover none of
        the others."""

        def lifted(old: Label | None) -> Label | None:
            if old is None or number not in old:
                return KEEP
            left = [one for one in old if one != number]
            return self.lowest((*left, *(label or ()))) if left else label

        self._change_below(slot, neighbour, Changes(lifted))

    def _change_below(self, slot: int, neighbour: int, changes: Changes) -> None:
        """Change the labels of a neighbour below a node, down to where it keeps them or subscribes.
        It keeps those that were made here, so no node changes twice. Cost: a visit to each node
        that changes and to its children."""
        every, pool, bit = self._labels, self._pool, 1 << neighbour
        counts, children = self._edges.down.counts, self._edges.down.values
        known: dict[Labels[Neighbour], Labels[Neighbour]] = {}  # what is shared, and its successor
        todo = [*children(slot)]
        while todo:
            one = todo.pop()
            labels = every[one]
            if labels.own & bit:
                continue
            if labels.uses == 1:
                if pool.change(every, one, neighbour, changes) is None:
                    continue
            else:
                other = known.get(labels)
                if other is not None:
                    pool.put(every, one, other)
                else:
                    other = pool.change(every, one, neighbour, changes)
                    if other is None:
                        continue
                    known[labels] = other
            if counts[one]:
                todo += children(one)

    def _relabel(self, slot: int, reached: _Reached) -> None:
        """Compute the labels of a node from those of its parents."""
        old = self._labels[slot]
        who, what = self._inherit(self._edges.parents(slot), reached)
        if old.own:
            each = dict(zip(who, what, strict=True))
            each |= {one: OWN for one, label in zip(old.who, old.what, strict=True) if not label}
            who = tuple(sorted(each))
            what = tuple(map(each.__getitem__, who))
        new = self._pool.get(who, what, old.own)
        if new is not old:
            self._pool.put(self._labels, slot, new)

    def _inherit(self, parents: Sequence[int], reached: _Reached) -> tuple[Who, What]:
        """The labels that a node with these parents has, before anybody subscribes to it."""
        if not parents:
            return (), ()
        each = [self._labels[parent].who for parent in parents]
        passed = [self._pass_on(parent) for parent in parents]
        who = each[0]
        if all(one == who for one in each):
            if all(one == passed[0] for one in passed):
                return who, passed[0]
            columns: Iterable[Column] = zip(*passed, strict=True)
        else:
            rows = [dict(zip(*row, strict=True)) for row in zip(each, passed, strict=True)]
            who = tuple(sorted({*chain(*each)}))
            columns = [tuple([row.get(one) for row in rows]) for one in who]
        merged: dict[Column, Label] = {}
        what = []
        for column in columns:
            label = merged.get(column)
            if label is None:
                label = merged[column] = self._merge(parents, column, reached) or ()
            what.append(label)
        return who, tuple(what)

    def _pass_on(self, slot: int) -> What:
        """The labels that a node passes on to its children."""
        labels = self._labels[slot]
        if not labels.own:
            return labels.what
        known = self._passed.get(slot)
        if known is None or known[0] is not labels.what:
            own = (self._slots.numbers[slot],)
            if len(self._passed) >= MOST_PASSED:
                self._passed.clear()
            known = self._passed[slot] = labels.what, tuple([one or own for one in labels.what])
        return known[1]

    def _column(self, parents: Sequence[int], neighbour: int) -> Column:
        """The labels of a neighbour at some nodes."""
        every, numbers = self._labels, self._slots.numbers
        found = [every[parent].get(neighbour) for parent in parents]
        return tuple([(numbers[parent],) if label is OWN else label
                      for parent, label in zip(parents, found, strict=True)])  # fmt: skip

    def _label_above(self, slot: int, neighbour: int) -> Label | None:
        """The label that a neighbour has at a node if it does not subscribe to it."""
        parents = self._edges.parents(slot)
        return self._merge(parents, self._column(parents, neighbour))

    def _merge(
        self, parents: Sequence[int], column: Column, reached: _Reached | None = None
    ) -> Label | None:
        """The label of a node, given those of its parents. `reached` pays if it is used again."""
        distinct = {*column}
        distinct.discard(None)
        if len(distinct) < 2:
            return distinct.pop() if distinct else None
        found = {*chain.from_iterable(cast("set[Label]", distinct))}
        if found.issubset(map(self._slots.numbers.__getitem__, parents)):
            return tuple(sorted(found))  # no parent covers another one
        if reached is None:
            return self.lowest(found)
        # A node that covers a parent and is not in its label covers a node of that label.
        for parent, label in zip(parents, column, strict=True):
            if label is not None:
                found -= (found & reached[parent]).difference(label)
        return tuple(sorted(found))


class _Reached(dict[int, set[int]]):
    """The numbers of the nodes above slots, cached while the edges do not change."""

    MOST = 256  # slots that are remembered

    def __init__(self, graph: LabelGraph[Any]) -> None:
        super().__init__()
        self._graph = graph

    def __missing__(self, slot: int) -> set[int]:
        if len(self) >= self.MOST:
            self.clear()
        found = self[slot] = self._graph.numbers_above(slot)
        return found
