"""`tidings channel import`: converts the folder of an older release, and says what was in it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.common import options
from tidings.cli.common.screen import emit, say


def import_channel(
    folder: Annotated[
        str,
        typer.Argument(metavar="FOLDER", help="The folder of a log, or a journal (also a file)."),
    ],
    json: options.Json = False,
) -> None:
    """Convert the log or the journal of an older release in FOLDER to the current format, and show
    what is in it.

    Versions, ids, filters and node numbers stay the same; the old files are kept. Every command and
    every process that opens such a folder converts it in the same way, so this command is needed
    only to see what happens. If FOLDER already has the current format, nothing changes.

    With --json, one object: before, version, nodes, subscriptions, notifications, copies.
    """
    from tidings.store import ChangeLog, FileJournal, find_format, list_copies

    path = Path(folder)
    before = find_format(path)
    copies = list_copies(path) if before else []
    if before and not path.is_dir():
        FileJournal(path).close()
    found = ChangeLog(path).summary()
    new = [str(one) for one in list_copies(path) if one not in copies] if before else []
    if json:
        emit({"before": before or None, **found._asdict(), "copies": new})
        return
    rows = {
        "found": before or "a channel in the current format; nothing to convert",
        "version": f"{found.version:,}",
        "nodes": f"{found.nodes:,}",
        "subscriptions": f"{found.subscriptions:,}",
        "notifications": f"{found.notifications:,} numbered",
        **({"old files": ", ".join(map(shlex.quote, new))} if new else {}),
    }
    for name, text in rows.items():
        say(f"{name:<14} {text}")
