"""`tidings bench relations`: measures the relation repository."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli.common import options
from tidings.cli.common.amounts import read_amount
from tidings.cli.common.arrow import load_pyarrow
from tidings.cli.common.screen import emit, report_steps

if TYPE_CHECKING:
    from tidings.studies import LiveOverloadReport, OverloadReport

    Overload = LiveOverloadReport | OverloadReport

LONG, SHORT = 300.0, 10.0  # seconds of overload: if measured alone, or after the other measurements


class Only(StrEnum):
    """A part of the benchmark that can be measured alone."""

    overload = "overload"
    planned = "planned"


def _measure_overload(
    seconds: float, seed: int, live: bool, note: Callable[[str], None]
) -> Overload:
    from tidings import studies

    measure = studies.bench_live_overload if live else studies.bench_overload
    return measure(seconds, seed=seed, note=note)


def _overload_lines(report: Overload) -> list[str]:
    from tidings import studies

    if isinstance(report, studies.LiveOverloadReport):
        return studies.live_overload_lines(report)
    return studies.overload_lines(report)


def _bench_overload(seconds: float, seed: int, json: bool, live: bool) -> None:
    from tidings.cli.bench.bench_command import show_report

    with report_steps() as note:
        report = _measure_overload(seconds, seed, live, note)
    if json:
        emit(report)
    else:
        show_report(report.machine, [], *_overload_lines(report))


def _bench_planned(
    subscriptions: int, topics: int, learn: int, messages: int, repeats: int, seed: int, json: bool
) -> None:
    from tidings import studies
    from tidings.cli.bench.bench_command import show_report

    with report_steps() as note:
        report = studies.bench_planned(
            subscriptions, topics, learn=learn, messages=messages, repeats=repeats, seed=seed,
            note=note,
        )  # fmt: skip
    if json:
        emit(report)
    else:
        show_report(report.machine, [], *studies.planned_lines(report))


def bench_relations(
    subscriptions: Annotated[
        str, typer.Option("--subscriptions", metavar="N", help="How many subscriptions.")
    ] = "1M",
    topics: Annotated[str, typer.Option("--topics", metavar="N", help="How many topics.")] = "100k",
    hops: Annotated[
        int, typer.Option("--hops", metavar="N", min=1, max=64, help="How many next hops.")
    ] = 4,
    learn: Annotated[
        str, typer.Option("--learn", metavar="N", help="Messages to learn from before measuring.")
    ] = "100k",
    messages: Annotated[
        str, typer.Option("--messages", metavar="N", help="Messages that are measured.")
    ] = "20k",
    related: Annotated[
        int,
        typer.Option(
            "--related", metavar="N", min=1, help="Subscriptions with related=0.7, for the scan."
        ),
    ] = 1000,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="Repetitions of measurements.")
    ] = 3,
    only: Annotated[
        Only | None,
        typer.Option(
            "--only",
            help="Measure only a queue in the order of merit (overload), or only stored answers "
            "at a root (planned).",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            metavar="S",
            min=1,
            help="How many seconds the overload lasts; by default 10, or 300 with --only overload.",
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Run processes for the overload, in real time."),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of all draws.")] = 1,
    json: options.Json = False,
) -> None:
    """Measure the relation repository of a node that tags.

    Topics of subscriptions and messages follow Zipf's law with exponent 1.1, and form a tree. The
    repository learns from the first messages. It has at most one node per ten distinct filters.
    Then the fast path is compared with Matcher.match of single events, and the hops of early sends
    with the hops that need the message. Related deliveries are compared with those that a full scan
    finds with the same formula. Finally, a router forwards notifications in four ways: without
    relations, with contexts, while it learns, and with early bodies. Results are checked before
    they are timed. Times are processor times.

    Then a queue in the order of merit is measured: in simulated time, publications arrive at twice
    the sustainable rate, then at half of it, until the queue is empty. With --live, a rendezvous
    point and a router run as processes, agents publish and subscribe over connections, and the
    sustainable rate is measured first. With --only overload, only this queue is measured.

    With --only planned, only one measurement is made: a rendezvous point takes publications, with
    and without stored answers in front of its matcher.

    The last table lists the targets, each with the measured value, and whether it is met.

    With --json, one object: machine, seed, sizes, shares, times, limits, related, related_limits,
    forwarding, overload, bars; with --only overload: machine, seed, rate, counts, times, ratio;
    with --only planned: machine, seed, subscriptions, topics, rows.
    """
    if only is Only.overload:
        _bench_overload(LONG if seconds is None else seconds, seed, json, live)
        return
    sizes = {
        "subscriptions": read_amount(subscriptions, "--subscriptions"),
        "topics": read_amount(topics, "--topics"),
        "learn": read_amount(learn, "--learn"),
        "messages": read_amount(messages, "--messages"),
    }
    load_pyarrow()
    if only is Only.planned:
        _bench_planned(**sizes, repeats=repeats, seed=seed, json=json)
        return
    from tidings import studies
    from tidings.cli.bench.bench_command import show_report

    with report_steps() as note:
        report = studies.bench_relations(
            **sizes, hops=hops, related=related, repeats=repeats, seed=seed, note=note
        )
        measured = _measure_overload(SHORT if seconds is None else seconds, seed, live, note)
        whole = studies.complete_report(report, measured)
    if json:
        emit(whole)
    else:
        sections = [*studies.relation_sections(whole), studies.bars_section(whole.bars)]
        lines = [*studies.relation_lines(whole), *_overload_lines(measured)]
        show_report(whole.machine, sections, *lines, "", *studies.notes_of(whole.bars))
