"""Raw rows to tagged rows in one pass through a Python worker: decode, match, count the rest.

    raw ──decode──┬──> good rows ──match──> columns, nodes, subscriptions
                  └──> bad rows  ─────────> raw text, reason

Rows that match nothing are dropped here and counted; what is left is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.notifications import Decoded, decode_json, decode_text_columns
from tidings.snapshots import View
from tidings.spark.worker import Pinned, joined, view_of

NODES, TOLD, REASON, RAW, SEEN = "nodes", "subscriptions", "reason", "raw", "seen"
"""What is added to the columns. `seen` is how many rows a row stands for: dropped ones are counted
in the next one that is kept, or in one that is there for nothing else."""


class Stage(msgspec.Struct, frozen=True):
    """What a worker is told: how rows are decoded, and against what they are matched."""

    pinned: Pinned
    schema: bytes  # of good rows, as Arrow writes it
    format: str  # json, csv, or typed
    text: str = "value"  # the column that has the text, for json
    corrupt: str | None = None  # the column of rows that could not be split, for csv


def run_stage(stage: Stage) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        view = view_of(stage.pinned)
        schema = pa.ipc.read_schema(pa.py_buffer(stage.schema))
        for batch in joined(batches):
            yield _staged(view, schema, stage, batch)

    return run


def _staged(view: View, schema: pa.Schema, stage: Stage, batch: pa.RecordBatch) -> pa.RecordBatch:
    decoded = _decoded(schema, stage, batch)
    good, bad = decoded.good, len(decoded.bad_rows)
    starts, places = view.matched(good)
    nodes, told = view.node_lists(starts, places), view.subscription_lists(starts, places)
    matched = np.diff(starts) > 0
    # a node that nobody subscribes to any more may match alone
    matched &= pc.list_value_length(told).to_numpy(zero_copy_only=False) > 0
    kept = pa.array(matched)
    columns = [*(column.filter(kept) for column in good.columns)]
    columns += [nodes.filter(kept), told.filter(kept)]
    count = int(matched.sum())
    extra = bad if bad or count or not batch.num_rows else 1  # a row to count the dropped ones in
    raw = _raw(stage, batch, decoded)
    seen = np.zeros(count + extra, np.int64)
    if count + extra:
        seen[0] = good.num_rows
    filled = [pa.concat_arrays([column, pa.nulls(extra, column.type)]) for column in columns]
    reasons = pa.array([None] * count + decoded.reasons + [None] * (extra - bad), pa.string())
    raws = pa.array([None] * count + raw + [None] * (extra - bad), pa.string())
    names = [*good.schema.names, NODES, TOLD, REASON, RAW, SEEN]
    return pa.RecordBatch.from_arrays([*filled, reasons, raws, pa.array(seen)], names=names)


def _decoded(schema: pa.Schema, stage: Stage, batch: pa.RecordBatch) -> Decoded:
    if stage.format == "json":
        return decode_json(batch.column(stage.text), schema)
    if stage.format == "csv":
        return decode_text_columns(batch, schema, stage.corrupt)
    everything = np.arange(batch.num_rows)
    return Decoded(batch, everything, np.zeros(0, np.int64), [])


def _raw(stage: Stage, batch: pa.RecordBatch, decoded: Decoded) -> list[str]:
    """The text of bad rows as it came, as well as a text can show it."""
    bad = decoded.bad_rows.tolist()
    if stage.format == "json":
        values = batch.column(stage.text).take(pa.array(bad, pa.int64())).to_pylist()
        return [_shown(value) for value in values]
    rows = batch.take(pa.array(bad, pa.int64())).to_pylist() if bad else []
    return [
        _shown(row.get(stage.corrupt or "") or msgspec.json.encode(row).decode()) for row in rows
    ]


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return "" if value is None else str(value)
