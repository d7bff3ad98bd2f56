"""Formats measurements of the network as tables."""

from __future__ import annotations

import statistics

from rich.table import Table

from tidings.studies.network.channels import IdleRun
from tidings.studies.network.direct import TwoWays
from tidings.studies.network.route_bench import HOME, ForwardRun, LatencyRun, RouteReport
from tidings.studies.network.route_durable import Durable
from tidings.studies.network.route_interests import InterestsRun
from tidings.studies.network.route_lookup import FLAT_FROM, Lookup, flatness
from tidings.studies.network.route_mixed import Mixed
from tidings.studies.network.route_modes import ModeRow
from tidings.studies.network.route_parts import PartRun
from tidings.studies.network.route_preprocessors import Tagged
from tidings.studies.result_tables import number, plain_table

Section = tuple[str, Table]


def route_sections(report: RouteReport) -> list[Section]:
    """All tables of a report, each with a heading that gives its contents and unit."""
    sections: list[Section] = []
    if report.forward:
        sections.append(
            (
                f"Forwarding: notifications/s with {report.payload} bytes of payload through one "
                f"process, medians of {report.rounds}; times: the rate of tidings divided by that "
                "of the peer, also per core",
                forward_table(report.forward),
            )
        )
    if report.latency:
        sections.append(("Latency: milliseconds", latency_table(report.latency)))
    if report.durable is not None:
        sections.append(
            (
                f"Durable: acknowledged publications/s, at most {report.durable.window:,} in "
                f"flight, medians of {report.rounds}; milliseconds of one alone, and of a sync",
                durable_table(report.durable),
            )
        )
    if report.mixed is not None:
        sections.append(
            (
                f"Mixed: acknowledged publications/s with {report.mixed.filters:,} filters and "
                f"{report.mixed.content:.0f} bytes of attributes, at most {report.mixed.window:,} "
                f"in flight, medians of {report.rounds}; JetStream on files, without sync",
                mixed_table(report.mixed),
            )
        )
    if report.parts is not None:
        sections.append(
            (
                f"Parts: notifications/s that were tagged elsewhere, {report.parts.rows:,} in a "
                f"part, with {report.parts.marks:.1f} marks of {report.parts.filters:,} filters, "
                f"medians of {report.rounds}",
                parts_table(report.parts),
            )
        )
    if report.preprocessors is not None:
        sections.append(
            (
                f"Preprocessors: µs of the root's processor time per notification with "
                f"{report.preprocessors.filters:,} filters, without tags and with tags of "
                f"preprocessors, medians of {report.rounds}; notifications/s that they tag",
                preprocessors_table(report.preprocessors),
            )
        )
    if report.interests is not None:
        sections += interests_sections(report.interests)
    if report.channels is not None:
        sections.append(channels_section(report.channels))
    if report.direct is not None:
        sections.append(direct_section(report.direct))
    if report.lookup:
        sections.append(
            (
                "Lookup: processor µs for a subscription, the labels of a new header, the header "
                "that each of 10 neighbours gets, a known header, and a frame to 10 neighbours",
                lookup_table(report.lookup),
            )
        )
    if report.modes:
        sections.append(
            (
                "Modes of forwarding: µs of a router for a notification to 10 neighbours, by the "
                "shape of the graph, and relative to labels",
                modes_table(report.modes),
            )
        )
    return sections


def route_lines(report: RouteReport) -> list[str]:
    """Notes to print below the tables."""
    lines = list(report.absent)
    if report.forward:
        total = sum(run.notifications * run.neighbours for run in report.forward)
        lines.append(f"all {total:,} notifications were received")
    crowded = sorted(
        {run.processes for run in report.latency if run.processes > report.machine.processors}
    )
    if crowded:
        many = " or ".join(map(str, crowded))
        lines.append(
            f"{many} processes shared {report.machine.processors} processors: their latency "
            "includes waiting for a processor"
        )
    lines += [
        f"{one.scenario}: with the most subscribers, a known header takes {one.known:.2f} times as "
        f"long as with {FLAT_FROM:,}, a new header {one.notification:.2f} times, and each id of a "
        f"new header {one.id:.2f} times"
        for one in flatness(report.lookup)
    ]
    return lines


def forward_table(runs: list[ForwardRun]) -> Table:
    table = plain_table(
        "case", "system", "per s#", "range#", "per core#", "CPU#", "times#", "times per core#"
    )
    for run in runs:
        table.add_row(
            run.case if run.system == HOME else "", run.system, f"{run.rate:,.0f}",
            f"{run.least:,.0f}-{run.most:,.0f}", f"{run.per_core:,.0f}", f"{run.busy:.2f}",
            number(run.ratio), number(run.ratio_per_core),
        )  # fmt: skip
    return table


def latency_table(runs: list[LatencyRun]) -> Table:
    table = plain_table("system", "hops#", "load", "per s#", "p50#", "p99#", "most#")
    for run in runs:
        table.add_row(
            run.system, str(run.hops), run.load, f"{run.rate:,.0f}", number(run.p50),
            number(run.p99), number(run.most),
        )  # fmt: skip
    return table


