"""The intervals and timeouts of routers, subscribers and publishers."""

from __future__ import annotations

import msgspec


class Times(msgspec.Struct, frozen=True):
    """All values are in seconds."""

    beat: float = 1.0  # the time between two beats of the rendezvous point
    resubscribe: float = 5.0  # the time between two Resubscribe messages
    retry: float = 3.0  # the time before an unanswered message is sent again
    silent: float = 12.0  # after this time without a message from above, a node is interrupted
    expire: float = 20.0  # a neighbour below is dropped after this long without a message
    gap: float = 5.0  # missing notifications hold back later ones for at least this long
    request: float = 30.0  # how long an unanswered question is remembered
