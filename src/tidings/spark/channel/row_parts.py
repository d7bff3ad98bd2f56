"""The committed rows of a batch as parts for the owner of a channel.

    files, in the order of the commit ──> nodes, payloads ──cut by size──> part 0, 1, 2 ...

The owner stores each part once, by its number. So a batch that is handed over again must be cut
into the same parts as before. The parts depend only on the committed files of the batch and on
PART_BYTES: changing that constant may lose or duplicate rows of a batch that was being handed over.
Before changing PART_BYTES, stop pipelines between two batches.

A row is sent with its lowest nodes, which the workers found. A row that does not fit into a part is
sent in pieces: consecutive notifications with the nodes of the row, each in a part of its own.
Subscribers put the pieces together, as they do with long payloads of agents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.channel import MOST_BYTES, Part
from tidings.routing.protocol import Piece, frames, read_about, wrap
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
WHOLE_BYTES = MOST_BYTES - 2 * EACH
"""If the nodes and the body of a row take more bytes, the row does not fit into a part."""
MOST_ROW_BYTES = 64 << 20
"""The limit on the bytes of a row's nodes and body."""
MOST_NODES = frames.MOST_MARKS
"""The limit on the nodes of a row."""
PIECE_BYTES = 3 << 20
"""The most bytes of payload in a piece. The rest of a part is for nodes and metadata, of which each
piece has all. The pieces of a row have almost the same size, so each has more than a megabyte."""
MOST_FRONT = WHOLE_BYTES - PIECE_BYTES - 8 * MOST_NODES - 64
"""The limit on the bytes of metadata of a row that is sent in pieces. A piece has up to 64 bytes
more, which say which piece it is."""
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

    def slice(self, first: int, end: int) -> _Rows:
        """The same rows as `take` takes, still with start positions."""
        return _Rows(
            self.node_starts[first : end + 1], self.nodes,
            self.payload_starts[first : end + 1], self.payloads,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.node_starts) - 1

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
    for columns in _cut(_split_long(_rows_of(reader, commit, extra, time))):
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


def _split_long(found: Iterable[_Rows]) -> Iterator[_Rows]:
    """The same rows, but with pieces in place of the rows that do not fit into a part."""
    for rows in found:
        first = 0
        for at in np.flatnonzero(rows.sizes() - EACH > WHOLE_BYTES).tolist():
            if first < at:
                yield rows.slice(first, at)
            yield _pieces_of(rows.slice(at, at + 1))
            first = at + 1
        if first < len(rows):
            yield rows.slice(first, len(rows)) if first else rows


def _pieces_of(row: _Rows) -> _Rows:
    """The pieces of a row. The rendezvous point puts in the stamp of the first piece."""
    columns = row.take(0, 1)
    body = bytes(columns.payloads)
    about, at = read_about(body)
    many = max(1, -(-(len(body) - at) // PIECE_BYTES))
    size = -(-(len(body) - at) // many)
    pieces = [
        wrap(
            msgspec.structs.replace(about, piece=Piece(0, number, many)),
            body[at + number * size : at + (number + 1) * size],
        )
        for number in range(many)
    ]
    return _Rows(
        len(columns.nodes) * np.arange(many + 1),
        np.tile(columns.nodes, many),
        _starts(np.array([len(one) for one in pieces], np.int64)),
        memoryview(b"".join(pieces)),
    )


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
