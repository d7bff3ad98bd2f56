"""Nodes of a content graph, and the edges between them.

A node costs 88 bytes, and a set on each side that has edges: most nodes of a large graph have none
below, and many have none at all.
"""

from __future__ import annotations

from tidings.filters import Filter


class Node:
    """A filter in a graph, with its number. Numbers are given once and never again."""

    __slots__ = ("_children", "_others", "_parents", "filter", "id")

    def __init__(self, number: int, filter_: Filter) -> None:
        self.id = number
        self.filter = filter_
        self._parents: Nodes = _NONE
        self._children: Nodes = _NONE
        self._others: tuple[Filter, ...] = ()  # filters that turned out to be this one

    @property
    def _filters(self) -> tuple[Filter, ...]:
        """All filters of this node, its own first."""
        return (self.filter, *self._others)

    @property
    def _keys(self) -> tuple[bytes, ...]:
        """The identities of all filters of this node, that of its own first."""
        return tuple(one.key for one in self._filters)

    def __repr__(self) -> str:
        return f"Node({self.id}, {self.filter.sql()!r})"

    def __lt__(self, other: Node) -> bool:
        return self.id < other.id


Nodes = set[Node] | frozenset[Node]
_NONE: frozenset[Node] = frozenset()  # shared by all nodes that have no edges yet


def tie(parent: Node, child: Node) -> None:
    """An edge between two nodes."""
    if not isinstance(parent._children, set):
        parent._children = set()
    if not isinstance(child._parents, set):
        child._parents = set()
    parent._children.add(child)
    child._parents.add(parent)


def untie(parent: Node, child: Node) -> None:
    """Take an edge away, if there is one."""
    parent._children -= {child}
    child._parents -= {parent}


def reach(nodes: set[Node], up: bool) -> set[Node]:
    """All that lies above (or below) any of these nodes."""
    seen: set[Node] = set()
    stack = list(nodes)
    while stack:
        one = stack.pop()
        fresh = (one._parents if up else one._children) - seen
        seen |= fresh
        stack.extend(fresh)
    return seen
