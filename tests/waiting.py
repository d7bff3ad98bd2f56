"""Waiting for a condition. A fixed pause is too short on a busy machine, and too long on any
other."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

PATIENCE = 120.0  # seconds: a limit on hanging, not on speed
EVERY = 0.02

Found = TypeVar("Found")


async def until(
    what: Callable[[], object],
    seconds: float = PATIENCE,
    doing: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Wait for something in this event loop, and repeat `doing` until then; TimeoutError where it
    does not happen."""
    async with asyncio.timeout(seconds):
        while not what():
            if doing is not None:
                await doing()
            await asyncio.sleep(EVERY)


def wait_for(what: Callable[[], Found], seconds: float = PATIENCE, every: float = EVERY) -> Found:
    """Wait for something that others do; gives what was found last, true or not."""
    limit = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < limit:
        time.sleep(every)
    return found


def eventually(what: Callable[[], Found], seconds: float = PATIENCE) -> Found:
    """Wait for something that others do; AssertionError where it does not happen."""
    found = wait_for(what, seconds)
    assert found, f"it did not happen within {seconds:.0f} s"
    return found


def waits_in(thread: int, *names: str) -> bool:
    """Whether a thread of this process waits: it is in one of the functions with these names, and
    in no Python code that this calls."""
    frame = sys._current_frames().get(thread)
    return frame is not None and frame.f_code.co_name in names
