"""Backtests: how often filters would have fired on a table of past rows.

    columns that filters test, time, a few to show ──Arrow──> Python workers: match and count
                                                                   | counts per task
    Backtest <── driver: adds up the parts as they arrive  <───────┘

There is one stage and no shuffle: rows are sent only to the Python worker on the same machine.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tidings.files import scheme_of
from tidings.filters import Filter
from tidings.model import AttributesError, TidingsError
from tidings.snapshots import Snapshot, identity_of
from tidings.spark.backtests.backtest_result import Backtest
from tidings.spark.backtests.backtest_worker import CountTask, make_counter
from tidings.spark.backtests.fire_counts import (
    MOST_COUNTS,
    MOST_SAMPLES,
    FireCounts,
    TaskCounts,
    TooManyCounts,
)
from tidings.spark.backtests.time_buckets import TimeBucket
from tidings.spark.session import send_to_workers
from tidings.spark.tagging.column_checks import check_columns, family_of, type_at
from tidings.spark.tagging.tagging import place_snapshot
from tidings.spark.tagging.worker import Pinned

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

Filters = str | Filter | Mapping[Any, Filter | str] | Snapshot | Path
Progress = Callable[[int, int, int], None]

SHOWN = 6  # columns of a sample; more if filters test more
MOST_SHOWN = 12
_SCALARS = {"boolean", "number", "string", "time"}
_POLL = 0.25  # seconds between two progress reports


def backtest(
    df: DataFrame,
    filters: Filters,
    *,
    time: str | None = None,
    every: str | int = "day",
    samples: int = 5,
    progress: Progress | None = None,
    errors: str = "raise",
) -> Backtest:
    """Count how often filters would have fired on the rows of a table, over time.

    - `filters` is one filter text, a mapping of ids to filter texts, a Snapshot, or the path of
      one. If workers may run on other machines, `filters` must be a snapshot in a folder that all
      of them can read.
    - `time` is the column with the time of a row: dates, timestamps, or strings that contain dates
      or timestamps. By default, `time` is the only column of dates or timestamps; a table without
      such a column is counted as a whole.
    - `every` is minute, hour, day, week (from Monday), month, or a number of minutes; in UTC.
    - `samples` is the number of rows to keep for each filter: the earliest rows, and among rows of
      the same time those with the lowest hash, so that the choice does not depend on partitions.
    - `progress` is called from a thread with the number of finished tasks, the number of tasks, and
      the number of rows counted so far.
    - `errors`: by default, filters that are refused, or that don't fit the columns, raise an error
      that lists them with their ids. With "collect", refused filters are left out and are listed in
      the result's `refused`, and a warning names the filters that don't fit.

    Rows without a time are counted separately. Columns are checked in the same way as by `tag`.

    Memory does not depend on the number of rows. For each filter and each time bucket with rows, a
    backtest takes 8 bytes in the driver and 4 in a Python worker; while the counts are moved to a
    larger array, or are sorted, it takes twice as much. The samples take additional memory. A
    backtest with more than 50 million such counts is refused.
    """
    step = TimeBucket.parse(every)
    if samples < 0:
        raise TidingsError(f"found samples={samples}, expected 0 or more")
    opened, path = _compile_filters(filters, df.sparkSession, errors)
    view = opened.view
    if not len(opened):
        raise TidingsError("found no filter, expected at least one")
    if len(view.numbers) * samples > MOST_SAMPLES:
        raise TidingsError(
            f"{samples} samples of each of {len(view.numbers):,} filters exceed the limit of "
            f"{MOST_SAMPLES:,}; request fewer, or none with samples=0"
        )
    tested = check_columns(df.schema, view, errors=errors)
    when = time_column(df.schema, time)
    stage, task = _stage(
        df, tested, when, samples, Pinned(path, opened.number, identity=identity_of(path)), step
    )
    tally = FireCounts(len(view.numbers), samples, np.int64)
    try:
        with _follow_jobs(df, tally, progress) as end:
            for encoded in _stream_parts(stage, end):
                tally.add(msgspec.msgpack.decode(encoded, type=TaskCounts))
    except TooManyCounts as problem:
        count = len(view.numbers) * problem.stretches
        raise TidingsError(
            f"{len(view.numbers):,} filters in at least {problem.stretches:,} time buckets of one "
            f"{step.name} need {count:,} counts, expected at most {MOST_COUNTS:,}; use a coarser "
            "`every`, such as day, week or month, or fewer filters"
        ) from None
    tally.sort()
    return Backtest(opened, tally, step, when, [name for name, _ in task.shown])


def time_column(schema: StructType, given: str | None) -> str | None:
    """The column with the time of a row: the given column, or the only column of dates or
    timestamps."""
    names = schema.fieldNames()
    if given is None:
        found = [field.name for field in schema.fields if family_of(field.dataType) == "time"]
        if len(found) > 1:
            raise AttributesError(
                f"the table has several time columns, {', '.join(found[:8])}; name one with `time`"
            )
        return found[0] if found else None
    kind = schema[given].dataType if given in names else type_at(schema, tuple(given.split(".")))
    if family_of(kind) not in ("time", "string", "null"):
        raise AttributesError(
            f"the column '{given}' is {kind.simpleString()}, expected dates, timestamps, or "
            "strings that contain them; timestamp_seconds(...) converts seconds since 1970"
        )
    return given


def _compile_filters(filters: Filters, spark: Any, errors: str) -> tuple[Snapshot, str]:
    """Compile filters into a snapshot; return it and its path."""
    if isinstance(filters, str):
        if scheme_of(filters):
            return place_snapshot(filters, spark)
        folder = Path(filters)
        with contextlib.suppress(OSError, ValueError):  # a filter's text may be invalid as a path
            if (folder / "manifest.json").is_file():
                return place_snapshot(folder, spark)
        filters = {filters: filters}
    elif isinstance(filters, Filter):
        filters = {filters.sql(): filters}
    return place_snapshot(
        Snapshot.build(filters, errors=errors) if isinstance(filters, Mapping) else filters, spark
    )


def _stage(
    df: DataFrame,
    tested: list[str],
    time: str | None,
    samples: int,
    pinned: Pinned,
    step: TimeBucket,
) -> tuple[DataFrame, CountTask]:
    """The table with the counts of each task, and the instructions for the tasks that compute
    it."""
    from pyspark.sql import functions as f

    shown = choose_columns(df.schema, tested, time) if samples else []
    names = list(dict.fromkeys([*tested, *shown, *([] if time is None else [time])]))
    columns = [_column(df, name).alias(f"c{at}") for at, name in enumerate(names)]
    if samples:
        hashed = [_column(df, name) for name in shown if _is_hashed(df.schema, name)]
        columns.append(f.xxhash64(*hashed or [f.lit(0)]).alias("order"))
    if not tested:  # no filter tests a column, for example if the only filter is `true`
        columns, names = [f.lit(True).alias("none"), *columns], ["", *names]
    task = CountTask(
        pinned,
        tuple(tested) or ("",),
        step,
        None if time is None else names.index(time),
        samples,
        len(columns) - 1 if samples else None,
        tuple((name, names.index(name)) for name in shown),
    )
    counter = send_to_workers(df.sparkSession, make_counter(task))
    return df.select(*columns).mapInArrow(counter, "part binary"), task


def choose_columns(schema: StructType, tested: list[str], time: str | None) -> list[str]:
    """The columns of a sample: the time, the columns that filters test, and other columns up to
    SHOWN in total."""
    names = schema.fieldNames()
    wanted = [*([] if time is None else [time]), *tested]
    wanted += [
        field.name
        for field in schema.fields
        if family_of(field.dataType) in _SCALARS and names.count(field.name) == 1
    ]
    wanted = list(dict.fromkeys(wanted))
    return wanted[: min(MOST_SHOWN, max(SHOWN, len(tested) + 1))]


def _column(df: DataFrame, name: str) -> Column:
    from pyspark.sql import functions as f

    parts = [name] if name in df.columns else name.split(".")
    return f.col(".".join(f"`{part.replace('`', '``')}`" for part in parts))


def _is_hashed(schema: StructType, name: str) -> bool:
    """Whether Spark can hash a column; it can't hash maps and variants."""
    if name not in schema.fieldNames():
        return True
    kind: DataType = schema[name].dataType
    return not any(word in kind.simpleString() for word in ("map<", "variant"))


