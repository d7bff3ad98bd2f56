"""Random numbers that identify one start of a process."""

from __future__ import annotations

import secrets


def draw_life() -> int:
    """A random 63-bit number that is never 0. A clock can't be used for this, because it may go
    back."""
    return secrets.randbits(63) or 1
