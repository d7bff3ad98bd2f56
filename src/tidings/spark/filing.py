"""The second half of a micro-batch: tagged rows get their numbers and go to files by time.

    staged Arrow file ──number──> columns, notification, version, nodes, numbers, subscriptions
                                  └──> grain=2013-01-01T09-00, a Parquet file for each

A partition can be filed when it is known where its counters begin. A small batch is filed by the
driver, without another job; a large one by the workers, partition by partition. Files are made in
the folder of the attempt and moved by whoever commits.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tidings.files import make_private
from tidings.spark.numbering import ALL, Counts, begins, number_lists
from tidings.spark.stages import NODES, TOLD, Staged

if TYPE_CHECKING:
    from pyspark import SparkContext

HERE = 16 << 20  # bytes of staged rows that the driver files itself
MOST_OPEN = 32  # files of different grains; when there are more, they are begun anew


class Filing(msgspec.Struct, frozen=True):
    """What all partitions of a batch have in common."""

    folder: str
    version: int
    began: int  # seconds since 1970
    width: int  # seconds of a grain
    time: str | None = None  # the column that grains go by


class Filed(msgspec.Struct, frozen=True):
    """A file that was made."""

    name: str
    grain: str


class _Task(msgspec.Struct, frozen=True):
    filing: Filing
    staged: str
    begin: Counts


def file_rows(
    context: SparkContext, filing: Filing, staged: Sequence[Staged], counters: Counts
) -> list[Filed]:
    """Number and file what partitions have staged."""
    counted = [counts_of(one) for one in staged]
    tasks = [
        _Task(filing, one.rows, begin)
        for one, begin in zip(staged, begins(counters, counted), strict=True)
        if one.rows is not None
    ]
    if len(tasks) < 2 or sum(one.size for one in staged) <= HERE:
        return [filed for task in tasks for filed in _file_partition(task)]
    made = context.parallelize(tasks, len(tasks)).flatMap(_file_partition)
    return list(made.collect())


def counts_of(staged: Staged) -> Counts:
    """How often a partition has each node, and all of them."""
    return {ALL: staged.matched, **staged.nodes} if staged.matched else {}


def _file_partition(task: _Task) -> list[Filed]:
    folder, now = Path(task.filing.folder), dict(task.begin)
    with pa.memory_map(str(folder / task.staged)) as source, _Grains(folder) as grains:
        reader = pa.ipc.open_file(source)
        for at in range(reader.num_record_batches):
            rows = reader.get_batch(at)
            numbered = _numbered(task.filing, rows, now)
            grain = _grains(task.filing, rows)
            for second in np.unique(grain).tolist():
                there = grain == second
                part = numbered if there.all() else numbered.filter(pa.array(there))
                grains.put(second, part)
        return grains.filed


def _numbered(filing: Filing, rows: pa.RecordBatch, now: Counts) -> pa.RecordBatch:
    first = now.get(ALL, 0) + 1
    now[ALL] = first - 1 + rows.num_rows
    nodes = rows.column(NODES)
    added = {
        "notification": pa.array(np.arange(first, first + rows.num_rows)),
        "version": pa.array(np.full(rows.num_rows, filing.version, np.int64)),
        NODES: nodes,
        "numbers": number_lists(nodes, now),
        TOLD: rows.column(TOLD),
    }
    names = [name for name in rows.schema.names if name not in added]
    columns = [*(rows.column(name) for name in names), *added.values()]
    return pa.RecordBatch.from_arrays(columns, names=[*names, *added])


def _grains(filing: Filing, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The second at which the grain of each row begins."""
    if filing.time is None:
        seconds = np.full(rows.num_rows, filing.began, np.int64)
    else:
        column = rows.column(filing.time)
        zone = column.type.tz if pa.types.is_timestamp(column.type) else None
        micros = column.cast(pa.timestamp("us", zone)).cast(pa.int64())
        seconds = micros.fill_null(filing.began * 1_000_000).to_numpy() // 1_000_000
    return np.asarray(seconds // filing.width * filing.width, np.int64)


class _Grains:
    """Parquet files of a partition, one for each grain."""

    def __init__(self, folder: Path) -> None:
        self.filed: list[Filed] = []
        self._folder = folder
        self._open: dict[int, Any] = {}

    def __enter__(self) -> _Grains:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self._open.values():
            writer.close()
        self._open.clear()

    def put(self, second: int, rows: pa.RecordBatch) -> None:
        writer = self._open.get(second)
        if writer is None:
            if len(self._open) >= MOST_OPEN:
                self.__exit__()
            filed = Filed(f"part-{uuid.uuid4().hex}.parquet", grain_name(second))
            path = make_private(self._folder / filed.name)
            writer = self._open[second] = pq.ParquetWriter(path, rows.schema)
            self.filed.append(filed)
        writer.write_batch(rows)


def grain_name(second: int) -> str:
    """As folders are called: grain=2013-01-01T09-00, in UTC."""
    minute = np.datetime_as_string(np.datetime64(second, "s"), unit="m")
    return f"grain={minute}".replace(":", "-")
