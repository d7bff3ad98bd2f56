"""Lock files, held exclusively by one process or shared by several.

The locks use flock. The system releases these locks when the process dies, and they work between
processes on one machine. Each holder opens the file itself, so threads of one process exclude each
other just as processes do.

The package filelock is not used, for three reasons. filelock has no shared locks. filelock polls,
but flock wakes the next writer at once. And filelock releases a lock when the lock object is
garbage-collected; this happens at interpreter shutdown, when a thread may still be committing.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidings.files.private import open_private


def take_lock(path: str | Path) -> int:
    """Take a lock exclusively; raise BlockingIOError if somebody else has it, or another OSError if
    the file can't be opened. The lock is held until `release_lock` is called with the returned
    handle, or until the process ends. The file contains the id of the process, for `holder_of`."""
    handle = _take(path, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, b"%d\n" % os.getpid(), 0)
    except OSError:  # the disk is full; the lock is held nevertheless
        pass
    except BaseException:
        release_lock(handle)
        raise
    return handle


def holder_of(path: Path) -> int | None:
    """The id of the process that holds a lock; None if no process holds it."""
    try:
        with try_lock(path) as is_free:
            return None if is_free else int(path.read_text())
    except (OSError, ValueError):
        return None


def release_lock(handle: int) -> None:
    """Release a lock."""
    try:
        # closing the file is not enough: a process that was forked in the meantime also has it open
        fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Wait until nobody else holds a lock, then hold it exclusively."""
    with _hold(path, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX):
        yield


@contextmanager
def share_lock(path: Path) -> Iterator[None]:
    """Wait until nobody holds a lock exclusively, then share it with other holders. The file must
    exist."""
    with _hold(path, os.O_RDONLY, fcntl.LOCK_SH):
        yield


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold a lock exclusively; yields False if somebody else has it. The file must exist."""
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
def _hold(path: Path, flags: int, operation: int) -> Iterator[None]:
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