def durable_table(found: Durable) -> Table:
    table = plain_table(
        "agent per s#", "raw per s#", "root per core#", "alone p50#", "alone p99#", "sync p50#",
        "sync p99#",
    )  # fmt: skip
    table.add_row(
        f"{statistics.median(found.agent_rates):,.0f}",
        f"{statistics.median(found.raw_rates):,.0f}", f"{found.root_per_core:,.0f}",
        number(found.alone_p50), number(found.alone_p99), number(found.sync_p50),
        number(found.sync_p99),
    )  # fmt: skip
    return table


def mixed_table(found: Mixed) -> Table:
    table = plain_table("raw per s#", "publish_many per s#", "root per core#", "JetStream per s#")
    jets = found.jetstream_rates
    table.add_row(
        f"{statistics.median(found.raw_rates):,.0f}",
        f"{statistics.median(found.many_rates):,.0f}", f"{found.root_per_core:,.0f}",
        f"{statistics.median(jets):,.0f}" if jets else "not installed",
    )  # fmt: skip
    return table


def parts_table(found: PartRun) -> Table:
    table = plain_table("acknowledged per s#", "range#", "received per s#", "root per core#")
    table.add_row(
        f"{statistics.median(found.rates):,.0f}",
        f"{min(found.rates):,.0f}-{max(found.rates):,.0f}",
        f"{statistics.median(found.told_rates):,.0f}", f"{found.root_per_core:,.0f}",
    )  # fmt: skip
    return table


def preprocessors_table(found: Tagged) -> Table:
    table = plain_table("root tags#", "tagged#", "ratio#", "one per s#", "two per s#")
    rates = [f"{rate:,.0f}" for rate in found.rates]
    two = rates[1] if len(rates) > 1 else "needs 4 cores"
    table.add_row(f"{found.alone:.1f}", f"{found.helped:.1f}", f"{found.ratio:.2f}", rates[0], two)
    return table


def channels_section(found: IdleRun) -> Section:
    table = plain_table("router", "bytes each#", "CPU %#", "without#", "in B/s#", "out B/s#")
    for one in found.routers:
        table.add_row(
            one.name, f"{one.bytes_each:,.0f}", f"{100 * one.busy:.2f}",
            f"{100 * one.busy_before:.2f}", f"{one.bytes_in:,.0f}", f"{one.bytes_out:,.0f}",
        )  # fmt: skip
    many, rate = f"{found.channels:,} channels", f"{found.opened:,.0f}"
    return f"{many} without traffic, opened at {rate}/s, through two routers", table


def direct_section(found: TwoWays) -> Section:
    table = plain_table("way", "p50 ms#", "p99 ms#", "routers µs#", "root µs#", "notifications#")
    for one in found.ways:
        table.add_row(
            one.name, f"{one.p50:.2f}", f"{one.p99:.2f}", f"{one.routers:.0f}", f"{one.root:.0f}",
            f"{one.notifications:,}",
        )  # fmt: skip
    many = f"{found.others + 1:,} subscriptions, of which one matches"
    return (
        f"Direct: {found.rate:,.0f} notifications/s through {found.routers} routers and over a "
        f"second link, with {many}; milliseconds from publication to arrival, and processor time "
        "per notification",
        table,
    )


def interests_sections(found: InterestsRun) -> list[Section]:
    start = plain_table("first start s#", "restart s#", "bytes each#", "mapped#")
    start.add_row(
        number(found.first_start), number(found.restart), f"{found.memory:,.0f}",
        f"{found.mapped:,.0f}",
    )  # fmt: skip
    asked = plain_table(
        "per s#", "publications per s#", "p50#", "p99#", "most#", "CPU#", "publication p50#", "p99#"
    )
    for one in found.asked:
        asked.add_row(
            f"{one.rate:,.0f}" if one.rate else "alone", f"{one.published:,.0f}", number(one.p50),
            number(one.p99), number(one.most), number(one.processor),
            number(one.publication_p50) if one.published else "",
            number(one.publication_p99) if one.published else "",
        )  # fmt: skip
    many = f"{found.interests:,} interests"
    return [
        (f"A rendezvous point with {many}: starts, and memory for each", start),
        (
            f"Interests added to {many}: milliseconds from Ask to Answer, and of processor time",
            asked,
        ),
    ]


def lookup_table(found: list[Lookup]) -> Table:
    table = plain_table(
        "scenario", "subscribers#", "topics#", "ids#", "subscription#", "new#", "ways#", "known#",
        "frame#", "table kB#",
    )  # fmt: skip
    for one in found:
        table.add_row(
            one.scenario, f"{one.subscribers:,}", f"{one.topics:,}", number(one.ids),
            number(one.subscription), number(one.fresh), number(one.ways), number(one.known),
            number(one.frame), f"{one.table_bytes / 1000:,.0f}",
        )  # fmt: skip
    return table


def modes_table(found: list[ModeRow]) -> Table:
    table = plain_table("graph", "forwarding", "each#", "bytes out#", "over labels#")
    for row in found:
        table.add_row(
            row.shape if row.mode == "labels" else "", row.mode, number(row.microseconds),
            f"{row.bytes_out:,.0f}", number(row.ratio),
        )  # fmt: skip
    return table
