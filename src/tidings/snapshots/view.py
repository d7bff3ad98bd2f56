"""What subscribers want at one version, ready to be asked: nodes, edges, members, and an index.

    places     0 ... N-1 | N ... N+D-1
    nodes      compiled  | new since, linked by incremental_edges.py

A notification is tagged with the *lowest* living nodes that match it: a matched node that covers
another is dropped; of two that cover each other, the one with the higher number is. A node is alive
when someone subscribes to it; dead ones stay in the graph, and the walk goes through them. So the
tag is the one that a fresh compilation would give. One thing differs: where filters that were
written differently share a compiled node, the node keeps the number of the first until the next
compilation, even when only the others still have subscribers.

Cost: one look per edge between the nodes that match an event, be they compiled or new.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.matching import Matcher
from tidings.matching.jit import array_pool
from tidings.matching.tallies import tag_kernels

Array = npt.NDArray[Any]
MOST_BYTES = 128 << 20  # of the ids in one piece
MOST_TEXT = 2**31 - 2**20  # bytes of texts that positions of 32 bits reach
_POSITIONS = 16  # bytes beside each id, while lists are made


class View:
    """The nodes of one version and who subscribes to them. Safe to use from several threads."""

    def __init__(
        self,
        matcher: Matcher,
        numbers: Array,
        parents: tuple[Array, Array],
        members: tuple[Array, Any],
    ) -> None:
        self.matcher = matcher
        self.numbers = numbers  # int64 [N + D]: of the node at each place
        self.parent_starts, self.parents = parents  # int64 [N + D + 1], uint32
        self.member_starts, self.ids = members  # int64 [N + D + 1], an Arrow array
        self._alive = (np.diff(self.member_starts) > 0).astype(np.uint8)

    @property
    def has_integer_ids(self) -> bool:
        return bool(pa.types.is_integer(self.ids.type))

    def nodes(self, events: Any, *, threads: int = 1) -> Any:
        """A ListArray: for each event of a batch the numbers of the lowest nodes, rising."""
        return self.node_lists(*self.matched(events, threads=threads))

    def subscriptions(self, events: Any, *, threads: int = 1) -> Any:
        """A ListArray: for each event of a batch the ids of the subscriptions that match it."""
        return self.subscription_lists(*self.matched(events, threads=threads))

    def matched(self, events: Any, *, threads: int = 1) -> tuple[Array, Array]:
        """(starts, places): event i matches the nodes at places[starts[i] : starts[i + 1]].

        The index may know nodes of later versions; here they are left out.
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

    def node_lists(self, starts: Array, places: Array) -> Any:
        starts, places = self._lowest(starts, places)
        numbers = self.numbers[places]
        tag_kernels.sort_lists(starts, numbers)
        return as_lists(starts, pa.array(numbers))

    def subscription_lists(self, starts: Array, places: Array) -> Any:
        """All at once, so that a batch of many matches may take more memory than there is: `pieces`
        divides it. Texts of over 2 GB come with positions of 64 bits."""
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
        """What matched a batch as (first event, one after the last, its part of what matched), such
        that the ids of each piece take no more than MOST_BYTES, or it is a single event.

        `each`: further bytes that go with each id. A batch of no events is one piece.
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
        """int64 [N + D + 1]: the bytes of the texts of all members before those of each place."""
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
    """A ListArray, a large one where positions take more than 32 bits."""
    if starts[-1] >= 2**31:
        return pa.LargeListArray.from_arrays(pa.array(starts), values)
    return pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), values)


def _keep(starts: Array, values: Array, keep: Array) -> tuple[Array, Array]:
    """Lists without some of their values."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)])
    return before[starts], values[keep]
