"""Share the interpreter's lock (GIL) between matching and background work.

Python lets a thread run for five milliseconds before another thread gets its turn. A match takes
only a hundredth of that time. During background work, turns are made shorter. A thread that matches
without pause is hardly ever interrupted (register.py says why). So it sometimes yields to the
background thread, but so rarely that 99 of 100 matches are not delayed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

TURN = 500e-6  # seconds
PAUSE = 20e-6  # seconds, without the time to wake up

_lock = threading.Lock()
_count = 0
_before = 0.0
_never = threading.Event()


@contextmanager
def shorten_turns() -> Iterator[None]:
    """Keep the turns of threads short until the last caller leaves the block."""
    global _count, _before  # noqa: PLW0603  the interpreter has one switch interval
    with _lock:
        if _count == 0:
            _before = sys.getswitchinterval()
            sys.setswitchinterval(min(TURN, _before))
        _count += 1
    try:
        yield
    finally:
        with _lock:
            _count -= 1
            if _count == 0:
                sys.setswitchinterval(_before)


def yield_to_background() -> None:
    """Give background work a turn, if any is waiting."""
    if _count:
        _never.wait(PAUSE)
