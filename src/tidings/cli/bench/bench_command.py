"""`tidings bench`: measures speed on this machine, and compares revisions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli.bench.bench_backtest import bench_backtest
from tidings.cli.bench.bench_build import bench_build
from tidings.cli.common import options
from tidings.cli.common.amounts import read_amount
from tidings.cli.common.arrow import load_pyarrow
from tidings.cli.common.command_errors import BadInput, remark, report_errors
from tidings.cli.common.screen import emit, plain_text, report_steps, show

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from tidings.studies import MachineInfo

bench = typer.Typer(rich_markup_mode=None)

Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, help="Seed of filters and events.")
]

Workloads = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        metavar="NAME",
        help="mixed, equality, ranges, prefix, flights or all; may be repeated. [default: mixed]",
        show_default=False,
    ),
]
Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "--filters",
        metavar="N",
        help="How many filters, such as 10000, 10k or 1M; may be repeated. [default: 10k]",
        show_default=False,
    ),
]


@bench.callback(invoke_without_command=True)
def about(context: typer.Context) -> None:
    """Measure matching, changes, graphs, Spark and the network; compare two revisions."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def bench_match(
    workload: Workloads = None,
    filters: Sizes = None,
    events: Annotated[
        str | None,
        typer.Option(
            "--events",
            metavar="N",
            help="How many events. [default: a batch for each thread]",
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        str, typer.Option("--batch", metavar="N", help="Events per batch and thread.")
    ] = "65536",
    threads: Annotated[
        list[int] | None,
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            help="Threads that match batches; may be repeated. [default: 1]",
            show_default=False,
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="Repetitions of each measurement.")
    ] = 5,
    sample: Annotated[
        int,
        typer.Option(
            "--sample", metavar="N", min=1, help="Events to check against the reference semantics."
        ),
    ] = 50,
    tests: Annotated[
        int,
        typer.Option("--tests", metavar="N", min=0, help="Events whose tests are counted."),
    ] = 0,
    seed: Seed = 1,
    json: options.Json = False,
) -> None:
    """Measure matching on this machine.

    Workloads: mixed (20 attributes, strings and integers, 3 to 7 tests per filter), equality (3
    tests on strings), ranges (3 to 6 tests on doubles), prefix (parts of paths), flights (real
    flights, subscriptions of six kinds). The same seed gives the same filters and events on every
    machine.

    Matches are checked before anything is measured. Then batches are matched in three ways, in
    turn: with pairs of event and filter as the result, with lists of ids as the result, and from
    JSON lines. Then single events are matched, as dicts and as JSON text. With several --filters, a
    table shows how the time grows; with several --threads, a column shows the speed-up over the
    first.

    With --tests, the command counts the tests that are evaluated for some events, both with every
    filter matched on its own and with the index. In columns named "different", equal tests count
    only once.

    With --json, one object: machine, runs, growth. Times are in microseconds per event.
    """
    names = _workloads(workload or ["mixed"])
    sizes = _sizes(filters)
    size = read_amount(batch, "--batch")
    count = None if events is None else read_amount(events, "--events")
    counts = _distinct(threads or [1])
    load_pyarrow()
    from tidings import studies

    if count is not None and count < size * max(counts) and max(counts) > 1:
        remark(
            f"{count:,} events are fewer than {max(counts)} batches of {size:,}: "
            "some threads have nothing to do"
        )
    with report_steps() as note:
        report = studies.bench_matching(
            names, sizes, events=count, batch=size, threads=counts, repeats=repeats,
            sample=sample, tests=tests, seed=seed, note=note,
        )  # fmt: skip
    if json:
        emit(report)
    else:
        show_report(report.machine, studies.match_sections(report), studies.describe_checks(report))


def bench_updates(
    workload: Workloads = None,
    filters: Sizes = None,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=1, help="Number of measured merges.")
    ] = 7,
    seed: Seed = 1,
    json: options.Json = False,
) -> None:
    """Measure the cost of changes.

    Filters are loaded from text in bulk. Then some filters are added and removed one by one, and
    the next match must reflect each change. Then single events are matched, alternately while
    nothing else runs and while a thread merges 5 % more filters. Finally a snapshot is saved and
    opened.

    slowdown: the p99 of a match while a merge runs, divided by the p99 without a merge.

    With --json, one object: machine, runs. Times of single calls are in microseconds.
    """
    names = _workloads(workload or ["mixed"])
    sizes = _sizes(filters)
    load_pyarrow()
    from tidings import studies

    with report_steps() as note:
        report = studies.bench_updates(names, sizes, rounds=rounds, seed=seed, note=note)
    if json:
        emit(report)
    else:
        show_report(report.machine, studies.update_sections(report))


def bench_graph(
    workload: Workloads = None,
    filters: Sizes = None,
    threads: Annotated[
        int,
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            help="Threads that find the edges.",
        ),
    ] = 2,
    sample: Annotated[
        int, typer.Option("--sample", metavar="N", min=1, help="Nodes whose parents are checked.")
    ] = 10,
    seed: Seed = 1,
    json: options.Json = False,
) -> None:
    """Measure building a content graph in bulk.

    Parsing is not measured, but computing canonical forms is. The join that finds the edges is
    repeated with one thread, and the parents of some nodes are checked against the definition.

    With --json, one object: machine, runs, growth. Times are in seconds.
    """
    names = _workloads(workload or ["mixed"])
    sizes = _sizes(filters)
    load_pyarrow()
    from tidings import studies

    with report_steps() as note:
        report = studies.bench_graph(
            names, sizes, threads=threads, sample=sample, seed=seed, note=note
        )
    if json:
        emit(report)
    else:
        show_report(report.machine, studies.graph_sections(report))


