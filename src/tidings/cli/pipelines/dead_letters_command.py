"""`tidings dead-letters`: shows the rows that a pipeline refused, and replays corrected ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from tidings.cli.common import options
from tidings.cli.common.command_errors import BadInput, remark, report_errors
from tidings.cli.common.screen import (
    MOST_ROWS,
    count_of,
    cut,
    emit,
    relative_path,
    show,
    show_rest,
    table,
)
from tidings.cli.pipelines.pipeline_files import File, Where, outbox_of, settings_of

if TYPE_CHECKING:
    from tidings.spark.outbox import OutboxReader
    from tidings.spark.pipeline import Letter

dead_letters = typer.Typer(rich_markup_mode=None)


@dead_letters.callback(invoke_without_command=True)
def about(context: typer.Context) -> None:
    """Show the rows that a pipeline refused, and replay them once they are corrected."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def list_reasons(where: Where, every: options.All = False, json: options.Json = False) -> None:
    """List the reasons why rows were refused, the most frequent first.

    WHERE is a pipeline file, the folder of an outbox, or an address such as s3://bucket/outbox.
    Rows that were replayed are not counted.

    With --json, one line per reason: reason, rows, first and last (batches), raw (one of the
    rows).
    """
    rows: Counter[str] = Counter()
    known = dict[str, tuple[int, int, str]]()
    for one in _waiting(outbox_of(where)):
        rows[one.reason] += 1
        first, _, raw = known.get(one.reason, (one.batch, 0, one.raw))
        known[one.reason] = first, one.batch, raw
    ranked = rows.most_common()
    if json:
        for reason, count in ranked:
            first, last, raw = known[reason]
            emit({"reason": reason, "rows": count, "first": first, "last": last, "raw": raw})
        return
    if not ranked:
        show("no dead letters are waiting")
        return
    shown = ranked if every else ranked[:MOST_ROWS]
    lines = [
        (reason, f"{count:,}", _batches(*known[reason][:2]), cut(known[reason][2], 80))
        for reason, count in shown
    ]
    show(table(["reason", "rows#", "batches", "one of them"], lines))
    show_rest(len(ranked) - len(shown), "more reason")


def _batches(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def show_letters(
    where: Where,
    batch: Annotated[
        int | None, typer.Option("--batch", metavar="N", min=0, help="Only rows of this batch.")
    ] = None,
    every: options.All = False,
    json: options.Json = False,
) -> None:
    """Show the refused rows that have not been replayed.

    WHERE is a pipeline file, the folder of an outbox, or an address such as s3://bucket/outbox.

    With --json, all of them, one per line: batch, row, reason, raw. Correct raw in these lines, and
    give them to `tidings dead-letters replay`.
    """
    found, more = list[tuple[object, ...]](), 0
    for one in _waiting(outbox_of(where), batch):
        if json:
            emit(one)
        elif every or len(found) < MOST_ROWS:
            found.append((one.batch, one.row, one.reason, cut(one.raw, 200)))
        else:
            more += 1
    if json:
        return
    if not found:
        show("no dead letters are waiting")
        return
    show(table(["batch#", "row#", "reason", "text"], found))
    show_rest(more, "more row")


def replay_refused(
    file: File,
    corrected: Annotated[
        str | None,
        typer.Argument(metavar="CORRECTED", help="JSON lines with batch, row, raw.", hidden=True),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="PATH", help="Write the rows to PATH; record nothing."),
    ] = None,
    json: options.Json = False,
) -> int:
    """Move refused rows that now fit the columns into the source of the pipeline FILE.

    CORRECTED is a file of JSON lines, as `tidings dead-letters show --json` prints them, in which
    raw was corrected. Without CORRECTED, all dead letters are tried again unchanged, which helps
    after the columns in FILE were corrected. Rows that still don't fit stay dead letters. No row is
    replayed twice. With --to, the rows are written to a file for you to move or publish, and stay
    dead letters.

    With --json, one object: replayed, file, refused (batch, row, reason, raw).

    Exit code: 0 if all rows fit, 1 if some rows are still refused, 2 if nothing could be replayed.
    """
    settings = settings_of(file)
    from tidings.spark.pipeline import replay_letters

    reader = outbox_of(file)
    letters = _waiting(reader) if corrected is None else _read_corrected(corrected, reader)
    found = replay_letters(settings, letters, None if to is None else Path(to))
    if json:
        emit(found)
        return 1 if found.refused else 0
    if found.file is None:
        show("no dead letters are waiting" if not found.refused else "nothing was replayed")
    else:
        done = "written to" if to is not None else "moved into the source as"
        show(f"{count_of(found.replayed, 'row')} {done} {relative_path(found.file)}")
    if found.refused:
        one = found.refused[0]
        remark(
            f"{count_of(len(found.refused), 'row')} still refused; the first, row {one.row} of "
            f"batch {one.batch}: {one.reason}"
        )
    return 1 if found.refused else 0


class _Corrected(msgspec.Struct):
    batch: int
    row: int
    raw: str


def _read_corrected(path: str, reader: OutboxReader) -> Iterable[Letter]:
    from tidings.spark.pipeline import Letter, read_letters

    known = {one.name: one for one in read_letters(reader)}
    found = dict[tuple[int, int], Letter]()
    for at, line in enumerate(Path(path).read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            one = msgspec.json.decode(line, type=_Corrected)
        except msgspec.DecodeError as problem:
            raise BadInput(f"{path}, line {at}: {problem}; expected batch, row and raw") from None
        if (one.batch, one.row) not in known:
            raise BadInput(
                f"{path}, line {at}: there is no dead letter {one.row} of batch {one.batch}"
            )
        if (one.batch, one.row) in found:
            raise BadInput(f"{path}, line {at}: row {one.row} of batch {one.batch} occurs twice")
        found[one.batch, one.row] = Letter(one.batch, one.row, "", one.raw)
    return found.values()


def _waiting(reader: OutboxReader, batch: int | None = None) -> Iterator[Letter]:
    """The dead letters that were not replayed."""
    from tidings.spark.pipeline import list_replayed, read_letters

    done = list_replayed(reader.address) if reader.is_local else set()
    first, end = (0, None) if batch is None else (batch, batch + 1)
    return (one for one in read_letters(reader, first, end) if one.name not in done)


dead_letters.command("list")(report_errors(list_reasons))
dead_letters.command("show")(report_errors(show_letters))
dead_letters.command("replay")(report_errors(replay_refused))
