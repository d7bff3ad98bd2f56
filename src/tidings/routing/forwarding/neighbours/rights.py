"""Which nodes a neighbour may see if filters limit its right to subscribe, or if it needs signed
grants.

    Ask ──> the filters that limit the neighbour are added ──> root: do they cover the interest?
    Answer ──> the node is granted to the neighbour
    a signed grant (checked by the broker) ──> the node is granted until the grant expires
    Subscribe, Count ──> refused for nodes that were not granted

Only the root and preprocessors can compare filters. A grant is soft state: after a restart, the
neighbour asks again, or presents its signed grants again.

Invariant: a neighbour with limited rights is subscribed to a node only if the node was granted to
it under its present limits, or if it has a signed grant for the node that was made under these
limits and has not expired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidings.routing.forwarding.neighbours.context import Context, Name, Signed
from tidings.routing.protocol import messages as m

SIGNED: m.Within = ("FALSE",)
"""The limits of a neighbour that may subscribe only with signed grants: a filter that covers
nothing. In questions for the root, the filters in the neighbour's grants replace this filter."""
MOST_SIGNED = 1000  # signed grants of one neighbour


class Rights:
    """The rights of the neighbours of one state machine. Cost: one dictionary entry for each node
    that was granted to a limited neighbour."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._holders: set[Name] = set()  # neighbours with signed grants

    def limit(self, sender: Name, within: m.Within) -> m.Within:
        """The filters that must cover the nodes in a message: the limits of the sender and, if it
        is a router, the limits that it names for the neighbours behind it. If these are too many
        for a message, no node is covered: a message that the node above can't read would end the
        link to it."""
        own = self._context.within_of(sender)
        if own == SIGNED:
            own = (_join(self._find_signed(sender).values()),)
        found = own if self._context.owner_of(sender) else (*own, *within)
        return found if len(found) <= m.MOST_WITHIN else SIGNED

    def grant(self, name: Name, node: int, within: m.Within) -> None:
        """Record that the root has found that the limits of a neighbour cover a node."""
        known = self._context.neighbours.get(name)
        if known is None or not within:
            return
        known.granted.pop(node, None)
        if len(known.granted) >= self._context.limits.nodes:
            del known.granted[next(iter(known.granted))]
        known.granted[node] = within

    def grant_signed(self, name: Name, node: int, one: Signed) -> str:
        """Record a signed grant of a neighbour; return why it is refused, or an empty string."""
        known, within = self._context.neighbours[name], self._context.within_of(name)
        if within and within != SIGNED and not set(within) <= set(one.within):
            return (
                f"the grant does not say that the node is covered by {within[0]}, which limits "
                "your right to subscribe here"
            )
        held = {**known.signed, node: one}  # `revoke` removes expired grants, and their nodes
        if len(held) > MOST_SIGNED:
            return f"found {len(held):,} grants of one agent, expected at most {MOST_SIGNED:,}"
        size = len(_join(held.values()))
        if within == SIGNED and size > m.LONGEST_WITHIN:
            return (
                f"found grants whose filters have {size:,} characters together, expected at most "
                f"{m.LONGEST_WITHIN:,}"
            )
        known.signed = held
        self._holders.add(name)
        return ""

    def revoke(self, is_void: Callable[[Signed], bool]) -> list[Name]:
        """Forget the signed grants that have expired or are void; return the neighbours that had
        such grants."""
        found: list[Name] = []
        for name in [*self._holders]:
            known = self._context.neighbours.get(name)
            if known is None or not known.signed:
                self._holders.discard(name)
                continue
            left = {
                node: one
                for node, one in known.signed.items()
                if one.ends > self._context.now and not is_void(one)
            }
            if len(left) < len(known.signed):
                known.signed = left
                found.append(name)
        return found

    def is_granted(self, name: Name, node: int) -> bool:
        within = self._context.within_of(name)
        if not within:
            return True
        known = self._context.neighbours[name]
        one = known.signed.get(node)
        if one is not None and self._holds(name, one) and self._is_of_lineage(one):
            return within == SIGNED or set(within) <= set(one.within)
        return known.granted.get(node) == within

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

    def _find_signed(self, name: Name) -> dict[int, Signed]:
        """The signed grants of a neighbour that are valid at present."""
        known = self._context.neighbours.get(name)
        found = {} if known is None else known.signed
        return {node: one for node, one in found.items() if self._holds(name, one)}

    def _holds(self, name: Name, one: Signed) -> bool:
        """Is a signed grant valid for a neighbour? A guest may take over the name of another guest,
        but not its grants."""
        return one.ends > self._context.now and one.agent == self._context.owner_of(name)

    def _is_of_lineage(self, one: Signed) -> bool:
        """Do node numbers still mean the same nodes as when the grant was signed?"""
        standing = self._context.standing
        return one.life == standing.life or one.life in standing.lineage


def _join(grants: Iterable[Signed]) -> str:
    """A filter that covers the nodes of some grants: the limits of the grants, joined with OR."""
    each = dict.fromkeys(" AND ".join(f"({text})" for text in one.within) for one in grants)
    return " OR ".join(f"({text})" for text in each) if each else SIGNED[0]
