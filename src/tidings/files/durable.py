"""Files and folders that last: on the disk when a call returns, and for their owner alone."""

from __future__ import annotations

import os
from pathlib import Path

from tidings.files.private import FOLDER, open_private


def sync(path: Path) -> None:
    """Have the disk take a file, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_durable_folder(path: Path) -> None:
    """Make a folder and those above it. A folder lasts only once its name in the one above does,
    so each of these is synced."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(FOLDER, exist_ok=True)
        sync(one.parent)


def replace_file(path: Path, data: bytes) -> None:
    """Put a file at a path, whole: after a crash the old one is there or the new one."""
    beside = path.with_name(f"{path.name}.new")
    handle = open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_at(handle, data, 0)
        os.fsync(handle)
    except OSError:
        beside.unlink(missing_ok=True)  # a full disk has better uses for it
        raise
    finally:
        os.close(handle)
    beside.replace(path)
    sync(path.parent)


def write_at(handle: int, data: bytes, offset: int) -> None:
    """Write all of some data; one call of the system may take only a part."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(handle, rest, offset)
        offset, rest = offset + written, rest[written:]
