"""Random numbers that identify one start of a process."""

from __future__ import annotations

import secrets

from tidings.routing.protocol import mark_revised


def draw_life(*, revised: bool = False) -> int:
    """A random 63-bit number that is never 0. A clock is unsuitable for this, because it may go
    back. `revised` is set if a rendezvous point begins this life with a revision."""
    return mark_revised(secrets.randbits(63), revised=revised)
