"""Tickets that admit an agent to the rendezvous point itself, with the rights that it has at its
router.

    direct:BODY.MAC     the body says who, on whose behalf, within which filters, and until when

A ticket reaches the agent through the tree, so only the nodes on its way can read it; these nodes
are already trusted to name owners. The agent shows the ticket instead of its own token, which the
nodes further up never see. The key of the MAC is random and stays in memory: after a restart,
earlier tickets are worthless.
"""

from __future__ import annotations

import binascii
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

from tidings.routing.protocol import messages as m

PREFIX = "direct:"


class DirectTicket(msgspec.Struct, frozen=True, array_like=True):
    agent: str
    owner: str
    party: str  # the owner of named subscriptions
    within: m.Within
    ends: float  # by the clock of the process that issued the ticket


class DirectTickets:
    """The tickets of one running rendezvous point."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def issue(self, ticket: DirectTicket) -> str:
        body = urlsafe_b64encode(msgspec.msgpack.encode(ticket)).decode()
        return f"{PREFIX}{body}.{self._sign(body)}"

    def read(self, text: str, agent: str, now: float) -> DirectTicket | str:
        """The ticket that an agent shows, or the reason why it is refused."""
        body, _, mac = text.removeprefix(PREFIX).partition(".")
        # compare bytes: text that is not ASCII can't be compared in constant time
        if not hmac.compare_digest(mac.encode(errors="replace"), self._sign(body).encode()):
            return "the ticket for a direct link is not known here"
        try:
            found = msgspec.msgpack.decode(urlsafe_b64decode(body), type=DirectTicket)
        except (binascii.Error, ValueError, msgspec.DecodeError):
            # this can't happen if this node signed the ticket
            return "the ticket for a direct link can't be read"
        if found.agent != agent:
            return f"the ticket for a direct link is not for {agent[:80]!r}"
        if found.ends <= now:
            return "the ticket for a direct link has expired"
        return found

    def _sign(self, body: str) -> str:
        return hmac.digest(self._key, body.encode(errors="replace"), "sha256").hex()
