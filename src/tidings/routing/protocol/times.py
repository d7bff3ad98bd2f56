"""The intervals and timeouts of routers, subscribers and publishers."""

from __future__ import annotations

import msgspec


class Times(msgspec.Struct, frozen=True):
    """All values are in seconds."""

    beat: float = 1.0  # the time between two beats of the rendezvous point
    resubscribe: float = 5.0  # between two resubscriptions
    retry: float = 3.0  # the time before an unanswered message is sent again
    silent: float = 12.0  # the time of silence from above after which nodes count as interrupted
    expire: float = 20.0  # the time of silence from a neighbour below after which it is dropped
    gap: float = 5.0  # how long missing notifications hold back those after them
    request: float = 30.0  # the time before an unanswered question is forgotten