def bench_compare(
    first: Annotated[
        str, typer.Argument(metavar="REV1", help="The baseline of the comparison.", hidden=True)
    ],
    second: Annotated[
        str, typer.Argument(metavar="REV2", help="The revision to compare with REV1.", hidden=True)
    ],
    repository: Annotated[
        Path,
        typer.Option("--repository", metavar="DIR", help="A checkout of tidings."),
    ] = Path(),
    workload: Annotated[
        str,
        typer.Option(
            "--workload", metavar="NAME", help="mixed, equality, ranges, prefix or flights."
        ),
    ] = "mixed",
    filters: Annotated[
        str, typer.Option("--filters", metavar="N", help="How many filters.")
    ] = "10k",
    events: Annotated[
        str, typer.Option("--events", metavar="N", help="How many events.")
    ] = "65536",
    rounds: Annotated[
        int,
        typer.Option("--rounds", metavar="N", min=5, help="Measurements of each revision."),
    ] = 10,
    builds: Annotated[
        int,
        typer.Option(
            "--builds", metavar="N", min=0, help="Rounds in which filters are loaded again."
        ),
    ] = 5,
    threshold: Annotated[
        float,
        typer.Option("--threshold", metavar="PERCENT", min=0, help="Smaller changes are ignored."),
    ] = 3.0,
    seed: Seed = 1,
    json: options.Json = False,
) -> int:
    """Compare the speed of two revisions, and say which differences are noise.

    REV1 and REV2 are git revisions (a tag, a branch, HEAD~1); . is the working tree with all
    changes. In each round, both revisions are measured on the same filters and events, one right
    after the other. The sources are copied to a temporary folder, which is removed at the end.

    Shows, for each measure, the median of the ratios REV2 / REV1 and its confidence interval. The
    verdict is "improvement" or "regression" if the whole interval is beyond --threshold, "too few"
    if there are fewer than 5 ratios, and "noise" otherwise. Revisions that find different matches
    are not compared.

    With --json, one object: machine, workload, first, second, verdicts.

    Exit code: 0 if nothing got worse, 1 if there is a regression, 2 on bad input.
    """
    names = _workloads([workload], several=False)
    sizes = read_amount(filters, "--filters"), read_amount(events, "--events")
    from tidings import studies

    with report_steps() as note:
        report = studies.compare_revisions(
            first, second, folder=repository, workload=names[0], filters=sizes[0],
            events=sizes[1], rounds=rounds, builds=builds, seed=seed, threshold=threshold / 100,
            note=note,
        )  # fmt: skip
    if json:
        emit(report)
    else:
        show(
            plain_text(f"{report.second} compared with {report.first}", "bold"),
            f"{report.workload}: {report.filters:,} filters, {report.events:,} events, "
            f"{report.rounds} rounds, seed {report.seed}; both find {report.matches:,} matches",
            *_machine(report.machine),
            "",
            studies.compare_table(report),
            "",
            *studies.compare_lines(report),
            whole=True,
        )
        _remark_load(report.machine)
    return 1 if any(one.word == "regression" for one in report.verdicts) else 0


def _workloads(names: list[str], several: bool = True) -> list[str]:
    load_pyarrow()
    from tidings.studies import RECIPES

    known = [*RECIPES, "all"] if several else list(RECIPES)
    for name in names:
        if name not in known:
            raise BadInput(f"--workload is {name!r}, expected one of {', '.join(known)}")
    return list(RECIPES) if "all" in names else list(dict.fromkeys(names))


def _sizes(filters: list[str] | None) -> list[int]:
    return _distinct([read_amount(text, "--filters") for text in filters or ["10k"]])


def show_report(machine: MachineInfo, sections: list[tuple[str, Table]], *lines: str) -> None:
    """Show a report: the machine, the tables, and lines below them."""
    show(*_machine(machine), "")
    for heading, table in sections:
        show(plain_text(heading, "bold"), table, "", whole=True)
    show(*lines)
    _remark_load(machine)


def _machine(machine: MachineInfo) -> list[Text]:
    from tidings.studies import machine_lines

    return [plain_text(line, "dim") for line in machine_lines(machine)]


def _distinct(numbers: list[int]) -> list[int]:
    return list(dict.fromkeys(numbers))


def _remark_load(machine: MachineInfo) -> None:
    if machine.load is not None and machine.load > machine.processors / 2:
        remark(
            f"the machine was busy (load {machine.load:.1f} on {machine.processors} processors): "
            "times are longer and vary more than on an idle machine"
        )


bench.command("match")(report_errors(bench_match))
bench.command("updates")(report_errors(bench_updates))
bench.command("graph")(report_errors(bench_graph))
bench.command("build")(report_errors(bench_build))
bench.command("compare")(report_errors(bench_compare))
bench.command("backtest")(report_errors(bench_backtest))
