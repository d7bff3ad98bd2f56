"""Numbers rows at their nodes: by place within a partition, and by number over all batches.

A worker knows only its partition. The worker writes the place of each row within the partition, and
counts the occurrences of each node. When the batch is committed, the channel accepts it and returns
the last number of each node before the batch. The numbers are then computed from the counts, and
the files of the rows stay as they are:

    node 7 continues after 40            partition 0, 3 rows: places 1 2 3, numbers 41 42 43
                                         partition 1, 2 rows: places 1 2,   numbers 44 45

Readers of an outbox add places and counters: see outbox_reading.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NODES, TOLD = "nodes", "subscriptions"
PLACE, PLACES = "_place", "_places"
"""The place of a row in its partition, and its places among the notifications of its nodes."""
NOTIFICATION, NUMBERS = "notification", "numbers"
"""The columns that readers get instead: the number of a row in the outbox, and its numbers at its
nodes."""

ALL = 0
"""The counter of all notifications, as if there were a node that matches everything. Its numbers
identify the notifications of an outbox; they are not assigned by a channel."""

Counts = dict[int, int]  # occurrences by node


def counters_before(
    counters: Mapping[int, int], counted: Iterable[Mapping[int, int]]
) -> list[Counts]:
    """For each partition, in order: the counter of each of its nodes before its first row."""
    now = dict(counters)
    found: list[Counts] = []
    for counts in counted:
        found.append({node: now.get(node, 0) for node in counts})
        for node, count in counts.items():
            now[node] = now.get(node, 0) + count
    return found


def number_lists(lists: Any, now: Counts) -> Any:
    """Number the nodes in some lists; return lists of the same lengths. Updates `now`, the current
    counters."""
    nodes = pc.list_flatten(lists).to_numpy(zero_copy_only=False)
    order = np.argsort(nodes, kind="stable")
    distinct, starts, counts = np.unique(nodes[order], return_index=True, return_counts=True)
    bases = np.array([now.get(node, 0) for node in distinct.tolist()], np.int64)
    out = np.empty(len(nodes), np.int64)
    out[order] = np.arange(len(nodes)) - np.repeat(starts - bases - 1, counts)
    now.update(zip(distinct.tolist(), (bases + counts).tolist(), strict=True))
    return _like(lists, out)


def add_before(lists: Any, places: Any, before: Mapping[int, int]) -> Any:
    """The numbers of rows at their nodes, in lists: each is a place in the partition plus the
    node's counter before the partition."""
    nodes = pc.list_flatten(lists).to_numpy(zero_copy_only=False)
    known = np.fromiter(before, np.int64, len(before))
    order = np.argsort(known)
    known, counters = known[order], np.fromiter(before.values(), np.int64, len(before))[order]
    found = counters[np.searchsorted(known, nodes)] if len(nodes) else nodes
    return _like(lists, pc.list_flatten(places).to_numpy(zero_copy_only=False) + found)


def _like(lists: Any, values: Any) -> Any:
    """Cut values into lists that have the same lengths as the given lists."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array(values, pa.int64()))
