"""Waits of threads that Ctrl-C can interrupt at any moment."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

LONGEST_WAIT = 1.0
"""Seconds. A long wait is made of waits of this length: if a Ctrl-C comes just before a thread
begins to wait, Python notices it only when that wait is over."""

_T = TypeVar("_T")


_RLock: Any = type(threading.RLock())


class Condition(_RLock, threading.Condition):  # type: ignore[misc]
    """A condition that is also its own lock; Ctrl-C never leaves it locked. With a plain condition,
    `with` runs some Python code while the lock is held but not yet protected by a `finally`; a
    Ctrl-C at that moment would block the thread of the agent forever. Here, `with` runs the code of
    the lock itself, which is written in C and can't be interrupted."""

    def __init__(self) -> None:
        self._waiters: Any = deque()  # besides the lock, a condition needs only this attribute

    def wait(self, timeout: float | None = None) -> bool:
        # the lock is held except while waiting, so no `notify` is missed
        return any(super(Condition, self).wait(one) for one in cut_wait(timeout))


def cut_wait(timeout: float | None) -> Iterator[float]:
    """Divide `timeout` seconds into short waits, at least one; None waits forever."""
    end = math.inf if timeout is None else time.monotonic() + timeout
    left = end - time.monotonic()
    while True:
        yield min(LONGEST_WAIT, max(0.0, left))
        left = end - time.monotonic()
        if left <= 0:
            return


def await_result(done: Future[_T]) -> _T:
    """The result of a future."""
    for one in cut_wait(None):
        with contextlib.suppress(TimeoutError):
            return done.result(one)
        if done.done():
            break  # the TimeoutError may be that of the future itself
    return done.result()


class Acknowledgment(Future[int]):
    """A future that the agent's thread completes. Other threads can be interrupted while they wait
    for it."""

    def __init__(self) -> None:
        super().__init__()
        self._condition = Condition()
