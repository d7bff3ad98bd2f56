"""Inspects the inputs of a pipeline before it is started: columns, subscriptions, outbox.

No stream is started. Nothing is written, except the first snapshot of a log with these columns. A
session is needed only for sources that define their own columns.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from tidings.model import Id, TidingsError
from tidings.notifications import decode_json
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.outbox.spark_checkpoint import STREAM
from tidings.spark.pipeline.inputs import (
    declare_columns,
    load_checked_view,
    open_subscriptions,
)
from tidings.spark.pipeline.masters import need_kafka
from tidings.spark.pipeline.settings import Feeds, Files, Kafka, Settings, is_json, paths_of
from tidings.spark.pipeline.source_streams import open_source, read_declared_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE = 1_000  # rows


class Column(msgspec.Struct, frozen=True):
    name: str
    type: str
    compared_with: list[str] | None  # families of values; None if no filter tests the column


class Sample(msgspec.Struct, frozen=True):
    """The result of decoding the first rows of a file."""

    file: str
    rows: int
    refused: int
    reason: str | None  # the reason for the first refused row
    extra_rows: int = 0  # rows with undeclared fields


class Inspection(msgspec.Struct, frozen=True):
    """The inputs of a pipeline, as it would find them if it were started now."""

    name: str
    source: str  # the source, described in a few words
    path: str | None  # the folder of the source's files
    columns: list[Column]
    version: int
    subscriptions: int
    nodes: int
    outbox: str
    batches: int  # the number of committed batches
    sample: Sample | None
    never: list[Id]  # subscriptions that can never match


def inspect(settings: Settings, session: Callable[[], SparkSession]) -> Inspection:
    """Inspect everything that a pipeline file names; raise TidingsError if it can't run."""
    with ExitStack() as stack:
        # The nodes that a channel sends are compiled in a separate folder, because the pipeline may
        # be running.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tidings-check-")))
        return _inspect(settings, session, folder, stack)


def _inspect(
    settings: Settings, session: Callable[[], SparkSession], folder: Path, stack: ExitStack
) -> Inspection:
    source = settings.source
    need_log(settings)
    # the channel is opened first, because it may declare the columns
    subscriptions = open_subscriptions(settings, folder, patient=False)
    stack.callback(subscriptions.close)
    settings = declare_columns(settings, subscriptions.description)
    sample = None
    if isinstance(source, Files):
        sample = _read_sample(settings, source)
    need_places(settings)
    need_kafka(settings)
    outbox = Outbox(settings.at(settings.outbox.path))
    stream = _check_outbox(outbox, settings.at(settings.checkpoint))
    if isinstance(source, Feeds):
        from tidings.spark.feeds.feed_spool import check_spool

        check_spool(settings.at(source.spool), stream)
    if (settings.columns or is_json(settings)) and isinstance(source, Files | Kafka):
        schema: Any = spark_schema(read_declared_schema(settings))
    else:
        schema = open_source(settings, session()).schema
    version = subscriptions.version
    view = load_checked_view(settings, schema, subscriptions)
    alive = view.member_starts[1:] > view.member_starts[:-1]
    tested: dict[str, set[str]] = {}
    for path, families in view.matcher.list_tested().items():
        tested.setdefault(path[0], set()).update(families if len(path) == 1 else {"fields"})
    return Inspection(
        name=settings.name,
        source=_describe_source(settings),
        path=str(settings.at(source.path)) if isinstance(source, Files) else None,
        columns=[
            Column(
                field.name,
                field.dataType.simpleString(),
                sorted(tested[field.name]) if field.name in tested else None,
            )
            for field in schema.fields
        ],
        version=version,
        subscriptions=len(view.ids),
        nodes=int(alive.sum()),
        outbox=str(outbox.path),
        batches=outbox.batches(),
        sample=sample,
        never=view.never(),
    )


def _describe_source(settings: Settings) -> str:
    source = settings.source
    if isinstance(source, Files):
        return f"{source.format} files"
    if isinstance(source, Kafka):
        return f"topic {source.topic} of Kafka at {source.servers}"
    urls = getattr(source, "urls", None)
    if urls is not None:
        return f"{len(urls)} feeds"
    return f"{getattr(source, 'rows_per_second', 0)} generated rows per second"


def need_log(settings: Settings) -> None:
    """Refuse a log that does not exist, because an empty one would be created, and nothing would
    match."""
    log = settings.subscriptions.log
    if log is not None and not (settings.at(log) / "lock").exists():
        raise TidingsError(
            f"subscriptions: there is no log in {settings.at(log)}; `tidings subscriptions add` or "
            "`tidings channel create` creates one"
        )


def need_places(settings: Settings) -> None:
    """Refuse paths at which the pipeline can't create or write its folders."""
    for name, path in paths_of(settings):
        if name.startswith("subscriptions.") or name == "source.path":
            continue  # the pipeline only reads from this path
        place = settings.at(path)
        there = next(one for one in (place, *place.parents) if one.exists() or one.is_symlink())
        if not there.is_dir():
            raise TidingsError(f"{name}: {there} is a file, expected a folder")
        if not os.access(there, os.W_OK | os.X_OK):
            raise TidingsError(f"{name}: {there} can't be written to, expected a writable folder")


def _check_outbox(outbox: Outbox, checkpoint: Path) -> str:
    """Check like `Outbox.bind_to_checkpoint`, but write nothing; return the stream's id, or "" if
    it has none."""
    mine, theirs = outbox.home / "stream", checkpoint / STREAM
    have = mine.read_text() if mine.exists() else None
    known = theirs.read_text() if theirs.exists() else None
    begun = any((checkpoint / "commits").glob("[0-9]*"))
    if have != known and not (have is None and not begun):
        raise TidingsError(
            f"the outbox {outbox.path} belongs to another checkpoint, not to {checkpoint}; use "
            f"the checkpoint that it belongs to, or an empty outbox"
        )
    return known or ""


def _read_sample(settings: Settings, source: Files) -> Sample | None:
    folder = settings.at(source.path)
    if not folder.is_dir():
        raise TidingsError(f"source.path: there is no folder {folder}")
    files = sorted(p for p in folder.iterdir() if p.is_file() and p.name[0] not in "._")
    if source.format != "json" or not files:
        return None
    file = files[0]
    try:
        with file.open("rb") as lines:
            rows = [line.rstrip(b"\r\n") for line in islice(lines, SAMPLE)]
    except OSError as problem:
        raise TidingsError(f"{file} can't be read: {problem.strerror}") from None
    decoded = decode_json(
        pa.array(rows, pa.binary()), read_declared_schema(settings), extra=settings.extra_fields
    )
    reasons = decoded.reasons
    first = reasons[0] if reasons else None
    return Sample(file.name, len(rows), len(reasons), first, decoded.extra_rows)
