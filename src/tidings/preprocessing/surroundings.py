"""The nodes around a node: all nodes that cover it, and all nodes that it covers.

    places of a view     parents, and children, which are found from the parents once per view
    members of a place   nodes whose filters are equal; the one with the higher number is above

All other filters cover a filter that can never match. The rendezvous point gives such a filter's
node no edges, so these nodes are left out here.

Cost for each view: one pass over all its nodes and edges (about 0.2 s per million). Cost for each
request: one step for each edge above or below the node.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.snapshots import View

Array = npt.NDArray[Any]
MOST = 4096  # the most nodes above or below a node; if there are more, there is no answer


class Surroundings:
    """The nodes of one view, found by number."""

    def __init__(self, view: View) -> None:
        self._member_starts = view.member_starts
        ids = view.ids.to_numpy(zero_copy_only=False) if len(view.ids) else np.zeros(0, np.int64)
        self._ids = ids
        self._never = {*view.never()}
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]
        count = len(view.numbers)
        self._up = view.parent_starts, view.parents
        lower = np.repeat(np.arange(count), np.diff(view.parent_starts))
        starts = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(view.parents, minlength=count), out=starts[1:])
        self._down = starts, lower[np.argsort(view.parents, kind="stable")]

    def around(self, node: int, most: int = MOST) -> tuple[list[int], list[int]] | None:
        """The nodes above and the nodes below a node; None if the node is not known, or if there
        are more than `most` on either side."""
        at = int(np.searchsorted(self._sorted, node))
        if at == len(self._sorted) or self._sorted[at] != node or node in self._never:
            return None
        place = int(np.searchsorted(self._member_starts, self._order[at], "right")) - 1
        above, below = self._reach(place, self._up, most), self._reach(place, self._down, most)
        if above is None or below is None:
            return None
        for equal in self._members(place):
            if equal != node:
                (above if equal > node else below).append(equal)
        return sorted(above), sorted(set(below) - self._never)

    def _reach(self, place: int, edges: tuple[Array, Array], most: int) -> list[int] | None:
        """The nodes that can be reached from a place by following edges. The search continues
        through places without nodes."""
        starts, ends = edges
        seen, todo = {place}, [place]
        found: list[int] = []
        while todo:
            one = todo.pop()
            for other in ends[starts[one] : starts[one + 1]].tolist():
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
                    found += self._members(other)
            if len(seen) > 2 * most or len(found) > most:
                return None
        return found

    def _members(self, place: int) -> list[int]:
        first, end = self._member_starts[place : place + 2]
        found: list[int] = self._ids[first:end].tolist()
        return found
