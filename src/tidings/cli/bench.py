"""`tidings bench`: how fast it is here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import options
from tidings.cli.amounts import read_amount
from tidings.cli.arrow import load_pyarrow
from tidings.cli.errors import BadInput, guarded, remark
from tidings.cli.screen import emit, plain, show, working

if TYPE_CHECKING:
    from tidings.studies import Machine

bench = typer.Typer(rich_markup_mode=None)

Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, help="What filters and events are drawn from.")
]


@bench.callback(invoke_without_command=True)
def about(context: typer.Context) -> None:
    """Measure how fast filters are matched."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def bench_match(
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            metavar="NAME",
            help="mixed, equality, ranges, prefix, flights or all; may be repeated. "
            "[default: mixed]",
            show_default=False,
        ),
    ] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filters",
            metavar="N",
            help="How many filters, such as 10000, 10k or 1M; may be repeated. [default: 10k]",
            show_default=False,
        ),
    ] = None,
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
        int, typer.Option("--repeats", metavar="N", min=1, help="Times that each is measured.")
    ] = 5,
    sample: Annotated[
        int,
        typer.Option(
            "--sample", metavar="N", min=1, help="Events to check against the reference semantics."
        ),
    ] = 50,
    seed: Seed = 1,
    json: options.Json = False,
) -> None:
    """Measure matching on this machine.

    Workloads: mixed (20 attributes, strings and integers, 3 to 7 tests per filter), equality (3
    tests on strings), ranges (3 to 6 on doubles), prefix (parts of paths), flights (real flights,
    subscriptions of six kinds). A seed gives the same filters and events everywhere.

    Matches are checked before anything is measured. Then batches are matched to pairs of event and
    filter, to lists of ids, and from JSON lines, in turn; then single events, given as dict and as
    JSON text. With several --filters, a table shows how the time grows; with several --threads, one
    column shows the speed-up over the first.

    With --json, one object: machine, runs, growth. Times are in microseconds per event.
    """
    names = _workloads(workload or ["mixed"])
    sizes = _distinct([read_amount(text, "--filters") for text in filters or ["10k"]])
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
    with working() as note:
        report = studies.bench_matching(
            names, sizes, events=count, batch=size, threads=counts, repeats=repeats,
            sample=sample, seed=seed, note=note,
        )  # fmt: skip
    if json:
        emit(report)
        return
    show(plain(studies.machine_line(report.machine), "dim"), "")
    for heading, table in studies.match_sections(report):
        show(plain(heading, "bold"), table, "")
    show(studies.checked_line(report))
    _remark_load(report.machine)


def _workloads(names: list[str]) -> list[str]:
    load_pyarrow()
    from tidings.studies import RECIPES

    known = [*RECIPES, "all"]
    for name in names:
        if name not in known:
            raise BadInput(f"--workload is {name!r}, expected one of {', '.join(known)}")
    return list(RECIPES) if "all" in names else list(dict.fromkeys(names))


def _distinct(numbers: list[int]) -> list[int]:
    return list(dict.fromkeys(numbers))


def _remark_load(machine: Machine) -> None:
    if machine.load is not None and machine.load > machine.processors / 2:
        remark(
            f"the machine was busy (load {machine.load:.1f} on {machine.processors} processors): "
            "times are longer than they could be, and vary more"
        )


bench.command("match")(guarded(bench_match))
