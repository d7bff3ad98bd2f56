"""Files that last: on the disk when a call returns, whole or not at all, and for their owner alone.

write_file      a new file, synced
replace_file    the same under another name, renamed, and the folder synced: after a crash the
                old file is there or the new one
placing         renamed but not synced, for what can be made again: a reader sees the old file
                or the new one, and after a crash there may be neither
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidings.files.private import FILE, FOLDER, open_private


def sync(path: Path) -> None:
    """Wait until the disk has a file, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_handle(handle)
    finally:
        os.close(handle)


def sync_handle(handle: int, *, data_only: bool = False) -> None:
    """Wait until the disk has an open file. `data_only`: without times and the like, which saves
    a write of its inode where its size did not change."""
    if data_only:
        os.fdatasync(handle)
    else:
        os.fsync(handle)


def make_durable_folder(path: Path) -> None:
    """Make a folder and those above it. A folder lasts only once its name in the one above does,
    so each of these is synced."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(FOLDER, exist_ok=True)
        sync(one.parent)


def write_file(path: Path, data: bytes) -> None:
    """Write a file and wait for the disk. Its name lasts once its folder is synced too."""
    handle = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_at(handle, data, 0)
        sync_handle(handle)
    except OSError:
        path.unlink(missing_ok=True)  # a full disk has better uses for it
        raise
    finally:
        os.close(handle)


def replace_file(path: Path, data: bytes, *, hidden: bool = False) -> None:
    """Replace a file atomically: after a crash, the path holds the old file or the new one.

    It is written beside the path first, under one name, so that the next attempt overwrites what a
    crash left; `hidden` gives that name a dot in front, for folders that others list. One process
    at a time may do so.
    """
    beside = path.with_name(f"{'.' if hidden else ''}{path.name}.new")
    write_file(beside, data)
    beside.replace(path)
    sync(path.parent)


@contextmanager
def placing(path: Path) -> Iterator[Path]:
    """A path beside to write to; at the end of the block its file takes the place of `path`.

    Nothing is synced. Processes may do so at the same time: the last one wins.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield beside
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def place_file(path: Path, data: bytes, mode: int = FILE) -> None:
    """Put a file of these bytes and this mode at a path, with `placing`."""
    with placing(path) as beside:
        handle = open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write_at(handle, data, 0)
            os.fchmod(handle, mode)  # whatever the umask allows
        finally:
            os.close(handle)


def write_at(handle: int, data: bytes, offset: int) -> None:
    """Write all of some data; one call of the system may take only a part."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(handle, rest, offset)
        offset, rest = offset + written, rest[written:]
