"""A table that maps each channel to its hop: the next node on the way to its rendezvous point.

"fx"         ──> east        the name of a channel
"orders-*"   ──> west        names that begin with "orders-"; the longest prefix counts
"*"          ──> west        all other channels
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidings.routing.protocol.limits import Limits

REST = "*"


class Route(msgspec.Struct, frozen=True):
    """How a node serves a channel."""

    hop: str  # the name of the node above
    limits: Limits | None = None  # the limits of the channel, if they differ from those of the node


class Routes:
    """The routes by name, and by prefix of a name. Cost: one lookup for each length of a known
    prefix."""

    def __init__(self, routes: Mapping[str, Route]) -> None:
        self._exact = {name: one for name, one in routes.items() if not name.endswith(REST)}
        self._begin = {name[:-1]: one for name, one in routes.items() if name.endswith(REST)}
        self._sizes = sorted({len(one) for one in self._begin}, reverse=True)

    def __len__(self) -> int:
        return len(self._exact) + len(self._begin)

    def find(self, channel: str) -> Route | None:
        """The route of a channel; None if there is none."""
        found = self._exact.get(channel)
        if found is not None:
            return found
        for size in self._sizes:
            found = self._begin.get(channel[:size]) if len(channel) >= size else None
            if found is not None:
                return found
        return None
