"""`tidings pipeline status`: shows the status of a pipeline, from its files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidings.cli.common import options
from tidings.cli.common.command_errors import remark
from tidings.cli.common.screen import (
    MOST_ROWS,
    count_of,
    cut,
    emit,
    facts,
    plain_text,
    relative_path,
    show,
    show_rest,
    table,
)
from tidings.cli.pipelines.pipeline_files import File, settings_of

if TYPE_CHECKING:
    from tidings.spark.loading import RefusedSubscription
    from tidings.spark.pipeline import PipelineStatus

SICK = 10  # how many failing feeds are shown


def show_status(file: File, every: options.All = False, json: options.Json = False) -> None:
    """Show the status of the pipeline that FILE describes; the pipeline may be running.

    The counter of a node is the number of notifications that were tagged with it. An open pin
    belongs to a batch that was begun but not committed: the batch is running, or will be repeated.

    With --json, one object: name, outbox, totals (batches, rows, matched, told, refused,
    extra_rows, extra_fields), last (the last commit), latest (the current version of the
    subscriptions), subscriptions, snapshots, open_pins, notifications, counters (node, number,
    filter), nodes, dead_letters (reason, rows, batch, raw), damaged (file, problem: dead
    letters that can't be read), feeds (problems with the feeds that could not be read the last
    time), aside (subscriptions that are left out because their filters are now refused: id, filter,
    reason), channel (address, handed: the last batch handed over, waiting: since, reason).
    """
    settings = settings_of(file)
    from tidings.spark.pipeline import read_status

    found = read_status(settings, None if every else MOST_ROWS // 2)
    if json:
        emit(found)
    else:
        _show_pipeline(found)


def _show_pipeline(found: PipelineStatus) -> None:
    totals, last = found.totals, found.last
    rows: list[tuple[str, object]] = [
        ("pipeline", found.name),
        ("outbox", relative_path(found.outbox)),
    ]
    if last is None:
        rows.append(("last batch", "none committed yet"))
    else:
        rows += [
            ("last batch", f"{last.batch}, begun {_time(last.micros)}"),
            ("version", _versions(last.version, found.latest)),
            ("rows", f"{totals.rows:,} in {count_of(totals.batches, 'batch', 'batches')}"),
            ("matched", f"{totals.matched:,}"),
            ("told", f"{totals.told:,}"),
            ("refused", f"{totals.refused:,}"),
        ]
        if totals.extra_rows:
            fields = count_of(totals.extra_fields, "undeclared field")
            rows.append(("extra", f"{fields} in {count_of(totals.extra_rows, 'row')}"))
    if found.channel is not None:
        rows += _channel_rows(found)
    if found.subscriptions is None:
        rows.append(("subscriptions", plain_text("not found", "yellow")))
    else:
        rows.append(("subscriptions", f"{found.subscriptions:,} at version {found.latest}"))
    rows.append(("snapshots", ", ".join(map(str, found.snapshots)) or "none"))
    pins = [
        f"batch {pin.batch} with version {pin.version}, begun {_time(pin.micros)}"
        for pin in found.open_pins
    ]
    rows.append(("open pins", "; ".join(pins) or "none"))
    if found.feeds:
        sick = "\n".join(found.feeds[:SICK])
        more = len(found.feeds) - SICK
        rows.append(
            ("feeds", plain_text(sick + (f"\nand {more:,} more" if more > 0 else ""), "yellow"))
        )
    show(facts(rows))
    show_aside(found.aside)
    if found.counters:
        lines = [
            (one.node, f"{one.number:,}", plain_text("no subscription now", "dim")
             if one.filter is None else cut(one.filter, 200))
            for one in found.counters
        ]  # fmt: skip
        show("", table(["node#", "counter#", "filter"], lines))
        show_rest(found.nodes - len(found.counters), "more node")
    if found.dead_letters:
        letters = [
            (one.reason, f"{one.rows:,}", one.batch, cut(one.raw, 60)) for one in found.dead_letters
        ]
        show("", table(["latest refusals", "rows#", "batch#", "one of them"], letters))
    for one in found.damaged:
        remark(f"{relative_path(one.file)}: these dead letters can't be read: {one.problem}")


def _channel_rows(found: PipelineStatus) -> list[tuple[str, object]]:
    one, last = found.channel, found.last
    if one is None:
        return []
    handed = "no batch yet"
    if one.handed is not None:
        behind = 0 if last is None else last.batch - one.handed
        more = f"; {count_of(behind, 'batch', 'batches')} to go" if behind else ", the last"
        handed = f"batch {one.handed}{more}"
    rows: list[tuple[str, object]] = [("channel", one.address), ("handed over", handed)]
    if one.waiting is not None:
        said = f"since {_time(one.waiting.since)}: {one.waiting.reason}"
        rows.append(("waiting", plain_text(said, "yellow")))
    return rows


def show_aside(found: Sequence[RefusedSubscription]) -> None:
    """Show the subscriptions that are left out, and why."""
    if found:
        rows = [(one.id, one.reason, cut(one.filter, 200)) for one in found[:MOST_ROWS]]
        show("", table(["set aside", "now refused because", "filter"], rows))
        if len(found) > len(rows):
            show(plain_text(f"and {len(found) - len(rows):,} more", "dim"))


def _versions(mine: int, latest: int | None) -> str:
    if latest is None or latest == mine:
        return f"{mine}" + (", the latest" if latest == mine else "")
    return f"{mine}; the next batch takes {latest}, {count_of(latest - mine, 'change')} later"


def _time(micros: int) -> str:
    return f"{dt.datetime.fromtimestamp(micros // 1_000_000, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
