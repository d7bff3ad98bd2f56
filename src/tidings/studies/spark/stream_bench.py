"""Measures a running pipeline: latency from a file to the outbox, and whether memory is stable.

A separate process writes JSON lines at a steady rate, each with the time of its creation; the
pipeline matches them against filters of the workload `mixed`. The latency of a notification ends
when the commit of its batch is on disk. Notifications from the first seconds, while workers start
and kernels are loaded, are not counted.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from tidings.files import place_file
from tidings.model import TidingsError
from tidings.spark.outbox import Commit, Outbox
from tidings.spark.pipeline import Pipeline, load_settings
from tidings.store import ChangeLog
from tidings.studies.host.machine_info import MachineInfo, describe_machine
from tidings.studies.host.process_usage import family, resident_memory
from tidings.studies.workloads.workloads import make_workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES_PER_SECOND = 10
POOL = 65_536  # distinct events, which are sent repeatedly
_FILE = """
name = "bench"
[source]
kind = "files"
path = "in"
when_read = "delete"
[columns]
{columns}
made = "integer"
[subscriptions]
log = "subscriptions"
[outbox]
path = "out"
[trigger]
every_seconds = {every}
"""
Note = Callable[[str], None]


class StreamMemory(msgspec.Struct, frozen=True):
    """The memory of the driver, of the JVM, and of all Python workers together, in MB."""

    driver: float
    jvm: float
    workers: float


class StreamReport(msgspec.Struct, frozen=True):
    machine: MachineInfo
    filters: int
    rate: int
    seconds: float
    warm: float  # seconds at the start that are not counted
    every: float
    notifications: int
    told: int
    batches: int
    batch_p50: float  # seconds
    batch_p99: float
    p50: float  # seconds from creation to commit
    p99: float
    most: float
    early: StreamMemory
    late: StreamMemory


def bench_stream(
    spark: SparkSession,
    folder: Path,
    *,
    filters: int = 100_000,
    rate: int = 5_000,
    seconds: float = 60,
    warm: float = 20,
    every: float = 0.0,
    changes: float = 1.0,
    seed: int = 1,
    note: Note = lambda _: None,
) -> StreamReport:
    """Run a pipeline for a few seconds; `changes` subscriptions are changed per second."""
    where = describe_machine()
    note("loading subscriptions")
    work = make_workload("mixed", filters, POOL, seed)
    log = ChangeLog(folder / "subscriptions")
    log.put_many((f"s{number}", text) for number, text in work.texts())
    columns = "\n".join(f'{one.name} = "{one.kind}"' for one in work.attributes)
    (folder / "pipeline.toml").write_text(_FILE.format(columns=columns, every=every))
    (folder / "in").mkdir()
    note("compiling the snapshot")
    spent: list[tuple[float, float]] = []  # for each batch, its end and its duration in seconds

    def note_batch(_: Commit, took: float) -> None:
        spent.append((time.time(), took))

    pipeline = Pipeline(load_settings(folder / "pipeline.toml"), spark, note_batch)
    lines = work.event_lines()
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    sender = context.Process(target=_send, args=(folder, lines, rate, stop), daemon=True)
    query = pipeline.start()
    sender.start()
    early: StreamMemory | None = None
    began, started = time.monotonic(), time.time()
    changed = 0
    texts = [text for _, text in zip(range(10_000), work.filters.sql(), strict=False)]
    while (passed := time.monotonic() - began) < seconds:
        time.sleep(0.2)
        if query.exception() is not None:
            break
        note(f"{passed:.0f} of {seconds:.0f} s, {len(spent)} batches")
        if early is None and passed > min(60.0, seconds / 3):
            early = _memory()
        while changed < changes * passed:
            log.put(f"new{changed % 500}", texts[changed * 7 % len(texts)])
            changed += 1
    stop.set()
    sender.join(10)
    late = _memory()
    query.processAllAvailable()
    query.stop()
    pipeline.close()
    counted = started + warm
    latencies, pairs = _latencies(Outbox(folder / "out"), counted)
    steady = [took for ended, took in spent if ended > counted]
    if not steady or not len(latencies):
        raise TidingsError(
            f"found no batch after the first {warm:.0f} s, which are not counted; run the "
            f"benchmark for longer than {seconds:.0f} s"
        )
    p50, p99, most = np.percentile(latencies, [50, 99, 100]).tolist()
    half, tail = np.percentile(steady, [50, 99]).tolist()
    return StreamReport(
        machine=where,
        filters=filters,
        rate=rate,
        seconds=seconds,
        warm=warm,
        every=every,
        notifications=len(latencies),
        told=pairs,
        batches=len(steady),
        batch_p50=half,
        batch_p99=tail,
        p50=p50,
        p99=p99,
        most=most,
        early=early or late,
        late=late,
    )


def _send(folder: Path, lines: list[bytes], rate: int, stop: Any) -> None:
    """Write files at a steady rate until `stop` is set."""
    count = max(1, rate // FILES_PER_SECOND)
    at, number, began = 0, 0, time.time()
    while not stop.is_set():
        now = time.time_ns() // 1000
        chosen = (lines[(at + step) % len(lines)] for step in range(count))
        text = b"".join(line[:-1] + b',"made":%d}\n' % now for line in chosen)
        place_file(folder / "in" / f"{number:09d}.json", text)
        at, number = at + count, number + 1
        time.sleep(max(0.0, began + number / FILES_PER_SECOND - time.time()))


def _latencies(outbox: Outbox, since: float) -> tuple[npt.NDArray[Any], int]:
    """The seconds from creation to commit of each notification created after `since`, and how many
    pairs of a notification and a subscription matched in the batches of these notifications."""
    found: list[npt.NDArray[Any]] = [np.zeros(0)]
    told = 0
    for batch in outbox.commits():
        done = outbox.read_commit(batch)
        if done is None or not done.matched:
            continue
        there = done.ended / 1e6
        rows = pq.read_table(outbox.folder(batch, done.attempt), columns=["made"])
        made = rows.column("made").to_numpy() / 1e6
        if made[-1] > since:
            found.append(there - made[made > since])
            told += done.told
    return np.concatenate(found), told


def _memory() -> StreamMemory:
    """The resident memory of this process and its descendants."""
    sizes = {"driver": 0.0, "jvm": 0.0, "workers": 0.0}
    for pid in family(os.getpid()):
        name, size = resident_memory(pid)
        kind = "jvm" if name == "java" else "workers"
        sizes["driver" if pid == os.getpid() else kind] += size / 1e6
    return StreamMemory(**sizes)
