"""A limit on the work that one notification may cause. The limit is checked before each computed
condition and, within functions on long strings and lists, before each step.

A root sets the limit with `limit_work`; by default there is none. The caller also passes the clock;
it should measure the CPU time of the thread, because a notification should not be refused just
because the machine is busy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidings.model import NotificationError

WORTH = 1_024  # in characters or elements; smaller work takes less time than the check


class WorkError(NotificationError):
    """A notification exceeds the limit on work."""


class _Here(threading.local):
    clock: Callable[[], float] | None = None
    until = 0.0
    quick: Callable[[], float] | None = None
    soonest = 0.0  # before this time on the quick clock, the limit can't have been exceeded


_here = _Here()


@contextmanager
def limit_work(
    clock: Callable[[], float], seconds: float, quick: Callable[[], float] | None = None
) -> Iterator[None]:
    """Within this context, `look` and `spend` raise WorkError after `seconds` have passed. `quick`
    is a clock, such as the wall clock, that takes less time to read than `clock` and never falls
    behind it: `clock` is not read until `seconds` have passed on `quick`."""
    before = _here.clock, _here.until, _here.quick, _here.soonest
    _here.clock, _here.until = clock, clock() + seconds
    _here.quick, _here.soonest = quick, 0.0 if quick is None else quick() + seconds
    try:
        yield
    finally:
        _here.clock, _here.until, _here.quick, _here.soonest = before


def spend(size: int) -> None:
    """Check the limit before work on `size` characters or elements, unless the size is small."""
    if size >= WORTH:
        look()


def look() -> None:
    """Raise WorkError if the limit is exceeded."""
    clock, quick = _here.clock, _here.quick
    if clock is None or (quick is not None and quick() < _here.soonest):
        return
    left = _here.until - clock()
    if left < 0:
        raise WorkError(
            "matching the notification takes too long: its strings or lists are too long for the "
            "conditions that filters compute on them; shorten them, or send them as the payload, "
            "which filters do not read"
        )
    if quick is not None:
        _here.soonest = quick() + left
