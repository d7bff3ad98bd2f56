"""When a node runs the garbage collector for reference cycles.

A full collection visits all objects of a node, which takes 0.2 s for a gigabyte. Nothing is
forwarded meanwhile. Python starts a full collection whenever the heap has grown by a quarter, which
took 3 % of the time of a router whose neighbours came and went. Reference counts free nearly all
garbage, and most of the remaining garbage is collected while it is young. So the young generations
are collected as usual, and full collections take at most a thousandth of the time.
"""

from __future__ import annotations

import asyncio
import gc
import time

NEVER = 1 << 30  # a threshold that is never reached, so Python starts no full collection
OFTEN = 30.0  # seconds between two full collections, at least
PART = 1000  # the pause lasts at least this many times the duration of the last full collection


async def collect_seldom() -> None:
    """Collect garbage until cancelled, in a process that runs only a node."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()  # modules are never freed, so collections need not visit them
    gc.set_threshold(before[0], before[1], NEVER)
    took = 0.0
    try:
        while True:
            await asyncio.sleep(max(OFTEN, PART * took))
            began = time.monotonic()
            gc.collect()
            took = time.monotonic() - began
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
