"""Pauses the garbage collector while a program creates many objects that are kept."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_gc() -> Iterator[None]:
    """Turn off the collector of reference cycles for the whole process while the block runs.

    While a large `ContentGraph.build` creates objects, the collector would visit all live objects
    again and again, which takes half of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
