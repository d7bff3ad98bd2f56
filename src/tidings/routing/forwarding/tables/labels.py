"""The labels of nodes, shared by all nodes whose neighbours have the same ones.

    node    subscribed    label for F    for G    for H
      4     F             4              -        -        own F
     31     F, H          31             -        31       own F H                        ┐ the same
     32     F, H          32             -        32       own F H                        ┘ object
     33                   4              -        -        4: F

A neighbour that subscribes to a node has the node itself as its label there. This is stored without
the number of the node: most nodes share their labels with many others, and cost one reference each.
Sets of neighbours are whole numbers with one bit for each neighbour.

Invariant: two nodes have equal labels if and only if they have the same object; an object that no
node has any more is forgotten.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

Neighbour = TypeVar("Neighbour", bound=Hashable)
Label = tuple[int, ...]  # nodes, rising
Inherited = tuple[Any, ...]
"""A label, the set of neighbours that have it, the next label, and so on; labels rise."""
Groups = tuple[tuple[Label | None, tuple[Neighbour, ...]], ...]
"""Neighbours by label; None stands for the node itself."""

MOST_NAMED = 1000  # sets of neighbours whose names are remembered


class Labels(Generic[Neighbour]):
    """The labels of a node for all neighbours."""

    __slots__ = ("groups", "inherited", "own", "uses")

    def __init__(self, own: int, inherited: Inherited) -> None:
        self.own = own  # the neighbours that subscribe to the node
        self.inherited = inherited  # the labels of others, from the nodes above
        self.groups: Groups[Neighbour] | None = None  # the same with names, once it is looked up
        self.uses = 0

    def inherited_by(self, bit: int) -> Label:
        """The label of a neighbour that does not subscribe to the node; empty if it has none."""
        inherited = self.inherited
        for at in range(1, len(inherited), 2):
            if inherited[at] & bit:
                return inherited[at - 1]
        return ()


class LabelPool(Generic[Neighbour]):
    """The labels in use, and the neighbours in them."""

    def __init__(self) -> None:
        self.bits: dict[Neighbour, int] = {}  # only neighbours that subscribe to something
        self._names: list[Neighbour | None] = []  # by the position of the bit
        self._named: dict[int, tuple[Neighbour, ...]] = {}
        self._known: dict[tuple[int, Inherited], Labels[Neighbour]] = {}
        self.empty = self.get(0, ())
        self.empty.uses = 1  # it stays, for free slots too

    def get(self, own: int, inherited: Inherited) -> Labels[Neighbour]:
        """The one object for these labels. Nobody in `own` may be in `inherited`."""
        key = own, inherited
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Labels(own, inherited)
        return found

    def replace(
        self, labels: list[Labels[Neighbour]], slot: int, new: Labels[Neighbour]
    ) -> None:
        """Give a node other labels."""
        old = labels[slot]
        labels[slot] = new
        new.uses += 1
        old.uses -= 1
        if not old.uses:
            del self._known[old.own, old.inherited]

    def groups(self, labels: Labels[Neighbour]) -> Groups[Neighbour]:
        """The neighbours that have a label, with their names. Do not look at them after a change:
        the object then stands for other labels, or for none."""
        found: list[tuple[Label | None, int]] = [(None, labels.own)] if labels.own else []
        found += pairs(labels.inherited)
        labels.groups = groups = tuple([(label, self.names(mask)) for label, mask in found])
        return groups

    # -- neighbours ----------------------------------------------------------------------------

    def names(self, mask: int) -> tuple[Neighbour, ...]:
        """The names of a set of neighbours, in the order of their bits."""
        found = self._named.get(mask)
        if found is None:
            if len(self._named) >= MOST_NAMED:
                self._named.clear()
            found = self._named[mask] = tuple(self._each(mask))
        return found

    def _each(self, mask: int) -> Iterator[Neighbour]:
        while mask:
            at = (mask & -mask).bit_length() - 1
            mask &= mask - 1
            name = self._names[at]
            assert name is not None
            yield name

    def add(self, neighbour: Neighbour) -> int:
        """The bit of a neighbour, which is a new one if it has none."""
        bit = self.bits.get(neighbour)
        if bit is None:
            if len(self.bits) < len(self._names):
                at = self._names.index(None)
                self._names[at] = neighbour
            else:
                at = len(self._names)
                self._names.append(neighbour)
            bit = self.bits[neighbour] = 1 << at
        return bit

    def remove(self, neighbour: Neighbour) -> None:
        """Forget a neighbour that subscribes to nothing any more, and so has no label."""
        self._names[self.bits.pop(neighbour).bit_length() - 1] = None
        self._named.clear()


def pairs(inherited: Inherited) -> Iterator[tuple[Label, int]]:
    """Each label, and the neighbours that have it."""
    return zip(inherited[::2], inherited[1::2], strict=True)


def without(inherited: Inherited, mask: int) -> Inherited:
    """The labels of all neighbours but some."""
    for at in range(1, len(inherited), 2):
        if inherited[at] & mask:
            break
    else:
        return inherited
    found: list[Any] = []
    for label, there in pairs(inherited):
        if there & ~mask:
            found += label, there & ~mask
    return tuple(found)


def with_label(inherited: Inherited, mask: int, label: Label) -> Inherited:
    """The labels after some neighbours, who had none, got this one."""
    found = [*inherited]
    for at in range(0, len(found), 2):
        if found[at] >= label:
            if found[at] == label:
                found[at + 1] |= mask
            else:
                found[at:at] = label, mask
            return tuple(found)
    return (*inherited, label, mask)
