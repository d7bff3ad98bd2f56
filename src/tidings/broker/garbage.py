"""When a node runs the garbage collector for reference cycles.

    new objects ──every 5 s──> checked once, then frozen ──every hour, or when the heap has
                                                           grown by a quarter──> checked again

A full collection visits all objects of a node, which takes 0.2 s for a gigabyte. Nothing is
forwarded meanwhile. Python starts a full collection whenever the heap has grown by a quarter, which
took 3 % of the time of a router whose neighbours came and went. Reference counts free nearly all
garbage, and most of the remaining garbage is collected while it is young. So the young generations
are collected as usual, and objects that survive a collection every few seconds are frozen: later
collections skip them, and reference counts still free them. Only a whole collection finds cycles
among frozen objects. Whole collections take at most a thousandth of the time.

Cost: 0.5 µs for each new object that stays. At a rendezvous point that places 500 new filters per
second, this is 13 ms every 5 s; when all objects were visited, a collection took 80 to 190 ms.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time

NEVER = 1 << 30  # a threshold that is never reached, so Python starts no full collection
OFTEN = 5.0  # seconds between two collections of new objects, at least
PART = 100  # the pause lasts at least this many times the duration of the last collection
WHOLE_PART = 1000  # the same for whole collections
SELDOM = 3600.0  # seconds after which a whole collection is due
GROWTH = 1.25  # how many times as large the heap is when a whole collection is due


async def collect_seldom() -> None:
    """Collect garbage until cancelled, in a process that runs only a node."""
    before = gc.get_threshold()
    took = whole_took = _collect()
    blocks, whole = sys.getallocatedblocks(), time.monotonic()
    gc.set_threshold(before[0], before[1], NEVER)
    try:
        while True:
            await asyncio.sleep(max(OFTEN, PART * took))
            since = time.monotonic() - whole
            grown = sys.getallocatedblocks() > GROWTH * blocks
            if since > SELDOM or (grown and since > WHOLE_PART * whole_took):
                gc.unfreeze()
                took = whole_took = _collect()
                blocks, whole = sys.getallocatedblocks(), time.monotonic()
            else:
                took = _collect()
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _collect() -> float:
    """Collect all objects that are not frozen, and freeze the rest. Return the seconds it took."""
    began = time.monotonic()
    gc.collect()
    gc.freeze()
    return time.monotonic() - began
