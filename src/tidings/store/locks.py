"""Lock files in the folder of a log, which coordinate processes.

A writer holds `lock` exclusively while it appends. A reader that found a problem shares `lock`
while it reads again. A process that writes a checkpoint holds `forgetting.lock`; that takes long,
but does not keep others from appending.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidings import files

LOCK, FORGETTING = "lock", "forgetting.lock"


@contextmanager
def locked(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Hold a lock exclusively, after waiting for all others."""
    with files.hold_lock(folder / name):
        yield


@contextmanager
def shared(folder: Path) -> Iterator[None]:
    """Hold the lock together with other readers, after waiting for writers."""
    with files.share_lock(folder / LOCK):
        yield


@contextmanager
def locked_at_once(folder: Path) -> Iterator[bool]:
    """Hold the lock exclusively; yields False if somebody else has it."""
    with files.try_lock(folder / LOCK) as alone:
        yield alone
