"""Files and folders that only their owner can access: for payloads, subscriptions and tokens.

New files get mode 0600 and new folders 0700, however permissive the umask is. Existing files and
folders keep their mode: a group may have been given access on purpose, and a folder may belong to
somebody else.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

FILE, FOLDER = 0o600, 0o700


def make_folder(path: str | Path) -> None:
    """Make a folder and its missing parents. `Path.mkdir` would create the parents with the default
    permissions."""
    path = Path(path)
    missing = []
    for one in (path, *path.parents):
        if one.exists():
            break
        missing.append(one)
    for one in reversed(missing):
        one.mkdir(FOLDER, exist_ok=True)
    if not path.is_dir():  # a file, so `mkdir` raises its usual error
        path.mkdir(FOLDER)


def open_private(path: str | Path, flags: int) -> int:
    """Like `os.open`, but only the owner can access a new file, and no child process inherits
    the handle."""
    return os.open(path, flags | os.O_CLOEXEC, FILE)


def private_file(path: str | Path, mode: str) -> IO[bytes]:
    """Like `open` for bytes, but only the owner can access a new file."""
    return open(path, mode, opener=open_private)


def make_private(path: str | Path) -> Path:
    """Create a private file for other code to write to, if there is none yet; writing to the file
    keeps its mode."""
    path = Path(path)
    os.close(open_private(path, os.O_WRONLY | os.O_CREAT))
    return path
