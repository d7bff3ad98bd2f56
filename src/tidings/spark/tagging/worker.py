"""Runs in Spark's Python workers: opens a version of the subscriptions, once per process.

A worker runs many tasks. It maps a snapshot when a task first names its path, and applies the
changes that come with each task; changes that were already applied are skipped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from tidings.model import TidingsError
from tidings.snapshots import NamedMembers, Snapshot, VersionedSnapshot, View, identity_of
from tidings.spark.tagging.channel_kinds import ChannelKind, kind_of

MOST_OPEN = 2
NODE_TEXTS = "channel.arrow"
"""The table of a channel's snapshot that has the number and the filter of every node."""
ROWS, BYTES = 65_536, 64 << 20
"""Batches are joined until they have this many rows or bytes, and then matched at once."""


class Change(msgspec.Struct, frozen=True):
    """A change to one subscription: a `tidings.snapshots.versioned.ChangeLike`."""

    version: int
    id: str | int
    filter: str | None
    node: int


class Pinned(msgspec.Struct, frozen=True):
    """A version of the subscriptions, as sent to tasks: the path of the snapshot, and the changes
    since."""

    path: str
    version: int
    changes: tuple[Change, ...] = ()
    identity: str = ""  # the identity of the snapshot that is expected at the path
    kind: ChannelKind | None = None  # set if filters may call predicates of a channel


_lock = threading.Lock()
_opened: dict[tuple[str, str, bytes], VersionedSnapshot] = {}


def view_of(pinned: Pinned) -> View:
    """The view of a version, in this process."""
    told = pinned.kind
    functions = None if told is None else kind_of(told).functions
    key = pinned.path, pinned.identity, b"" if told is None else told.key
    with _lock:
        live = _opened.get(key)
        if live is None:
            live = VersionedSnapshot(Snapshot.open(pinned.path, functions=functions))
            if pinned.identity and identity_of(pinned.path) != pinned.identity:
                raise TidingsError(
                    f"the snapshot {pinned.path} was replaced while it was in use; run the job "
                    f"again, or restore the old snapshot"
                )
            while len(_opened) >= MOST_OPEN:
                del _opened[next(iter(_opened))]
            _opened[key] = live
        live.apply(pinned.changes, pinned.version)
        return live.view(pinned.version)


def make_tagger(pinned: Pinned, names: list[str], outputs: tuple[str, ...]) -> Callable[..., Any]:
    """Make a function that maps batches of columns to tags: a list for each row, or a struct of
    lists if there are several outputs."""

    # PySpark derives the kind of UDF from these annotations
    def tag(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        view = view_of(pinned)
        named = NamedMembers(view) if "parts" in outputs else None
        for batch in join_batches(_name_columns(batches, names)):
            for first, last, matched in view.pieces(*view.match_places(batch)):
                if named is not None:
                    yield named.part_lists(batch.slice(first, last - first), *matched)
                    continue
                found = [lists_of(view, output, matched) for output in outputs]
                yield found[0] if len(found) == 1 else pa.StructArray.from_arrays(found, outputs)

    return tag


def lists_of(view: View, output: str, matched: tuple[Any, Any]) -> Any:
    """One kind of output for matched rows, as a ListArray."""
    if output == "nodes":
        return view.node_lists(*matched)
    return view.subscription_lists(*matched)


def _name_columns(batches: Iterable[Any], names: list[str]) -> Iterator[pa.RecordBatch]:
    for given in batches:
        # a single column is not passed as a tuple
        arrays = list(given) if isinstance(given, tuple) else [given]
        yield pa.RecordBatch.from_arrays(arrays, names=names)


def join_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join batches until each has ROWS rows or BYTES bytes; the last one may have fewer."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ROWS or size >= BYTES:
            yield _concat(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _concat(waiting)


def _concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    first = batches[0].schema
    for batch in batches[1:]:
        if batch.schema != first:
            raise TidingsError(
                f"the batches of one task differ in their columns: {_describe_schema(first)} and "
                f"{_describe_schema(batch.schema)}"
            )
    return pa.concat_batches(batches)


def _describe_schema(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
