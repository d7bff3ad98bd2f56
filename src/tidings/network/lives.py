"""Random numbers that identify one start of a process."""

from __future__ import annotations

import secrets


def draw_life() -> int:
    """A random number of 63 bits, never 0. A clock would not do, because it may go back."""
    return secrets.randbits(63) or 1
