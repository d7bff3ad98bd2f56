"""The labels of nodes, shared by all nodes that have the same ones.

    node    subscribed    label for F    for G    for H       who      what
      4     F             4              -        -           F        own
     31     F, H          31             -        31          F H      own own    ┐ the same
     32     F, H          32             -        32          F H      own own    ┘ object
     33                   4              -        -           F        4

A neighbour that subscribes to a node has the node itself as its label there. This is stored without
the number of the node: most nodes share their labels with many others, and cost one reference each.
Neighbours are small numbers here, in the order in which they came.

Invariant: two nodes with equal labels have the same object, unless two labels have the same hash;
an object that no node has any more is forgotten.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

Neighbour = TypeVar("Neighbour", bound=Hashable)
Label = tuple[int, ...]  # nodes, rising
OWN: Label = ()
"""Stands for the node itself."""
Who = tuple[int, ...]  # neighbours, rising
What = tuple[Label, ...]  # their labels
Groups = tuple[tuple[Label, tuple[Neighbour, ...]], ...]
"""The neighbours that have each label."""


class Labels(Generic[Neighbour]):
    """The labels of a node for the neighbours that have one there."""

    __slots__ = ("groups", "hash", "uses", "what", "who")

    def __init__(self, who: Who, what: What, hashed: int) -> None:
        self.who = who
        self.what = what
        self.hash = hashed
        self.uses = 0  # nodes
        self.groups: Groups[Neighbour] | None = None  # with names, once they were asked for

    def get(self, one: int) -> Label | None:
        """The label of a neighbour."""
        who = self.who
        at = bisect_left(who, one)
        return self.what[at] if at < len(who) and who[at] == one else None


class LabelPool(Generic[Neighbour]):
    """The labels in use, and the neighbours in them."""

    def __init__(self) -> None:
        self.index: dict[Neighbour, int] = {}
        """The number of each neighbour that subscribes to something."""
        self._names: list[Any] = []  # by number
        self._free: list[int] = []
        self._known: dict[int, Labels[Neighbour]] = {}  # by hash
        self.empty = self.get((), ())
        self.empty.uses = 1  # it stays, for free slots too

    def get(self, who: Who, what: What) -> Labels[Neighbour]:
        """The one object for these labels."""
        hashed = 0
        for pair in zip(who, what, strict=True):
            hashed ^= hash(pair)
        return self.get_hashed(who, what, hashed)

    def get_hashed(self, who: Who, what: What, hashed: int) -> Labels[Neighbour]:
        """The same, given the exclusive or of the hashes of all pairs of neighbour and label."""
        found = self._known.get(hashed)
        if found is None:
            found = self._known[hashed] = Labels(who, what, hashed)
        elif found.what != what or found.who != who:
            found = Labels(who, what, hashed)
        return found

    def change(self, labels: Labels[Neighbour], one: int, label: Label | None) -> Labels[Neighbour]:
        """These labels after one neighbour got another label, or none."""
        return self.change_hashed(labels, one, label, mix(one, labels.get(one), label))

    def change_hashed(
        self, labels: Labels[Neighbour], one: int, label: Label | None, mixed: int
    ) -> Labels[Neighbour]:
        """The same, given what this changes in the hash."""
        who, what = labels.who, labels.what
        at = end = bisect_left(who, one)
        if at < len(who) and who[at] == one:
            end += 1
        if label is None:
            who, what = who[:at] + who[end:], what[:at] + what[end:]
        else:
            if at == end:
                who = (*who[:at], one, *who[at:])
            what = (*what[:at], label, *what[end:])
        return self.get_hashed(who, what, labels.hash ^ mixed)

    def replace(self, every: list[Labels[Neighbour]], slot: int, new: Labels[Neighbour]) -> None:
        """Give a node other labels."""
        old = every[slot]
        every[slot] = new
        new.uses += 1
        old.uses -= 1
        if not old.uses and self._known.get(old.hash) is old:
            del self._known[old.hash]

    def groups(self, labels: Labels[Neighbour]) -> Groups[Neighbour]:
        """The neighbours that have a label, with their names."""
        found: dict[Label, list[Neighbour]] = {}
        for one, label in zip(labels.who, labels.what, strict=True):
            found.setdefault(label, []).append(self._names[one])
        labels.groups = groups = tuple([(label, tuple(names)) for label, names in found.items()])
        return groups

    def names(self, labels: Labels[Neighbour]) -> tuple[Neighbour, ...]:
        """The neighbours that subscribe to a node."""
        each = zip(labels.who, labels.what, strict=True)
        return tuple([self._names[one] for one, label in each if label is OWN])

    # -- neighbours ----------------------------------------------------------------------------

    def add(self, neighbour: Neighbour) -> int:
        """The number of a neighbour, which is a new one if it has none."""
        one = self.index.get(neighbour)
        if one is None:
            if self._free:
                one = self._free.pop()
                self._names[one] = neighbour
            else:
                one = len(self._names)
                self._names.append(neighbour)
            self.index[neighbour] = one
        return one

    def remove(self, neighbour: Neighbour) -> None:
        """Forget a neighbour that subscribes to nothing any more, and so has no label."""
        one = self.index.pop(neighbour)
        self._names[one] = None
        self._free.append(one)


def mix(one: int, old: Label | None, new: Label | None) -> int:
    """What changes in the hash of labels if a neighbour gets another one."""
    before = 0 if old is None else hash((one, old))
    return before if new is None else before ^ hash((one, new))
