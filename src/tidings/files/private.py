"""Files and folders for their owner alone, as those that hold payloads, subscriptions or tokens.

What is made here is 0600 or 0700, whatever the umask allows. What is there already keeps its mode:
it may have been opened to a group on purpose, and a folder may not be ours at all.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

FILE, FOLDER = 0o600, 0o700


def make_folder(path: str | Path) -> None:
    """Make a folder, and those above it, where they are missing. `Path.mkdir` would make those
    above with the mode that the umask leaves."""
    path = Path(path)
    missing = []
    for one in (path, *path.parents):
        if one.exists():
            break
        missing.append(one)
    for one in reversed(missing):
        one.mkdir(FOLDER, exist_ok=True)
    if not path.is_dir():  # as `Path.mkdir` says it
        path.mkdir(FOLDER)


def open_private(path: str | Path, flags: int) -> int:
    """`os.open` that makes a file for its owner alone, and that no child process inherits."""
    return os.open(path, flags | os.O_CLOEXEC, FILE)


def private_file(path: str | Path, mode: str) -> IO[bytes]:
    """`open` of bytes that makes a file for its owner alone."""
    return open(path, mode, opener=open_private)


def make_private(path: str | Path) -> Path:
    """Create a file before other code writes to it; that code then keeps its mode."""
    path = Path(path)
    os.close(open_private(path, os.O_WRONLY | os.O_CREAT))
    return path
