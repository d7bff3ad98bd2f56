"""Durable files, which only their owner can access.

write_file      writes a file and syncs it
replace_file    writes under another name, syncs, renames, and syncs the folder: after a crash,
                the old file or the new one exists
placing         renames without a sync, for files that can be rebuilt: readers see the old file
                or the new one, but after a crash there may be neither
move_aside      keeps what must not be used any more, and syncs both folders
remove_folder   hides a folder, then removes it: nobody finds half of it
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tidings.files.private import FILE, FOLDER, open_private


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_handle(handle)
    finally:
        os.close(handle)


def sync_handle(handle: int, *, data_only: bool = False) -> None:
    """Wait until an open file is on the disk. With `data_only`, metadata such as times is not
    synced; this saves writing the inode if the size did not change."""
    if data_only:
        os.fdatasync(handle)
    else:
        os.fsync(handle)


def make_durable_folder(path: Path) -> None:
    """Create a folder, and any missing parents. A folder is not durable until its parent, which
    contains its name, is on disk, so each parent is synced."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(FOLDER, exist_ok=True)
        sync(one.parent)


def write_file(path: Path, data: bytes) -> None:
    """Write a file and sync it. The name of the file is not durable until its folder is synced
    too."""
    handle = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_at(handle, data, 0)
        sync_handle(handle)
    except OSError:
        path.unlink(missing_ok=True)  # the disk may be full, so free the space
        raise
    finally:
        os.close(handle)


def replace_file(path: Path, data: bytes, *, hidden: bool = False) -> None:
    """Replace a file atomically: after a crash, the path holds the old file or the new one.

    The new file is first written next to the path, always under the same name, so that the next
    attempt overwrites a file that a crash left behind. `hidden` puts a dot in front of the
    temporary name, for folders that other programs list. Only one process at a time may replace a
    file.
    """
    beside = path.with_name(f"{'.' if hidden else ''}{path.name}.new")
    write_file(beside, data)
    beside.replace(path)
    sync(path.parent)


@contextmanager
def placing(path: Path) -> Iterator[Path]:
    """A temporary path to write to; at the end of the block its file replaces `path`.

    Nothing is synced. Several processes may write to the same `path` at the same time; the last one
    wins.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield beside
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def place_file(path: Path, data: bytes, mode: int = FILE) -> None:
    """Write a file with this content and mode to a path, using `placing`."""
    with placing(path) as beside:
        handle = open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write_at(handle, data, 0)
            os.fchmod(handle, mode)  # regardless of the umask
        finally:
            os.close(handle)


def move_aside(path: Path, folder: Path, name: str = "") -> Path:
    """Move a file or a folder into a folder of unused files; return its new path. A random suffix
    makes its name unique, unless `name` is given."""
    make_durable_folder(folder)
    place = folder / (name or f"{path.name}.{secrets.token_hex(4)}")
    path.rename(place)
    sync(folder)
    sync(path.parent)
    return place


def remove_folder(path: Path) -> None:
    """Remove a folder, if it exists. The folder is hidden first, because a partly removed folder
    may look complete; if the process is killed, what is left of the folder stays hidden."""
    hidden = path.with_name(f".{secrets.token_hex(16)}")
    with suppress(FileNotFoundError):
        path.rename(hidden)
        shutil.rmtree(hidden, ignore_errors=True)


def write_at(handle: int, data: bytes, offset: int) -> None:
    """Write all the data; a single system call may write only a part of it."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(handle, rest, offset)
        offset, rest = offset + written, rest[written:]