@contextlib.contextmanager
def _follow_jobs(
    df: DataFrame, tally: FireCounts, progress: Progress | None
) -> Iterator[Callable[[], None]]:
    """Name Spark's jobs while the block runs and report their progress; yield a function that
    cancels them.

    With Spark Connect, jobs are not named, reported or cancelled.
    """
    session: Any = df.sparkSession
    context = getattr(session, "_sc", None)
    if context is None:
        yield lambda: None
        return
    keys = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
    before = [context.getLocalProperty(key) for key in keys]
    group = f"tidings-backtest-{uuid.uuid4()}"
    context.setJobGroup(group, "tidings backtest")
    done = threading.Event()
    follower = threading.Thread(
        target=_report_progress,
        args=(context.statusTracker(), group, tally, progress, done),
        daemon=True,
    )
    if progress is not None:
        follower.start()
    try:
        yield lambda: context.cancelJobGroup(group)
    finally:
        done.set()
        if progress is not None:
            follower.join()
        for key, value in zip(keys, before, strict=True):
            context.setLocalProperty(key, value)


def _report_progress(
    tracker: Any, group: str, tally: FireCounts, progress: Progress, done: threading.Event
) -> None:
    while True:
        last = done.wait(_POLL)
        finished = tasks = 0
        for job in tracker.getJobIdsForGroup(group):
            info = tracker.getJobInfo(job)
            for stage in () if info is None else info.stageIds:
                about = tracker.getStageInfo(stage)
                # If the result of a stage already exists, Spark skips the stage.
                if about is not None and about.numActiveTasks + about.numCompletedTasks:
                    finished, tasks = finished + about.numCompletedTasks, tasks + about.numTasks
        progress(finished, tasks, tally.rows)
        if last:
            return


class _ArrowBatches:
    """Reads Arrow batches from Spark's JVM as tasks finish. `toArrow` would keep all batches until
    the last task is done."""

    def load_stream(self, stream: Any) -> Iterator[Any]:
        import pyarrow as pa

        yield from pa.ipc.open_stream(stream)
        # The rest of the stream is not read: it contains the order of the batches, or an error,
        # which `getResult` raises.


def _stream_parts(stage: DataFrame, end: Callable[[], None]) -> Iterator[bytes]:
    """The encoded counts of each task, in the order in which tasks finish."""
    table: Any = stage
    if not hasattr(table, "_jdf"):  # Spark Connect
        yield from (value.as_py() for value in table.toArrow().column("part"))
        return
    from pyspark.errors.exceptions.captured import unwrap_spark_exception
    from pyspark.util import _load_from_socket

    port, secret, server = table._jdf.collectAsArrowToPython()
    whole = False
    try:
        with _load_from_socket((port, secret), _ArrowBatches()) as batches:  # type: ignore[arg-type]
            for batch in batches:
                yield from (value.as_py() for value in batch.column(0))
        whole = True
    finally:
        if not whole:
            end()
        with contextlib.ExitStack() as stack:
            if not whole:
                stack.enter_context(contextlib.suppress(Exception))
            stack.enter_context(unwrap_spark_exception())
            server.getResult()
