"""The subscriptions at one version, ready to match: nodes, edges, members and an index.

    places     0 ... N-1 | N ... N+D-1
    nodes      compiled  | newer, linked by incremental_edges.py

A notification is tagged with the *lowest* living nodes that match it. A matched node that covers
another matched node is dropped; of two nodes that cover each other, the one with the higher number
is dropped. A node is alive if it has subscriptions. Dead nodes stay in the graph, and the search
passes through them. So the tag depends only on the version and on the notification: a fresh
compilation would give the same tag.

Cost: one step per edge between the nodes that match an event, compiled or new.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.filters import Misfit
from tidings.filters.language import Types
from tidings.matching import Matcher
from tidings.matching.jit import array_pool
from tidings.matching.tallies import tag_kernels
from tidings.model import Id

Array = npt.NDArray[Any]
MOST_BYTES = 128 << 20  # the ids of a piece take at most this many bytes
MOST_TEXT = 2**31 - 2**20  # 32-bit offsets can address at most this many bytes of text
_POSITIONS = 16  # extra bytes per id while lists are built


class View:
    """The nodes of one version and their members. Safe to use from several threads."""

    def __init__(
        self,
        matcher: Matcher,
        numbers: Array,
        parents: tuple[Array, Array],
        members: tuple[Array, Any],
    ) -> None:
        self.matcher = matcher
        self.numbers = numbers  # int64 [N + D]: the number of the node at each position
        self.parent_starts, self.parents = parents  # int64 [N + D + 1], uint32
        self.member_starts, self.ids = members  # int64 [N + D + 1], an Arrow array
        self.texts_with_names: dict[Id, str] = {}
        """The filters that have named parts, as SQL, by subscription; empty in a view of a version
        after the snapshot."""
        self._alive = (np.diff(self.member_starts) > 0).astype(np.uint8)

    @property
    def has_integer_ids(self) -> bool:
        return bool(pa.types.is_integer(self.ids.type))

    def nodes(self, events: Any, *, threads: int = 1) -> Any:
        """A ListArray with the numbers of the lowest nodes for each event of a batch, ascending."""
        return self.node_lists(*self.match_places(events, threads=threads))

    def subscriptions(self, events: Any, *, threads: int = 1) -> Any:
        """A ListArray with the ids of the subscriptions that match each event of a batch."""
        return self.subscription_lists(*self.match_places(events, threads=threads))

    def match_places(self, events: Any, *, threads: int = 1) -> tuple[Array, Array]:
        """(starts, places): event i matches the nodes at places[starts[i] : starts[i + 1]].

        The index may contain nodes of later versions, which are left out.
        """
        found = self.matcher.match_batch(events, threads=threads)
        starts = found.offsets.to_numpy().astype(np.int64)
        if not starts[-1]:
            return starts, np.zeros(0, np.int64)
        places = found.values.to_numpy()
        if int(places.max()) >= len(self.numbers):
            known = places < len(self.numbers)
            starts, places = _keep(starts, places, known)
        return starts, places

    def misfits(self, types: Types) -> dict[Misfit, list[Id]]:
        """The subscriptions whose filters don't fit columns of these types."""
        found = self.matcher.misfits(types)
        named = {one: self._members(places) for one, places in found.items()}
        return {one: ids for one, ids in named.items() if ids}

    def readers(self, path: tuple[str, ...]) -> list[Id]:
        """The subscriptions whose filters read an attribute."""
        return self._members(self.matcher.readers(path))

    def never(self) -> list[Id]:
        """The subscriptions whose filters can never match."""
        return self._members(self.matcher.never())

    def _members(self, places: list[Any]) -> list[Id]:
        """The ids of the subscriptions of some nodes, except nodes newer than this version."""
        known = sorted(place for place in places if place < len(self.numbers))
        spans = [range(*self.member_starts[place : place + 2].tolist()) for place in known]
        return list(self.ids.take(pa.array(chain(*spans), pa.int64())).to_pylist())

    def node_lists(self, starts: Array, places: Array) -> Any:
        starts, places = self._lowest(starts, places)
        numbers = self.numbers[places]
        tag_kernels.sort_lists(starts, numbers)
        return as_lists(starts, pa.array(numbers))

    def lowest_members(self, starts: Array, places: Array) -> Any:
        """The lowest nodes of each event, ascending, for a view whose ids are the node numbers of
        another graph. In the other graph, several nodes may have equal filters, for example after a
        revision of the attributes; in this view, they share a node. In the other graph, the higher
        of two equal nodes has the higher number, so only the lowest number is listed."""
        starts, places = self._lowest(starts, places)
        ids = self.least_ids[places]
        tag_kernels.sort_lists(starts, ids)
        return as_lists(starts, pa.array(ids))

    @cached_property
    def least_ids(self) -> Array:
        """int64 by position: the lowest id among the node's members; ids must be integers."""
        out = np.zeros(len(self.numbers), np.int64)
        some = np.flatnonzero(self._alive)
        if len(some):  # the type of ids is known only if there are ids
            ids = self.ids.to_numpy(zero_copy_only=False)
            out[some] = np.minimum.reduceat(ids, self.member_starts[some])
        return out

    def subscription_lists(self, starts: Array, places: Array) -> Any:
        """The ids of the subscriptions that match each event, for the whole batch at once. With
        very many matches, the ids may not fit into memory; use `pieces` to divide the batch. If ids
        are strings of more than 2 GB in total, their offsets have 64 bits."""
        out_starts = np.zeros(len(starts), np.int64)
        tag_kernels.count_members(starts, places, self.member_starts, out_starts)
        out = array_pool.empty(int(out_starts[-1]), np.int64)
        tag_kernels.put_members(places, self.member_starts, out)
        ids = self.ids
        if pa.types.is_string(ids.type):
            size = np.zeros(len(starts), np.int64)
            tag_kernels.count_members(starts, places, self._id_bytes, size)
            ids = ids.cast(pa.large_string()) if size[-1] > MOST_TEXT else ids
        return as_lists(out_starts, ids.take(pa.array(out)))

    def pieces(
        self, starts: Array, places: Array, each: int = 0
    ) -> Iterator[tuple[int, int, tuple[Array, Array]]]:
        """Divide the matches of a batch into pieces: (first event, end event, matches).

        The ids of a piece take at most MOST_BYTES, unless the piece is a single event. `each` is
        the number of extra bytes per id. An empty batch is one piece.
        """
        size = np.zeros(len(starts), np.int64)
        weights = self._id_bytes + (_POSITIONS + each) * self.member_starts
        tag_kernels.count_members(starts, places, weights, size)
        first, count = 0, len(starts) - 1
        while first < max(count, 1):
            last = int(np.searchsorted(size, size[first] + MOST_BYTES, "right")) - 1
            last = min(max(last, first + 1), count)
            begin, end = int(starts[first]), int(starts[last])
            yield first, last, (starts[first : last + 1] - begin, places[begin:end])
            first = max(last, first + 1)

    @cached_property
    def _id_bytes(self) -> Array:
        """int64 [N + D + 1]: for each node, the number of bytes in the ids of all members before
        it."""
        if self.has_integer_ids or not len(self.ids):
            return np.zeros(len(self.member_starts), np.int64)
        kind = np.int64 if pa.types.is_large_string(self.ids.type) else np.int32
        ends = np.frombuffer(self.ids.buffers()[1], kind)[self.ids.offset :]
        found: Array = ends[self.member_starts].astype(np.int64)
        return found

    def _lowest(self, starts: Array, places: Array) -> tuple[Array, Array]:
        covered = np.full(len(self.numbers), -1, np.int64)
        out_starts = np.zeros(len(starts), np.int64)
        out = array_pool.empty(len(places), np.int64)
        count = tag_kernels.keep_lowest(
            starts, places, self.parent_starts, self.parents, self._alive, covered, out_starts, out
        )
        return out_starts, out[:count]


def as_lists(starts: Array, values: Any) -> Any:
    """A ListArray, or a LargeListArray if offsets need more than 32 bits."""
    if starts[-1] >= 2**31:
        return pa.LargeListArray.from_arrays(pa.array(starts), values)
    return pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), values)


def _keep(starts: Array, values: Array, keep: Array) -> tuple[Array, Array]:
    """Drop the values that are not marked in `keep` from all lists."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)])
    return before[starts], values[keep]
