"""A limit on the work that one notification may cause. It is checked before each condition that is
computed, and by functions of long texts and lists before each of their steps.

A node that matches for others sets it with `limit_work`; otherwise there is no limit. The caller
passes the clock too, which should be the processor time of the thread: a busy machine is no reason
to refuse a notification.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidings.model import NotificationError

WORTH = 1_024  # characters, or elements: below this, the work takes less time than the check


class WorkError(NotificationError):
    """A notification that exceeds the limit on work."""


class _Here(threading.local):
    clock: Callable[[], float] | None = None
    until = 0.0


_here = _Here()


@contextmanager
def limit_work(clock: Callable[[], float], seconds: float) -> Iterator[None]:
    """Within this context, `look` and `spend` raise WorkError once so many seconds have passed."""
    before = _here.clock, _here.until
    _here.clock, _here.until = clock, clock() + seconds
    try:
        yield
    finally:
        _here.clock, _here.until = before


def spend(size: int) -> None:
    """Check the limit before work on this many characters or elements, if they are many."""
    if size >= WORTH:
        look()


def look() -> None:
    """Check the limit; WorkError when it is exceeded."""
    clock = _here.clock
    if clock is not None and clock() > _here.until:
        raise WorkError(
            "finding the filters of the notification takes too long: its texts or lists are too "
            "long for the conditions here that are computed on them; shorten them, or send them as "
            "the payload, which no filter reads"
        )
