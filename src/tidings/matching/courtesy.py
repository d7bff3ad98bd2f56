"""Background work that gives way to matching.

Python lets a thread run for five milliseconds before another one gets its turn, which is a hundred
times as long as a match takes. While background work goes on, turns are made short.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

TURN = 50e-6  # seconds

_lock = threading.Lock()
_count = 0
_before = 0.0


@contextmanager
def giving_way() -> Iterator[None]:
    """Short turns until the last of those inside has left."""
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
