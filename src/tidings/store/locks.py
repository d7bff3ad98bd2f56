"""Lock files in the folder of a log, which coordinate processes.

A writer holds `lock` exclusively while it appends. A reader that found a problem shares `lock`
while it reads again. A process that writes a checkpoint holds `forgetting.lock`; this takes a long
time, but other processes can append meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidings import files

LOCK, FORGETTING = "lock", "forgetting.lock"


@contextmanager
def locked(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Wait until nobody else holds a lock, then hold it exclusively."""
    with files.hold_lock(folder / name):
        yield


@contextmanager
def shared(folder: Path) -> Iterator[None]:
    """Wait until no writer holds the lock, then share it with other readers."""
    with files.share_lock(folder / LOCK):
        yield


@contextmanager
def locked_at_once(folder: Path) -> Iterator[bool]:
    """Hold the lock exclusively; yields False if somebody else has it."""
    with files.try_lock(folder / LOCK) as alone:
        yield alone
