"""`tidings match`: which events match which subscriptions."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
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
CHUNK = 4096  # events that are matched at once


class By(StrEnum):
    """What each line of --json describes."""

    event = "event"
    filter = "filter"


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
    parts: Annotated[
        bool,
        typer.Option("--parts", help="Also show which named parts of the filters were true."),
    ] = False,
    by: Annotated[
        By, typer.Option("--by", help="With --json: one line for each event, or for each filter.")
    ] = By.event,
    types: options.Types = None,
    others: options.Others = False,
    dialect: options.Dialect = options.DEFAULT_DIALECT,
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
    a file (.gz too), a folder, or a pattern in quotes. Events are read as a stream.

    A part of a filter can have a name: named('late', delay > 60) OR dest = 'BOS'. With --parts, the
    command also shows in how many of the matching events each part was true.

    With --json, one line for each event that matches, printed as soon as it is matched: event (its
    index, from 0) and ids (of the filters); with --parts also parts (names by id). With --by
    filter, one line for each filter that matches: id, events; with --parts also parts (events by
    name).

    Notes on stderr name filters that can never match or always match. At the end, notes name
    attributes that filters test but no event has, or that events have only with values of another
    type.
    """
    if filters == events == STDIN:
        raise BadInput("--filters and --events are both stdin, expected a file for one of them")
    declared = read_types(types, others)
    counts = _load_counts(filters, filters_format, dialect, declared)
    watched = [(tally.subscription.id, tally.filter) for tally in counts.subscriptions]
    watch = AttributeWatch(watched, are_texts(events, format_))
    read = islice(read_events(events, format_, declared, nulls or []), limit)
    rows = enumerate(_watch_events(read, watch))
    if json and by is By.event:
        _emit_events(counts, rows, parts, at_once=events == STDIN)
    elif json:
        _emit_filters(counts, track(rows, "matching"), parts)
    else:
        _show_matches(counts, track(rows, "matching"), parts, None if every else MOST_ROWS)
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


def _chunks(rows: Events, size: int) -> Iterator[list[tuple[int, Mapping[str, Any]]]]:
    """Divide the events into chunks. If an event can't be read, the events before it are still
    matched."""
    chunk: list[tuple[int, Mapping[str, Any]]] = []
    try:
        for row in rows:
            chunk.append(row)
            if len(chunk) == size:
                yield chunk
                chunk = []
    except Exception:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk


def _emit_events(counts: MatchCounts, rows: Events, parts: bool, at_once: bool) -> None:
    # A progress bar would disturb the lines on a terminal.
    watched = rows if sys.stdout.isatty() else track(rows, "matching")
    for chunk in _chunks(watched, 1 if at_once else CHUNK):
        for one in counts.match_chunk(chunk, parts):
            if one.places:
                ids = {place: counts.subscriptions[place].subscription.id for place in one.places}
                line: dict[str, Any] = {"event": one.index, "ids": list(ids.values())}
                if parts:
                    line["parts"] = {
                        str(ids[at]): names for at, names in one.parts.items() if names
                    }
                emit(line)
                if at_once:
                    sys.stdout.flush()


def _emit_filters(counts: MatchCounts, rows: Events, parts: bool) -> None:
    events: dict[int, list[int]] = {}
    for chunk in _chunks(rows, CHUNK):
        for one in counts.match_chunk(chunk, parts):
            counts.count(one)
            for place in one.places:
                events.setdefault(place, []).append(one.index)
    for place in sorted(events):
        tally = counts.subscriptions[place]
        line: dict[str, Any] = {"id": tally.subscription.id, "events": events[place]}
        if parts:
            line["parts"] = tally.parts
        emit(line)


def _show_matches(counts: MatchCounts, rows: Events, parts: bool, most: int | None) -> None:
    total = matched = deliveries = 0
    for chunk in _chunks(rows, CHUNK):
        for one in counts.match_chunk(chunk, parts):
            counts.count(one)
            count = len(one.places)
            total, matched, deliveries = one.index + 1, matched + bool(count), deliveries + count
    told = counts.rank()
    if told:
        show(_table(told[:most], parts), "")
        show_rest(len(told) - len(told[:most]), "more filter")
    matches = count_of(deliveries, "match", "matches")
    show(
        f"{matched:,} of {count_of(total, 'event')} match: {matches} for {len(told):,} of "
        f"{count_of(len(counts.subscriptions), 'filter')}"
    )


def _table(tallies: list[SubscriptionCount], parts: bool) -> Table:
    named = any(tally.subscription.subscriber is not None for tally in tallies)
    rows = []
    for tally in tallies:
        who = [tally.subscription.subscriber or ""] if named else []
        more = [tally.part_counts] if parts else []
        rows.append([*who, tally.subscription.id, f"{tally.count:,}", tally.first, *more,
                     tally.sample_text])  # fmt: skip
    head = ["subscriber"] if named else []
    more = ["parts"] if parts else []
    return table([*head, "filter", "events#", "first#", *more, "what it says"], rows)
