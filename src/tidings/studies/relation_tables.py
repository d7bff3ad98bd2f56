"""Tables of `tidings bench relations`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from tidings.studies.tables import number, plain_table

if TYPE_CHECKING:
    from tidings.studies.engine.relations_bench import RelationsReport


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
    ]


def relation_lines(report: RelationsReport) -> list[str]:
    """Lines below the tables."""
    run = report.related
    return [
        f"Served at once: {report.served:.1%} of the messages that match, at all hops that need "
        f"them; answers were held for {report.decided:.1%}.",
        f"The fast path takes 1/{report.speedup:.1f} of the time of Matcher.match.",
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


def _times(report: RelationsReport) -> Table:
    out = plain_table("", "µs#")
    for name, micros in (
        ("served messages: Matcher.match", report.match_micros),
        ("served messages: propose, the fast path", report.propose_micros),
        ("all messages: Matcher.match", report.match_all_micros),
        ("all messages: propose, with plans only from before", report.first_micros),
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
