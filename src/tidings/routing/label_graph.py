"""A router's graph: the nodes that its neighbours subscribed to, annotated with output labels.

        4  <- G             header [31] comes in:
        |  labels G: 4          F gets it with the header [31], which F subscribed to;
       31  <- F                 G gets it with [4], the lowest above 31 that G subscribed to
           labels F: 31, G: 4

The *label* of a node for a neighbour is the header that the neighbour must get: the node itself if
it subscribes to that, or else the lowest ancestors that it subscribes to. Labels are worked out
when subscriptions change, so forwarding looks at the nodes of a header and never walks the graph.

Invariants, after every call: edges are the transitive reduction of "covers" among the nodes that
are here, as far as they were told; labels are as defined. What covers what never changes, so an
edge can be missing for a while but never be wrong.

Cost: forwarding, a look at each node of the header and at the neighbours that have a label there. A
subscription, the descendants of its node whose labels change and their edges.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from tidings.model import GraphError

Neighbour = TypeVar("Neighbour", bound=Hashable)
Label = tuple[int, ...]  # nodes, rising


class LabelNode(Generic[Neighbour]):
    """What a router knows of a node."""

    __slots__ = ("children", "labels", "parents", "subscribers")

    def __init__(self) -> None:
        self.parents: set[int] = set()
        self.children: set[int] = set()
        self.subscribers: set[Neighbour] = set()
        self.labels: dict[Neighbour, Label] = {}


class LabelGraph(Generic[Neighbour]):
    """Nodes by their numbers."""

    def __init__(self) -> None:
        self.nodes: dict[int, LabelNode[Neighbour]] = {}
        self.subscriptions: dict[Neighbour, int] = {}
        """How many nodes each neighbour subscribes to, of those that subscribe to any."""

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: object) -> bool:
        return node in self.nodes

    # -- notifications -------------------------------------------------------------------------

    def forward(self, header: Iterable[int]) -> dict[Neighbour, Label]:
        """The header that each neighbour gets, of those that get anything. Nodes that are not here
        are passed over."""
        found: dict[Neighbour, Label] = {}
        mixed = set()
        for number in header:
            node = self.nodes.get(number)
            if node is None:
                continue
            for neighbour, label in node.labels.items():
                known = found.get(neighbour)
                if known is None:
                    found[neighbour] = label
                elif known != label:
                    found[neighbour] = known + label
                    mixed.add(neighbour)
        for neighbour in mixed:
            found[neighbour] = self.lowest(found[neighbour])
        return found

    def listed(self, label: Iterable[int], neighbour: Neighbour, most: int) -> Label | None:
        """All nodes at or above those of a label that a neighbour subscribes to: what a content
        list has. None where the graph is deep: when more than `most` would have to be looked at."""
        found = self._near(label, most)
        if found is None:
            return None
        return tuple(sorted(one for one in found if neighbour in self.nodes[one].subscribers))

    def listed_for_all(self, number: int, most: int) -> Label | None:
        """The same for a node, with all that anybody subscribes to."""
        found = self._near((number,), most)
        return None if found is None else tuple(sorted(
            one for one in found if self.nodes[one].subscribers))  # fmt: skip

    def _near(self, label: Iterable[int], most: int) -> set[int] | None:
        found = {number for number in label if number in self.nodes}
        todo = list(found)
        while todo:
            new = self.nodes[todo.pop()].parents - found
            found |= new
            todo += new
            if len(found) > most:
                return None
        return found

    def sole(self) -> Neighbour | None:
        """The neighbour that subscribes to every node, where no other one subscribes to any."""
        if len(self.subscriptions) == 1:
            ((neighbour, count),) = self.subscriptions.items()
            if count == len(self.nodes):
                return neighbour
        return None

    # -- subscriptions -------------------------------------------------------------------------

    def subscribe(self, number: int, neighbour: Neighbour) -> bool:
        """Have a neighbour get what matches a node; False if it does already."""
        node = self._node(number)
        if neighbour in node.subscribers:
            return False
        node.subscribers.add(neighbour)
        self.subscriptions[neighbour] = self.subscriptions.get(neighbour, 0) + 1
        self._relabel([number], neighbour)
        return True

    def unsubscribe(self, number: int, neighbour: Neighbour) -> bool:
        """Have it do without; False if it does already."""
        node = self.nodes.get(number)
        if node is None or neighbour not in node.subscribers:
            return False
        node.subscribers.remove(neighbour)
        self.subscriptions[neighbour] -= 1
        if not self.subscriptions[neighbour]:
            del self.subscriptions[neighbour]
        self._relabel([number], neighbour)
        return True

    def subscribed(self, neighbour: Neighbour) -> list[int]:
        """The nodes that a neighbour subscribes to. Cost: a look at every node."""
        return [number for number, node in self.nodes.items() if neighbour in node.subscribers]

    # -- the graph -----------------------------------------------------------------------------

    def insert(self, number: int, parents: Iterable[int], children: Iterable[int]) -> None:
        """Put a node between those that cover it and those that it covers; or, where it is here
        already, add what is told of them. Those that are not here are passed over."""
        above = [one for one in parents if one in self.nodes and one != number]
        below = [one for one in children if one in self.nodes and one != number]
        # Is it news of two nodes that were here before that one covers the other? Then of labels
        # beneath them that have both, one goes, though nothing right above changes.
        news = number in self.nodes or any(
            not self._reach(parent, up=False).issuperset(below) for parent in above
        )
        self.nodes.setdefault(number, LabelNode())
        changed = {number}
        for parent in above:
            changed |= self._tie(parent, number)
        for child in below:
            changed |= self._tie(number, child)
        if len(changed) > 1 or above:
            self._relabel_all(changed, everything=news)

    def remove(self, number: int) -> None:
        """Take a node out; what covered it goes on covering what it covered."""
        node = self._node(number)
        if node.subscribers:
            raise GraphError(f"node {number} has subscribers, expected none")
        for child in node.children:
            self.nodes[child].parents.discard(number)
        for parent in node.parents:
            self.nodes[parent].children.discard(number)
        del self.nodes[number]
        for parent in node.parents:
            below = self._reach(parent, up=False)
            for child in node.children:
                if child not in below:
                    self.nodes[parent].children.add(child)
                    self.nodes[child].parents.add(parent)

    def ancestors(self, number: int) -> set[int]:
        """All nodes here that cover a node, but for itself."""
        self._node(number)
        return self._reach(number, up=True)

    def descendants(self, number: int) -> set[int]:
        """All nodes here that a node covers, but for itself."""
        self._node(number)
        return self._reach(number, up=False)

    def in_order(self, numbers: Collection[int]) -> list[int]:
        """Those that are here, each after all that cover it."""
        there = [number for number in numbers if number in self.nodes]
        return [number for number in self._in_order(there) if number in numbers]

    def lowest(self, numbers: Iterable[int]) -> Label:
        """Without those that cover another one."""
        left = set(numbers)
        for number in sorted(left):
            if number in left and number in self.nodes:
                left -= self._reach(number, up=True)
        return tuple(sorted(left))

    def highest(self, numbers: Iterable[int]) -> Label:
        """Without those that another one covers."""
        left = set(numbers)
        for number in sorted(left):
            if number in left and number in self.nodes:
                left -= self._reach(number, up=False)
        return tuple(sorted(left))

    def around(self, number: int, neighbour: Neighbour) -> tuple[Label, Label]:
        """The parents and children that a node has among those that a neighbour subscribes to: what
        the neighbour must be told to put it in its own graph."""

        def wanted(found: Iterable[int]) -> list[int]:
            return [one for one in found if neighbour in self.nodes[one].subscribers]

        above = self.lowest(wanted(self.ancestors(number)))
        return above, self.highest(wanted(self.descendants(number)))

    # -- how it is done ------------------------------------------------------------------------

    def _node(self, number: int) -> LabelNode[Neighbour]:
        node = self.nodes.get(number)
        if node is None:
            raise GraphError(f"there is no node {number} here")
        return node

    def _reach(self, number: int, *, up: bool) -> set[int]:
        found: set[int] = set()
        todo = [number]
        while todo:
            node = self.nodes[todo.pop()]
            for one in node.parents if up else node.children:
                if one not in found:
                    found.add(one)
                    todo.append(one)
        return found

    def _tie(self, above: int, below: int) -> set[int]:
        """Have a path from one node to another, and no edge that the path makes redundant; those
        whose parents changed."""
        covered = self._reach(above, up=False)
        if below in covered:
            return set()
        uppers = self._reach(above, up=True) | {above}
        if below in uppers:
            raise GraphError(f"node {below} covers node {above}, and is said to be covered by it")
        lowers = self._reach(below, up=False) | {below}
        changed = {below}
        for upper in uppers:
            for lower in self.nodes[upper].children & lowers:
                self.nodes[upper].children.remove(lower)
                self.nodes[lower].parents.remove(upper)
                changed.add(lower)
        self.nodes[above].children.add(below)
        self.nodes[below].parents.add(above)
        return changed

    def _relabel_all(self, changed: Iterable[int], *, everything: bool) -> None:
        seen: dict[Neighbour, None] = {}  # in an order that does not depend on chance
        for number in sorted(self._in_order(changed)) if everything else sorted(changed):
            node = self.nodes[number]
            seen.update(dict.fromkeys(node.labels))
            for parent in sorted(node.parents):
                seen.update(dict.fromkeys(self.nodes[parent].labels))
        for neighbour in seen:
            self._relabel(changed, neighbour, everything=everything)

    def _relabel(
        self, changed: Iterable[int], neighbour: Neighbour, *, everything: bool = False
    ) -> None:
        """Work out labels anew, from some nodes on down to where they stay as they are; or for
        everything beneath."""
        dirty = set(changed)
        for number in self._in_order(dirty):
            if number not in dirty and not everything:
                continue
            node = self.nodes[number]
            label = self._label(number, node, neighbour)
            if label != node.labels.get(neighbour, ()):
                if label:
                    node.labels[neighbour] = label
                else:
                    del node.labels[neighbour]
                dirty |= node.children

    def _label(self, number: int, node: LabelNode[Neighbour], neighbour: Neighbour) -> Label:
        if neighbour in node.subscribers:
            return (number,)
        above = {self.nodes[parent].labels.get(neighbour, ()) for parent in node.parents}
        above.discard(())
        if len(above) <= 1:
            return above.pop() if above else ()
        return self.lowest(one for label in above for one in label)

    def _in_order(self, starts: Iterable[int]) -> Iterator[int]:
        """Some nodes and all beneath them, each after its parents."""
        found = set(starts)
        todo = list(found)
        while todo:
            for child in self.nodes[todo.pop()].children:
                if child not in found:
                    found.add(child)
                    todo.append(child)
        waiting = {number: len(self.nodes[number].parents & found) for number in found}
        ready = [number for number, count in waiting.items() if not count]
        while ready:
            number = ready.pop()
            yield number
            for child in self.nodes[number].children:
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
