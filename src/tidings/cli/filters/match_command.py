"""`tidings match`: which events match which subscriptions."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Annotated, Any

import typer
from rich.table import Table

from tidings.cli.common import options
from tidings.cli.common.command_errors import BadInput, remark
from tidings.cli.common.declared_types import DeclaredTypes, read_types
from tidings.cli.common.events import are_texts, read_events
from tidings.cli.common.input_files import STDIN
from tidings.cli.common.screen import MOST_ROWS, count_of, emit, show, show_rest, table, track
from tidings.cli.common.subscription_files import note_odd, parse_all, read_subscriptions
from tidings.cli.filters.hints import AttributeWatch
from tidings.cli.filters.match_counts import MatchCounts, SubscriptionCount

Events = Iterator[tuple[int, Mapping[str, Any]]]


def match_events(
    filters: Annotated[
        str, typer.Option("--filters", metavar="FILE", help="The filters (- is stdin).")
    ],
    events: Annotated[
        str, typer.Option("--events", metavar="FILE", help="The events (- is stdin).")
    ],
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=0, help="Read the first N events only."),
    ] = None,
    types: options.Types = None,
    others: options.Others = False,
    dialect: options.Dialect = "sql",
    filters_format: options.FiltersFormat = None,
    format_: options.EventsFormat = None,
    nulls: options.Nulls = None,
    every: options.All = False,
    json: options.Json = False,
) -> None:
    """Match events against filters, and show which events each filter matched.

    Filters: plain text with one filter per line (blank lines and # comments are skipped; the id
    is the number of the line), JSON lines with id, filter and subscriber, or CSV or Parquet with
    the columns id, filter and optionally subscriber.

    Events: JSON (lines or an array), CSV (types are inferred, empty fields are null) or Parquet, as
    a file (.gz too), a folder, or a pattern in quotes. They are read as a stream.

    With --json, one line for each event that matches, printed as soon as it is matched: event (its
    index, from 0) and ids (of the filters).

    Notes on stderr name filters that can never match or always match, and at the end attributes
    that filters test but no event has, or that events have only with values of another type.
    """
    if filters == events == STDIN:
        raise BadInput("--filters and --events are both stdin, expected a file for one of them")
    declared = read_types(types, others)
    counts = _load_counts(filters, filters_format, dialect, declared)
    watched = [(tally.subscription.id, tally.filter) for tally in counts.subscriptions]
    watch = AttributeWatch(watched, are_texts(events, format_))
    read = islice(read_events(events, format_, declared, nulls or []), limit)
    rows = enumerate(_watch_events(read, watch))
    if json:
        _emit_matches(counts, rows, at_once=events == STDIN)
    else:
        _show_matches(counts, track(rows, "matching"), None if every else MOST_ROWS)
    for note in watch.notes():
        remark(note)


def _watch_events(
    events: Iterable[Mapping[str, Any]], watch: AttributeWatch
) -> Iterator[Mapping[str, Any]]:
    for event in events:
        watch.look(event)
        yield event


def _load_counts(
    path: str, given: str | None, dialect: str, declared: DeclaredTypes
) -> MatchCounts:
    counts = MatchCounts()
    listed = track(read_subscriptions(path, given), "reading filters")
    parsed = parse_all(listed, dialect, declared)
    note_odd(parsed)
    for one, filter_ in parsed:
        counts.subscribe(one, filter_)
    return counts


def _emit_matches(counts: MatchCounts, rows: Events, at_once: bool) -> None:
    # A progress bar would disturb the lines on a terminal.
    watched = rows if sys.stdout.isatty() else track(rows, "matching")
    for index, event in watched:
        found = counts.matching_places(event)
        if found:
            emit(
                {"event": index, "ids": [counts.subscriptions[at].subscription.id for at in found]}
            )
            if at_once:
                sys.stdout.flush()


def _show_matches(counts: MatchCounts, rows: Events, most: int | None) -> None:
    total = matched = deliveries = 0
    for index, event in rows:
        count = counts.count_event(index, event)
        total, matched, deliveries = index + 1, matched + bool(count), deliveries + count
    told = counts.rank()
    if told:
        show(_table(told[:most]), "")
        show_rest(len(told) - len(told[:most]), "more filter")
    matches = count_of(deliveries, "match", "matches")
    show(
        f"{matched:,} of {count_of(total, 'event')} match: {matches} for {len(told):,} of "
        f"{count_of(len(counts.subscriptions), 'filter')}"
    )


def _table(tallies: list[SubscriptionCount]) -> Table:
    named = any(tally.subscription.subscriber is not None for tally in tallies)
    rows = []
    for tally in tallies:
        who = [tally.subscription.subscriber or ""] if named else []
        rows.append([*who, tally.subscription.id, f"{tally.count:,}", tally.first,
                     tally.sample_text])  # fmt: skip
    head = ["subscriber"] if named else []
    return table([*head, "filter", "events#", "first#", "what it says"], rows)
