"""Who may write: locks between processes, on files of the log's directory.

`lock` is held by a writer while it appends, exclusively, and by a reader, shared, when it found
something wrong and looks again. `forgetting.lock` is held by whoever writes a checkpoint, which
takes long and keeps nobody from appending.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidings import files

LOCK, FORGETTING = "lock", "forgetting.lock"


@contextmanager
def locked(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Alone, after waiting for all others."""
    with files.hold_lock(folder / name):
        yield


@contextmanager
def shared(folder: Path) -> Iterator[None]:
    """With other readers and no writer, after waiting for that."""
    with files.share_lock(folder / LOCK):
        yield


@contextmanager
def locked_at_once(folder: Path) -> Iterator[bool]:
    """Alone; false when somebody else has the lock now."""
    with files.try_lock(folder / LOCK) as alone:
        yield alone
