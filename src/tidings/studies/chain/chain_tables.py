"""Formats a run of the chain as tables."""

from __future__ import annotations

from rich.table import Table

from tidings.studies.chain.chain_report import ChainReport
from tidings.studies.chain.chain_stages import Seconds
from tidings.studies.result_tables import number, plain_table


def chain_sections(report: ChainReport) -> list[tuple[str, Table]]:
    """All tables of a run, each with a heading."""
    counts = plain_table("expected#", "delivered#", "lost#", "doubled#", "breaks#", "kills#")
    counts.add_row(*(f"{one:,}" for one in (
        report.expected, report.delivered, report.lost, report.doubled, report.breaks, report.kills
    )))  # fmt: skip
    rates = plain_table("stage", "per second#")
    for name, rate in (
        ("tagging: rows, from the start of a batch to its commit", report.rates.tagging),
        ("hand-over: notifications, from the commit to the disk", report.rates.handover),
        ("durable: notifications, from the source to the disk", report.rates.durable),
        ("delivery: to agents, from the first to the last", report.rates.delivery),
    ):
        rates.add_row(name, number(rate))
    latencies = plain_table("stage", "p50#", "p99#", "most#")
    for name, one in (
        ("from the source to the commit", report.latencies.commit),
        ("from the commit to the disk of the rendezvous point", report.latencies.handover),
        ("from the source to that disk", report.latencies.durable),
        ("from the commit to an agent", report.latencies.delivery),
        ("from the source to an agent", report.latencies.end_to_end),
    ):
        latencies.add_row(name, *_percentiles(one))
    what = (
        f"{report.rows:,} rows from {report.source} in {report.batches:,} batches, "
        f"{report.routers} routers, {report.agents:,} agents"
    )
    return [
        (f"{what}: pairs of interest and row", counts),
        (f"Rates of {report.rates.rows:,} rows that arrived at once", rates),
        ("Latencies of rows at a steady rate, in seconds", latencies),
    ]


def chain_lines(report: ChainReport) -> list[str]:
    """Lines to print below the tables."""
    added = report.added
    lines = [
        f"{report.published:,} more rows were published at a router; a preprocessor tagged "
        f"{report.preprocessed:,} of them",
        f"{added.interests} interests were added during the run; the next micro-batch had matches "
        f"for {added.counted} of them, and {added.in_next_batch} received all of these",
        f"not in the order of the hand-over: {report.misnumbered:,}; unwanted: {report.strays:,}; "
        f"altered: {report.altered:,}; arrived after a later one: {report.out_of_order:,}",
    ]
    if report.kills:
        who = ", ".join(f"{count} {name}" for name, count in report.killed.items())
        lines.append(f"killed: {who}; drivers that ended by themselves: {report.deaths}")
    return [*lines, *report.problems]


def _percentiles(one: Seconds | None) -> tuple[str, str, str]:
    if one is None:
        return "", "", ""
    return number(one.p50), number(one.p99), number(one.most)
