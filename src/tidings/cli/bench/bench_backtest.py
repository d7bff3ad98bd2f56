"""`tidings bench backtest`: many filters on many flights, in bounded memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli.backtests import backtest_tables
from tidings.cli.common import options
from tidings.cli.common.amounts import read_amount
from tidings.cli.common.arrow import load_pyarrow
from tidings.cli.common.screen import (
    count_of,
    emit,
    facts,
    plain_text,
    report_steps,
    show,
    tasks_bar,
)
from tidings.files import user_cache_folder

if TYPE_CHECKING:
    from tidings.spark.backtests import Backtest

MEGA = 1 << 20


def bench_backtest(
    rows: Annotated[
        str, typer.Option("--rows", metavar="N", help="How many flights, such as 1M or 100M.")
    ] = "1M",
    filters: Annotated[
        str, typer.Option("--filters", metavar="N", help="How many filters, such as 1000 or 10k.")
    ] = "1000",
    every: Annotated[
        str,
        typer.Option(
            "--every",
            metavar="BUCKET",
            help="Time bucket: minute, hour, day, week, month, or a number of minutes.",
        ),
    ] = "day",
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Where the flights are written and kept; all executors must see it. "
            "[default: the user's cache]",
            show_default=False,
        ),
    ] = None,
    master: Annotated[
        str, typer.Option("--master", metavar="URL", help="Where Spark runs.")
    ] = "local[2]",
    seed: Annotated[
        int,
        typer.Option("--seed", metavar="N", min=0, help="Seed of filters and flights."),
    ] = 1,
    json: options.Json = False,
) -> None:
    """Measure a backtest: many filters on many flights.

    The flights are those of the demo, repeated over ten years with shifted dates and delays. The
    flights are written on first use; a million flights take about 15 MB on disk.

    Memory is the peak of each process: the driver, Spark's Java process, and the largest Python
    worker.

    With --json, one object: rows, filters, stretches, fired, never_fired, seconds,
    rows_per_second, written_seconds, bytes, memory (driver, java, worker).
    """
    wanted, count = read_amount(rows, "--rows"), read_amount(filters, "--filters")
    shared = backtest_tables.choose_shared_folder(master, folder, "--folder")
    load_pyarrow()
    from tidings import studies
    from tidings.studies.workloads import write_flights

    begun = time.perf_counter()
    with report_steps() as note:
        note("drawing filters")
        texts = dict(studies.make_workload("flights", count, 1, seed).texts())
        path = write_flights(
            folder or _cache(),
            wanted,
            seed=seed,
            note=lambda done: note(f"writing flights: {done:,} of {wanted:,}"),
        )
    written = time.perf_counter() - begun
    with (
        backtest_tables.open_session(master) as spark,
        backtest_tables.compile_filters(texts, shared) as ready,
    ):
        from tidings.spark import backtest
        from tidings.spark.backtests import peak_memory

        begun = time.perf_counter()
        with tasks_bar("testing") as bar:
            found = backtest(
                spark.read.parquet(str(path)), ready, time="time_hour", every=every, progress=bar
            )
        seconds = time.perf_counter() - begun
        memory = {
            "driver": peak_memory(),
            "java": peak_memory(_java(spark)),
            "worker": found.worker_peak,
        }
    size = sum(file.stat().st_size for file in path.glob("*.parquet"))
    if json:
        emit(_record(found, seconds, written, size, memory))
    else:
        _show(found, seconds, size, memory, path)


def _java(spark: Any) -> str:
    """The id of Spark's Java process. If Spark runs elsewhere, this machine has no such process."""
    return str(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())


def _cache() -> Path:
    return user_cache_folder("flights")


def _record(
    found: Backtest, seconds: float, written: float, size: int, memory: dict[str, int]
) -> dict[str, Any]:
    return {
        "rows": found.rows, "filters": len(found), "stretches": len(found.stretches),
        "fired": sum(map(found.total, found.ids)), "never_fired": len(found.never_fired()),
        "seconds": round(seconds, 3), "rows_per_second": round(found.rows / seconds),
        "written_seconds": round(written, 3), "bytes": size, "memory": memory,
    }  # fmt: skip


def _show(found: Backtest, seconds: float, size: int, memory: dict[str, int], path: Path) -> None:
    fired = sum(map(found.total, found.ids))
    stretch = found.every.name
    span = count_of(len(found.stretches), stretch, f"times {stretch}" if " " in stretch else "")
    show(
        plain_text(f"{count_of(len(found), 'filter')} on {count_of(found.rows, 'flight')}", "bold"),
        "",
        facts(
            [
                ("table", f"{size / 1e6:,.0f} MB of Parquet in {path}"),
                ("fired", f"{fired:,} times in {span}; never: {len(found.never_fired()):,}"),
                ("time", f"{seconds:.1f} s: {found.rows / seconds:,.0f} rows per second"),
                *((f"{name} MB", f"{peak / MEGA:,.0f} at most") for name, peak in memory.items()),
            ]
        ),
    )
