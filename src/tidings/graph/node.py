"""Nodes of a content graph of filters.

A node costs 88 bytes, and a set on each side that has edges: most nodes of a large graph have none
below, and many have none at all.
"""

from __future__ import annotations

from tidings.filters import Filter
from tidings.graph.lattice import Vertex, reach, tie, untie

__all__ = ["Node", "reach", "tie", "untie"]


class Node(Vertex):
    """A filter in a graph, with its number. Numbers are given once and never again."""

    __slots__ = ("_others", "filter")

    def __init__(self, number: int, filter_: Filter) -> None:
        super().__init__(number)
        self.filter = filter_
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
