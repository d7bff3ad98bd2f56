"""`tidings outbox`: shows the committed batches and rows of an outbox, and follows it."""

from __future__ import annotations

import datetime as dt
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli.common import options
from tidings.cli.common.command_errors import report_errors
from tidings.cli.common.screen import MOST_ROWS, cut, emit, say, show, show_rest, table
from tidings.cli.pipelines.pipeline_files import Where, outbox_of

if TYPE_CHECKING:
    from tidings.spark.outbox import Commit, OutboxReader

LOOK = 0.5  # seconds between two polls of the outbox
ADDED = ("notification", "version", "nodes", "numbers", "subscriptions")
PAYLOAD = "_payload"  # the row as subscribers of a channel get it

outbox = typer.Typer(rich_markup_mode=None)

Subscription = Annotated[
    str | None,
    typer.Option("--subscription", metavar="ID", help="Only rows that this subscription matched."),
]
Most = Annotated[
    int | None, typer.Option("--most", metavar="N", min=1, help="End after this many rows.")
]


@outbox.callback(invoke_without_command=True)
def about(context: typer.Context) -> None:
    """Show what a pipeline has written: its batches, its rows, and new rows as they arrive."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def list_batches(where: Where, every: options.All = False, json: options.Json = False) -> None:
    """List the committed batches of an outbox, the latest last.

    WHERE is a pipeline file, the folder of an outbox, or an address such as s3://bucket/outbox.

    With --json, one line per batch: batch, version, begun, rows, matched, told, refused, files.
    """
    reader = outbox_of(where)
    count = reader.refresh()
    first = 0 if every or json else max(0, count - MOST_ROWS)
    if json:
        for one in reader.commits():
            emit(_record_of(one))
        return
    rows = [
        (
            one.batch, _time(one.micros), one.version, f"{one.rows:,}", f"{one.matched:,}",
            f"{one.told:,}", f"{one.refused:,}", len(one.files),
        )
        for one in reader.commits(first)
    ]  # fmt: skip
    if not rows:
        show("no batch is committed yet")
        return
    names = ["batch#", "begun", "version#", "rows#", "matched#", "told#", "refused#", "files#"]
    show(table(names, rows))
    show_rest(first, "earlier batch" if first == 1 else "earlier batche")


def _record_of(one: Commit) -> dict[str, Any]:
    return {
        "batch": one.batch, "version": one.version, "begun": _time(one.micros), "rows": one.rows,
        "matched": one.matched, "told": one.told, "refused": one.refused,
        "files": [file.path for file in one.files],
    }  # fmt: skip


def show_rows(
    where: Where,
    batch: Annotated[
        int | None, typer.Option("--batch", metavar="N", min=0, help="Only rows of this batch.")
    ] = None,
    subscription: Subscription = None,
    most: Most = None,
    every: options.All = False,
    json: options.Json = False,
) -> None:
    """Show committed rows of an outbox, in the order of their batches.

    WHERE is a pipeline file, the folder of an outbox, or an address such as s3://bucket/outbox.

    With --json, all rows, one per line: the columns of the source, notification, version, nodes,
    numbers, subscriptions, batch.
    """
    reader = outbox_of(where)
    first, end = (0, None) if batch is None else (batch, batch + 1)
    limit = most if most is not None else None if every or json else MOST_ROWS
    found, more = list[tuple[object, ...]](), 0
    for at, row in _rows(reader, first, end, subscription):
        if limit is not None and len(found) == limit:
            more += 1
            break
        if json:
            emit(row | {"batch": at})
            more += most is not None
            if more == most:
                return
            continue
        found.append((row["notification"], at, row["version"], _ids(row), _event(row)))
    if json:
        return
    if not found:
        show("no rows")
        return
    show(table(["notification#", "batch#", "version#", "subscriptions", "row"], found))
    if more and most is None:
        show("and more (--all shows them)")


def follow_rows(
    where: Where,
    subscription: Subscription = None,
    since: Annotated[
        int | None,
        typer.Option("--since", metavar="BATCH", min=0, help="Begin with this batch."),
    ] = None,
    most: Most = None,
    json: options.Json = False,
) -> None:
    """Print rows as their batches are committed, until Ctrl-C.

    WHERE is a pipeline file, the folder of an outbox, or an address such as s3://bucket/outbox.
    Without --since, the command begins with the next batch that is committed.

    With --json, one object per row, as `tidings outbox show --json` prints it.
    """
    reader = outbox_of(where)
    at, printed = reader.refresh() if since is None else since, 0
    while True:
        end = reader.refresh()
        for batch, row in _rows(reader, at, end, subscription):
            if json:
                emit(row | {"batch": batch})
            else:
                say(f"{row['notification']}  {_ids(row)}  {_event(row)}")
            printed += 1
            if printed == most:
                return
        sys.stdout.flush()
        at = max(at, end)
        time.sleep(LOOK)


def _rows(
    reader: OutboxReader, first: int, end: int | None, subscription: str | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of batches, each with its batch; if a subscription is given, only its rows."""
    for commit in reader.commits(first, end):
        for file in reader.files(commit):
            for batch in reader.batches(file):
                if PAYLOAD in batch.schema.names:
                    batch = batch.drop_columns([PAYLOAD])
                for row in batch.to_pylist():
                    if subscription is None or subscription in map(str, row["subscriptions"]):
                        yield commit.batch, row


def _ids(row: dict[str, Any]) -> str:
    return cut(", ".join(map(str, row["subscriptions"])), 60)


def _event(row: dict[str, Any]) -> str:
    """The columns of the source that are not null, as JSON."""
    import msgspec

    plain = {name: row[name] for name in row if name not in ADDED and row[name] is not None}
    return cut(msgspec.json.encode(plain).decode(), 200)


def _time(micros: int) -> str:
    found = dt.datetime.fromtimestamp(micros / 1_000_000, dt.UTC)
    return f"{found:%Y-%m-%d %H:%M:%S} UTC"


outbox.command("list")(report_errors(list_batches))
outbox.command("show")(report_errors(show_rows))
outbox.command("follow")(report_errors(follow_rows))
