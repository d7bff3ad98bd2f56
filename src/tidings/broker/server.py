"""A running node: a state machine with links and a clock.

    frames ─> links ─> messages ─> publications, backlog ─> machine ─> messages ─> links ─> frames
                  └──> notifications from above, by their fronts alone ────────────┘

Routers and rendezvous points have this class in common.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from tidings.broker.admission.listen import UPSTREAM, Door
from tidings.broker.admission.permissions import Permissions, Tokens
from tidings.broker.connections import Connections
from tidings.broker.listening_server import ListeningServer
from tidings.broker.queues.backlog import PIECE, Backlog
from tidings.broker.queues.publications import Publications
from tidings.broker.reports import Reports, status_of
from tidings.model import TidingsError
from tidings.network import Forwarder, FrameCache, Link, measure_costs
from tidings.routing.forwarding import Forwarding, Name, Router, Sent
from tidings.routing.protocol import frames, messages as m
from tidings.routing.root import Piece, Rendezvous

CACHE_BYTES = 64 << 20

_log = logging.getLogger(__name__)


class Server:
    """The base class of running routers and rendezvous points."""

    _frames: FrameCache

    def __init__(
        self, machine: Router | Rendezvous, door: Door, forwarding: Forwarding | None = None
    ) -> None:
        """Without `forwarding`, forwarding is adaptive, and its costs are measured now."""
        self._forwarding = forwarding or measure_costs()
        self.limits = door.limits
        self.connections = Connections(machine.name, door, self._make_link)
        self._listening = ListeningServer(self.connections)
        self.take_machine(machine)
        self.links, self.connection_limits = (
            self.connections.links,
            self.connections.connection_limits,
        )
        self.publications = Publications(self._take_later, self._end_slice)
        self.backlog = Backlog(self._take_later, self._end_slice, self._count_notified)
        self.began = self.now
        self.above = ""  # the name of the node above
        self.passed_on = 0  # notifications forwarded so far
        self._marks = 0  # the number of marks of one of the latest notifications
        self.reports = Reports(machine.times.expire)
        self._pausing = False  # is reading from neighbours paused?
        self._upstream_is_slow = False  # is the queue to the node above long?

    def take_machine(self, machine: Any) -> None:
        """Run another state machine from now on."""
        self.machine = machine
        machine.forwarding = self._forwarding
        machine.context.queued_bytes = self.queued_bytes
        machine.context.owner_of = self.connections.owner_of
        machine.context.within_of = self.connections.within_of
        self._forwarder = Forwarder(machine)

    @property
    def door(self) -> Door:
        """Where the node listens, and who may connect at present."""
        return self.connections.door

    async def start(self) -> None:
        """Start listening, and start the periodic work."""
        await self._listening.start()
        self._spawn(self._tick_forever())

    @property
    def port(self) -> int:
        """The port that the node listens on."""
        return self._listening.port

    @property
    def undeclared(self) -> int:
        """Fields of publications that the channel does not declare; only a root counts them."""
        return 0

    async def stop(self) -> None:
        """Stop listening, and close all links."""
        await self._listening.stop("the router stops")

    def _spawn(self, work: Any) -> None:
        self._listening.spawn(work)

    # -- connections ---------------------------------------------------------------------------

    def renew(self, tokens: Tokens | None, token: str = "") -> int:
        """Use other tokens from now on, and `token` for the node above; return the number of closed
        links. See `Connections.renew`."""
        return self.connections.renew(tokens)

    @property
    def refused(self) -> int:
        """Connections that were refused, or closed because of what they sent."""
        return self.connection_limits.counts.total()

    def refusals(self) -> dict[str, int]:
        """Counts of refusals: connections by reason, messages by the limit they exceeded."""
        found = dict(self.connection_limits.counts + self.machine.beyond)
        return {**found, "senseless": self.machine.ignored} if self.machine.ignored else found

    def _make_link(self) -> Link:
        limits = self.limits
        return Link(self._receive, self.forget_link, policy=self.door.policy,
                    largest=limits.greeting_bytes, most_waiting=limits.queue_bytes,
                    patience=self.machine.times.expire)  # fmt: skip

    def _room_for(self, name: str) -> str:
        """Why there is no room for a neighbour; empty if there is room."""
        most, known = self.limits.neighbours, self.machine.neighbours
        if len(known) >= most and name not in known:
            # neighbours that return repeat everything, so those without a link can be dropped
            for gone in [*known.keys() - self.links.keys()]:
                self.machine.drop(gone)
            self.dispatch(self.machine.drain_outgoing())
        if len(self.links) >= most and name not in self.links:
            return f"there are {len(self.links):,} neighbours, expected at most {most:,}"
        return ""

    def forget_link(self, link: Link, reason: str) -> None:
        self.connections.remove(link, reason)
        self.backlog.forget(link)
        self.publications.forget(link)
        self.reports.end_link(link)

    # -- incoming messages ---------------------------------------------------------------------

    def _receive(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        self.publications.begin()
        if not self.take_runs(link, buffer, starts):
            for start in starts:
                self._take_frame(link, buffer, start)
        self._end_slice()

    def take_runs(self, link: Link, buffer: bytes, starts: list[int]) -> bool:
        """Process the frames of a buffer, with publications as runs; False if nothing was done,
        because this node or this buffer has no runs."""
        return False

    def _take_frame(self, link: Link, buffer: bytes, start: int) -> None:
        message = frames.decode_from_below(buffer, start)
        found = self.connections.permissions_of(link)
        if found is not None:
            self._take(link, found, message)
        elif self.connections.is_stranger(link) and self.connections.greet(
            link, message, self._room_for
        ):
            link.read("pressure", on=not self._pausing)
            self.dispatch(self.machine.renew_rights(link.name, self.now))

    def _take(self, link: Link, found: Permissions, message: m.Message) -> None:
        refusal = found.refusal(message)
        if refusal:
            self._refuse(link, message, refusal)
        elif isinstance(message, m.Publish):
            link.told_in += 1
            if message.tag and not found.may_tag:
                message = msgspec.structs.replace(message, tag=b"")
            self.publications.put(link, message)
        elif isinstance(message, m.HandOver):
            self.take_part(link, message)
        elif isinstance(message, m.Goodbye):
            link.close("the other end said goodbye")
        elif isinstance(message, m.Report):
            if found.routes:
                self.reports.take(link.name, message, self.now)
        elif isinstance(message, m.Watch):
            if self.reports.watch(link.name):
                self.report([link.name])
        elif isinstance(message, m.Trace | m.Whose):  # other work depends on the answers
            self.feed(link.name, message)
        elif not self._is_beyond(link, message):
            self.take_question(link, message)

    def take_part(self, link: Link, message: m.HandOver) -> None:
        """Process a part that is handed over, in pieces, so that others have turns in between."""
        for piece in self.machine.split(message):
            link.told_in += len(piece) if isinstance(piece, Piece) else 0
            self.publications.put(link, piece)

    def take_question(self, link: Link, message: m.Message) -> None:
        """Process a message that can wait a little."""
        self.backlog.put(link, message)

    def _is_beyond(self, link: Link, message: m.Message) -> bool:
        """Should a large message be dropped instead of split, because its sender has asked for too
        much, or is in another life? In the second case the sender is told the current life."""
        if not isinstance(message, m.Wanted) or len(message.nodes) <= PIECE:
            return False
        if message.epoch != self.machine.epoch:
            self.feed(link.name, message)
            return True
        return not self.machine.may_want(link.name, len(message.nodes), self.now)

    def _count_notified(self) -> tuple[int, int]:
        """How many notifications have arrived, and how many marks one of the latest has."""
        return self.publications.count + self.passed_on, self._marks

    def _take_later(self, link: Link, message: m.Message) -> None:
        try:
            self.feed(link.name, message)
        except TidingsError as problem:
            link.refuse(problem)

    def feed(self, name: str, message: m.Message) -> None:
        """Pass a message to the machine. If that fails because of a bug, the link to the sender
        stays open, because it may be a router that serves many others."""
        try:
            sent = self.machine.receive(name, message, self.now)
        except TidingsError:
            raise
        except Exception:
            kind = type(message).__name__
            _log.exception("%s: could not handle a %s from %r", self.machine.name, kind, name)
            self.machine.beyond["problems"] += 1
            sent = self.machine.drain_outgoing()
        if sent:
            self.dispatch(sent)

    def _refuse(self, link: Link, message: m.Message, reason: str) -> None:
        """Send the reason to a sender that waits for an answer."""
        epoch = self.machine.epoch
        if isinstance(message, m.Publish):
            link.send(m.Published(epoch, message.publisher, message.stamp, reason))
        elif isinstance(message, m.Ask):
            link.send(m.Answer(epoch, message.request, refusal=reason))
        elif isinstance(message, m.Describe):
            link.send(m.Described(epoch, message.request, refusal=reason))
        elif isinstance(message, m.Follow):
            link.send(m.Changed(epoch, message.request, refusal=reason))
        elif isinstance(message, m.HandOver):
            link.send(m.Taken(epoch, message.source, message.batch, message.part, reason))

    def _end_slice(self) -> None:
        self.apply_back_pressure()
        self.after_receiving()

    def after_receiving(self) -> None:
        """Called after all frames of a buffer are processed, and after each slice of a queue."""

    # -- outgoing messages ---------------------------------------------------------------------

    def forward(self, buffer: bytes, starts: list[int], ends: list[int]) -> None:
        """Forward frames of notifications, and cache them."""
        self.passed_on += len(starts)
        self._marks = frames.marks_at(buffer, starts[0])
        for name, (pieces, count) in self._forwarder.forward(buffer, starts, ends).items():
            link = self.links.get(name)
            if link is not None:
                link.send_notifications(pieces[0] if len(pieces) == 1 else b"".join(pieces), count)
        self._frames.put_frames(buffer[starts[0] : ends[-1]])

    def dispatch(self, sent: Iterable[Sent]) -> None:
        """Send the machine's messages to the neighbours that are connected."""
        for to, message in sent:
            link = self.links.get(to)
            if link is not None:
                try:
                    link.send(message)
                except Exception:  # messages for others must still be sent
                    kind = type(message).__name__
                    _log.exception("%s: could not send a %s to %r", self.machine.name, kind, to)
        self.apply_back_pressure()

    def apply_back_pressure(self) -> None:
        """Stop reading from neighbours while too much waits for the disk or for the node above."""
        pausing = self._upstream_is_slow or self.machine.unsynced_bytes > self.limits.unsynced_bytes
        if pausing != self._pausing:
            self._pausing = pausing
            for name, link in self.links.items():
                if name != UPSTREAM:
                    link.read("pressure", on=not pausing)

    def queued_bytes(self, name: Name) -> int:
        """Bytes queued for a neighbour."""
        link = self.links.get(name)
        return 0 if link is None else link.waiting

    def report(self, to: Iterable[Name]) -> None:
        """Send the status of this node and of the nodes below it."""
        to = [name for name in to if name in self.links]
        if not to:
            return
        now = self.now
        report = self.reports.gather(self.status(now), now)
        self.dispatch((name, report) for name in to)

    def status(self, now: float) -> m.NodeStatus:
        """The status of this node."""
        return status_of(self, now)

    # -- periodic work -------------------------------------------------------------------------

    @property
    def now(self) -> float:
        return time.monotonic()

    async def _tick_forever(self) -> None:
        pause = min(self.machine.times.beat, self.machine.times.retry) / 2
        reported = float("-inf")
        while True:
            now = self.now
            due = now - reported >= self.machine.times.beat - pause / 2
            reported = now if due else reported
            try:
                self._tick(now, reports=due)
            except Exception:  # the next tick may succeed
                _log.exception("%s: the periodic work failed", self.machine.name)
            await asyncio.sleep(pause)

    def _tick(self, now: float, *, reports: bool) -> None:
        self._check_links(now)
        if reports:  # report first: the messages of the tick would count as waiting
            self.report([UPSTREAM, *self.reports.watchers])
        self.dispatch(self.machine.tick(now))
        self.after_receiving()
        self.connection_limits.report(self.machine.name, self.refusals, now)

    def _check_links(self, now: float) -> None:
        """Close the links of silent neighbours, because live ones send something every few seconds.
        Neighbours from which reading is paused are kept."""
        expire = self.machine.times.expire
        below = {name: link for name, link in self.links.items() if name != UPSTREAM}
        self.connection_limits.check(below, now, 3 * expire)
        for name, link in below.items():
            known = self.machine.neighbours.get(name)
            if link.paused:
                link.heard = now
            elif now - link.heard > expire:
                link.abort("nothing was heard for too long")
            if known is not None:  # its messages may wait in the backlog
                known.heard = max(known.heard, link.heard)
