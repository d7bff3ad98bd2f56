"""Nodes by place and their edges: compiled arrays that are mapped, and patches on top.

    places    0 ... N-1 compiled | N ... added since
    parents   compiled, or those of a patch; a place has one if its parents changed
    children  those of the compiled graph and of `_more`, if the child still has that parent

Cost: 47 bytes per place for numbers, flags, marks, search queues and the numbers of patches, and 8
bytes per compiled edge.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.matching.covering import bounds, ranges
from tidings.matching.tallies import edge_kernels, tag_kernels

Array = npt.NDArray[Any]
# A table with N numbers spans at most LEAST_SPAN + MOST_SPAN * N.
LEAST_SPAN, MOST_SPAN = 4096, 8


class CompiledGraph(NamedTuple):
    """Nodes by place, ascending by number, and their edges in both directions (places)."""

    numbers: Array  # int64 [N]
    parent_starts: Array  # int64 [N + 1]
    parents: Array  # uint32
    child_starts: Array  # int64 [N + 1]
    children: Array  # uint32


def compile_graph(numbers: Array, parent_starts: Array, parents: Array) -> CompiledGraph:
    """A graph with its edges in both directions, in arrays that are never changed."""
    lower = np.repeat(np.arange(len(numbers), dtype=np.uint32), np.diff(parent_starts))
    order = np.argsort(parents, kind="stable")
    child_starts = bounds(np.bincount(parents, minlength=len(numbers)))
    found = CompiledGraph(numbers, parent_starts, parents, child_starts, lower[order])
    for array in found:
        array.flags.writeable = False  # for writeable arrays, Numba would compile kernels again
    return found


EMPTY = compile_graph(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.uint32))


class PatchedEdges:
    """The storage of a graph's nodes and edges; node_graph.py says what the edges mean."""

    def __init__(self, compiled: CompiledGraph = EMPTY) -> None:
        self._compiled = compiled
        self._compiled_at = compiled.numbers.data
        count = len(compiled.numbers)
        room = count + 1024
        self._size = count  # places in use
        self._added: dict[int, int] = {}  # places of nodes that are not compiled, by number
        self._table = np.zeros(0, np.int64)  # the same places, by number minus the lowest number
        self._tabled = count  # nodes at places below this one are compiled or in the table
        self._lowest = 0
        self._more: dict[int, set[int]] = {}
        self._patches = self._filled = 0
        self.numbers = _grow_array(compiled.numbers, room)
        self._there = _grow_array(np.ones(count, np.uint8), room)
        self.alive = self._there.copy()
        """uint8 by place: whether notifications are tagged with the node."""
        self._inner = _grow_array((np.diff(compiled.child_starts) > 0).astype(np.uint8), room)
        self._up, self._down, self._over = (np.zeros(room, np.int64) for _ in range(3))
        self._stamp = 0
        self._out, self._queue = (np.empty(room, np.uint32) for _ in range(2))
        patch = _grow_array(np.full(count, -1, np.int32), room)
        first, last = (np.zeros(1024, np.int64) for _ in range(2))
        pool = np.zeros(4096, np.uint32)
        self._edges = edge_kernels.Edges(
            compiled.parent_starts, compiled.parents, patch, first, last, pool
        )
        self._view()

    def _view(self) -> None:
        """Views of the flags: single elements are read faster from them than from arrays."""
        self._number_at, self._alive_at = self.numbers.data, self.alive.data
        self._inner_at, self._there_at = self._inner.data, self._there.data

    def __len__(self) -> int:
        """The number of nodes."""
        return int(self._there[: self._size].sum())

    @property
    def size(self) -> int:
        """One more than the highest place."""
        return self._size

    # -- numbers and places --------------------------------------------------------------------

    def place(self, number: int) -> int | None:
        """The place of a node; None if there is no such node."""
        place = self._added.get(number)
        if place is None:
            numbers = self._compiled_at
            place = bisect_left(numbers, number)
            if place == len(numbers) or numbers[place] != number:
                return None
        return place if self._there_at[place] else None

    def need(self, number: int) -> int:
        place = self.place(number)
        if place is None:
            raise KeyError(number)
        return place

    def translate(self, numbers: Array) -> Array:
        """The places of these nodes' numbers; each node must exist, or must have existed."""
        compiled = self._compiled.numbers
        if not len(compiled):
            return self._added_at(numbers)
        found = np.searchsorted(compiled, numbers)
        found[found == len(compiled)] = 0
        later = compiled[found] != numbers
        if later.any():
            found[later] = self._added_at(numbers[later])
        return found

    def _added_at(self, numbers: Array) -> Array:
        """The places of nodes that are not compiled. The numbers usually have few gaps, so a table
        that starts at the lowest number maps them to places; if there are many gaps, the dictionary
        is used."""
        first, size = len(self._compiled.numbers), self._size
        if self._tabled < size:
            later = self.numbers[self._tabled : size]
            if not len(self._table):
                self._lowest = int(later.min(initial=1 << 62))
            offsets = later - self._lowest
            span = int(offsets.max(initial=-1)) + 1
            if offsets.min(initial=0) < 0 or span > MOST_SPAN * (size - first) + LEAST_SPAN:
                return np.array([self._added[number] for number in numbers.tolist()], np.int64)
            if span > len(self._table):
                self._table = _grow_array(self._table, max(span, 2 * len(self._table)))
            self._table[offsets] = np.arange(self._tabled, size)
            self._tabled = size
        found: Array = self._table[numbers - self._lowest]
        return found

    def added_places(self, numbers: Iterable[int]) -> list[int]:
        """The places of nodes that are not compiled."""
        added = self._added
        return [added[number] for number in numbers]

    def existing(self, places: Array) -> Array:
        """The places among these that still have a node."""
        found: Array = places[self._there[places] != 0]
        return found

    def list_gone(self) -> Array:
        """The numbers of compiled nodes that were removed."""
        compiled = self._compiled.numbers
        found: Array = compiled[self._there[: len(compiled)] == 0]
        return found

    def list_patched(self) -> Array:
        """The places of nodes whose parents differ from their compiled parents."""
        size = self._size
        return np.flatnonzero((self._edges.patch[:size] >= 0) & (self._there[:size] != 0))

    def places(self) -> Array:
        """The places of all nodes."""
        return np.flatnonzero(self._there[: self._size])

    def numbers_of(self, places: Iterable[int]) -> list[int]:
        number_at = self._number_at
        return [number_at[place] for place in places]

    # -- edges ---------------------------------------------------------------------------------

    def parents(self, place: int) -> Array:
        """The lowest nodes that cover a node."""
        edges, patch = self._edges, int(self._edges.patch[place])
        if patch >= 0:
            return edges.pool[int(edges.first[patch]) : int(edges.last[patch])]
        return edges.parents[int(edges.starts[place]) : int(edges.starts[place + 1])]

    def children(self, place: int) -> Array:
        """The highest nodes that a node covers."""
        return self.children_of(np.array([place], np.int64))

    def children_of(self, places: Array) -> Array:
        """The children of these places, which must be distinct. A child of several of them occurs
        several times."""
        compiled = self._compiled
        old = places[places < len(compiled.numbers)]
        first, last = compiled.child_starts[old], compiled.child_starts[old + 1]
        above, below = np.repeat(old, last - first), compiled.children[ranges(first, last)]
        if self._more:
            if len(places) > len(self._more):
                keys = np.fromiter(self._more, np.int64, len(self._more))
                places = np.intersect1d(places, keys)
            some = [one for one in places.tolist() if one in self._more]
            sizes = [len(self._more[one]) for one in some]
            more = np.fromiter((c for one in some for c in self._more[one]), np.uint32, sum(sizes))
            above = np.concatenate([above, np.repeat(np.array(some, np.int64), sizes)])
            below = np.concatenate([below, more])
        if not self._patches or not len(below):
            return below
        valid = np.empty(len(below), np.uint8)
        edge_kernels.check_edges(above, below, self._edges, valid)
        kept = above[valid != 0] << 32 | below[valid != 0]
        return (np.unique(kept) & 0xFFFFFFFF).astype(np.uint32)

    # -- searching -----------------------------------------------------------------------------

    def begin_search(self, *, is_up: bool) -> tuple[Array, int]:
        """Begin a search; return the marks of places, and the mark that this search uses."""
        self._stamp += 1
        return self._up if is_up else self._down, self._stamp

    def climb(self, places: Array, marks: Array, stamp: int) -> Array:
        """Mark these places and all places above them; return the newly marked places."""
        count = edge_kernels.climb(places, self._edges, marks, stamp, self._out)
        return self._out[:count].astype(np.int64)

    # -- room ----------------------------------------------------------------------------------

    def _new_place(self, number: int) -> int:
        place = self._size
        if place == len(self.numbers):
            room = 2 * place
            self.numbers, self._there = (
                _grow_array(self.numbers, room),
                _grow_array(self._there, room),
            )
            self.alive, self._inner = _grow_array(self.alive, room), _grow_array(self._inner, room)
            for reach in (self._up, self._down, self._over):
                reach.resize(room, refcheck=False)
            self._out, self._queue = (np.empty(room, np.uint32) for _ in range(2))
            self._edges = self._edges._replace(patch=_grow_array(self._edges.patch, room))
            self._view()
        self.numbers[place] = number
        self._there[place] = self.alive[place] = 1
        self._added[number] = place
        self._size += 1
        return place

    def _set_all_parents(self, places: Array, starts: Array, parents: Array) -> None:
        """Give places[i] the parents parents[starts[i] : starts[i + 1]], for each i."""
        count, filled = len(places), self._filled
        self._make_room(count, len(parents))
        edges, patches = self._edges, np.arange(self._patches, self._patches + count)
        edges.pool[filled : filled + len(parents)] = parents
        edges.first[patches], edges.last[patches] = starts[:-1] + filled, starts[1:] + filled
        edges.patch[places] = patches
        self._patches += count
        self._filled += len(parents)
        children = np.repeat(places, np.diff(starts))
        for parent, child in zip(parents.tolist(), children.tolist(), strict=True):
            self._more.setdefault(parent, set()).add(child)
        self._inner[parents] = 1

    def _make_room(self, patches: int, parents: int) -> None:
        """Make room for `patches` more patches, with `parents` parents in total."""
        edges = self._edges
        if self._patches + patches > len(edges.first):
            room = 2 * (self._patches + patches)
            edges = edges._replace(
                first=_grow_array(edges.first, room), last=_grow_array(edges.last, room)
            )
        if self._filled + parents > len(edges.pool):
            edges = edges._replace(pool=_grow_array(edges.pool, 2 * (self._filled + parents)))
        self._edges = edges

    def _set_parents(self, place: int, parents: Array) -> None:
        edges, at = self._edges, self._filled
        edges.pool[at : at + len(parents)] = parents
        edges.first[self._patches], edges.last[self._patches] = at, at + len(parents)
        edges.patch[place] = self._patches
        self._filled += len(parents)
        self._patches += 1

    # -- the whole graph -----------------------------------------------------------------------

    def parents_of(self, places: Array) -> tuple[Array, Array]:
        """(starts, parents) of these places."""
        edges = self._edges
        patch = edges.patch[places]
        patched = patch >= 0
        first, last = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
        old, new = places[~patched], patch[patched]
        first[~patched], last[~patched] = edges.starts[old], edges.starts[old + 1]
        behind = len(edges.parents)
        first[patched], last[patched] = edges.first[new] + behind, edges.last[new] + behind
        at, found = ranges(first, last), np.empty(int((last - first).sum()), np.uint32)
        is_new = at >= behind
        found[~is_new], found[is_new] = edges.parents[at[~is_new]], edges.pool[at[is_new] - behind]
        return bounds(last - first), found

    def in_order(self) -> Array:
        """The places of all nodes, each after its parents."""
        places = self.places()
        starts, parents = self.parents_of(places)
        position = np.zeros(self._size, np.uint32)
        position[places] = np.arange(len(places))
        found = compile_graph(places, starts, position[parents])
        depths = np.zeros(len(places), np.int64)
        waiting = np.diff(starts)
        tag_kernels.sink(found.child_starts, found.children, waiting, depths)
        order: Array = places[np.argsort(depths, kind="stable")]
        return order


def _grow_array(array: Array, room: int) -> Array:
    """A longer copy of an array."""
    out = np.zeros(room, array.dtype)
    out[: len(array)] = array
    return out
