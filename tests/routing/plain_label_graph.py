"""A label graph of Python objects, as an oracle: it shares no code with the one of arrays, keeps
sets of numbers as edges, and a dictionary of labels for each node.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from tidings.model import GraphError

Neighbour = TypeVar("Neighbour", bound=Hashable)
Label = tuple[int, ...]  # nodes, rising


_NONE: set[int] = set()  # shared by all nodes without children; never written to


class LabelNode(Generic[Neighbour]):
    """What a router knows about a node. There can be millions, most without children and with few
    parents. To save memory, nodes share equal sets of subscribers."""

    __slots__ = ("children", "labels", "own", "parents", "subscribers")

    def __init__(self, number: int, nobody: frozenset[Neighbour]) -> None:
        self.own: Label = (number,)
        self.parents: Label = ()  # in no order
        self.children: set[int] = _NONE
        self.subscribers = nobody
        self.labels: dict[Neighbour, Label] = {}

    def add_child(self, number: int) -> None:
        if self.children is _NONE:
            self.children = {number}
        else:
            self.children.add(number)

    def drop_child(self, number: int) -> None:
        self.children.discard(number)
        if not self.children:
            self.children = _NONE

    def add_parent(self, number: int) -> None:
        if number not in self.parents:
            self.parents = (*self.parents, number)

    def drop_parent(self, number: int) -> None:
        self.parents = tuple(one for one in self.parents if one != number)


class PlainLabelGraph(Generic[Neighbour]):
    """The nodes of a router by number, with their edges and labels."""

    def __init__(self) -> None:
        self.nodes: dict[int, LabelNode[Neighbour]] = {}
        self.subscriptions: dict[Neighbour, int] = {}
        """How many nodes each neighbour subscribes to; only those with at least one."""
        self._nobody: frozenset[Neighbour] = frozenset()
        self._equal: dict[frozenset[Neighbour], frozenset[Neighbour]] = {}  # to share equal sets

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: object) -> bool:
        return node in self.nodes

    def clear(self) -> None:
        self.nodes.clear()
        self.subscriptions.clear()
        self._equal.clear()

    # -- notifications -------------------------------------------------------------------------

    def forward(self, header: Sequence[int]) -> dict[Neighbour, Label]:
        """The header that each neighbour gets; neighbours that get none are left out. Unknown nodes
        are ignored. Do not change the result, and read it before the graph changes."""
        nodes = self.nodes
        if len(header) == 1:
            node = nodes.get(header[0])
            return {} if node is None else node.labels
        found: dict[Neighbour, Label] = {}
        mixed = set()
        for number in header:
            node = nodes.get(number)
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

    def list_subscribed(
        self, label: Iterable[int], neighbour: Neighbour, most: int
    ) -> Label | None:
        """The content list of a neighbour: all nodes at or above those of a label that it
        subscribes to. None if the graph is deep, with more than `most` nodes above."""
        found = self._reach_few(label, most)
        if found is None:
            return None
        return tuple(sorted(one for one in found if neighbour in self.nodes[one].subscribers))

    def list_for_all(self, number: int, most: int) -> Label | None:
        """The same for one node, with all nodes that anybody subscribes to."""
        found = self._reach_few((number,), most)
        return None if found is None else tuple(sorted(
            one for one in found if self.nodes[one].subscribers))  # fmt: skip

    def _reach_few(self, label: Iterable[int], most: int) -> set[int] | None:
        found = {number for number in label if number in self.nodes}
        todo = list(found)
        while todo:
            new = [one for one in self.nodes[todo.pop()].parents if one not in found]
            found.update(new)
            todo += new
            if len(found) > most:
                return None
        return found

    def sole_neighbour(self) -> Neighbour | None:
        """The neighbour that subscribes to every node, if no other subscribes to any."""
        if len(self.subscriptions) == 1:
            ((neighbour, count),) = self.subscriptions.items()
            if count == len(self.nodes):
                return neighbour
        return None

    # -- subscriptions -------------------------------------------------------------------------

    def subscribe(self, number: int, neighbour: Neighbour) -> bool:
        """Subscribe a neighbour to a node; False if it was subscribed before."""
        node = self._node(number)
        if neighbour in node.subscribers:
            return False
        node.subscribers = self._intern(node.subscribers | {neighbour})
        self.subscriptions[neighbour] = self.subscriptions.get(neighbour, 0) + 1
        self._lower(number, node, neighbour)
        return True

    def unsubscribe(self, number: int, neighbour: Neighbour) -> bool:
        """Unsubscribe a neighbour from a node; False if it was not subscribed."""
        node = self.nodes.get(number)
        if node is None or neighbour not in node.subscribers:
            return False
        node.subscribers = self._intern(node.subscribers - {neighbour})
        self.subscriptions[neighbour] -= 1
        if not self.subscriptions[neighbour]:
            del self.subscriptions[neighbour]
        self._relabel([number], neighbour)
        return True

    # -- the graph -----------------------------------------------------------------------------

    def insert(self, number: int, parents: Iterable[int], children: Iterable[int]) -> None:
        """Insert a node between the parents that cover it and the children that it covers. If it
        exists, add the new edges. Unknown parents and children are ignored."""
        above = [one for one in parents if one in self.nodes and one != number]
        below = [one for one in children if one in self.nodes and one != number]
        # Does the graph learn that one existing node covers another?
        # Then each label below that contains both loses the upper one.
        news = number in self.nodes or any(
            not self._reach([child], up=True).issuperset(above) for child in below
        )
        known = number in self.nodes
        if not known:
            self.nodes[number] = LabelNode(number, self._nobody)
        changed: set[int] = set()
        for parent in above:
            changed |= self._tie(parent, number)
        for child in below:
            changed |= self._tie(number, child)
        if known and not changed:
            return
        changed.add(number)
        if news:
            self._relabel_all(changed)
        else:  # nothing changes for existing nodes
            node, reached = self.nodes[number], _Reached(self)
            for neighbour in self._neighbours_of(node.parents):
                node.labels[neighbour] = self._label(node, neighbour, reached)

    def remove(self, number: int) -> None:
        """Remove a node. Its parents still cover its children."""
        node = self._node(number)
        if node.subscribers:
            raise GraphError(f"node {number} has subscribers, expected none before its removal")
        del self.nodes[number]
        for parent in node.parents:
            self.nodes[parent].drop_child(number)
        for one in node.children:
            child = self.nodes[one]
            child.drop_parent(number)
            # No parent covers another parent, and no child covers another child.
            # So a new edge creates no path to another parent or child.
            above = self._reach([one], up=True)
            for parent in node.parents:
                if parent not in above:
                    self.nodes[parent].add_child(one)
                    child.add_parent(parent)

    def ancestors(self, number: int) -> set[int]:
        """All nodes that cover a node, except itself."""
        self._node(number)
        return self._reach([number], up=True)

    def descendants(self, number: int) -> set[int]:
        """All nodes that a node covers, except itself."""
        self._node(number)
        return self._reach([number], up=False)

    def in_order(self, numbers: Collection[int]) -> list[int]:
        """The known nodes among `numbers`, each after all nodes that cover it."""
        there = [number for number in numbers if number in self.nodes]
        return [number for number in self._in_order(there) if number in numbers]

    def lowest(self, numbers: Iterable[int]) -> Label:
        """The given nodes without those that cover another of them."""
        given = set(numbers)
        there = [one for one in given if one in self.nodes]
        return tuple(sorted(given - self._reach(there, up=True)))

    def highest(self, numbers: Iterable[int]) -> Label:
        """The given nodes without those that another of them covers."""
        given = set(numbers)
        there = [one for one in given if one in self.nodes]
        return tuple(sorted(given - self._reach(there, up=False)))

    def around(self, number: int, neighbour: Neighbour) -> tuple[Label, Label]:
        """The parents and children of a node among the nodes that a neighbour subscribes to, which
        it needs to put the node into its own graph."""

        def wanted(found: Iterable[int]) -> list[int]:
            return [one for one in found if neighbour in self.nodes[one].subscribers]

        above = self.lowest(wanted(self.ancestors(number)))
        return above, self.highest(wanted(self.descendants(number)))

    # -- internals -----------------------------------------------------------------------------

    def _node(self, number: int) -> LabelNode[Neighbour]:
        node = self.nodes.get(number)
        if node is None:
            raise GraphError(f"node {number} is not in the graph")
        return node

    def _intern(self, some: frozenset[Neighbour]) -> frozenset[Neighbour]:
        return self._equal.setdefault(some, some)

    def _reach(self, numbers: Iterable[int], *, up: bool) -> set[int]:
        """All nodes above the given nodes, or all nodes below them."""
        found: set[int] = set()
        todo, nodes = [*numbers], self.nodes
        while todo:
            node = nodes[todo.pop()]
            for one in node.parents if up else node.children:
                if one not in found:
                    found.add(one)
                    todo.append(one)
        return found

    def _tie(self, above: int, below: int) -> set[int]:
        """Make a path from one node to another, and remove the edges that it makes redundant;
        return the nodes whose parents changed. Searching upwards is cheap: most nodes have few
        nodes above them, while some have very many below."""
        if above in self._reach([below], up=True):
            return set()
        uppers = self._reach([above], up=True) | {above}
        if below in uppers:
            raise GraphError(f"node {below} covers node {above}, expected no circle")
        changed = {below}
        for lower in (below, *self._reach([below], up=False)):
            for upper in self.nodes[lower].parents:
                if upper in uppers:
                    self.nodes[upper].drop_child(lower)
                    self.nodes[lower].drop_parent(upper)
                    changed.add(lower)
        self.nodes[above].add_child(below)
        self.nodes[below].add_parent(above)
        return changed

    def _neighbours_of(self, numbers: Iterable[int]) -> dict[Neighbour, None]:
        """The neighbours that have a label at any of these nodes, in a deterministic order."""
        found: dict[Neighbour, None] = {}
        for number in sorted(numbers):
            found.update(dict.fromkeys(self.nodes[number].labels))
        return found

    def _lower(self, number: int, node: LabelNode[Neighbour], neighbour: Neighbour) -> None:
        """Update labels after a neighbour subscribed to a node. In every label below that has no
        lower node, the node replaces those that cover it."""
        nodes = self.nodes
        above, below = self._reach([number], up=True), self._reach([number], up=False)
        node.labels[neighbour] = node.own
        todo, done = [*node.children], {number}
        while todo:
            one = todo.pop()
            if one in done:
                continue
            done.add(one)
            lower = nodes[one]
            if neighbour in lower.subscribers:
                continue
            old = lower.labels.get(neighbour, ())
            if below.isdisjoint(old):
                left = [upper for upper in old if upper not in above]
                lower.labels[neighbour] = tuple(sorted((*left, number))) if left else node.own
                todo.extend(lower.children)

    def _relabel_all(self, changed: Iterable[int]) -> None:
        """Recompute all labels of the changed nodes and of all nodes below them."""
        numbers = {*self._in_order(changed)}
        numbers.update(*(self.nodes[number].parents for number in list(numbers)))
        for neighbour in self._neighbours_of(numbers):
            self._relabel(changed, neighbour, everything=True)

    def _relabel(
        self, changed: Iterable[int], neighbour: Neighbour, *, everything: bool = False
    ) -> None:
        """Recompute the labels of a neighbour, from the changed nodes down to where labels stay the
        same. With `everything`, recompute them for all nodes below."""
        dirty, reached = set(changed), _Reached(self)
        for number in self._in_order(dirty, None if everything else neighbour):
            if number not in dirty and not everything:
                continue
            node = self.nodes[number]
            label = self._label(node, neighbour, reached)
            if label != node.labels.get(neighbour, ()):
                if label:
                    node.labels[neighbour] = label
                else:
                    del node.labels[neighbour]
                dirty |= node.children

    def _label(self, node: LabelNode[Neighbour], neighbour: Neighbour, reached: _Reached) -> Label:
        if neighbour in node.subscribers:
            return node.own
        labels = {one: self.nodes[one].labels.get(neighbour, ()) for one in node.parents}
        distinct = {label for label in labels.values() if label}
        if len(distinct) <= 1:
            return distinct.pop() if distinct else ()
        # A node that covers a parent and is not in its label covers a node of that label.
        found = {one for label in distinct for one in label}
        for parent, label in labels.items():
            found -= {one for one in found & reached[parent] if one not in label}
        return tuple(sorted(found))

    def _in_order(self, starts: Iterable[int], neighbour: Neighbour | None = None) -> Iterator[int]:
        """The given nodes and all nodes below them, each after its parents. With a neighbour, nodes
        below one that it subscribes to are left out: nothing above can change their labels."""
        nodes = self.nodes
        found = set(starts)
        todo = list(found)
        while todo:
            for child in nodes[todo.pop()].children:
                if child not in found:
                    found.add(child)
                    if neighbour is None or neighbour not in nodes[child].subscribers:
                        todo.append(child)
        waiting = {number: sum(one in found for one in nodes[number].parents) for number in found}
        ready = [number for number, count in waiting.items() if not count]
        while ready:
            number = ready.pop()
            yield number
            for child in nodes[number].children:
                if child in waiting:
                    waiting[child] -= 1
                    if not waiting[child]:
                        ready.append(child)


class _Reached(dict[int, set[int]]):
    """The ancestors of nodes, cached while the edges do not change."""

    MOST = 256  # nodes that are remembered

    def __init__(self, graph: PlainLabelGraph[Any]) -> None:
        super().__init__()
        self._graph = graph

    def __missing__(self, number: int) -> set[int]:
        if len(self) >= self.MOST:
            self.clear()
        found = self[number] = self._graph.ancestors(number)
        return found
