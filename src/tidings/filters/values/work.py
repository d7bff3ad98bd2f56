"""How much work one notification may be: a meter that is looked at before a condition is computed,
and by functions of long texts and lists before each of their steps.

Whoever matches for others sets one up (`metered`); where there is none, nothing is counted. The
clock comes from there too, and should be that of the thread's processor time: what a neighbour on
the machine does is no reason to refuse a notification.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidings.model import NotificationError

WORTH = 1_024  # characters, or elements: what is shorter is done in less time than a look takes


class WorkError(NotificationError):
    """A notification that takes more work than is done for one."""


class _Here(threading.local):
    clock: Callable[[], float] | None = None
    until = 0.0


_here = _Here()


@contextmanager
def metered(clock: Callable[[], float], seconds: float) -> Iterator[None]:
    """WorkError for what takes longer than this in here, and is work that is looked at."""
    before = _here.clock, _here.until
    _here.clock, _here.until = clock, clock() + seconds
    try:
        yield
    finally:
        _here.clock, _here.until = before


def spend(size: int) -> None:
    """Called before work on this many characters, or of this size."""
    if size >= WORTH:
        look()


def look() -> None:
    """Called before a condition is computed."""
    clock = _here.clock
    if clock is not None and clock() > _here.until:
        raise WorkError(
            "finding the filters of the notification takes too long: its texts or lists are too "
            "long for the conditions here that are computed on them; shorten them, or send them as "
            "the payload, which no filter reads"
        )
