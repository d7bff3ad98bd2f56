"""Lock files: one process at a time, or many that only read.

Locks are of flock: the system drops them when a process dies, and they hold between the processes
of one machine. Each holding opens the file anew, so threads of one process exclude each other as
processes do.

The package filelock has no shared locks, waits by polling where the system wakes the next writer at
once, and lets go when its object is collected, which an interpreter that goes down does while a
thread may still be at a commit; so it is not used.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidings.files.private import open_private


def take_lock(path: str | Path) -> int:
    """Take a lock alone; BlockingIOError when somebody else has it, another OSError when the file
    can't be opened. Held until `release_lock` of the number, or until the process is gone."""
    return _take(path, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX | fcntl.LOCK_NB)


def release_lock(handle: int) -> None:
    """Let others take a lock."""
    try:
        # Not left to the closing: a process that was forked meanwhile has the file open too.
        fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Alone, after waiting for all others."""
    with _held(path, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX):
        yield


@contextmanager
def share_lock(path: Path) -> Iterator[None]:
    """With others that share the lock, after waiting for one that is alone. The file must exist."""
    with _held(path, os.O_RDONLY, fcntl.LOCK_SH):
        yield


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Alone; false when somebody else has the lock now. The file must exist."""
    try:
        handle = _take(path, os.O_RDWR, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        release_lock(handle)


@contextmanager
def _held(path: Path, flags: int, operation: int) -> Iterator[None]:
    handle = _take(path, flags, operation)
    try:
        yield
    finally:
        release_lock(handle)


def _take(path: str | Path, flags: int, operation: int) -> int:
    handle = open_private(path, flags)
    try:
        fcntl.flock(handle, operation)
    except BaseException:
        os.close(handle)
        raise
    return handle
