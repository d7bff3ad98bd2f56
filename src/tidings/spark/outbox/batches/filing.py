"""The files that a task writes: the matched rows of its partition, grouped by time.

    rows ──place──> columns, _place, version, nodes, _places, subscriptions
                    ├──> grain=2013-01-01T09-00, a Parquet file for each
                    └──> grain=mixed, one file for the rows of all other grains

Files are created in the folder of the attempt; the driver moves them when it commits the batch.
Places are counted within the partition; numbering.py says how they become numbers.

A partition writes at most MOST_GRAINS files, however its rows are spread over time. The grains with
the most rows get a file each. All other rows share one file, sorted by grain within each row group.
So 10,000 rows of 10,000 days result in 32 files, and readers can skip row groups of the shared file
by their statistics. If a column determines the grains, the rows wait in an Arrow file until all
grains of the partition are known; without such a column, all rows have the same grain.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tidings.files import make_private
from tidings.spark.outbox.batches.numbering import (
    ALL,
    NODES,
    PLACE,
    PLACES,
    TOLD,
    Counts,
    number_lists,
)
from tidings.spark.outbox.sealed_files import digest_of

MOST_GRAINS = 32  # a partition has at most this many files, including the file of mixed grains
MIXED = "grain=mixed"

Grains = npt.NDArray[np.int64]  # for each row, the start of its grain, in seconds since 1970
_NONE = np.zeros(0, np.int64)


class Filing(msgspec.Struct, frozen=True):
    """The settings that all partitions of a batch share."""

    version: int
    began: int  # the start of the batch, in seconds since 1970
    width: int  # the length of a grain, in seconds
    time: str | None = None  # the column that determines grains


class WrittenFile(msgspec.Struct, frozen=True):
    """A file that a partition wrote."""

    name: str
    grain: str
    rows: int
    size: int
    digest: str


class RowFiles:
    """The files of matched rows that a partition writes to a folder; created on first use."""

    def __init__(self, folder: Path, filing: Filing) -> None:
        self._folder = folder
        self._filing = filing
        self._waiting: Any = None
        self._waiting_path = folder / f"rows-{uuid.uuid4().hex}.arrow"
        self._writers: _Writers | None = None
        if filing.time is None:
            grain = filing.began // filing.width * filing.width
            self._writers = _Writers(folder, np.array([grain], np.int64))
        self.counts: Counts = {}
        """How often each node occurs so far; ALL counts the rows."""

    def put(self, rows: pa.RecordBatch) -> None:
        """Append some rows."""
        placed = _place_rows(self._filing, rows, self.counts)
        if self._writers is not None:
            self._writers.put(_grains_of(self._filing, rows), placed)
            return
        if self._waiting is None:
            make_private(self._waiting_path)
            self._waiting = pa.ipc.new_file(str(self._waiting_path), placed.schema)
        self._waiting.write_batch(placed)

    def finish(self) -> list[WrittenFile]:
        """Close the files, and describe them."""
        if self._waiting is not None:
            self._waiting.close()
            self._waiting = None
            self._file_waiting()
        if self._writers is None:
            return []
        self._writers.close()
        return self._writers.list_files()

    def _file_waiting(self) -> None:
        with pa.memory_map(str(self._waiting_path)) as source:
            reader = pa.ipc.open_file(source)
            batches = [reader.get_batch(at) for at in range(reader.num_record_batches)]
            grains = [_grains_of(self._filing, rows) for rows in batches]
            self._writers = _Writers(self._folder, _choose_grains(grains))
            for rows, grain in zip(batches, grains, strict=True):
                self._writers.put(grain, rows)
        self._waiting_path.unlink()

    def close(self) -> None:
        """Close the files as they are, complete or not."""
        for one in (self._waiting, self._writers):
            if one is not None:
                one.close()


def describe_file(path: Path, grain: str, rows: int) -> WrittenFile:
    """Describe a file that was just closed. The file is still in the page cache, so its digest is
    computed at 1.3 GB/s."""
    return WrittenFile(path.name, grain, rows, path.stat().st_size, digest_of(path))


def _place_rows(filing: Filing, rows: pa.RecordBatch, now: Counts) -> pa.RecordBatch:
    first = now.get(ALL, 0) + 1
    now[ALL] = first - 1 + rows.num_rows
    nodes = rows.column(NODES)
    added = {
        PLACE: pa.array(np.arange(first, first + rows.num_rows)),
        "version": pa.array(np.full(rows.num_rows, filing.version, np.int64)),
        NODES: nodes,
        PLACES: number_lists(nodes, now),
        TOLD: rows.column(TOLD),
    }
    names = [name for name in rows.schema.names if name not in added]
    columns = [*(rows.column(name) for name in names), *added.values()]
    return pa.RecordBatch.from_arrays(columns, names=[*names, *added])


def _choose_grains(grains: Sequence[Grains]) -> Grains:
    """The grains that get their own files, in order: all grains, or those with the most rows."""
    distinct, counts = np.unique(np.concatenate([*grains, _NONE]), return_counts=True)
    if len(distinct) <= MOST_GRAINS:
        return distinct
    most = np.argsort(-counts, kind="stable")[: MOST_GRAINS - 1]
    found: Grains = np.sort(distinct[most])
    return found


def _grains_of(filing: Filing, rows: pa.RecordBatch) -> Grains:
    if filing.time is None:
        seconds = np.full(rows.num_rows, filing.began, np.int64)
    else:
        column = rows.column(filing.time)
        zone = column.type.tz if pa.types.is_timestamp(column.type) else None
        micros = column.cast(pa.timestamp("us", zone)).cast(pa.int64())
        seconds = micros.fill_null(filing.began * 1_000_000).to_numpy() // 1_000_000
    return np.asarray(seconds // filing.width * filing.width, np.int64)


class _Writers:
    """The Parquet files of a partition: one for each chosen grain, one for all other rows."""

    def __init__(self, folder: Path, chosen: Grains) -> None:
        self._folder = folder
        self._made: list[tuple[str, str]] = []  # name and grain
        self._rows: Counter[str] = Counter()
        self._chosen = chosen
        # keys are indexes of grains; the last index is for the file of mixed grains
        self._open: dict[int, Any] = {}

    def put(self, grain: Grains, rows: pa.RecordBatch) -> None:
        at = np.searchsorted(self._chosen, grain)
        there = at < len(self._chosen)
        there[there] = self._chosen[at[there]] == grain[there]
        at[~there] = len(self._chosen)
        present = np.unique(at).tolist()
        if len(present) == 1 and present[0] < len(self._chosen):
            self._write(present[0], rows)
            return
        # one sort orders all rows by file, and the rows of the mixed file by grain
        order = np.lexsort((grain, at))
        rows, at = rows.take(pa.array(order)), at[order]
        for number in present:
            first, last = np.searchsorted(at, [number, number + 1]).tolist()
            self._write(number, rows.slice(first, last - first))

    def _write(self, number: int, rows: pa.RecordBatch) -> None:
        mixed = number == len(self._chosen)
        name = MIXED if mixed else grain_name(int(self._chosen[number]))
        self._writer(number, name, rows.schema).write_batch(rows)
        self._rows[name] += rows.num_rows

    def _writer(self, number: int, name: str, schema: pa.Schema) -> Any:
        writer = self._open.get(number)
        if writer is None:
            file = f"part-{uuid.uuid4().hex}.parquet"
            path = make_private(self._folder / file)
            writer = self._open[number] = pq.ParquetWriter(path, schema)
            self._made.append((file, name))
        return writer

    def close(self) -> None:
        for writer in self._open.values():
            writer.close()

    def list_files(self) -> list[WrittenFile]:
        """Describe the files; call this after they are closed."""
        return [
            describe_file(self._folder / file, name, self._rows[name]) for file, name in self._made
        ]


def grain_name(second: int) -> str:
    """The name of a grain's folder: grain=2013-01-01T09-00, in UTC."""
    minute = np.datetime_as_string(np.datetime64(second, "s"), unit="m")
    return f"grain={minute}".replace(":", "-")
