"""Files and folders that last: made for their owner alone, and on the disk when a call returns."""

from __future__ import annotations

import os
from pathlib import Path

FILE_MODE = 0o600  # what is stored here is nobody else's business
FOLDER_MODE = 0o700


def sync(path: Path) -> None:
    """Have the disk take a file, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(path: Path) -> None:
    """Make a folder and those above it. A folder lasts only once its name in the one above does,
    so each of these is synced."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=FOLDER_MODE, exist_ok=True)
        sync(one.parent)


def replace_file(path: Path, data: bytes) -> None:
    """Put a file at a path, whole: after a crash the old one is there or the new one."""
    beside = path.with_name(f"{path.name}.new")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    try:
        write_at(handle, data, 0)
        os.fsync(handle)
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
