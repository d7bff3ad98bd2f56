"""Writing so that it stays: files and directories that are synced before anyone relies on them."""

from __future__ import annotations

import os
from pathlib import Path

from tidings.files import open_private
from tidings.store.records import LogError
from tidings.store.segments import Position, segment_path


def sync(path: Path) -> None:
    """Have the disk take a file, or the names in a directory."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as problem:
        raise LogError(f"the disk does not take '{path}': {problem.strerror}") from problem
    finally:
        os.close(handle)


def sync_end(folder: Path, end: Position) -> None:
    """Have the disk take a segment and its name, before anyone relies on its last group."""
    path = segment_path(folder, end.first)
    if path.exists():
        sync(path)
        sync(folder)


class Unrepaired(LogError):
    """A failed write that could not be taken back: nobody knows what is on the disk."""


def append(folder: Path, end: Position, data: bytes) -> None:
    """Write data behind the end of a segment, and give back when it is on the disk.

    When that fails the segment is as it was: it is cut back to the end. A sync that failed is not
    tried again; the system may have dropped the pages and would call the second one a success.
    """
    path = segment_path(folder, end.first)
    new = not path.exists()
    handle = None
    try:
        handle = open_private(path, os.O_WRONLY | os.O_CREAT)
        if new:
            sync(folder)
        offset, rest = end.offset, memoryview(data)
        while rest:
            written = os.pwrite(handle, rest, offset)
            offset, rest = offset + written, rest[written:]
        os.fsync(handle)
    except OSError as problem:
        if handle is not None:
            _cut(handle, path, end.offset)
        raise LogError(
            f"'{path}' can't be written: {problem.strerror}; nothing of this was acknowledged"
        ) from problem
    finally:
        if handle is not None:
            os.close(handle)


def cut(folder: Path, end: Position) -> None:
    """Cut off what an unfinished write left behind the end."""
    path = segment_path(folder, end.first)
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        _cut(handle, path, end.offset)
    finally:
        os.close(handle)


def _cut(handle: int, path: Path, offset: int) -> None:
    try:
        os.ftruncate(handle, offset)
        os.fsync(handle)
    except OSError as problem:
        raise Unrepaired(
            f"'{path}' can't be cut back to its {offset:,} good bytes: {problem.strerror}; the "
            f"log takes no more changes until it is opened again"
        ) from problem
