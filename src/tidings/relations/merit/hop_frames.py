"""The frames that hops get."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from tidings.relations.merit.related import RelatedMatch


class Frame(msgspec.Struct, frozen=True):
    """A frame for one hop: the ids that match exactly, and those to which the message is related. A
    hop that was served at once needs the payload only once."""

    hop: Hashable
    ids: tuple[Hashable, ...]
    payload: bool
    merit: float | None = None
    """Of a frame that is sent before the exact search."""
    related: tuple[RelatedMatch, ...] = ()
