"""A micro-batch in the workers: decodes and tags rows, and writes them to files, in one pass.

    raw ──decode──┬──> good rows ──match──> columns, nodes, subscriptions ──> files by time
                  └──> bad rows  ─────────> reason, raw text              ──> a Parquet file

Each partition writes its files to the folder of the attempt (filing.py), and returns how often each
node occurs in the files. Rows that match nothing are counted and dropped. If a task runs twice, it
leaves two sets of files, but the driver gets only one result. The folder of the attempt is removed
when the batch is done.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidings.files import make_private
from tidings.model import Event, Extra
from tidings.notifications import (
    Decoded,
    decode_json,
    decode_text_columns,
    without_marks,
)
from tidings.routing.protocol import read_about, unwrap
from tidings.snapshots import View
from tidings.spark.outbox.batches.filing import Filing, RowFiles, WrittenFile, describe_file
from tidings.spark.outbox.batches.kind_rows import read_rows
from tidings.spark.outbox.batches.numbering import ALL, NODES, TOLD
from tidings.spark.outbox.batches.open_fields import list_events, match_open, match_rows
from tidings.spark.outbox.batches.predicate_rows import find_calls, match_decided
from tidings.spark.outbox.batches.row_bodies import encode_bodies
from tidings.spark.session import send_to_workers
from tidings.spark.tagging.channel_kinds import ChannelKind
from tidings.spark.tagging.worker import Pinned, join_batches, view_of
from tidings.store.numbers import pack_counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EXTRA = "extra"
PAYLOAD = "_payload"
"""The column of bodies, which the subscribers of a channel receive. Bodies are written to the
files, so that a batch that is handed over twice has the same bytes both times. The workers encode
the bodies, so that the driver only has to copy them."""
DEAD = pa.schema([("reason", pa.string()), ("raw", pa.string())])


class ForChannel(msgspec.Struct, frozen=True):
    """Settings for subscriptions that come from a channel of the network."""

    # the columns that filters may test; None means all columns
    tested: tuple[str, ...] | None = None
    # if rows get bodies: the limit on the bytes of a row's nodes and body; otherwise 0
    most_bytes: int = 0
    whole_bytes: int = 0  # if nodes and body take more bytes, the row is sent in pieces
    most_front: int = 0  # the limit on the bytes of a body before its payload, if sent in pieces
    most_nodes: int = 0  # the limit on the nodes of a row, if rows get bodies
    time: str | None = None  # the column with the time of a row
    began: int = 0  # the time given to rows without a time, in microseconds since 1970
    kind: ChannelKind | None = None  # set if interests are not just filters


class Stage(msgspec.Struct, frozen=True):
    """Instructions for a worker: how to decode rows, what to match them with, where to write."""

    pinned: Pinned
    folder: str
    schema: bytes  # the schema of good rows, serialized by Arrow
    format: str  # json, csv, or typed
    text: str = "value"  # for json: the column with the JSON text
    corrupt: str | None = None  # for csv: the column with the text of rows that could not be split
    extra: Extra = "refuse"  # for json: what happens to undeclared fields
    names: tuple[str, ...] = ()  # the names of the columns, if Spark would misread them
    channel: ForChannel | None = None  # set if the subscriptions come from a channel
    filing: Filing = Filing(0, 0, 3600)  # how the matched rows are divided into files

    @property
    def keeps_extra(self) -> bool:
        return self.format == "json" and self.extra in ("open", "keep")


class StagedPartition(msgspec.Struct):
    """The result of one partition."""

    partition: int
    files: list[WrittenFile] = []  # the matched rows
    dead: list[WrittenFile] = []  # the refused rows: one file, or none
    counts: bytes = b""  # how often each node occurs in the matched rows: see store/numbers
    seen: int = 0  # rows that could be decoded
    matched: int = 0
    told: int = 0  # pairs of notification and subscription
    refused: int = 0
    extra_rows: int = 0  # decoded rows with undeclared fields
    extra_fields: int = 0


def run_stage(df: DataFrame, stage: Stage) -> list[StagedPartition]:
    """Stage all partitions in one job; return their results, in order."""
    if any("." in name or "`" in name for name in df.columns):
        # Spark's mapInArrow would read a name with a dot or a backtick as a path into a struct
        stage = msgspec.structs.replace(stage, names=tuple(df.columns))
        df = df.toDF(*(f"c{at}" for at in range(len(df.columns))))
    run = send_to_workers(df.sparkSession, stage_partition(stage))
    rows = df.mapInArrow(run, "staged binary").toArrow().column(0).to_pylist()
    found = [msgspec.msgpack.decode(row, type=StagedPartition) for row in rows]
    return sorted(found, key=lambda one: one.partition)


def stage_partition(stage: Stage) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make a function for `mapInArrow` that stages one partition."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        view = view_of(stage.pinned)
        schema = pa.ipc.read_schema(pa.py_buffer(stage.schema))
        with _Files(stage.folder, context.partitionId(), stage.filing) as files:
            for batch in join_batches(batches):
                if stage.names:
                    batch = batch.rename_columns(list(stage.names))
                _stage_batch(view, schema, stage, batch, files)
            made = pa.array([msgspec.msgpack.encode(files.finish())], pa.binary())
        yield pa.RecordBatch.from_arrays([made], names=["staged"])

    return run


class _Files:
    """The files of one partition, created on first use. `staged` is complete after `finish`."""

    def __init__(self, folder: str, partition: int, filing: Filing) -> None:
        self.staged = StagedPartition(partition)
        self._folder = Path(folder)
        self._rows = RowFiles(self._folder, filing)
        self._dead_path = self._folder / f"{partition:05d}-{uuid.uuid4().hex}.parquet"
        self._dead: Any = None

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()
        if self._dead is not None:
            self._dead.close()

    def finish(self) -> StagedPartition:
        """Close the files, and describe them."""
        staged, counts = self.staged, dict(self._rows.counts)
        staged.files = self._rows.finish()
        staged.matched = counts.pop(ALL, 0)
        staged.counts = pack_counts(counts)
        if self._dead is not None:
            self._dead.close()
            staged.dead = [describe_file(self._dead_path, "", staged.refused)]
        return staged

    def put_rows(self, rows: pa.RecordBatch) -> None:
        self._rows.put(rows)

    def put_dead(self, rows: pa.RecordBatch) -> None:
        if self._dead is None:
            self._dead = pq.ParquetWriter(make_private(self._dead_path), rows.schema)
        self._dead.write_batch(rows)


def _stage_batch(
    view: View, schema: pa.Schema, stage: Stage, batch: pa.RecordBatch, files: _Files
) -> None:
    decoded, events = _decode(view, schema, stage, batch), None
    if stage.channel is not None and stage.channel.kind is not None:
        decoded, events = read_rows(stage.channel.kind, decoded, EXTRA)
    staged, good = files.staged, decoded.good
    staged.seen += good.num_rows
    staged.extra_rows += decoded.extra_rows
    staged.extra_fields += decoded.extra_fields
    tested = good
    if stage.channel is not None and stage.channel.tested is not None:
        tested = good.select(list(stage.channel.tested))
    found = _match(view, stage, tested, decoded.extra if stage.extra == "open" else None, events)
    good = without_marks(good)
    if stage.keeps_extra:
        texts = decoded.extra
        texts = pa.nulls(good.num_rows, pa.string()) if texts is None else texts
        names = [*good.schema.names, EXTRA]
        good = pa.RecordBatch.from_arrays([*good.columns, texts], names=names)
    for first, last, matched in view.pieces(*found):
        _stage_rows(view, stage, good.slice(first, last - first), matched, files)
    if decoded.reasons:
        staged.refused += len(decoded.reasons)
        raw = pa.array(_raw_texts(stage, batch, decoded), pa.string())
        reasons = pa.array(decoded.reasons, pa.string())
        files.put_dead(pa.RecordBatch.from_arrays([reasons, raw], schema=DEAD))


def _match(
    view: View, stage: Stage, tested: pa.RecordBatch, extra: Any, events: Sequence[Event] | None
) -> Any:
    """Match rows, and return the places of the matching filters. `events` is set if filters test
    events instead of the columns."""
    told = None if stage.channel is None else stage.channel.kind
    calls = None if told is None else find_calls(told, stage.pinned)
    if told is not None and calls is not None and len(calls):
        rows = list_events(tested, extra) if events is None else events
        return match_decided(view, told, calls, rows)
    return match_open(view, tested, extra) if events is None else match_rows(view, events)


def _stage_rows(
    view: View, stage: Stage, good: pa.RecordBatch, matched: tuple[Any, Any], files: _Files
) -> None:
    """Write the rows that have a subscriber."""
    if stage.channel is None:
        nodes, told = view.node_lists(*matched), view.subscription_lists(*matched)
    else:  # the routers of the channel know who subscribed to these nodes, or to nodes above them
        nodes = told = view.lowest_members(*matched)
    # drop a row if the subscriptions of all its matching nodes have ended
    kept = pc.greater(pc.list_value_length(told), 0)
    if not pc.any(kept).as_py():
        return
    nodes, told, good = nodes.filter(kept), told.filter(kept), good.filter(kept)
    if stage.channel is not None and stage.channel.most_bytes:
        good = _with_bodies(stage, stage.channel, good)
        short = _refuse_long(stage.channel, good, nodes, files)
        nodes, told, good = nodes.filter(short), told.filter(short), good.filter(short)
    if not good.num_rows:
        return
    columns = [*good.columns, nodes, told]
    files.put_rows(pa.RecordBatch.from_arrays(columns, names=[*good.schema.names, NODES, TOLD]))
    files.staged.told += len(pc.list_flatten(told))


def _with_bodies(stage: Stage, channel: ForChannel, good: pa.RecordBatch) -> pa.RecordBatch:
    extra = EXTRA if stage.keeps_extra else None
    bodies = encode_bodies(good, extra, channel.time, channel.began)
    names = [*good.schema.names, PAYLOAD]
    return pa.RecordBatch.from_arrays([*good.columns, bodies], names=names)


def _refuse_long(stage: ForChannel, good: pa.RecordBatch, nodes: Any, files: _Files) -> Any:
    """Refuse the rows that are too long for the channel; return a mask of all other rows."""
    counts = pc.list_value_length(nodes)
    bodies = good.column(PAYLOAD)
    sizes = pc.add(pc.binary_length(bodies), pc.multiply(8, counts))
    few = pc.less_equal(counts, stage.most_nodes)
    likely = pc.and_(few, pc.less_equal(sizes, min(stage.whole_bytes, stage.most_bytes)))
    reasons: dict[int, str] = {}
    for at in np.flatnonzero(pc.invert(likely).to_numpy(zero_copy_only=False)).tolist():
        reason = _find_too_long(stage, bodies[at].as_py(), sizes[at].as_py(), counts[at].as_py())
        if reason:
            reasons[at] = reason
    if reasons:
        files.staged.seen -= len(reasons)
        files.staged.refused += len(reasons)
        texts = [_show_value(unwrap(bodies[at].as_py())[1]) for at in reasons]
        columns = {"reason": [*reasons.values()], "raw": texts}
        files.put_dead(pa.RecordBatch.from_pydict(columns, schema=DEAD))
    short = np.ones(good.num_rows, bool)
    short[[*reasons]] = False
    return pa.array(short)


def _find_too_long(stage: ForChannel, body: bytes, size: int, nodes: int) -> str:
    """Why a row is too long for the channel; empty if it is not."""
    if nodes > stage.most_nodes or size > stage.most_bytes:
        return (
            f"the row is too large for the channel: found {nodes:,} "
            f"{'node' if nodes == 1 else 'nodes'}, and {size:,} bytes of "
            f"nodes and payload, expected at most {stage.most_nodes:,} nodes, and at most "
            f"{stage.most_bytes:,} bytes of nodes and payload; store large values elsewhere, and "
            "send their addresses"
        )
    front = read_about(body)[1]
    if size > stage.whole_bytes and front > stage.most_front:
        return (
            f"the row is too large for the channel: found {size:,} bytes of nodes and payload, of "
            f"which {front:,} are metadata, expected at most {stage.whole_bytes:,} bytes, or at "
            f"most {stage.most_front:,} bytes of metadata; if the row has NaN or infinite numbers, "
            "its metadata has all attributes again: replace these numbers with null"
        )
    return ""


def _decode(view: View, schema: pa.Schema, stage: Stage, batch: pa.RecordBatch) -> Decoded:
    if stage.format == "json":
        nulls = view.matcher.null_paths()
        return decode_json(batch.column(stage.text), schema, extra=stage.extra, nulls=nulls)
    if stage.format == "csv":
        return decode_text_columns(batch, schema, stage.corrupt)
    everything = np.arange(batch.num_rows)
    return Decoded(batch, everything, np.zeros(0, np.int64), [])


def _raw_texts(stage: Stage, batch: pa.RecordBatch, decoded: Decoded) -> list[str]:
    """The original texts of the bad rows; bytes that are not UTF-8 are escaped."""
    bad = pa.array(decoded.bad_rows.tolist(), pa.int64())
    rows = batch.take(bad)
    columns = [
        [
            _show_value(value) if value is not None else None
            for value in _as_bytes(column).to_pylist()
        ]
        for column in rows.columns
    ]
    texts = dict(zip(rows.schema.names, columns, strict=True))
    if stage.format == "json":
        return [text or "" for text in texts[stage.text]]
    whole = texts.get(stage.corrupt or "", [None] * len(bad))
    return [
        text or msgspec.json.encode({name: texts[name][at] for name in texts}).decode()
        for at, text in enumerate(whole)
    ]


def _as_bytes(column: Any) -> Any:
    """Cast a column of strings to bytes, because Spark's strings may be invalid UTF-8."""
    kind = column.type
    texts = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return column.cast(pa.large_binary()) if texts else column


def _show_value(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return "" if value is None else str(value)
