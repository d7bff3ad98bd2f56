"""`tidings bench spark`: tagging on Spark, against the bare engine and against joins."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import options
from tidings.cli.amounts import read_amount
from tidings.cli.arrow import load_pyarrow
from tidings.cli.bench import Seed, show_report
from tidings.cli.screen import emit, working


def bench_spark(
    filters: Annotated[
        str, typer.Option("--filters", metavar="N", help="Filters, where there are many.")
    ] = "100k",
    rows: Annotated[
        str, typer.Option("--rows", metavar="N", help="Rows to tag, where nothing is joined.")
    ] = "2M",
    few: Annotated[
        str, typer.Option("--few", metavar="N", help="Filters of many shapes, to be joined.")
    ] = "1k",
    join_rows: Annotated[
        str, typer.Option("--join-rows", metavar="N", help="Rows to tag, where there are joins.")
    ] = "1M",
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="Times that each is measured.")
    ] = 3,
    cores: Annotated[
        int, typer.Option("--cores", metavar="N", min=1, help="Cores for Spark to use.")
    ] = 2,
    seed: Seed = 1,
    json: options.Json = False,
) -> None:
    """Measure tagging on Spark, from Parquet to Parquet.

    Against the bare engine on two threads; and against what one does without it: a nested-loop join
    with a table of bounds, and, for filters of one shape, a broadcast hash join. All ways take
    turns, and must find the same pairs of row and filter.

    With --json, one object: machine, ways.
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
    from tidings.studies.spark_bench import bench_spark as measure

    with working() as note, tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        note("starting Spark")
        spark = local_session("tidings-bench", cores, **{"spark.driver.memory": "4g"})
        report = measure(spark, Path(folder), repeats=repeats, seed=seed, note=note, **sizes)
    if json:
        emit(report)
    else:
        show_report(report.machine, studies.spark_sections(report))
