"""Links of agents to the rendezvous point itself. Such a link bypasses the tree, and is offered if
few others want the same notifications.

    agent ──Apply──> routers ──> here: few want its nodes ──Offered──> agent: an address, a ticket
    agent ══════════ second link, with the ticket ══════════> here: a neighbour like any other

Each node on the way counts its other neighbours that get the notifications of the agent's nodes. If
there are only a few such neighbours on the whole way, the rendezvous point offers a link. The agent
asks again every now and then, always through the tree. So an offer ends when too many others want
the same notifications, or when a router on the way no longer admits the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from heapq import nlargest

import msgspec

from tidings.routing.forwarding.label_graph import LabelGraph
from tidings.routing.forwarding.neighbours import Charges, Context, Name, Rights, name_owner
from tidings.routing.protocol import messages as m

SECONDS = 120  # how long a ticket is valid


def name_direct(agent: str, owner: str) -> str:
    """The name of an agent's second link at the rendezvous point. Two agents with the same name
    behind different routers have different owners, and so their second links have different
    names."""
    known = sha256(f"{owner}\0{agent}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{agent}/direct-{known}"


class Offers:
    """The offers of one rendezvous point. If `most` is 0, the rendezvous point offers no links."""

    def __init__(
        self,
        context: Context,
        charges: Charges,
        rights: Rights,
        graph: LabelGraph[Name],
        wants: Mapping[int, set[Name]],
    ) -> None:
        self._graph = graph
        self._wants = wants
        self._context = context
        self._charges = charges
        self._rights = rights
        self.most = 0
        """An agent gets an offer if, at all nodes on the way together, fewer neighbours than this
        want the same notifications."""
        self.issue: Callable[[m.Apply], tuple[str, str]] = lambda _: ("", "")
        """The address and a ticket for an agent; empty if there is no room."""
        self.is_direct: Callable[[Name], bool] = lambda _: False
        """Is a neighbour an agent that was offered its link?"""

    def answer(
        self,
        sender: Name,
        message: m.Apply,
        count_others: Callable[[set[Name], Iterable[int]], int],
    ) -> None:
        context = self._context
        self._charges.charge(sender, len(message.nodes), message.owner)
        found = m.Offered(context.epoch, message.request)
        is_here = bool(context.owner_of(sender))  # the agent is linked to this node already
        if self.most and not is_here:
            message = name_owner(context, sender, message)
            within = self._rights.limit(sender, message.within)
            message = msgspec.structs.replace(message, within=within)
            mine = {sender, name_direct(message.agent, message.owner)}
            others = message.others + count_others(mine, message.nodes)
            above = self._find_wanted_above(message.nodes)
            found = m.Offered(context.epoch, message.request, above=above)
            if others < self.most:
                address, ticket = self.issue(message)
                if address and len(ticket) <= m.LONGEST_TICKET:
                    found = msgspec.structs.replace(
                        found, address=address, ticket=ticket, seconds=SECONDS
                    )
        context.send(sender, found)

    def _find_wanted_above(self, nodes: Iterable[int]) -> tuple[int, ...]:
        """The wanted nodes above some nodes; if there are too many, only the newest of them."""
        known = [node for node in nodes if node in self._graph]
        above = set[int]().union(*map(self._graph.ancestors, known))
        return tuple(nlargest(m.MOST_DIRECT, filter(self._wants.__contains__, above)))
