"""The signed grants of an agent. A preprocessor issues them; the agent presents them to its router,
and renews them.

    agent ──Propose──> preprocessor ──signed grant──> agent ──Present──> router, on each new link
                                                        ^── again, when half of its time is over

A grant is presented before the messages that need it, and links deliver messages in order.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import msgspec

from tidings.model import TidingsError
from tidings.network.agents.refusals import Refusal
from tidings.routing.clients import Subscriber
from tidings.routing.protocol import DEFAULT_DIALECT, messages as m, unpack_grant

FIRST = 1 << 61  # the first request number; the agent's other requests have lower numbers
AGAIN = 30.0  # seconds before another attempt to renew the same grant


class SignedGrant(msgspec.Struct, frozen=True):
    """A preprocessor's permission for one agent to subscribe to a node, until a given time. `data`
    is opaque; it can be stored, and used later as `SignedGrant(data)`. The agent renews a grant
    only if the object still has its filter."""

    data: bytes
    interest: str = ""
    dialect: str = DEFAULT_DIALECT

    @property
    def node(self) -> int:
        """The number of the node of the grant; 0 if `data` is not a grant."""
        found = unpack_grant(self.data)
        return 0 if found is None else found.node

    @property
    def expires(self) -> float:
        """When the grant expires, in seconds since 1970."""
        found = unpack_grant(self.data)
        return 0.0 if found is None else float(found.expires)


class _Held(msgspec.Struct):
    """A grant in use."""

    grant: SignedGrant
    machine: Subscriber
    renew_at: float  # seconds since 1970


class HeldGrants:
    """The grants that are used by the subscriptions of one agent."""

    def __init__(self, send: Callable[[m.Message], bool]) -> None:
        """`send` sends a message to the router; False if there is no link."""
        self._send = send
        self._held: dict[int, _Held] = {}  # the number of a subscription -> its grant
        self._presented: dict[int, int] = {}  # number of the request -> subscription
        self._request = FIRST

    def use(self, number: int, grant: SignedGrant, machine: Subscriber) -> None:
        """Present a grant for a subscription, now and again on each new link."""
        self._held[number] = _Held(grant, machine, _half_time(grant))
        self._present(number)

    def drop(self, number: int) -> None:
        self._held.pop(number, None)

    def present_all(self) -> None:
        """Present all grants again, because the link is new."""
        self._presented.clear()
        for number in self._held:
            self._present(number)

    def receive(self, message: m.Presented) -> None:
        """Process the router's answer. A subscription whose grant is refused ends."""
        number = self._presented.pop(message.request, None)
        held = None if number is None else self._held.get(number)
        if held is not None:
            held.machine.presents = number in self._presented.values()
            if message.refusal:
                held.machine.refuse(message.refusal)

    async def renew(self, obtain: Callable[[str, str], Awaitable[SignedGrant]]) -> None:
        """Renew the grants whose lifetime is half over. If a grant can't be renewed, it is used
        until it expires."""
        for number, held in [*self._held.items()]:
            now = time.time()
            if now < held.renew_at or not held.grant.interest:
                continue
            held.renew_at = now + min(AGAIN, max(0.1, (held.grant.expires - now) / 4))
            try:
                found = await obtain(held.grant.interest, held.grant.dialect)
            except TidingsError:
                continue
            # if nobody was subscribed to the filter for a while, the filter may have another node
            # now
            if self._held.get(number) is held and found.node == held.grant.node:
                held.grant, held.renew_at = found, _half_time(found)
                self._present(number)

    def is_due(self) -> bool:
        now = time.time()
        return any(one.renew_at <= now and one.grant.interest for one in self._held.values())

    def _present(self, number: int) -> None:
        self._request += 1
        held = self._held[number]
        if self._send(m.Present(self._request, held.grant.data)):
            self._presented[self._request] = number
            held.machine.presents = True


def place_of(grant: SignedGrant) -> tuple[int, int]:
    """The life and the node in a grant; raises Refusal if these bytes are not a grant."""
    found = unpack_grant(grant.data)
    if found is None:
        raise Refusal(f"the {len(grant.data):,} bytes given as a grant can't be read as one")
    return found.life, found.node


def _half_time(grant: SignedGrant) -> float:
    now = time.time()
    return now + (grant.expires - now) / 2
