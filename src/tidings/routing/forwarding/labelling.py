"""Updates the labels of a graph when edges or subscriptions change.

        4  <- G             labels G: 4
       / \\
      9   31  <- F          labels of 9: G: 4; of 31: F: 31, G: 4
       \\ /
       50                   labels F: 31, G: 4: the lowest nodes in the labels of its parents

When a neighbour subscribes to a node or unsubscribes, its labels at the nodes below change, down to
nodes where the label stays the same. The order of these changes does not matter, because each new
label depends only on the old one. When a new edge shows that one existing node covers another,
labels are computed again from those of the parents.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Generic, TypeVar, cast

from tidings.routing.forwarding.cover_graph import CoverGraph
from tidings.routing.forwarding.tables import (
    KEEP,
    OWN,
    Below,
    Edges,
    Label,
    LabelChanges,
    LabelPool,
    Labels,
    What,
    Who,
)

Neighbour = TypeVar("Neighbour", bound=Hashable)
Column = tuple[Label | None, ...]
"""The labels of a neighbour at several nodes."""
MOST_PASSED = 256  # the most nodes whose labels for their children are cached


class Labelling(CoverGraph, Generic[Neighbour]):
    """A graph with the labels of each slot. Neighbours are numbers here; see LabelPool."""

    def __init__(self) -> None:
        super().__init__()
        self._pool = LabelPool[Neighbour]()
        self._labels = [self._pool.empty]  # by slot
        self._passed: dict[int, tuple[What, What]] = {}

    # -- one neighbour -------------------------------------------------------------------------

    def _lower(self, slot: int, number: int, neighbour: int, label: Label | None) -> None:
        """Update labels after a neighbour subscribed to a node; before, its label there was
        `label`. If the label of a lower node contains no node below this one, then this node
        replaces the nodes of `label` in that label, because they cover this node."""
        own, above = (number,), frozenset(label or ())
        lower = Below(self._edges, self._slots, slot)

        def lower_label(old: Label | None) -> Label:
            if old is None or old == label:
                return own
            if number in old or lower.has_any(old):
                return KEEP
            left = [one for one in old if one not in above]
            return tuple(sorted((number, *left))) if left else own

        self._change_below(slot, neighbour, LabelChanges(lower_label))

    def _lift(self, slot: int, number: int, neighbour: int, label: Label | None) -> None:
        """Update labels after a neighbour unsubscribed from a node; now, its label there is
        `label`. If the label of a lower node contains this node, the nodes of `label` replace it,
        except those that cover another node of that label."""

        def lift_label(old: Label | None) -> Label | None:
            if old is None or number not in old:
                return KEEP
            left = [one for one in old if one != number]
            return self.lowest((*left, *(label or ()))) if left else label

        self._change_below(slot, neighbour, LabelChanges(lift_label))

    def _change_below(self, slot: int, neighbour: int, changes: LabelChanges) -> None:
        """Change the labels of a neighbour at the nodes below a node, down to nodes where the label
        stays the same, or to which the neighbour subscribes. A label that `changes` has produced is
        not changed again, so no node changes twice. Cost: a visit to each node that changes and to
        its children."""
        every, pool, bit = self._labels, self._pool, 1 << neighbour
        counts, children = self._edges.down.counts, self._edges.down.values
        known: dict[Labels[Neighbour], Labels[Neighbour]] = {}  # the new for the old
        todo = [*children(slot)]
        while todo:
            one = todo.pop()
            labels = every[one]
            if labels.own & bit:
                continue
            other = known.get(labels)
            if other is not None:
                pool.put(every, one, other)
            else:
                is_shared = labels.uses > 1
                other = pool.change(every, one, neighbour, changes)
                if other is None:
                    continue
                if is_shared:
                    known[labels] = other
            if counts[one]:
                todo += children(one)

    # -- all neighbours ------------------------------------------------------------------------

    def _relabel_all(self, slots: Iterable[int]) -> None:
        """Compute the labels of nodes; in `slots`, each node comes after its parents."""
        reached = Reached(self._edges)
        for slot in slots:
            self._relabel(slot, reached)

    def _relabel(self, slot: int, reached: Reached) -> None:
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

    def _inherit(self, parents: Sequence[int], reached: Reached) -> tuple[Who, What]:
        """The labels that a node with these parents has, before any neighbour subscribes to it."""
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
        """The label that a neighbour has at a node, or would have if it did not subscribe there."""
        parents = self._edges.parents(slot)
        return self._merge(parents, self._column(parents, neighbour))

    def _merge(
        self, parents: Sequence[int], column: Column, reached: Reached | None = None
    ) -> Label | None:
        """The label of a node, given the labels of its parents. `reached` saves searches if many
        labels are computed."""
        distinct = {*column}
        distinct.discard(None)
        if len(distinct) < 2:
            return distinct.pop() if distinct else None
        found = {*chain.from_iterable(cast("set[Label]", distinct))}
        if found.issubset(map(self._slots.numbers.__getitem__, parents)):
            return tuple(sorted(found))  # no parent covers another parent
        if reached is None:
            return self.lowest(found)
        # A node that covers a parent and is not in the parent's label covers a node of that label.
        slots = {self._slots.find(one): one for one in found}
        for parent, label in zip(parents, column, strict=True):
            if label is not None:
                above = map(slots.__getitem__, slots.keys() & reached[parent])
                found.difference_update([one for one in above if one not in label])
        return tuple(sorted(found))


class Reached(dict[int, set[int]]):
    """All slots above each slot, cached; valid until the edges change."""

    MOST = 256  # slots whose results are cached

    def __init__(self, edges: Edges) -> None:
        super().__init__()
        self._edges = edges

    def __missing__(self, slot: int) -> set[int]:
        if len(self) >= self.MOST:
            self.clear()
        found = self[slot] = self._edges.reach_up([slot])
        return found
