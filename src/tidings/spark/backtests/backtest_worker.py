"""Runs in Spark's Python workers during a backtest: matches rows, and returns only counts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.notifications import read_texts
from tidings.snapshots import View
from tidings.spark.backtests.fire_counts import NEVER, FireCounts, TaskCounts, TooManyCounts
from tidings.spark.backtests.time_buckets import TimeBucket
from tidings.spark.tagging.worker import ROWS, Pinned, join_batches, view_of

Array = npt.NDArray[Any]
Batches = Iterator[pa.RecordBatch]

MOST_MATCHES = 8_000_000
"""At most about this many matches are in memory at a time. If filters match many rows, rows are
matched in smaller groups."""
FEWEST_ROWS = 1024
_DAY = 86_400_000_000
_UTC = pa.timestamp("us", "UTC")


class CountTask(msgspec.Struct, frozen=True):
    """The instructions for a task. Columns are given by position."""

    pinned: Pinned
    tested: tuple[str, ...]
    """The names of the columns that filters test; these columns come first."""
    every: TimeBucket
    time: int | None
    samples: int
    order: int | None
    """The column with the hash that orders samples of the same time."""
    shown: tuple[tuple[str, int], ...]


def make_counter(task: CountTask) -> Callable[[Batches], Batches]:
    """Make a function that turns the rows of a task into one row with its encoded TaskCounts."""

    def count(batches: Batches) -> Batches:
        part = _count_batches(task, batches)
        yield pa.record_batch({"part": pa.array([msgspec.msgpack.encode(part)], pa.binary())})

    return count


def peak_memory(process: int | str = "self") -> int:
    """The peak memory of a process, in bytes; 0 if it is not known."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        status = Path(f"/proc/{process}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    return 0


def _count_batches(task: CountTask, batches: Batches) -> TaskCounts:
    view: View | None = None
    tally = FireCounts(0, 0)
    rows = FEWEST_ROWS * 4
    for batch in join_batches(batches):
        if view is None:
            view = view_of(task.pinned)
            tally = FireCounts(len(view.numbers), task.samples)
        at = 0
        while at < batch.num_rows:
            some = batch.slice(at, rows)
            at += some.num_rows
            try:
                matches = _count_rows(task, view, tally, some)
            except TooManyCounts as problem:
                return TaskCounts(tally.rows, peak_memory(), too_many=problem.stretches)
            allowed = MOST_MATCHES * some.num_rows // max(matches, 1)
            rows = min(ROWS, max(FEWEST_ROWS, allowed))
    return tally.make_part(peak_memory())


def _count_rows(task: CountTask, view: View, tally: FireCounts, batch: pa.RecordBatch) -> int:
    """Count the rows of a batch; return the number of matches."""
    columns = batch.columns
    events = pa.RecordBatch.from_arrays(columns[: len(task.tested)], names=task.tested)
    matched = view.match_places(events)
    times = np.full(batch.num_rows, NEVER, np.int64)
    numbers = None
    if task.time is not None:
        times = micros_of(columns[task.time])
        numbers = task.every.numbers(times)
    tally.add_rows(matched, times, numbers)
    if task.order is not None and task.samples:
        orders = columns[task.order].to_numpy()
        shown = {name: columns[at] for name, at in task.shown}
        tally.earliest.add_rows(matched, times, orders, shown)
    return int(matched[0][-1])


def micros_of(column: Any) -> Array:
    """Times in µs since 1970, with NEVER for null; strings are parsed like timestamps in CSV
    files."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column, _ = read_texts(column.cast(pa.string()), _UTC)
    if pa.types.is_date(kind):
        column = pc.multiply(column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()), _DAY)
    elif not pa.types.is_null(kind):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    else:
        column = pa.nulls(len(column), pa.int64())
    micros: Array = column.fill_null(NEVER).to_numpy()
    return micros
