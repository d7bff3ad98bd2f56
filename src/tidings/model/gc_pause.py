"""Pauses the garbage collector while a program creates many objects that stay alive."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_gc() -> Iterator[None]:
    """Turn off the collector of reference cycles for the whole process while the block runs.

    The collector would visit all live objects again and again while their number grows, which takes
    half the time of a large `ContentGraph.build`.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
