"""Nodes of a content graph of filters.

A node costs 88 bytes, plus one set if it has parents and one if it has children. Most nodes of a
large graph have no children, and many have no edges at all.
"""

from __future__ import annotations

from tidings.filters import Filter
from tidings.graph.lattice import Vertex, reach, tie, untie

__all__ = ["Node", "reach", "tie", "untie"]


class Node(Vertex):
    """A filter in a graph, with its number. Numbers are never reused."""

    __slots__ = ("_others", "filter")

    def __init__(self, number: int, filter_: Filter) -> None:
        super().__init__(number)
        self.filter = filter_
        self._others: tuple[Filter, ...] = ()  # other filters that share this node

    @property
    def _filters(self) -> tuple[Filter, ...]:
        """All filters of this node, starting with `filter`."""
        return (self.filter, *self._others)

    @property
    def _keys(self) -> tuple[bytes, ...]:
        """The identities of all filters of this node, in the order of `_filters`."""
        return tuple(one.key for one in self._filters)

    def __repr__(self) -> str:
        return f"Node({self.id}, {self.filter.sql()!r})"
