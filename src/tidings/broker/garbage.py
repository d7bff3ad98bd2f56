"""When a node looks for garbage that refers to itself.

A full collection goes through everything that a node keeps, and nothing is forwarded meanwhile: 0.2
s at a gigabyte. Python starts one whenever a quarter more has come, which took 3 % of the time of
a router whose neighbours came and went. Nearly all garbage goes by itself, and most of the rest
while it is young. So the young are collected as ever, and all only as often as it takes a
thousandth of the time.
"""

from __future__ import annotations

import asyncio
import gc
import time

NEVER = 1 << 30  # collections of the middle generation, until Python would start a full one
OFTEN = 30.0  # seconds between two full collections, at least,
PART = 1000  # and this many times what the last one took


async def collect_seldom() -> None:
    """Collect garbage until cancelled, in a process that is a node and nothing else."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()  # modules and what was loaded stay: nothing looks through them again
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
