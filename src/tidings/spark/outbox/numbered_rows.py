"""Computes the numbers of rows for readers of an outbox.

    commit: partitions, counts ─┐
    numbers: before the batch  ─┴─> before each partition ──+ places in its files──> numbers

Files have places instead of numbers, because they are written before the channel has accepted the
batch. Files of older releases have numbers, and are read as they are. If a rendezvous point numbers
the notifications that the pipeline hands over, the outbox does not have the numbers, and readers
get null for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec
import numpy as np
import pyarrow as pa

from tidings.spark.outbox.batches.numbering import (
    ALL,
    NODES,
    NOTIFICATION,
    NUMBERS,
    PLACE,
    PLACES,
    add_before,
    counters_before,
)
from tidings.spark.outbox.commits import Commit
from tidings.store.numbers import unpack_counts

_LISTS = pa.list_(pa.int64())
ROW_NUMBERS = pa.struct([(NOTIFICATION, pa.int64()), (NUMBERS, _LISTS)])
_IN_OUTBOX = re.compile("data/[0-9]{8,}-[^/]+/([^/]+/)?[^/]+$")
REPLACED = {PLACE: NOTIFICATION, PLACES: NUMBERS}


class RowNumbers(msgspec.Struct, frozen=True):
    """The last numbers before the rows of a file."""

    notification: int
    nodes: dict[int, int] | None  # None if the outbox lacks the numbers at nodes

    def join(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows, with their places replaced by numbers."""
        names, columns = list[str](), list[pa.Array]()
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            if name == PLACE:
                column = pa.array(column.to_numpy() + self.notification, pa.int64())
            elif name == PLACES:
                known = self.nodes
                column = (
                    pa.nulls(rows.num_rows, _LISTS)
                    if known is None
                    else add_before(rows.column(NODES), column, known)
                )
            names.append(REPLACED.get(name, name))
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, names=names)


def number_files(commit: Commit, before: Mapping[int, int] | None) -> dict[str, RowNumbers]:
    """For each file of a batch, the last numbers before its rows. `before` has the last number of
    each node before the batch; without it, nodes get no numbers. If an older release wrote the
    files, the result is empty."""
    counted = [{ALL: one.rows, **unpack_counts(one.counts)} for one in commit.partitions]
    known = {ALL: commit.before, **(before or {})}
    files = iter([one.path for one in commit.files if one.path.startswith("data/")])
    found: dict[str, RowNumbers] = {}
    for one, now in zip(commit.partitions, counters_before(known, counted), strict=True):
        first = now.pop(ALL)
        numbers = RowNumbers(first, now if before else None)
        found.update({next(files): numbers for _ in range(one.files)})
    return found


def number_columns(
    find: Callable[[str], RowNumbers], files: Any, places: Any, nodes: Any, lists: Any
) -> Any:
    """The numbers of rows of several files, as a column of structs. Rows from older releases, which
    have numbers instead of places, get null. `files` has the paths or addresses of the files, as
    Spark names them; `find` is called with their paths in the outbox."""
    rows = pa.RecordBatch.from_arrays([places, nodes, lists], names=[PLACE, NODES, PLACES])
    coded = files.dictionary_encode()
    at = coded.indices.to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.diff(at, prepend=-1)).tolist()
    found = [pa.nulls(0, ROW_NUMBERS)]
    for first, end in zip(starts, [*starts[1:], len(at)], strict=True):
        some = rows.slice(first, end - first)
        if some.column(PLACE).null_count:  # the file is from an older release, and has numbers
            found.append(pa.nulls(len(some), ROW_NUMBERS))
            continue
        path = _IN_OUTBOX.search(unquote(coded.dictionary[int(at[first])].as_py()))
        assert path is not None, "Spark read the file because a commit names it"
        joined = find(path[0]).join(some)
        parts = [joined.column(one.name) for one in ROW_NUMBERS]
        found.append(pa.StructArray.from_arrays(parts, fields=[*ROW_NUMBERS]))
    return pa.concat_arrays(found)


def stored_columns(wanted: list[str], stored: list[str]) -> list[str]:
    """The columns of a file that must be read to compute the wanted columns."""
    if PLACE not in stored:
        return wanted
    back = {number: place for place, number in REPLACED.items()}
    found = [back.get(name, name) for name in wanted]
    return [*found, NODES] if PLACES in found and NODES not in found else found


def add_numbers_to_schema(stored: pa.Schema) -> pa.Schema:
    """The columns that readers get from a file with the given stored columns."""
    none = pa.RecordBatch.from_arrays([pa.nulls(0, one.type) for one in stored], schema=stored)
    return RowNumbers(0, {}).join(none).schema if PLACE in stored.names else stored
