"""Sequence numbers: every node numbers its notifications 1, 2, 3, ..., without gaps or repeats.

A batch consists of partitions. Each partition counts the occurrences of each node. The counts of
all partitions, and the counters before the batch, determine the first number in each partition:

    counter of node 7 is 40              3 occurrences in partition 0: 41 42 43
                                         2 occurrences in partition 1: 44 45

Then each partition numbers its rows in order. The commit of the batch makes the numbers final; an
uncommitted attempt uses up no numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ALL = 0
"""The counter of all notifications, like a node that matches everything. Its numbers identify
notifications."""

Counts = dict[int, int]  # occurrences by node


def counters_before(
    counters: Mapping[int, int], counted: Iterable[Mapping[int, int]]
) -> list[Counts]:
    """For each partition, in order, the counters of its nodes before that partition."""
    now = dict(counters)
    found: list[Counts] = []
    for counts in counted:
        found.append({node: now.get(node, 0) for node in counts})
        for node, count in counts.items():
            now[node] = now.get(node, 0) + count
    return found


def counters_after(counters: Mapping[int, int], counted: Iterable[Mapping[int, int]]) -> Counts:
    """The counters after a batch, for the nodes that occur in it."""
    now: Counts = {}
    for counts in counted:
        for node, count in counts.items():
            now[node] = now.get(node, counters.get(node, 0)) + count
    return now


def number_lists(lists: Any, now: Counts) -> Any:
    """Return the numbers of nodes, in lists of the same shape. Updates `now`, the current
    counters."""
    nodes = pc.list_flatten(lists).to_numpy(zero_copy_only=False)
    order = np.argsort(nodes, kind="stable")
    distinct, starts, counts = np.unique(nodes[order], return_index=True, return_counts=True)
    bases = np.array([now.get(node, 0) for node in distinct.tolist()], np.int64)
    out = np.empty(len(nodes), np.int64)
    out[order] = np.arange(len(nodes)) - np.repeat(starts - bases - 1, counts)
    now.update(zip(distinct.tolist(), (bases + counts).tolist(), strict=True))
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array(out))
