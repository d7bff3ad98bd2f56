"""`tidings bench spark` and `bench stream`: compare tagging with joins, and measure pipelines."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.bench.bench_command import Seed, show_report
from tidings.cli.common import options
from tidings.cli.common.amounts import read_amount
from tidings.cli.common.arrow import load_pyarrow
from tidings.cli.common.screen import emit, report_steps


def bench_spark(
    filters: Annotated[
        str, typer.Option("--filters", metavar="N", help="Filters in the large runs.")
    ] = "100k",
    rows: Annotated[
        str, typer.Option("--rows", metavar="N", help="Rows to tag in the run without joins.")
    ] = "2M",
    few: Annotated[
        str, typer.Option("--few", metavar="N", help="Filters of many shapes, for the join.")
    ] = "1k",
    join_rows: Annotated[
        str, typer.Option("--join-rows", metavar="N", help="Rows to tag in runs with joins.")
    ] = "1M",
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="Repetitions of each measurement.")
    ] = 3,
    cores: options.Cores = 2,
    seed: Seed = 1,
    json: options.Json = False,
) -> None:
    """Measure tagging on Spark, from Parquet to Parquet.

    Tagging is compared with the bare engine on two threads, and with the alternatives in Spark: a
    nested-loop join with a table of bounds, and, for filters of one shape, a broadcast hash join.
    All methods take turns, and must find the same pairs of row and filter.

    With --json, one object: machine, ways (run, filters, rows, way, rows_per_second, least, most,
    pairs).
    """
    sizes = {
        "filters": read_amount(filters, "--filters"),
        "rows": read_amount(rows, "--rows"),
        "few": read_amount(few, "--few"),
        "join_rows": read_amount(join_rows, "--join-rows"),
    }
    load_pyarrow()
    from tidings import studies
    from tidings.spark import local_session
    from tidings.studies.spark import bench_spark as measure

    with report_steps() as note, tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        note("starting Spark")
        spark = local_session("tidings-bench", cores, **{"spark.driver.memory": "4g"})
        report = measure(spark, Path(folder), repeats=repeats, seed=seed, note=note, **sizes)
    if json:
        emit(report)
    else:
        show_report(report.machine, studies.spark_sections(report))


def bench_stream(
    filters: Annotated[
        str, typer.Option("--filters", metavar="N", help="How many subscriptions.")
    ] = "100k",
    rate: Annotated[
        str, typer.Option("--rate", metavar="N", help="Notifications per second.")
    ] = "5000",
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="N", min=30, help="How long the pipeline runs.")
    ] = 60,
    every: Annotated[
        float,
        typer.Option("--every", metavar="SECONDS", min=0, help="Trigger interval; 0: no pause."),
    ] = 0,
    cores: options.Cores = 2,
    seed: Seed = 1,
    json: options.Json = False,
) -> None:
    """Measure a pipeline from JSON lines in a folder to the outbox.

    Latency is the time from the creation of a notification to the commit of its batch on disk. A
    subscription is changed each second. Memory is measured early on and at the end.

    With --json, one object: machine, filters, rate, seconds, warm (warm-up, not counted),
    every, notifications, told, batches, batch_p50, batch_p99, p50, p99, most (from creation to
    commit), early and late (driver, jvm, workers: MB). Times are in seconds.
    """
    count, speed = read_amount(filters, "--filters"), read_amount(rate, "--rate")
    load_pyarrow()
    from tidings import studies
    from tidings.spark import local_session
    from tidings.studies.spark import bench_stream as measure

    with report_steps() as note, tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        note("starting Spark")
        spark = local_session("tidings-bench", cores, **{"spark.driver.memory": "2g"})
        report = measure(
            spark, Path(folder), filters=count, rate=speed, seconds=seconds, every=every,
            seed=seed, note=note,
        )  # fmt: skip
    if json:
        emit(report)
    else:
        show_report(report.machine, studies.stream_sections(report))
