"""What is sent to one hop."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from tidings.relations.merit.related import RelatedMatch


class Frame(msgspec.Struct, frozen=True):
    """What is sent to one hop: the ids that match exactly, and those that the message is related
    to. A hop that was served at once needs the payload only once."""

    hop: Hashable
    ids: tuple[Hashable, ...]
    payload: bool
    merit: float | None = None
    """Of a frame that is sent before the exact search."""
    related: tuple[RelatedMatch, ...] = ()
