"""Tables of `tidings bench relations`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from tidings.studies.result_tables import number, plain_table

if TYPE_CHECKING:
    from tidings.studies.relations.live_overload import LiveOverloadReport
    from tidings.studies.relations.overload_bench import OverloadReport
    from tidings.studies.relations.planned_tagging import PlannedReport
    from tidings.studies.relations.relations_bench import RelationsReport


def relation_sections(report: RelationsReport) -> list[tuple[str, Table]]:
    """All tables, each with a heading."""
    size = (
        f"{report.subscriptions:,} subscriptions to {report.topics:,} topics: {report.nodes:,} "
        f"nodes at {report.hops} hops"
    )
    return [
        (size, _store(report)),
        ("Messages: µs for each", _times(report)),
        ("Hops served at once, by limit", _limits(report)),
        ("Related deliveries by limit, against a full scan", _related_limits(report)),
        ("Notifications through a router: µs for each", _forwarding(report)),
    ]


def relation_lines(report: RelationsReport) -> list[str]:
    """Lines below the tables."""
    run = report.related
    return [
        f"Served at once: {report.served:.1%} of the messages that match, at all hops that need "
        f"them; answers were held for {report.decided:.1%}.",
        f"The fast path takes 1/{report.speedup:.1f} of the time of Matcher.match; for all "
        f"messages as they come, 1/{report.first_speedup:.1f}.",
        f"Related deliveries at 0.7: {run.recall:.1%} of {run.deliveries:,} found, "
        f"{run.precision:.1%} right; {number(run.find_micros)} µs for each message, the full scan "
        f"{number(run.scan_micros)} µs.",
    ]


def _store(report: RelationsReport) -> Table:
    out = plain_table("store", "nodes#", "elements#", "share of nodes#", "least#", "answers#")
    out.add_row(
        "", f"{report.store_nodes:,}", f"{report.store_elements:,}", f"{report.store_share:.1%}",
        str(report.least), f"{report.answers:,}",
    )  # fmt: skip
    return out


def _forwarding(report: RelationsReport) -> Table:
    out = plain_table("bytes#", "plain#", "with contexts#", "and learning#", "and early#")
    for one in report.forwarding:
        early = "" if one.early_micros is None else number(one.early_micros)
        out.add_row(
            f"{one.body:,}", number(one.plain_micros), number(one.context_micros),
            number(one.learning_micros), early,
        )  # fmt: skip
    return out


def _times(report: RelationsReport) -> Table:
    out = plain_table("", "µs#")
    for name, micros in (
        ("served messages: Matcher.match", report.match_micros),
        ("served messages: propose, the fast path", report.propose_micros),
        ("all messages: Matcher.match", report.match_all_micros),
        ("all messages as they come: propose", report.first_micros),
        ("all messages: exact search, nothing decided", report.search_all_micros),
        ("all messages: exact search, without what is decided", report.search_micros),
        ("all messages: propose and complete", report.both_micros),
        ("merits of hops without a plan, in arrays", report.score_micros),
        ("merits of nodes without arrays", report.find_micros),
    ):
        out.add_row(name, number(micros))
    return out


def _limits(report: RelationsReport) -> Table:
    out = plain_table("limit#", "precision#", "recall#")
    for row in report.limits:
        out.add_row(f"{row.limit:.1f}", f"{row.precision:.3f}", f"{row.recall:.3f}")
    return out


def _related_limits(report: RelationsReport) -> Table:
    out = plain_table("limit#", "deliveries#", "precision#", "recall#", "µs for each message#")
    for run in report.related_limits:
        out.add_row(
            f"{run.limit:.1f}", f"{run.deliveries:,}", f"{run.precision:.3f}", f"{run.recall:.3f}",
            number(run.find_micros),
        )  # fmt: skip
    return out


def overload_lines(report: OverloadReport) -> list[str]:
    """How an overload delayed publications, as lines."""
    return [
        f"{report.published:,} publications, {report.seconds:g} s of them at twice the load of "
        f"{report.rate:,.0f} a second: all were served, each once.",
        f"At most {report.most_waiting:,} waited, {report.most_on_disk:,} of them on the disk; "
        f"nothing waited {report.drained_after:.1f} s after the overload.",
        f"Top decile by merit: p99 {report.top_p99_millis:.2f} ms, without overload "
        f"{report.calm_p99_millis:.2f} ms ({report.ratio:.2f} times); of all publications "
        f"{report.all_p99_millis / 1e3:.1f} s, the longest {report.longest_seconds:.1f} s.",
        f"Put and take: {number(report.queue_micros)} µs of processor time; the merit of a new "
        f"topic: {number(report.merit_micros)} µs.",
    ]


def live_overload_lines(report: LiveOverloadReport) -> list[str]:
    """How an overload delayed publications of real agents, as lines."""
    return [
        f"{report.published:,} publications, {report.seconds:g} s of them at "
        f"{report.overload_rate:,.0f} a second, where {report.rate:,.0f} are sustained: all were "
        "acknowledged and delivered, each once, and no number is missing.",
        f"At most {report.most_waiting:,} waited, with {report.most_on_disk_megabytes:,.0f} MB on "
        f"the disk; nothing waited {report.drained_after:.1f} s after the overload.",
        f"Top decile by merit: p50 {report.top_p50_millis:.1f} ms and p99 "
        f"{report.top_p99_millis:.1f} ms, without overload {report.calm_p50_millis:.1f} and "
        f"{report.calm_p99_millis:.1f} ms ({report.ratio:.2f} times); the p99 of the lowest decile "
        f"was {report.deciles_millis[0] / 1e3:.1f} s, and the longest wait "
        f"{report.longest_seconds:.1f} s.",
        f"Rendezvous point: {report.root_megabytes:,.0f} MB, {report.root_megabytes_before:,.0f} "
        f"MB before; it used {report.root_share:.0%} of a core, the router "
        f"{report.router_share:.0%}, the agents {report.driver_share:.0%}.",
    ]


def planned_lines(report: PlannedReport) -> list[str]:
    """What stored answers would save at a rendezvous point, as lines."""
    lines = [f"{report.subscriptions:,} subscriptions to {report.topics:,} topics."]
    for row in report.rows:
        lines.append(
            f"{row.priced:.0%} of the filters test a price, {row.nodes:,} nodes, "
            f"{row.planned:.0%} of the publications have a stored answer:"
        )
        lines.append(
            f"  search {number(row.search_micros)} µs, with stored answers "
            f"{number(row.search_planned_micros)} µs; all that a publication takes: "
            f"{number(row.receive_micros)} µs, with stored answers "
            f"{number(row.receive_planned_micros)} µs ({row.speedup:.2f} times as fast), without "
            f"any search {number(row.receive_perfect_micros)} µs."
        )
    return lines
