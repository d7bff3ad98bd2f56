"""What all content graphs share, whatever their nodes represent: numbers, edges, and a version.

         A                 an edge from A to B: A covers B and nothing lies between.
        / \\                A path from A to B: A covers B.
       B   C
        \\ /                Kinds of graphs differ in how they place a new node, and in how they
         D                 match a notification. Everything else is here.

Invariant, after every call: the edges are the transitive reduction of the known coverings. A known
covering stays known: when a node B is removed, every node that covered B still covers every node
that B covered.

Every change increases the version. A follower, such as `History`, receives each change. A graph
without a follower keeps no history.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, Self, TypeVar

from tidings.model import GraphError


class Vertex:
    """A node of any kind of content graph. The number of a node is never reused."""

    __slots__ = ("_children", "_parents", "id")

    def __init__(self, number: int) -> None:
        self.id = number
        self._parents: Vertices = _NONE
        self._children: Vertices = _NONE

    def __lt__(self, other: Vertex) -> bool:
        return self.id < other.id

    def __getstate__(self) -> dict[str, Any]:
        """Pickle everything except the edges. The graph copies the edges itself, because following
        edges here would pickle all other nodes, each nested inside another."""
        names = (name for cls in type(self).__mro__ for name in getattr(cls, "__slots__", ()))
        return {name: getattr(self, name) for name in names if name not in _EDGES}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._parents = self._children = _NONE
        for name, value in state.items():
            setattr(self, name, value)


_EDGES = ("_children", "_parents")
Vertices = set[Any] | frozenset[Any]
_NONE: frozenset[Any] = frozenset()  # shared by all nodes without edges
V = TypeVar("V", bound=Vertex)
N = TypeVar("N")


def tie(parent: Vertex, child: Vertex) -> None:
    """Add an edge between two nodes."""
    if not isinstance(parent._children, set):
        parent._children = set()
    if not isinstance(child._parents, set):
        child._parents = set()
    parent._children.add(child)
    child._parents.add(parent)


def untie(parent: Vertex, child: Vertex) -> None:
    """Remove the edge between two nodes, if there is one."""
    parent._children -= {child}
    child._parents -= {parent}


def reach(nodes: set[V], up: bool) -> set[V]:
    """All nodes above any of these nodes if `up`, otherwise all nodes below any of them."""
    seen: set[V] = set()
    stack = list(nodes)
    while stack:
        one = stack.pop()
        fresh = (one._parents if up else one._children) - seen
        seen |= fresh
        stack.extend(fresh)
    return seen


class Follower(Protocol):
    """Receives every change to a graph, to keep its history."""

    def note_removal(self, number: int, to: Iterable[int]) -> None:
        """Record that a node was removed; the nodes `to` are its substitutes."""

    def note_version(self, version: int, next_number: int) -> None:
        """Record a new version of the graph; `next_number` is the number that the next new node
        will get."""


# attributes that are rebuilt when a graph is copied
_REBUILT = ("_by_key", "_follower", "_hulls", "_nodes")


class Lattice(ABC, Generic[V, N]):
    """A DAG of nodes; see the module docstring. Iterating yields the nodes."""

    def __init__(self) -> None:
        self._nodes: dict[int, V] = {}
        self._by_key: dict[Any, V] = {}  # each node under all its keys
        self._next = 1
        self.version = 0
        self._follower: Follower | None = None

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[V]:
        return iter(list(self._nodes.values()))

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Vertex) and self._nodes.get(node.id) is node

    def parents(self, node: V) -> list[V]:
        """The lowest nodes that cover this one."""
        return sorted(self._check(node)._parents)

    def children(self, node: V) -> list[V]:
        """The highest nodes that this one covers."""
        return sorted(self._check(node)._children)

    def ancestors(self, node: V) -> list[V]:
        """All nodes that cover this one."""
        return sorted(reach({self._check(node)}, up=True))

    def descendants(self, node: V) -> list[V]:
        """All nodes that this one covers."""
        return sorted(reach({self._check(node)}, up=False))

    def roots(self) -> list[V]:
        """The nodes that no other node covers."""
        return [node for node in self if not node._parents]

    def lowest(self, matched: Iterable[V]) -> list[V]:
        """The matched nodes that cover no other matched node."""
        nodes = {self._check(node) for node in matched}
        return sorted(node for node in nodes if node._children.isdisjoint(nodes))

    @abstractmethod
    def matching(self, notification: N) -> list[V]:
        """All nodes that match the notification."""

    @abstractmethod
    def matching_of(self, nodes: Iterable[V], notification: N) -> list[V]:
        """The given nodes that match the notification."""

    def remove(self, node: V) -> None:
        """Remove a node; its parents still cover its children."""
        self._check(node)
        parents, children = list(node._parents), list(node._children)
        self._cut_off(node)
        for child in children:
            for parent in set(parents) - reach({child}, up=True):
                tie(parent, child)
        del self._nodes[node.id]
        self._forget(node)
        if self._follower is not None:
            self._follower.note_removal(node.id, [parent.id for parent in parents])
        self._count_change()

    def copy(self) -> Self:
        """An independent graph with the same nodes, numbers, edges and version."""
        fields, nodes, edges = self.__getstate__()
        twin = object.__new__(type(self))
        twin.__setstate__((fields, [copy.copy(node) for node in nodes], edges))
        return twin

    def __getstate__(self) -> tuple[dict[str, Any], list[V], list[tuple[int, int]]]:
        fields = {name: value for name, value in vars(self).items() if name not in _REBUILT}
        edges = [(node.id, child.id) for node in self._nodes.values() for child in node._children]
        return fields, list(self._nodes.values()), edges

    def __setstate__(self, state: tuple[dict[str, Any], list[V], list[tuple[int, int]]]) -> None:
        fields, nodes, edges = state
        vars(self).update(fields)
        self._follower = None
        self._nodes = {node.id: node for node in nodes}
        self._by_key = {key: node for node in nodes for key in self._keys_of(node)}
        for above, below in edges:
            tie(self._nodes[above], self._nodes[below])

    @abstractmethod
    def _keys_of(self, node: V) -> Iterable[Any]:
        """The keys that a node is found by."""

    def _forget(self, node: V) -> None:
        """Drop a removed node from the lookup tables."""
        for key in self._keys_of(node):
            del self._by_key[key]

    def _count_change(self) -> None:
        self.version += 1
        if self._follower is not None:
            self._follower.note_version(self.version, self._next)

    @staticmethod
    def _cut_off(node: V) -> None:
        for parent in list(node._parents):
            untie(parent, node)
        for child in list(node._children):
            untie(node, child)

    @staticmethod
    def _link(node: V, above: set[V], below: set[V]) -> None:
        """Link the node to the lowest nodes above it and the highest nodes below it, and drop the
        edges that the new links make redundant."""
        for child in below:
            for parent in child._parents & above:
                untie(parent, child)
        parents = [a for a in above if a._children.isdisjoint(above)]
        children = [b for b in below if b._parents.isdisjoint(below)]
        for parent in parents:
            tie(parent, node)
        for child in children:
            tie(node, child)

    def _check(self, node: object) -> V:
        found = self._nodes.get(node.id) if isinstance(node, Vertex) else None
        if found is None or found is not node:
            raise self._stranger(node)
        return found

    def _stranger(self, node: object) -> GraphError:
        """The error for a node that is not in this graph."""
        return GraphError(f"{node!r} is not in this graph")
