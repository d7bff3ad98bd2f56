"""The intervals that routers, subscribers and publishers work by."""

from __future__ import annotations

import msgspec


class Times(msgspec.Struct, frozen=True):
    """Seconds."""

    beat: float = 1.0  # between two beats of the rendezvous point
    resubscribe: float = 5.0  # between two resubscriptions
    retry: float = 3.0  # before something that was not answered is sent again
    silent: float = 12.0  # without a word from above: interrupted
    expire: float = 20.0  # without a word from below: dropped
    request: float = 30.0  # that a question is remembered
