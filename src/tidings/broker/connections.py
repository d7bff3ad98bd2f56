"""The connections of a node: strangers until they send a greeting, then neighbours.

connect ──(TLS)──> stranger ──Hello──> neighbour: a link under its name, with its permissions
                       └──> refused: counted, and told why

A pipeline on the same machine can connect to the socket in the channel's folder, which only the
owner of the folder can open. A pipeline that connected in this way may preprocess, and needs no
token.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tidings.broker.admission.connection_limits import GREETING, ConnectionLimits
from tidings.broker.admission.direct_tickets import PREFIX, DirectTicket, DirectTickets
from tidings.broker.admission.listen import UPSTREAM, Door
from tidings.broker.admission.neighbour_places import NeighbourPlaces
from tidings.broker.admission.permissions import PermissionRegister, Permissions, Right, Tokens
from tidings.broker.admission.signing import SKEW, PublicKeys
from tidings.model import EnvironmentProblem
from tidings.network import Link, TlsProbe
from tidings.routing.forwarding import SIGNED, Name
from tidings.routing.protocol import messages as m
from tidings.routing.root import name_direct

SELDOM = 10.0  # seconds between two warnings
MOST_SAID = 300  # the most characters that a warning quotes of a stranger; each may take ten bytes

_log = logging.getLogger(__name__)


class Connections:
    """The links of a node, to its neighbours and to the node above."""

    def __init__(
        self,
        name: str,
        door: Door,
        make_link: Callable[[], Link],
        refuse_channel: Callable[[str], str] | None = None,
    ) -> None:
        """`refuse_channel` returns the reason why a channel is not served here; empty if it is
        served."""
        self.name = name  # of the node
        self._refuse_channel = refuse_channel or self._refuse_other
        self.door = door
        self.connection_limits = ConnectionLimits(door.limits)
        self.links: dict[Name, Link] = {}
        self._make_link = make_link
        self._probes: dict[TlsProbe, None] = {}  # the oldest first
        self._accepted: weakref.WeakSet[Link] = weakref.WeakSet()
        self._local: weakref.WeakSet[Link] = weakref.WeakSet()  # through the folder
        self._register = PermissionRegister(door.tokens)
        self._tickets = PublicKeys(door.tickets)
        self._places = NeighbourPlaces(door.limits)
        self._permissions: dict[Link, Permissions] = {}
        self._owners: dict[Name, str] = {}  # neighbour -> owner of its filters; routers have none
        self.tickets = DirectTickets()
        self._ends: dict[Link, float] = {}  # when the tickets of direct links expire
        self._certified: set[str] = set()  # names seen in certificates
        self._warned_at = float("-inf")

    async def listen(self, spawn: Callable[[Any], object]) -> asyncio.Server:
        """Start listening on the node's address (`Door.address`). Raise EnvironmentProblem if the
        address can't be used."""
        address = self.door.address
        try:
            return await asyncio.get_running_loop().create_server(
                lambda: self.make_protocol(spawn), address.host, address.port, backlog=1024
            )
        except OSError as problem:
            raise EnvironmentProblem(
                f"can't listen on {address.host}:{address.port}: {problem.strerror}"
            ) from None

    def make_protocol(self, spawn: Callable[[Any], object]) -> asyncio.Protocol:
        """The protocol of a new connection."""
        if self.door.tls is None:
            return self._accept()
        if len(self._probes) >= self.door.limits.strangers:
            oldest = next(iter(self._probes))
            del self._probes[oldest]
            oldest.end("too many strangers")
        tls = self.door.tls
        found = TlsProbe(tls, GREETING, self._accept, self._log_refusal, spawn, self._forget_probe)
        self._probes[found] = None
        return found

    async def welcome_local(self, found: socket.socket) -> None:
        """Accept a connection to the socket in the channel's folder, as a link."""
        found.setblocking(False)
        link = self._accept()
        self._local.add(link)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: link, found)
        except OSError as problem:  # the other end has gone
            found.close()
            self.remove(link, str(problem))

    def _forget_probe(self, one: TlsProbe) -> None:
        self._probes.pop(one, None)

    def _accept(self) -> Link:
        link = self._make_link()
        self._accepted.add(link)
        link.strange = True
        self.connection_limits.admit(link)
        return link

    def greet(self, link: Link, message: m.Message, room: Callable[[str], str]) -> bool:
        """Process the first message of a stranger; return True if the stranger becomes a neighbour.
        `room` returns the reason why there is no room for a neighbour with the given name; empty if
        there is room."""
        self.connection_limits.end_greeting(link)
        if not isinstance(message, m.Hello):
            self.connection_limits.send_away(link, "expected a greeting")
            return False
        certified = link.certificate_names()
        is_local = link in self._local
        found = self._admit_local(message) if is_local else self._admit(message, certified)
        older = None
        if isinstance(found, Permissions):
            older = self.links.get(found.neighbour)
            found = self._refusal(found, older) or room(found.neighbour) or found
        if isinstance(found, str):
            self._log_refusal(found)
            link.close(found)
            return False
        if older is not None:
            older.close(m.REPLACED)
        if self.door.certificates and found.name in certified:
            self._certified.add(found.name)
        link.name, link.owner = found.neighbour, found.owner
        link.largest, link.strange = self.door.limits.frame_bytes, False
        link.routes = message.routes
        self.links[link.name] = link
        self._permissions[link] = found
        self._owners[link.name] = "" if message.routes else found.owner
        self._places.take(found)
        if found.direct:
            now = time.monotonic()
            ticket = self.tickets.read(message.token, message.name, now)
            self._ends[link] = ticket.ends if isinstance(ticket, DirectTicket) else now
        link.send(m.Welcome(self.name, found.publisher if self.door.is_guarded else ""))
        self.connection_limits.begin_reading(link)
        return True

    def _admit(self, hello: m.Hello, certified: frozenset[str]) -> Permissions | str:
        """The permissions of a client that sent a greeting, or the reason to refuse the client.
        `certified` holds the names in its certificate."""
        door = self.door
        reason = "" if hello.opens else self._refuse_channel(hello.channel)
        if reason:
            return reason
        if reason := _refuse_name(hello.name):
            return reason
        if hello.token.startswith(PREFIX):
            if hello.routes or hello.opens:
                return "found a ticket for a direct link, which is for agents, expected a token"
            ticket = self.tickets.read(hello.token, hello.name, time.monotonic())
            return ticket if isinstance(ticket, str) else _permissions_of(ticket)
        if not door.is_guarded:
            return Permissions(hello.name)
        if hello.ticket and door.tickets is not None:
            return self._admit_ticket(hello.name, hello.ticket)
        if not hello.token and door.tickets is not None and not certified:
            return "found no ticket and no token, expected a ticket of the client's router"
        found = self._register.admit(
            hello, certified if door.certificates else frozenset(), self._certified
        )
        if isinstance(found, Permissions) and not hello.opens:
            return found.refuse_channel(hello.channel, door.channel) or found
        return found

    def _admit_local(self, hello: m.Hello) -> Permissions | str:
        """The permissions of a pipeline that connected to the socket in the channel's folder."""
        if hello.routes or hello.opens:
            return "found a router at the socket of a folder, expected a pipeline"
        may = frozenset[Right]({"preprocess"})
        return _refuse_name(hello.name) or Permissions(hello.name, may, routes=False)

    def _admit_ticket(self, name: str, data: bytes) -> Permissions | str:
        """The permissions of a client that shows a ticket, or why the client is refused."""
        found = self._tickets.judge_ticket(data, name, self.door.channel, time.time())
        return found if isinstance(found, str) else self._register.admit_ticket(found)

    def present_ticket(self, link: Link, data: bytes) -> str:
        """Take the next ticket of a client that connected with a ticket; return why the new ticket
        is refused, or an empty string."""
        before = self._permissions[link]
        found = self._admit_ticket(before.name, data)
        if isinstance(found, str):
            return found
        if not before.expires or found.neighbour != before.neighbour:
            return "found a ticket with other rights, expected a new link for it"
        self._permissions[link] = found
        return ""

    def expire_tickets(self) -> None:
        """Close the links of those clients whose tickets have expired."""
        clock = time.time()
        for link, found in [*self._permissions.items()]:
            if found.expires and clock >= found.expires + SKEW:
                link.close("the ticket has expired")

    def _refuse_other(self, channel: str) -> str:
        mine = self.door.channel
        return "" if channel == mine else f"found the channel {channel[:80]!r}, expected {mine!r}"

    def _refusal(self, found: Permissions, older: Link | None) -> str:
        """Why a client with permissions is refused; `older` is the link that it would replace."""
        before = None if older is None else self._permissions[older]
        if before is not None and not found.may_replace(before):
            return f"the name {found.name[:80]!r} is used by another client here"
        if before is not None:
            self._places.leave(before)
        try:
            return self._places.refusal(found)
        finally:
            if before is not None:
                self._places.take(before)

    def renew(self, tokens: Tokens | None, tickets: Mapping[str, str] | None = None) -> int:
        """From now on, accept these tokens, and tickets signed with these keys; return the number
        of closed links. Clients that connected with a ticket must show the ticket again.

        A client with additional rights keeps its link, and may use the new rights at once. A client
        with fewer or different rights is disconnected and told why. When the link closes,
        everything that was granted under the old rights ends; the client can connect again with the
        new rights."""
        self.door = msgspec.structs.replace(self.door, tokens=tokens, tickets=tickets)
        self._tickets = PublicKeys(tickets)
        if not self.door.is_guarded:
            return 0  # without tokens, anybody may connect
        self._register = PermissionRegister(tokens)
        ended = 0
        for link, before in [*self._permissions.items()]:
            if before.direct or link in self._local:  # the link's rights don't depend on tokens
                continue
            if before.expires:
                ended += 1
                link.close("the tokens were read again: show the ticket again")
                continue
            certified = link.certificate_names() if self.door.certificates else frozenset()
            now = self._register.judge(
                before.name, before.key, certified, self._certified, routes=before.routes
            )
            if isinstance(now, Permissions) and _same_limits(now, before) and (
                now.may == before.may or (now.may > before.may and now.neighbour == link.name)
            ):  # fmt: skip
                self._permissions[link] = now
                continue
            ended += 1
            reason = now if isinstance(now, str) else "the token has fewer rights than before"
            link.close(f"the tokens were read again: {reason}")
        return ended

    def is_stranger(self, link: Link) -> bool:
        return link in self.connection_limits

    def permissions_of(self, link: Link) -> Permissions | None:
        """The permissions of a link; None if it was disconnected."""
        return self._permissions.get(link)

    def permissions_in(self, link: Link, channel: str) -> Permissions | None:
        """The permissions of a link in a channel; None if it was disconnected."""
        found = self._permissions.get(link)
        return None if found is None else found.in_channel(channel)

    def remove(self, link: Link, reason: str) -> None:
        """Forget a link that was closed."""
        if link in self.connection_limits and link.bytes_in and not link.bad:
            self._log_refusal(reason)  # a connection that sent no bytes only checked the port
        self.connection_limits.remove(link)
        if link.bad:
            self.connection_limits.counts["bad frame"] += 1
        self._ends.pop(link, None)
        found = self._permissions.pop(link, None)
        if found is not None:
            self._places.leave(found)
        if self.links.get(link.name) is link:
            del self.links[link.name]
            self._owners.pop(link.name, None)
        if link.name:
            _log.info("%s: %s: %s", self.name, link.name, reason)

    # -- direct links --------------------------------------------------------------------------

    def is_direct(self, name: Name) -> bool:
        """Is a neighbour an agent on a direct link?"""
        link = self.links.get(name)
        found = None if link is None else self._permissions.get(link)
        return found is not None and bool(found.direct)

    def party_of(self, name: Name) -> str:
        """The owner of the named subscriptions of an agent on a direct link."""
        link = self.links.get(name)
        found = None if link is None else self._permissions.get(link)
        return "" if found is None else found.party

    def count_direct(self) -> int:
        return len(self._ends)

    def renew_ticket(self, link: Link, text: str) -> str:
        """Extend a direct link until its new ticket expires; return why this is refused, or an
        empty string. If the new ticket gives other rights, the link is closed, and the agent
        connects again with the new ticket."""
        before = self._permissions[link]
        agent = before.name.rpartition("/direct-")[0]
        ticket = self.tickets.read(text, agent, time.monotonic())
        if isinstance(ticket, str):
            return ticket
        if _permissions_of(ticket) != before:
            link.close("the rights in the ticket for the direct link have changed")
            return "the rights have changed"
        self._ends[link] = ticket.ends
        return ""

    def end_tickets(self, now: float) -> None:
        """Close the direct links whose tickets have expired."""
        for link in [link for link, ends in self._ends.items() if ends <= now]:
            link.close("the ticket for the direct link has expired")

    def owner_of(self, name: Name) -> str:
        """The owner of a neighbour's filters; empty for routers, which name owners themselves."""
        return self._owners.get(name, "")

    def within_of(self, channel: str, name: Name) -> m.Within:
        """The filters that must cover every filter to which a neighbour subscribes in a channel."""
        link = self.links.get(name)
        found = None if link is None else self.permissions_in(link, channel)
        if found is None:
            return ()
        if found.signed:
            return SIGNED
        return (found.within,) if found.within else ()

    async def close_all(self, reason: str) -> None:
        links = {*self.links.values(), *self._accepted}
        for link in links:
            link.close(reason)
        await asyncio.gather(*(link.wait_gone() for link in links))

    def _log_refusal(self, reason: str) -> None:
        self.connection_limits.counts["greeting"] += 1
        now = time.monotonic()
        if now - self._warned_at >= SELDOM:  # rate-limit logs from unauthenticated peers
            self._warned_at = now
            _log.warning("%s: a stranger: %s", self.name, reason[:MOST_SAID])


def _refuse_name(name: str) -> str:
    """The reason why clients may not have this name; empty if there is none."""
    if not name:
        return "found no name, expected one in the greeting"
    if name.startswith(UPSTREAM[:-1]):
        return f"found the name {name[:80]!r}, which is reserved, expected another one"
    if not name.isprintable():
        return f"found the name {name[:80]!r}, expected printable characters"
    return ""


def _permissions_of(ticket: DirectTicket) -> Permissions:
    """The permissions of an agent with a ticket for a direct link: the agent may subscribe, within
    the limits that its router sets."""
    texts = ticket.within
    within = " AND ".join(f"({text})" for text in texts) if len(texts) > 1 else "".join(texts)
    name = name_direct(ticket.agent, ticket.owner)
    return Permissions(
        name, frozenset({"subscribe"}), routes=False, within=within, channels=None,
        direct=ticket.owner, party=ticket.party,
    )  # fmt: skip


def _same_limits(one: Permissions, other: Permissions) -> bool:
    return _limits_of(one) == _limits_of(other)


def _limits_of(one: Permissions) -> tuple[object, ...]:
    return one.bound, one.within, one.channels, one.signed, one.by_channel
