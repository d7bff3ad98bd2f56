"""Removes unnamed folders: those of bulks that the channel does not use.

A folder is unnamed if its adoption failed half-way, or if the latest checkpoint leaves it out
because all its nodes and subscriptions have ended. If data was lost, the entry that named a folder
may be among it; so unnamed folders are then moved aside instead.

A process that has opened a bulk keeps its files mapped. A reader that has read an older checkpoint,
but has not opened its bulks yet, finds a folder missing and reads again under the lock of the
channel's folder (change_log.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tidings.files import move_aside, remove_folder
from tidings.store.folder import ASIDE, BULKS


def remove_unnamed(folder: Path, names: Iterable[str]) -> None:
    """Remove all bulks of a channel except those with these names. The caller holds the lock, so no
    snapshot is adopted meanwhile."""
    for path in _list_unnamed(folder, names):
        # The folder is renamed first, because a partly removed folder must not have the name of a
        # bulk.
        remove_folder(path)


def move_unnamed_aside(folder: Path, names: Iterable[str]) -> None:
    """Move all bulks of a channel except those with these names to the folder `aside`."""
    for path in _list_unnamed(folder, names):
        move_aside(path, folder / ASIDE)


def _list_unnamed(folder: Path, names: Iterable[str]) -> list[Path]:
    known, home = {*names}, folder / BULKS
    return [path for path in home.iterdir() if path.name not in known] if home.is_dir() else []
