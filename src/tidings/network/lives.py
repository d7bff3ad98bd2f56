"""Numbers that tell one start of something from all others."""

from __future__ import annotations

import secrets


def draw_life() -> int:
    """A number of 63 bits at random, never 0. Not from a clock, which may go back."""
    return secrets.randbits(63) or 1
