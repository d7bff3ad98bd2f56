"""What the content graph of a snapshot looks like: how deep, how wide, what lies at its top.

Edges are stored from below, as the parents of each node. The depth of a node is the number of nodes
on the longest path down to it, itself included; it is found by letting depths sink along all edges
at once, until none changes: as many passes over the edges as the graph is deep.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.snapshots.snapshot import Snapshot

Array = npt.NDArray[Any]


class Shape:
    """The edges of a snapshot in both directions, and the depths of its nodes, by place."""

    def __init__(self, snapshot: Snapshot) -> None:
        view = snapshot.view
        self.numbers: Array = snapshot.numbers
        self.members: Array = np.diff(view.member_starts)
        counts = np.diff(view.parent_starts)
        self.above = view.parents.astype(np.int64)
        self.below = np.repeat(np.arange(len(counts)), counts)
        self.roots: Array = np.flatnonzero(counts == 0)
        order = np.argsort(self.above, kind="stable")
        self._children = self.below[order]
        self._starts = np.searchsorted(self.above[order], np.arange(len(counts) + 1))
        self.depths = self._sunk()

    def _sunk(self) -> Array:
        depths = np.ones(len(self.numbers), np.int64)
        for _ in range(len(depths)):
            before = depths.copy()
            np.maximum.at(depths, self.below, depths[self.above] + 1)
            if np.array_equal(before, depths):
                break
        return depths

    def children(self, place: int) -> Array:
        """The places of the nodes right below one, those that most subscribe to first."""
        found = self._children[self._starts[place] : self._starts[place + 1]]
        return self.ranked(found)

    def ranked(self, places: Array) -> Array:
        """Places, those that most subscribe to first, then by number."""
        found: Array = places[np.lexsort((places, -self.members[places]))]
        return found

    def deepest(self) -> list[int]:
        """The numbers of the nodes on a longest path, from the top."""
        if not len(self.depths):
            return []
        path = [int(np.argmax(self.depths))]
        while self.depths[path[0]] > 1:
            parents = self.above[self.below == path[0]]
            path.insert(0, int(parents[np.argmax(self.depths[parents])]))
        return [int(self.numbers[place]) for place in path]

    def largest(self, most: int) -> list[int]:
        """The places of the nodes that most subscribe to."""
        found: list[int] = self.ranked(np.arange(len(self.numbers)))[:most].tolist()
        return found
