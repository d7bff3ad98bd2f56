"""The frames that hops get."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from tidings.relations.merit.related_subscriptions import RelatedMatch


class Frame(msgspec.Struct, frozen=True):
    """A frame for one hop: the ids that match exactly, and the ids to which the message is related.
    A second frame to a hop that was served at once has no payload."""

    hop: Hashable
    ids: tuple[Hashable, ...]
    payload: bool
    merit: float | None = None
    """The hop's merit, if the frame is sent before the exact search."""
    related: tuple[RelatedMatch, ...] = ()
