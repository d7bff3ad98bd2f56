"""Who may write: locks between processes, on files of the log's directory.

`lock` is held by a writer while it appends, exclusively, and by a reader, shared, when it found
something wrong and looks again. `forgetting.lock` is held by whoever writes a checkpoint, which
takes long and keeps nobody from appending. They are of flock: the system drops them when a process
dies, and they hold between the processes of one machine.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidings.files import open_private

LOCK, FORGETTING = "lock", "forgetting.lock"


@contextmanager
def locked(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Alone, after waiting for all others."""
    with _taken(folder / name, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX):
        yield


@contextmanager
def shared(folder: Path) -> Iterator[None]:
    """With other readers and no writer, after waiting for that."""
    with _taken(folder / LOCK, os.O_RDONLY, fcntl.LOCK_SH):
        yield


@contextmanager
def locked_at_once(folder: Path) -> Iterator[bool]:
    """Alone; false when somebody else has the lock now."""
    try:
        with _taken(folder / LOCK, os.O_RDWR, fcntl.LOCK_EX | fcntl.LOCK_NB):
            yield True
    except BlockingIOError:
        yield False


@contextmanager
def _taken(path: Path, how: int, operation: int) -> Iterator[None]:
    # A file of its own for each holding: threads of one process exclude each other like processes.
    handle = open_private(path, how)
    try:
        fcntl.flock(handle, operation)
        try:
            yield
        finally:
            # Not left to the closing: a process that was forked meanwhile has the file open too.
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)
