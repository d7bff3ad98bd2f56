"""`tidings bench chain`: runs the whole chain from rows to agents, checks it and measures it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.bench.bench_command import Seed, show_report
from tidings.cli.common import options
from tidings.cli.common.amounts import read_amount
from tidings.cli.common.arrow import load_pyarrow
from tidings.cli.common.command_errors import BadInput, remark
from tidings.cli.common.screen import count_of, emit, report_steps


def bench_chain(
    source: Annotated[
        str,
        typer.Option("--source", metavar="KIND", help="Where the rows are: files or kafka."),
    ] = "files",
    agents: Annotated[int, typer.Option("--agents", metavar="N", min=1, help="Agents.")] = 100,
    rate: Annotated[
        str, typer.Option("--rate", metavar="N", help="Rows per second in the steady phase.")
    ] = "300",
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="N", min=1, help="Length of the steady phase.")
    ] = 20,
    rows: Annotated[
        str, typer.Option("--rows", metavar="N", help="Rows that arrive together at the end.")
    ] = "10k",
    kills: Annotated[
        int,
        typer.Option("--kills", metavar="N", min=0, help="Processes to kill in the steady phase."),
    ] = 0,
    seed: Seed = 1,
    json: options.Json = False,
) -> int:
    """Run the chain from rows to agents on this machine, check it, and measure each stage.

    The chain has rows in files or in a Kafka topic, a pipeline on Spark, a rendezvous point, three
    routers, and agents with overlapping filters in all dialects. For each of its filters, an agent
    must receive every row that Filter.matches accepts, exactly once, and no other row. A filter
    that is added during the run must be used in the next micro-batch. With --kills, the driver,
    Java, a worker, the rendezvous point, the routers, the preprocessor and, with --source kafka,
    the broker are killed in turn, and started again. The exit code is 1 if anything is wrong.

    With --json, one object: machine, source, seed, agents, rows, batches, expected, delivered,
    lost, doubled, breaks, kills, killed and more counts; added (interests, counted,
    in_next_batch); latencies (commit, durable, handover, delivery, end_to_end: p50, p99, most, in
    seconds) and rates (tagging, handover, durable, delivery: per second).
    """
    speed, at_once = read_amount(rate, "--rate"), read_amount(rows, "--rows")
    load_pyarrow()
    from tidings.studies.chain import (
        SOURCES,
        bench_chain as measure,
        chain_lines,
        chain_sections,
    )

    if source not in SOURCES:
        raise BadInput(f"--source is {source!r}, expected one of {', '.join(SOURCES)}")
    with report_steps() as note, tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        report = measure(
            Path(folder), source=source, agents=agents, rate=speed, seconds=seconds,
            at_once=at_once, kills=kills, seed=seed, note=note,
        )  # fmt: skip
    if json:
        emit(report)
    else:
        show_report(report.machine, chain_sections(report), *chain_lines(report))
    if report.is_right:
        return 0
    remark(
        f"agents did not receive what they should: {count_of(report.lost, 'loss', 'losses')}, "
        f"{report.doubled:,} doubled, {report.strays:,} unwanted, {report.altered:,} altered, "
        f"{report.misnumbered + report.out_of_order:,} out of order, "
        f"{count_of(report.breaks, 'break')}; "
        f"--seed {seed} repeats the rows and interests"
    )
    return 1
