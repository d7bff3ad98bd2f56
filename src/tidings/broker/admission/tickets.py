"""The tickets that a node signs for its clients, who show them to preprocessors.

    Identify ──> name, rights and limits of the client ──> signed, for five minutes ──> Identified

So a preprocessor learns who the client is without seeing its token.
"""

from __future__ import annotations

import time

from tidings.broker.admission.listen import Door
from tidings.broker.admission.permissions import Permissions
from tidings.broker.admission.signing import TICKET_LIFETIME, KeyProblem, Signer
from tidings.routing.forwarding import Downstream, Name
from tidings.routing.protocol import Ticket, messages as m

SIGN = 100  # signing a ticket is charged as much as this many entries of an answer


class Tickets:
    """Signs tickets with the key of a node, if the node has a key."""

    def __init__(self, node: str, door: Door) -> None:
        """Raises KeyProblem if the key can't be used, or if anybody may connect under any name."""
        self._signer = Signer(door.ticket_key) if door.ticket_key else None
        if self._signer is not None and not door.is_guarded:
            raise KeyProblem(
                f"{node}: found a key for signing tickets, but no tokens; expected [tokens] that "
                "say who may connect"
            )

    def sign(
        self, machine: Downstream, name: Name, who: Permissions, channel: str, request: int,
        now: float,
    ) -> m.Identified:  # fmt: skip
        """Answer a neighbour that asks for a ticket."""
        if self._signer is None:
            return m.Identified(request)
        machine.context.now = now
        machine.hear(name)
        if not machine.charges.may_ask(name):
            return m.Identified(request, refusal="too many questions were asked; ask again later")
        machine.charges.charge(name, SIGN)
        expires = int(time.time() + TICKET_LIFETIME)
        ticket = Ticket(
            b"", who.name, who.owner, channel, expires, tuple(sorted(who.may)), who.within
        )
        return m.Identified(request, self._signer.sign_ticket(ticket))
