"""Which neighbours get the acknowledgments of each publisher."""

from __future__ import annotations

from tidings.routing.forwarding.neighbours.context import Context, Name
from tidings.routing.protocol import messages as m

MOST_BACK = 4  # neighbours that get the acknowledgments of one publisher


class ReturnPaths:
    """For each publisher, the last few neighbours that sent its publications, the latest first.

    Several neighbours are kept, so that a neighbour that replays a publication of another client
    can't take over the acknowledgments. The publishers that have been silent longest are forgotten:
    a publisher that still waits repeats its publication.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.many = context.limits.publishers // 2
        self.known: dict[str, tuple[Name, ...]] = {}

    def add(self, publisher: str, sender: Name) -> None:
        """Record which neighbour sent a publication of a publisher."""
        known = self.known
        paths = known.get(publisher, ())
        if not paths or paths[0] != sender:
            paths = (sender, *(one for one in paths if one != sender))[:MOST_BACK]
        if len(known) > self.many:  # the order of publishers matters only near the limit
            known.pop(publisher, None)
        known[publisher] = paths
        if len(known) > self._context.limits.publishers:
            del known[next(iter(known))]
            self._context.beyond["publishers"] += 1

    def send(self, message: m.Published) -> None:
        for to in self.known.get(message.publisher, ()):
            self._context.send(to, message)
