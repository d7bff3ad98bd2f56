"""The graph of a channel's nodes. An edge leads from a node to the highest nodes that it covers.

Invariants, after every call: the edges are the transitive reduction of the known coverings; of
nodes that cover each other, the one with the higher number is above. A known covering stays known:
if a node is removed, its parents still cover its children. So the coverings that routers have
learnt remain valid.

Cost: inserting a node visits every node above and below it once. For the memory, see
patched_edges.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.channel.interests.graph.patched_edges import EMPTY, CompiledGraph, PatchedEdges
from tidings.channel.interests.graph.reach import Reach
from tidings.matching.tallies import edge_kernels

Array = npt.NDArray[Any]
NEWEST = (1 << 63) - 1  # a number that is higher than the number of any node


class NodeGraph(PatchedEdges):
    """See the top of the module. Nodes are identified by their places; `place` returns the place of
    a number."""

    def __init__(self, compiled: CompiledGraph = EMPTY) -> None:
        super().__init__(compiled)
        self._touched: list[Array] = []  # places whose parents changed since `begin_cut`

    # -- changes -------------------------------------------------------------------------------

    def insert(self, number: int, over: Reach, under: Reach) -> tuple[Array, Array]:
        """Add a node between the nodes that cover it and those that it covers; return its parents
        and children."""
        above, below = self._separate_equals(number, over, under)
        place, stamp = self._new_place(number), over.stamp
        parents = self._find_lowest(above, stamp)
        if not len(below):  # most new nodes cover no other node
            self._make_room(1, len(parents))
            self._set_parents(place, parents)
            for parent in parents.tolist():
                self._more.setdefault(parent, set()).add(place)
            self._inner[parents] = 1
            self._inner_at[place] = 0
            self._touched.append(np.array([place]))
            return parents, below
        edges = self._edges
        changed, is_child = np.empty(len(below), np.uint32), np.empty(len(below), np.uint8)
        count, total = edge_kernels.find_changed(
            below, edges, over.marks, over.stamp, under.marks, under.stamp, changed, is_child
        )
        changed, is_child = changed[:count], is_child[:count]
        self._make_room(count + 1, total + len(parents))
        self._filled = edge_kernels.rewrite(
            changed, is_child, place, self._edges, over.marks, stamp, self._patches, self._filled
        )
        self._patches += count
        self._set_parents(place, parents)
        children = changed[is_child != 0]
        for parent in parents.tolist():
            self._more.setdefault(parent, set()).add(place)
        if len(children):
            self._more[place] = set(children.tolist())
        self._inner[parents] = 1
        self._inner[place] = len(children) > 0
        self._touched += [changed, np.array([place])]
        return parents, children

    def find_between(self, over: Reach, under: Reach) -> tuple[Array, Array]:
        """The parents and children that a new node would get. Nothing changes."""
        above, below = self._separate_equals(NEWEST, over, under)
        parents = self._find_lowest(above, over.stamp)
        if not len(below):
            return parents, below
        changed, is_child = np.empty(len(below), np.uint32), np.empty(len(below), np.uint8)
        count, _ = edge_kernels.find_changed(
            below, self._edges, over.marks, over.stamp, under.marks, under.stamp, changed, is_child
        )
        return parents, changed[:count][is_child[:count] != 0]

    def _find_lowest(self, above: Array, stamp: int) -> Array:
        """The places that cover no other of these places."""
        if len(above) < 2:
            return above.astype(np.uint32)
        count = edge_kernels.find_lowest(above, self._edges, self._over, stamp, self._out)
        return self._out[:count].copy()

    def _separate_equals(self, number: int, over: Reach, under: Reach) -> tuple[Array, Array]:
        """The nodes above and below a new node. An existing node that covers the new node and is
        covered by it counts only once: as below if its number is lower, otherwise as above."""
        above, below = over.places(), under.places()
        same = above[self._down[above] == under.stamp] if len(below) else above[:0]
        if len(same):
            is_lower = self.numbers[same] < number
            lower = Reach(self, is_up=False)  # includes all nodes below, to avoid a cycle
            lower.add(same[is_lower])
            self._up[lower.places()] = 0
            under.marks[under.places()] = under.stamp  # `lower` has overwritten these marks
            self._down[same[~is_lower]] = 0
            above = above[self._up[above] == over.stamp]
            below = below[self._down[below] == under.stamp]
        return above, below

    def remove(self, place: int) -> None:
        """Remove a node; its parents still cover its children."""
        parents, children = self.parents(place).copy(), self.children(place)
        starts, _ = self.parents_of(children)
        self._make_room(len(children) + 1, int(starts[-1]) + len(children) * len(parents))
        self._filled = edge_kernels.bridge(
            children, place, parents, self._edges, self._over, self._stamp + 1, self._patches,
            self._filled, self._queue,
        )  # fmt: skip
        self._stamp += len(children)
        self._patches += len(children)
        self._set_parents(place, parents[:0])
        self._more.pop(place, None)
        if len(children):
            for parent in parents.tolist():
                self._more.setdefault(parent, set()).update(children.tolist())
        self._there[place] = self.alive[place] = 0
        self._added.pop(int(self.numbers[place]), None)
        self._touched += [children, np.array([place])]

    # -- tags ----------------------------------------------------------------------------------

    def lowest(self, places: list[int]) -> list[int]:
        """The numbers of the matching nodes that exist and cover no other matching node. Most nodes
        cover no node at all; if this holds for all matching nodes, no kernel is called."""
        number_at, alive_at, inner_at = self._number_at, self._alive_at, self._inner_at
        given = [place for place in places if alive_at[place]]
        if len(given) > 1 and any(inner_at[place] for place in given):
            starts = np.array([0, len(given)], np.int64)
            _, kept = self.lowest_lists(starts, np.array(given, np.int64))
            given = kept.tolist()
        return [number_at[place] for place in given]

    def lowest_lists(self, starts: Array, places: Array) -> tuple[Array, Array]:
        """The lowest nodes of many events; event i matches places[starts[i] : starts[i + 1]]."""
        out_starts, out = np.zeros(len(starts), np.int64), np.empty(len(places), np.int64)
        count = edge_kernels.keep_lowest(
            starts, places, self._edges, self.alive, self._over, self._stamp + 1, out_starts, out
        )
        self._stamp += len(starts) - 1
        return out_starts, out[:count]

    # -- compiling -----------------------------------------------------------------------------

    def begin_cut(self) -> int:
        """Start recording which places change, for `move_to`; return the number of places."""
        self._touched = []
        return self._size

    def move_to(self, new: NodeGraph, cut: int) -> NodeGraph:
        """Bring `new` up to date with the changes since `begin_cut`, which returned `cut`. `new`
        was compiled from this graph at that time, and must be unchanged since. Cost: linear in the
        places that changed."""
        later = np.flatnonzero(self._there[cut : self._size]) + cut
        for number in self.numbers[later].tolist():
            new._new_place(number)
        changed = np.unique(np.concatenate([later, *self._touched]).astype(np.int64))
        gone = changed[(self._there[changed] == 0) & (changed < cut)]
        kept = changed[self._there[changed] != 0]
        starts, parents = self.parents_of(kept)
        places = new.translate(self.numbers[np.concatenate([gone, kept])])
        new._there[places[: len(gone)]] = new.alive[places[: len(gone)]] = 0
        starts = np.concatenate([np.zeros(len(gone), np.int64), starts])
        new._set_all_parents(places, starts, new.translate(self.numbers[parents]))
        aside = np.flatnonzero(self._there[: self._size] > self.alive[: self._size])
        new.alive[new.translate(self.numbers[aside])] = 0
        return new
