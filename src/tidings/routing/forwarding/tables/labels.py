"""The labels of nodes; nodes with the same labels share one object.

    node    subscribed    label for F    for G    for H       who      what
      4     F             4              -        -           F        own
     31     F, H          31             -        31          F H      own own    ┐ the same
     32     F, H          32             -        32          F H      own own    ┘ object
     33                   4              -        -           F        4

For a neighbour that subscribes to a node, the label is the node itself. This label is stored as
OWN, without the number of the node. So many nodes can share one object, and each costs only a
reference. In this module, neighbours are small numbers.

New nodes with equal labels share one object. Nodes whose labels become equal when a neighbour
subscribes or unsubscribes share one object too. Looking up an equal object takes longer than
changing one. So if only one node uses an object with the labels of several neighbours, and a change
at a node above affects it, the object is changed in place.

Invariant: no two objects that the pool knows are equal, and each of them is used by a node.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, TypeVar

Neighbour = TypeVar("Neighbour", bound=Hashable)
Label = tuple[int, ...]  # nodes, in ascending order
OWN: Label = ()
"""A label that means the node itself."""
KEEP: Label = (-1,)
"""A value that means that a label does not change."""
Who = tuple[int, ...]  # neighbours, in ascending order
What = tuple[Label, ...]  # their labels
Groups = tuple[tuple[Label, tuple[Neighbour, ...]], ...]
"""The neighbours that have each label."""
FEW = 1  # labels of at most this many neighbours are always shared


class Labels(Generic[Neighbour]):
    """The labels of a node, for each neighbour that has one."""

    __slots__ = ("groups", "is_known", "own", "uses", "what", "who")

    def __init__(self, who: Who, what: What, own: int, *, is_known: bool) -> None:
        self.who = who
        self.what = what
        self.own = own  # the neighbours that subscribe to the node, as bits
        self.uses = 0  # nodes
        self.is_known = is_known  # whether `LabelPool.get` can return this object
        self.groups: Groups[Neighbour] | None = None  # with names, computed on first use

    def get(self, one: int) -> Label | None:
        """The label of a neighbour."""
        who = self.who
        at = bisect_left(who, one)
        return self.what[at] if at < len(who) and who[at] == one else None


class LabelPool(Generic[Neighbour]):
    """The labels in use, and the neighbours in them."""

    def __init__(self) -> None:
        self.index: dict[Neighbour, int] = {}
        """The number of each neighbour that subscribes to any node."""
        self._names: list[Any] = []  # by number
        self._free: list[int] = []
        self._known: dict[tuple[Who, What], Labels[Neighbour]] = {}
        self.empty = self.get((), (), 0)
        self.empty.uses = 1  # never removed, because free slots use this object

    def get(self, who: Who, what: What, own: int) -> Labels[Neighbour]:
        """The object for these labels; `own` has the bits of the neighbours whose label is OWN."""
        key = who, what
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Labels(who, what, own, is_known=True)
        return found

    def put(self, every: list[Labels[Neighbour]], slot: int, new: Labels[Neighbour]) -> None:
        """Replace the labels of a node."""
        old = every[slot]
        every[slot] = new
        new.uses += 1
        old.uses -= 1
        if not old.uses and old.is_known:
            del self._known[old.who, old.what]

    def change(
        self, every: list[Labels[Neighbour]], slot: int, one: int, to: Mapping[Any, Label | None]
    ) -> Labels[Neighbour] | None:
        """Change the label of one neighbour at a node; return the new labels of the node, or None
        if nothing changes. `to` maps each old label to the new label, to None for no label, or to
        KEEP. If no other node uses the old labels, the object may be changed in place."""
        labels = every[slot]
        who, what = labels.who, labels.what
        at = end = bisect_left(who, one)
        old = None
        if at < len(who) and who[at] == one:
            end += 1
            old = what[at]
        label = to[old]
        if label is KEEP:
            return None
        if label is None:
            who, what = who[:at] + who[end:], what[:at] + what[end:]
        else:
            if at == end:
                who = (*who[:at], one, *who[at:])
            what = (*what[:at], label, *what[end:])
        if label is OWN or old is OWN:
            labels = self.get(who, what, labels.own ^ 1 << one)
            self.put(every, slot, labels)
        elif labels.uses > 1 or len(who) <= FEW:
            labels = self.get(who, what, labels.own)
            self.put(every, slot, labels)
        else:
            if labels.is_known:
                del self._known[labels.who, labels.what]
                labels.is_known = False
            labels.who, labels.what, labels.groups = who, what, None
        return labels

    def groups(self, labels: Labels[Neighbour]) -> Groups[Neighbour]:
        """The names of the neighbours that have each label."""
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
        """Return the number of a neighbour. A neighbour without a number gets one."""
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
        """Forget a neighbour that no longer subscribes to any node, and so has no label."""
        one = self.index.pop(neighbour)
        self._names[one] = None
        self._free.append(one)


class LabelChanges(dict[Any, Label | None]):
    """The new label for each old label, computed when first needed."""

    def __init__(self, change: Callable[[Label | None], Label | None]) -> None:
        super().__init__()
        self._change = change

    def __missing__(self, old: Label | None) -> Label | None:
        new = self[old] = self._change(old)
        return new
