"""Waiting for what others do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PATIENCE = 60.0  # seconds


async def until(what: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for something; TimeoutError where it does not happen."""
    async with asyncio.timeout(seconds):
        while True:
            if what():
                return
            await asyncio.sleep(0.02)
