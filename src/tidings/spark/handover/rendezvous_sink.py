"""Hands rows to the rendezvous point of the router network: a sink for Spark, and a function.

    spark.dataSource.register(RendezvousSink)
    df.writeStream.format("tidings-rendezvous").option("host", ...).option("port", ...)
    df.write.format("tidings-rendezvous")...mode("append").save()
    df.writeStream.foreachBatch(lambda df, n: hand_over(df, n, Target(...)))

Options:
    host, port   the address of the point (127.0.0.1, no default)
    stream       a name for the source of the rows (no default)
    columns      the columns to send, separated by commas (all)
    patience     seconds to keep trying while the point does not answer (60)
    batch        for tables: a number that makes writing the same table again harmless (random)

If the only column is binary, its value is sent as it is. Otherwise a row is sent as a MessagePack
map of its columns.

Invariant: each batch of a query is delivered once, however often Spark attempts it. With a new
checkpoint, batch numbers restart at 0 and the query gets a new id. So the query's id is part of the
stream's name.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from tidings.model import EnvironmentProblem
from tidings.spark.handover.handover import Sender
from tidings.spark.handover.handover_link import PATIENCE, Link
from tidings.spark.handover.handover_messages import Abort, Ask, Commit, Committed, Part
from tidings.spark.handover.payloads import chunks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"
_TABLES = 1 << 62  # batches of tables get random numbers from here on; streams stay below


class Target(msgspec.Struct, frozen=True):
    """The rendezvous point that gets the rows, and the columns to send."""

    host: str
    port: int
    stream: str
    columns: tuple[str, ...] = ()
    patience: float = PATIENCE

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType) -> Target:
        """Read and check the options of the sink."""
        for name in ("port", "stream"):
            if not options.get(name):
                raise EnvironmentProblem(f'The option "{name}" of tidings-rendezvous is missing.')
        names = tuple(
            name.strip() for name in options.get("columns", "").split(",") if name.strip()
        )
        try:
            target = cls(
                options.get("host", "127.0.0.1"),
                int(options["port"]),
                options["stream"],
                names,
                float(options.get("patience", PATIENCE)),
            )
        except ValueError as error:
            raise EnvironmentProblem(
                f"The options of tidings-rendezvous cannot be read: {error}."
            ) from error
        target.check(schema.names)
        return target

    def check(self, names: list[str]) -> None:
        """Raise EnvironmentProblem if a column to send is not among the names."""
        for name in self.columns:
            if name not in names:
                raise EnvironmentProblem(
                    f"There is no column {name} to send; the columns are {', '.join(names)}."
                )

    def link(self) -> Link:
        return Link(self.host, self.port, self.patience)


class Sent(WriterCommitMessage):
    """The message from a task to the driver: the rows that it sent."""

    def __init__(self, stream: str, part: Part) -> None:
        self.stream = stream
        self.part = part


class RendezvousSink(DataSource):
    """The sink "tidings-rendezvous"."""

    @classmethod
    def name(cls) -> str:
        return "tidings-rendezvous"

    def writer(self, schema: StructType, overwrite: bool) -> TableWriter:
        if overwrite:
            raise EnvironmentProblem(
                'Rows that were handed over cannot be overwritten: use mode("append").'
            )
        batch = self.options.get("batch", str(_TABLES + secrets.randbelow(_TABLES)))
        if not batch.isdecimal():
            raise EnvironmentProblem(f'The option "batch" is {batch!r}, expected a number.')
        return TableWriter(Target.of(self.options, schema), int(batch))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        return StreamWriter(Target.of(self.options, schema))


class TableWriter(DataSourceArrowWriter):
    """Writes a table as one batch."""

    def __init__(self, target: Target, batch: int) -> None:
        self._target = target
        self._batch = batch

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        return Sent(
            self._target.stream, _send(self._target, self._target.stream, self._batch, iterator)
        )

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _commit(self._target, messages, self._batch)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _abort(self._target, self._target.stream, self._batch)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes each micro-batch under its number. Tasks read the number from a local property."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        context = _task()
        stream = _of_query(self._target.stream, context.getLocalProperty(_QUERY))
        batch = int(context.getLocalProperty(_BATCH) or -1)
        return Sent(stream, _send(self._target, stream, batch, iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        _commit(self._target, messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        for stream in {each.stream for each in messages if isinstance(each, Sent)}:
            _abort(self._target, stream, batchId)


def hand_over(df: DataFrame, batch_id: int, target: Target) -> bool:
    """Hand over the rows of a micro-batch; for `foreachBatch`, which may repeat a batch.

    Returns False without running a job if the point has already committed this batch of the stream.
    In a streaming query the stream's name includes the query's id, as in the sink; elsewhere it is
    `target.stream` alone.
    """
    target.check(df.columns)
    # A Spark Connect session has no context, so there the stream is `target.stream` alone.
    context = getattr(df.sparkSession, "sparkContext", None)
    stream = _of_query(target.stream, context.getLocalProperty(_QUERY) if context else None)
    with target.link() as link:
        if isinstance(link.ask(Ask(stream, batch_id)), Committed):
            return False

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part = _send(target, stream, batch_id, batches)
        yield pa.RecordBatch.from_pylist([part._asdict()])

    sent = df.mapInArrow(task, "partition long, attempt long, rows long").collect()
    with target.link() as link:
        link.commit(Commit(stream, batch_id, [Part(*row) for row in sent]))
    return True


def _send(target: Target, stream: str, batch: int, batches: Iterator[pa.RecordBatch]) -> Part:
    """Send the rows of one partition; runs in a task."""
    # Spark's attempt numbers restart with each run, so attempts get random numbers.
    sender = Sender(stream, batch, _task().partitionId(), secrets.randbits(63))
    with target.link() as link:
        link.push(sender, chunks(target.columns, batches))
    return sender.part


def _commit(target: Target, messages: list[WriterCommitMessage | None], batch: int) -> None:
    sent = [message for message in messages if isinstance(message, Sent)]
    with target.link() as link:
        # All messages are of the same stream. A batch without tasks has no rows and needs no
        # commit.
        for stream in {each.stream for each in sent}:
            link.commit(Commit(stream, batch, [each.part for each in sent]))


def _abort(target: Target, stream: str, batch: int) -> None:
    # Optional: without it the rows are dropped when the batch is committed.
    with (
        suppress(EnvironmentProblem),
        Link(target.host, target.port, min(target.patience, 5)) as link,
    ):
        link.ask(Abort(stream, batch))


def _of_query(stream: str, query: str | None) -> str:
    return f"{stream}#{query}" if query else stream


def _task() -> Any:
    context = TaskContext.get()
    assert context is not None  # always set: this runs only in tasks
    return context
