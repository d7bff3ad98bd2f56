"""When a node runs the garbage collector for reference cycles.

    new objects ──many are new, or 5 s passed──> checked once, then frozen
                                                   │
                   checked again <── every hour, or when the heap has grown by half

A full collection visits all objects of a node, which takes 0.2 s for a gigabyte. Nothing is
forwarded meanwhile. Python starts a full collection whenever the heap has grown by a quarter. This
took 3 % of the time of a router whose neighbours came and went. Reference counts free nearly all
garbage, and most of the remaining garbage is collected while it is young. So the young generations
are collected as usual, and the survivors are checked once more and then frozen: later collections
skip them, and reference counts still free them. Only a whole collection finds cycles among frozen
objects. Whole collections take at most a thousandth of the time.

Survivors are checked before there are many of them: with a fixed pause between checks, an
overloaded rendezvous point collected half a million waiting objects at once, and forwarded nothing
for 0.27 s.

Cost: at most 0.5 µs for each new object that survives.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time

NEVER = 1 << 30  # a threshold that is never reached, so Python starts no full collection
CHECK = 0.2  # seconds between two checks of how many objects are new
OFTEN = 5.0  # seconds after which new objects are collected, even if they are few
FEW = 2  # after fewer collections of the middle generation than this, new objects are few
WHOLE_PART = 1000  # the pause lasts at least this many times as long as the last whole collection
SELDOM = 3600.0  # seconds after which a whole collection is due
GROWTH = 1.5  # a whole collection is due when the heap has grown by this factor since the last one


async def collect_seldom() -> None:
    """Collect garbage until cancelled; only for processes that run nothing but a node."""
    before = gc.get_threshold()
    took = _collect()
    blocks, last = sys.getallocatedblocks(), time.monotonic()
    whole = last
    gc.set_threshold(before[0], before[1], NEVER)
    try:
        while True:
            await asyncio.sleep(min(CHECK, OFTEN))
            now = time.monotonic()
            grown = sys.getallocatedblocks() > GROWTH * blocks
            if now - whole > SELDOM or (grown and now - whole > WHOLE_PART * took):
                gc.unfreeze()
                took = _collect()
                blocks, last = sys.getallocatedblocks(), time.monotonic()
                whole = last
            elif now - last > OFTEN or gc.get_count()[2] >= FEW:
                _collect()
                last = time.monotonic()
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _collect() -> float:
    """Collect all objects that are not frozen, and freeze the rest. Return the seconds it took."""
    began = time.monotonic()
    gc.collect()
    gc.freeze()
    return time.monotonic() - began
