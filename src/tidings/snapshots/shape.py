"""The shape of a snapshot's content graph: its depth, its roots, its largest nodes.

A snapshot stores the parents of each node. The depth of a node is the number of nodes on the
longest path down to it, including the node itself. A node is visited after the last of its parents,
so each edge is visited once, however deep the graph is (2 ms for a chain of 20,000 nodes).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.matching.tallies import tag_kernels
from tidings.snapshots.snapshot import Snapshot

Array = npt.NDArray[Any]


class Shape:
    """The edges of a snapshot in both directions, and the depths of its nodes, by position."""

    def __init__(self, snapshot: Snapshot) -> None:
        view = snapshot.view
        self.numbers: Array = snapshot.numbers
        self.members: Array = np.diff(view.member_starts)
        self._parents: Array = view.parent_starts
        counts = np.diff(self._parents)
        self.above = view.parents.astype(np.int64)
        self.below = np.repeat(np.arange(len(counts)), counts)
        self.roots: Array = np.flatnonzero(counts == 0)
        order = np.argsort(self.above, kind="stable")
        self._children = self.below[order]
        self._starts = np.searchsorted(self.above[order], np.arange(len(counts) + 1))
        self.depths = self._measure_depths()

    def _measure_depths(self) -> Array:
        depths = np.empty(len(self.numbers), np.int64)
        waiting = np.diff(self._parents).astype(np.int64)
        tag_kernels.sink(self._starts, self._children, waiting, depths)
        return depths

    def children(self, place: int) -> Array:
        """The positions of a node's children; those with the most subscriptions come first."""
        found = self._children[self._starts[place] : self._starts[place + 1]]
        return self.rank(found)

    def rank(self, places: Array) -> Array:
        """Sort positions by number of subscriptions, the highest first, then by node number."""
        found: Array = places[np.lexsort((places, -self.members[places]))]
        return found

    def deepest(self) -> list[int]:
        """The numbers of the nodes on a longest path, from the top."""
        if not len(self.depths):
            return []
        path = [int(np.argmax(self.depths))]
        while self.depths[path[-1]] > 1:
            parents = self.above[self._parents[path[-1]] : self._parents[path[-1] + 1]]
            path.append(int(parents[np.argmax(self.depths[parents])]))
        return [int(self.numbers[place]) for place in reversed(path)]

    def largest(self, most: int) -> list[int]:
        """The positions of the nodes with the most subscriptions."""
        found: list[int] = self.rank(np.arange(len(self.numbers)))[:most].tolist()
        return found
