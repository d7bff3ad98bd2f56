"""Removes the folders of bulks that nothing names any more.

A folder is unnamed if its adoption failed half-way, or if all its nodes and subscriptions have
ended, so that the latest checkpoint leaves it out. After a loss, the entry that named a folder may
be lost; such a folder is moved aside instead.

Whoever has opened a bulk keeps the mapped files. A reader that has read an older checkpoint, but
has not opened its bulks yet, finds a folder missing and reads again under the lock of the channel's
folder (change_log.py).
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path

from tidings.files import make_durable_folder, sync
from tidings.store.folder import ASIDE, BULKS


def remove_unnamed(folder: Path, names: Iterable[str]) -> None:
    """Remove all bulks of a channel but those with these names. The caller holds the lock, so
    nobody adopts anything now."""
    for path in _unnamed(folder, names):
        # a folder that is removed in part must not have the name of a bulk
        hidden = path.with_name(f".{uuid.uuid4().hex}")
        path.rename(hidden)
        shutil.rmtree(hidden, ignore_errors=True)


def move_unnamed_aside(folder: Path, names: Iterable[str]) -> None:
    """Move all bulks of a channel but those with these names to the folder `aside`."""
    for path in _unnamed(folder, names):
        make_durable_folder(folder / ASIDE)
        path.rename(folder / ASIDE / f"{path.name}.{uuid.uuid4().hex[:8]}")
        sync(folder / ASIDE)
        sync(path.parent)


def _unnamed(folder: Path, names: Iterable[str]) -> list[Path]:
    known, home = {*names}, folder / BULKS
    return [path for path in home.iterdir() if path.name not in known] if home.is_dir() else []
