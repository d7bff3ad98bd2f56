"""The intervals and timeouts of routers, subscribers and publishers."""

from __future__ import annotations

import msgspec


class Times(msgspec.Struct, frozen=True):
    """All values are in seconds."""

    beat: float = 1.0  # between two beats of the rendezvous point
    resubscribe: float = 5.0  # between two resubscriptions
    retry: float = 3.0  # before an unanswered message is sent again
    silent: float = 12.0  # of silence from above, until nodes count as interrupted
    expire: float = 20.0  # of silence from a neighbour below, until it is dropped
    gap: float = 5.0  # that missing notifications hold back those after them
    request: float = 30.0  # before an unanswered question is forgotten
