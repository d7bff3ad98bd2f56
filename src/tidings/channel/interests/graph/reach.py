"""Searches a graph for all nodes above given nodes, or for all nodes below them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.channel.interests.graph.patched_edges import PatchedEdges

Array = npt.NDArray[Any]


class Reach:
    """The given nodes and all nodes above them, or all nodes below them; `add` adds nodes. At most
    two searches can be open at a time, one in each direction."""

    def __init__(self, graph: PatchedEdges, *, is_up: bool) -> None:
        self._graph = graph
        self._is_up = is_up
        self.marks, self.stamp = graph.begin_search(is_up=is_up)
        self._found: list[Array] = []

    def __contains__(self, place: int) -> bool:
        return bool(self.marks[place] == self.stamp)

    def add(self, places: Array) -> None:
        """Add places, and all places above or below them."""
        graph = self._graph
        if self._is_up:
            self._found.append(graph.climb(places, self.marks, self.stamp))
            return
        edge = np.unique(places[self.marks[places] != self.stamp]).astype(np.int64)
        while len(edge):
            self.marks[edge] = self.stamp
            self._found.append(edge)
            found = graph.children_of(edge)
            edge = np.unique(found[self.marks[found] != self.stamp]).astype(np.int64)

    def places(self) -> Array:
        """All places that were reached."""
        if len(self._found) != 1:
            self._found = [np.concatenate([np.zeros(0, np.int64), *self._found])]
        return self._found[0]
