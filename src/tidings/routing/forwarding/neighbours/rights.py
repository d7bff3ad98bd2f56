"""Which nodes a neighbour may see if filters limit its right to subscribe.

    Ask ──> the filters that limit the neighbour are added ──> root: do they cover the interest?
    Answer ──> the node is granted to the neighbour
    Subscribe, Count ──> refused for nodes that were not granted

Only the root can compare filters. A grant is soft state: after a restart, the neighbour is refused,
asks again, and is granted the node again.

Invariant: a neighbour that is limited wants only nodes that were granted to it under its present
limits.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidings.routing.forwarding.neighbours.context import Context, Name
from tidings.routing.protocol import messages as m


class Rights:
    """The rights of the neighbours of one state machine. Cost: one dictionary entry for each node
    that was granted to a limited neighbour."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def limit(self, sender: Name, within: m.Within) -> m.Within:
        """The filters that must cover what a message asks for: the limits of the sender and, if it
        is a router, the limits that it names for the neighbours behind it."""
        own = self._context.within_of(sender)
        return own if self._context.owner_of(sender) else (*own, *within)

    def grant(self, name: Name, node: int, within: m.Within) -> None:
        """Note that the root found a node within the limits of a neighbour."""
        known = self._context.neighbours.get(name)
        if known is None or not within:
            return
        known.granted.pop(node, None)
        if len(known.granted) >= self._context.limits.nodes:
            del known.granted[next(iter(known.granted))]
        known.granted[node] = within

    def is_granted(self, name: Name, node: int) -> bool:
        within = self._context.within_of(name)
        return not within or self._context.neighbours[name].granted.get(node) == within

    def admit(self, name: Name, nodes: Iterable[int]) -> Iterable[int]:
        """The nodes among `nodes` that a neighbour may see. The neighbour is told that the other
        nodes do not exist."""
        if not self._context.within_of(name):
            return nodes
        asked = list(nodes)
        refused = tuple(node for node in asked if not self.is_granted(name, node))
        if refused:
            self._context.beyond["not granted"] += len(refused)
            self._context.send(name, m.Refuse(self._context.epoch, refused))
        return [node for node in asked if self.is_granted(name, node)]
