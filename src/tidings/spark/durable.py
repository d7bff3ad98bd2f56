"""Writing files that survive a crash of the process and of the machine.

A file written here is either there whole or not there: its bytes are on the disk before it gets its
name, and its name is before the call returns.
"""

from __future__ import annotations

import os
from pathlib import Path

from tidings.files import make_folder, private_file


def write_whole(path: Path, data: bytes) -> None:
    """Replace the file at `path` by one that holds `data`; its folder is made if need be."""
    make_folder(path.parent)
    beside = path.with_name(f".{path.name}.new")
    with private_file(beside, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Make a file durable; or the names in a folder: new files, renamed ones, removed ones."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
