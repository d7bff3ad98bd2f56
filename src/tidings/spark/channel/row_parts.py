"""The committed rows of a batch as parts for the owner of a channel.

    files, in the order of the commit ──> nodes, payloads ──cut by size──> part 0, 1, 2 ...

The owner stores each part once, by its number. So a batch that is handed over again must be cut
into the same parts as before. The parts depend only on the committed files of the batch and on
PART_BYTES: changing that constant may lose or duplicate rows of a batch that was being handed over.
Before changing PART_BYTES, stop pipelines between two batches.

A row is sent with its lowest nodes, which the workers found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.channel import MOST_BYTES, Part
from tidings.routing.protocol import frames
from tidings.spark.outbox.batches.batch_stages import PAYLOAD
from tidings.spark.outbox.batches.numbering import (
    NODES,
    NOTIFICATION,
    NUMBERS,
    PLACE,
    PLACES,
    TOLD,
)
from tidings.spark.outbox.batches.row_bodies import encode_bodies
from tidings.spark.outbox.commits import Commit
from tidings.spark.outbox.outbox_reading import OutboxReader

PART_BYTES = 1 << 20
"""A part takes rows up to this size. A single row may be larger."""
EACH = 16  # bytes of a row in addition to its nodes and its payload: two start positions
MOST_ROW_BYTES = MOST_BYTES - 2 * EACH
"""The limit on the bytes of a row's nodes and payload: a row must fit in a part."""
MOST_NODES = frames.MOST_MARKS
"""The limit on the nodes of a row."""
ADDED = (NOTIFICATION, PLACE, "version", NODES, NUMBERS, PLACES, TOLD, PAYLOAD)

Numbers = npt.NDArray[np.int64]


class _Rows(msgspec.Struct, frozen=True):
    """Some rows as columns; `node_starts` and `payload_starts` need not begin with 0."""

    node_starts: Numbers  # [n + 1]
    nodes: Numbers
    payload_starts: Numbers  # [n + 1]
    payloads: memoryview

    def take(self, first: int, end: int) -> Columns:
        """The rows from position `first` up to but excluding position `end`."""
        nodes, payloads = self.node_starts[first : end + 1], self.payload_starts[first : end + 1]
        return Columns(
            np.diff(nodes),
            self.nodes[nodes[0] : nodes[-1]],
            np.diff(payloads),
            self.payloads[payloads[0] : payloads[-1]],
        )

    def sizes(self) -> Numbers:
        """The bytes of each row in a part."""
        return EACH + 8 * np.diff(self.node_starts) + np.diff(self.payload_starts)


class Columns(msgspec.Struct, frozen=True):
    """The rows of a part as columns: the number of nodes of each row, the nodes, the sizes of
    payloads, the payloads."""

    counts: Numbers
    nodes: Numbers
    sizes: Numbers
    payloads: memoryview | bytes


_NONE = np.zeros(0, np.int64)
_EMPTY = Columns(_NONE, _NONE, _NONE, b"")


def parts_of(
    reader: OutboxReader,
    commit: Commit,
    source: str,
    extra: str | None = None,
    time: str | None = None,
) -> Iterator[Part]:
    """The parts of a committed batch, in order. A batch without rows has one empty part. `extra` is
    the column of undeclared fields, if there is one, and `time` the column with the time of a row,
    if there is one."""
    waiting: list[Columns] = []
    number = 0
    for columns in _cut(_rows_of(reader, commit, extra, time)):
        if waiting:
            yield _part(commit, source, number, waiting.pop(), last=False)
            number += 1
        waiting.append(columns)
    yield _part(commit, source, number, waiting.pop() if waiting else _EMPTY, last=True)


def _part(commit: Commit, source: str, number: int, rows: Columns, *, last: bool) -> Part:
    return Part(
        source, commit.batch, number, last, commit.life, commit.version,
        _starts(rows.counts), rows.nodes, _starts(rows.sizes), bytes(rows.payloads),
    )  # fmt: skip


def _starts(sizes: Numbers) -> Numbers:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def _cut(found: Iterable[_Rows]) -> Iterator[Columns]:
    """Divide the rows into pieces of at most PART_BYTES; a row that is larger is a piece of its
    own."""
    held: list[Columns] = []
    room = PART_BYTES - EACH
    for rows in found:
        ends = np.cumsum(rows.sizes())
        first, count = 0, len(ends)
        while first < count:
            before = int(ends[first - 1]) if first else 0
            end = int(np.searchsorted(ends, before + room, "right"))
            if end == first and not held:
                end = first + 1  # this row alone is larger than a part
            if end > first:
                held.append(rows.take(first, end))
                room -= int(ends[end - 1]) - before
                first = end
            if first < count:
                yield _join(held)
                held, room = [], PART_BYTES - EACH
    if held:
        yield _join(held)


def _join(held: list[Columns]) -> Columns:
    if len(held) == 1:
        return held[0]
    return Columns(
        np.concatenate([one.counts for one in held]),
        np.concatenate([one.nodes for one in held]),
        np.concatenate([one.sizes for one in held]),
        b"".join(one.payloads for one in held),
    )


def _rows_of(
    reader: OutboxReader, commit: Commit, extra: str | None, time: str | None
) -> Iterator[_Rows]:
    for file in reader.files(commit):
        # if the workers encoded the bodies, no other columns are read
        columns = [NODES, PAYLOAD] if PAYLOAD in reader.schema(file).names else None
        for batch in reader.read_stored(file, columns):
            nodes = batch.column(NODES)
            bodies = batch.column(PAYLOAD) if columns else _encode(batch, commit, extra, time)
            starts = np.frombuffer(bodies.buffers()[1], np.int32)[bodies.offset :]
            data = bodies.buffers()[2]
            yield _Rows(
                nodes.offsets.to_numpy().astype(np.int64),
                nodes.values.to_numpy(),
                starts[: len(bodies) + 1].astype(np.int64),
                memoryview(b"" if data is None else data),
            )


def _encode(batch: pa.RecordBatch, commit: Commit, extra: str | None, time: str | None) -> pa.Array:
    """Bodies for rows that were committed without bodies, before the channel sink was added."""
    names = [name for name in batch.schema.names if name not in ADDED]
    return encode_bodies(batch.select(names), extra, time, commit.micros)
