"""Sequence numbers: every node counts its notifications, 1, 2, 3, ..., without gap or repeat.

A batch lies in partitions. First each partition counts how often it has each node; from that, and
from where the counters stood, follows with which number it begins:

    counter of node 7 stands at 40       partition 0 has it 3 times: 41 42 43
                                         partition 1 has it 2 times: 44 45

Then each partition numbers its rows in order. Numbers are fixed by the commit of the batch: an
attempt that was not committed leaves none behind. A partition that is worked out again and then has
a node more or less often than was counted fails its task instead of making a gap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.model import TidingsError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Counted = dict[int, dict[int, int]]  # partition to node to how often

ALL = 0
"""Counts every notification, like a node that all match: its numbers tell notifications apart."""


class Account(msgspec.Struct, frozen=True):
    """What a batch holds, before it is numbered."""

    nodes: Counted
    seen: int  # rows that could be read
    refused: int
    told: int  # pairs of notification and subscription

    @property
    def matched(self) -> int:
        return sum(counts.get(ALL, 0) for counts in self.nodes.values())


_SEEN, _REFUSED, _TOLD = -1, -2, -3  # among the nodes that are counted


def count_nodes(staged: DataFrame) -> Account:
    """How often each partition has each node, and what else there is."""
    columns = staged.select("nodes", "subscriptions", "reason", "seen")
    rows = columns.mapInArrow(_count, "partition int, node long, count long").toArrow()
    found: Counted = {}
    other: Counter[int] = Counter()
    for partition, node, count in zip(*(column.to_pylist() for column in rows), strict=True):
        if node < 0:
            other[node] += count
        else:
            found.setdefault(partition, {})[node] = count
    return Account(found, other[_SEEN], other[_REFUSED], other[_TOLD])


def after(counters: Mapping[int, int], counted: Counted) -> dict[int, int]:
    """The counters of the nodes that were counted, after the batch."""
    total: Counter[int] = Counter()
    for nodes in counted.values():
        total.update(nodes)
    return {node: counters.get(node, 0) + count for node, count in total.items()}


def numbers(nodes: Column, counters: Mapping[int, int], counted: Counted) -> Column:
    """The column of numbers that goes with a column of nodes; ALL begins each list of them."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, LongType

    begins: dict[int, dict[int, int]] = {}
    now = dict(counters)
    for partition in sorted(counted):
        begins[partition] = {node: now.get(node, 0) for node in counted[partition]}
        for node, count in counted[partition].items():
            now[node] = now.get(node, 0) + count
    arrow_udf: Any = f.arrow_udf  # type: ignore[attr-defined]
    numbered = arrow_udf(_numberer(begins, counted), ArrayType(LongType(), False))
    found: Column = numbered.asNondeterministic()(nodes)
    return found


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    total: Counter[int] = Counter()
    for batch in batches:
        lists, told, reasons, seen = batch.columns
        nodes, counts = np.unique(_values(lists), return_counts=True)
        total.update(dict(zip(nodes.tolist(), counts.tolist(), strict=True)))
        total[ALL] += len(lists) - lists.null_count
        total[_SEEN] += pc.sum(seen).as_py() or 0
        total[_REFUSED] += len(reasons) - reasons.null_count
        total[_TOLD] += len(pc.list_flatten(told))
    yield pa.RecordBatch.from_arrays(
        [
            pa.array([context.partitionId()] * len(total), pa.int32()),
            pa.array(list(total), pa.int64()),
            pa.array(list(total.values()), pa.int64()),
        ],
        names=["partition", "node", "count"],
    )


def _numberer(begins: Mapping[int, Mapping[int, int]], counted: Counted) -> Callable[..., Any]:
    # PySpark reads from these types what kind of function it is
    def number(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        partition = context.partitionId()
        begin = begins.get(partition, {})
        now = dict(begin)
        for lists in batches:
            yield _numbered(lists, now)
        expected = {node: begin[node] + count for node, count in counted.get(partition, {}).items()}
        if _positive(now) != _positive(expected):
            raise TidingsError(
                f"partition {partition} came out differently when it was worked out again; the "
                f"batch is not committed"
            )

    return number


def _positive(counts: Mapping[int, int]) -> dict[int, int]:
    return {node: count for node, count in counts.items() if count}


def _numbered(lists: Any, now: dict[int, int]) -> Any:
    """Numbers in the shape of the lists of nodes; `now` goes on."""
    nodes = _values(lists)
    order = np.argsort(nodes, kind="stable")
    distinct, starts, counts = np.unique(nodes[order], return_index=True, return_counts=True)
    bases = np.array([now.get(node, 0) for node in distinct.tolist()], np.int64)
    out = np.empty(len(nodes), np.int64)
    out[order] = np.arange(len(nodes)) - np.repeat(starts - bases - 1, counts)
    now.update(zip(distinct.tolist(), (bases + counts).tolist(), strict=True))
    offsets = pa.array(np.concatenate([[0], np.cumsum(_lengths(lists))]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array(out))


def _values(lists: Any) -> Any:
    return pc.list_flatten(lists).to_numpy(zero_copy_only=False)


def _lengths(lists: Any) -> Any:
    return pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
