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

    Three workloads: clauses, which are filters (a OR b) AND (c OR d) AND ... with 10 to 30 tests
    over 50 shared attributes; stock, which are filters on a symbol, a price outside a range and a
    day; and stock inside, the same with a price inside the range. The same
    kernels evaluate each filter by itself, then all filters with equal parts merged, then with
    classes (nodes that know the same test results are moved together), then with classes and
    implication edges, then the same with tests in the order of measured pass rates. Finally, a
    matcher without diagrams matches batches.

    The sweep mixes narrow filters with 0 to 100 % filters of 3 to 15 clauses, and compares the
    automatic choice of the engine with both engines. Results are checked before the evaluation is
    timed. Times are processor times.

    Then the coverings among filters and the edges of their content graph are counted, without and
    with the walk down both filters. No random event may refute a covering. Coverings on a small
    domain are compared with brute force on all events. The last table lists the targets: what was
    asked for, what was measured, and whether the target is met.

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
