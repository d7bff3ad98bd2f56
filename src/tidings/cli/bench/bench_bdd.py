"""`tidings bench bdd`: measures decision diagrams with implications."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli.bench.bench_command import Seed, show_report
from tidings.cli.common import options
from tidings.cli.common.amounts import read_amount
from tidings.cli.common.arrow import load_pyarrow
from tidings.cli.common.screen import emit, report_steps


def bench_bdd(
    filters: Annotated[
        str, typer.Option("--filters", metavar="N", help="How many filters of each workload.")
    ] = "10k",
    events: Annotated[
        int, typer.Option("--events", metavar="N", min=4, help="Events of each measurement.")
    ] = 128,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="Repetitions of measurements.")
    ] = 3,
    sweep: Annotated[
        str,
        typer.Option(
            "--sweep", metavar="N", help="Filters at each point of the sweep; 0 leaves it out."
        ),
    ] = "300",
    seed: Seed = 1,
    json: options.Json = False,
) -> None:
    """Measure decision diagrams with implications.

    There are three workloads: "clauses", "stock" and "stock inside". A filter of "clauses" is
    (a OR b) AND (c OR d) AND ... with 10 to 30 tests over 50 shared attributes. A filter of "stock"
    tests a symbol, a price outside a range and a day; in "stock inside", the price is inside the
    range. The same kernels evaluate the filters in five ways: each filter by itself; all filters
    with equal parts merged; with classes (nodes at which the same test results are known are
    evaluated together); with classes and implication edges; and the same with tests in the order of
    measured pass rates.
    Finally, a matcher without diagrams matches batches.

    The sweep mixes narrow filters with filters of 3 to 15 clauses, which are 0 to 100 % of all
    filters. It compares the engine that is chosen automatically with each of the two engines.
    Results are checked before the evaluation is timed. Times are processor times.

    Then the coverings among filters and the edges of their content graph are counted, first without
    the walk down the trees of both filters, and then with it. Random events are tried, and none may
    refute a covering. Coverings on a small domain are compared with brute force on all events. The
    last table lists the targets, each with the measured value, and whether it is met.

    With --json, one object: machine, seed, runs, sweep, coverings, brute_force, figure_exact, bars.
    """
    count = read_amount(filters, "--filters")
    points = 0 if sweep == "0" else read_amount(sweep, "--sweep")
    load_pyarrow()
    from tidings import studies

    with report_steps() as note:
        report = studies.bench_diagrams(
            count, events=events, repeats=repeats, sweep=points, seed=seed, note=note
        )
    if json:
        emit(report)
    else:
        sections = studies.diagram_sections(report)
        show_report(report.machine, sections, *studies.notes_of(report.bars))
