"""A running node: a state machine with links and a clock.

    frames ─> links ─> messages ─> publications, backlog ─> machine ─> messages ─> links ─> frames
                  └──> notifications from above, by their headers alone ───────────┘

The class is the base of routers and rendezvous points.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from tidings.broker.admission.grants import Grants
from tidings.broker.admission.listen import UPSTREAM, Door
from tidings.broker.admission.permissions import Permissions, Tokens
from tidings.broker.admission.refused_answers import answer_refused
from tidings.broker.admission.tickets import Tickets
from tidings.broker.attention import Attention
from tidings.broker.connections import Connections
from tidings.broker.early import EarlySending
from tidings.broker.links import ChannelLane, Credit, Lane
from tidings.broker.listening_server import ListeningServer
from tidings.broker.queues.backlog import PIECE, Backlog
from tidings.broker.queues.publications import Publications
from tidings.broker.reports import RIGHTS, Rate, Reports, shorten, status_of
from tidings.model import TidingsError, Undecided
from tidings.network import Forwarder, FrameCache, Link, measure_costs
from tidings.routing.channels import Channel, Channels, Flow, Frames, Out, Routes
from tidings.routing.forwarding import Forwarding, Name, Router, Sent
from tidings.routing.protocol import frames, messages as m
from tidings.routing.root import Piece, Rendezvous

CACHE_BYTES = 64 << 20

_log = logging.getLogger(__name__)


class Server:
    """The base class of running routers and rendezvous points."""

    _frames: FrameCache
    early: EarlySending | None = None
    """Sends bodies early, if channels of this node may have relations."""

    def __init__(
        self,
        machine: Router | Rendezvous,
        door: Door,
        forwarding: Forwarding | None = None,
        routes: Routes | None = None,
    ) -> None:
        """Without `forwarding`, forwarding is adaptive, and its costs are measured now. `routes`
        are the routes of channels other than the node's own."""
        self._forwarding = forwarding or measure_costs()
        self.limits = door.limits
        self.channels = Channels(
            machine.times, door.limits, routes or Routes({}), self.make_machine
        )
        hop = UPSTREAM if isinstance(machine, Router) else None
        self.own = self.channels.keep(door.channel, machine, hop, self.now)
        """The channel of the node's own file."""
        self._lanes: dict[Link, dict[int, ChannelLane]] = {}
        self.connections = Connections(machine.name, door, self._make_link, self.channels.refusal)
        self._grants = Grants(door.keys)
        self._tickets = Tickets(machine.name, door)
        self._listening = ListeningServer(self.connections)
        self.take_machine(machine)
        self.links, self.connection_limits = (
            self.connections.links,
            self.connections.connection_limits,
        )
        self.publications = Publications(self._take_later, self._end_slice)
        self.backlog = Backlog(
            self._take_later, self._end_slice, self._count_notified, self._are_behind
        )
        self.began = self.now
        self.above = ""  # the name of the node above
        self.passed_on = 0  # notifications forwarded so far
        self._marks = 0  # the number of marks of a recent notification
        self.reports = Reports(machine.times.expire)
        self.rate = Rate()  # the rate of notifications to neighbours
        self._pausing = False  # is reading from neighbours paused?
        self.channels.links.unread = self._unread_bytes
        self.credit = Credit(self.channels.links)
        self.early = self.make_early()
        self._attention = Attention(self, self.channels, self.connection_limits)

    def make_early(self) -> EarlySending | None:
        """The object that sends bodies early; None if the channels of this node have no
        relations."""
        return None

    def is_busy(self) -> bool:
        """Are messages waiting to be processed?"""
        return len(self.backlog) > 0 or len(self.publications) > 0

    def take_machine(self, machine: Any) -> None:
        """Run another state machine for the node's own channel from now on."""
        self.machine = self.own.machine = machine
        self.prepare(machine, self.own.name)
        self.own.extra = Forwarder(machine)

    def prepare(self, machine: Any, channel: str) -> None:
        """Tell the state machine of a channel about the links of this node."""
        machine.forwarding = self._forwarding
        machine.context.queued_bytes = self.queued_bytes
        machine.context.owner_of = self.connections.owner_of
        machine.context.party_of = self.connections.party_of
        machine.context.within_of = partial(self.connections.within_of, channel)

    def make_machine(self, channel: str) -> Router:
        """The state machine of another channel. Only routers have routes to other channels, so
        this is never called for a rendezvous point."""
        raise AssertionError(f"{self.machine.name} has no route to the channel {channel!r}")

    @property
    def door(self) -> Door:
        """Where the node listens, and who may connect now."""
        return self.connections.door

    async def start(self) -> None:
        """Start listening, and start the periodic work."""
        await self._listening.start()
        self._spawn(self._tick_forever())

    @property
    def port(self) -> int:
        """The port that the node listens on."""
        return self._listening.port

    def is_direct(self, name: Name) -> bool:
        """Is a neighbour an agent whose link bypasses the tree?"""
        return self.connections.is_direct(name)

    @property
    def reached(self) -> str:
        """The address by which agents reach the node; empty if agents should not be sent to this
        node."""
        return self.door.address_at(self.port)

    located = 0
    """How many places of nodes preprocessors gave so far; only routers ask for places."""

    @property
    def undeclared(self) -> int:
        """How many undeclared fields publications had so far; only a root counts them."""
        return 0

    async def stop(self) -> None:
        """Stop listening, and close all links."""
        if self.early is not None:
            self.early.stop()
        await self._listening.stop("the router stops")

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        return self._listening.spawn(work)

    # -- connections ---------------------------------------------------------------------------

    def renew(self, tokens: Tokens | None, token: str = "") -> int:
        """From now on, accept these tokens, and show `token` to the node above; return the number
        of closed links. See `Connections.renew`."""
        return self.connections.renew(tokens)

    def renew_keys(self, keys: Mapping[str, str] | None) -> None:
        """From now on, accept grants signed with these keys. Grants that were signed with removed
        keys become invalid."""
        self._grants.renew(keys)
        for channel in self._channels_with_grants():
            sent = self._grants.revoke(channel.machine, self.now)
            self.transmit(self.channels.send(channel, sent, self.now))

    def _channels_with_grants(self) -> list[Channel]:
        """The channels in which a grant may be in use: a channel with a grant never sleeps."""
        return [*self.channels.awake.values()]

    @property
    def refused(self) -> int:
        """How many connections were refused, or closed because of invalid data or too much data."""
        return self.connection_limits.counts.total()

    def refusals(self) -> dict[str, int]:
        """Counts of refusals: connections by reason, messages by the limit they exceeded."""
        counts = self.connection_limits.counts + self.machine.beyond + self.channels.counts
        found = dict(counts)
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
            # neighbours without a link can be forgotten: when they reconnect, they send everything
            # again
            for gone in [*known.keys() - self.links.keys()]:
                self.machine.drop(gone)
            self.dispatch(self.machine.drain_outgoing())
        if len(self.links) >= most and name not in self.links:
            return f"there are {len(self.links):,} neighbours, expected at most {most:,}"
        return ""

    def forget_link(self, link: Link, reason: str) -> None:
        is_current = link.name and self.links.get(link.name) is link
        self.connections.remove(link, reason)
        if is_current:
            self.channels.end_link(link.name, self.now)
        self.forget_lane(link)
        self.credit.forget(link)
        for lane in self._lanes.pop(link, {}).values():
            self.forget_lane(lane)
        self.reports.end_link(link)
        if self.early is not None:
            self.early.end_link(link)

    def forget_lane(self, lane: Lane) -> None:
        """Forget the waiting messages of a lane."""
        self.backlog.forget(lane)
        self.publications.forget(lane)
        if isinstance(lane, ChannelLane):
            lane.read_again()

    # -- incoming messages ---------------------------------------------------------------------

    def _receive(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        self.publications.begin()
        lane = self._lane(link)
        if lane is None or not self.take_runs(lane, buffer, starts):
            for start in starts:
                self._take_frame(link, lane, buffer, start)
        if link.name:
            self.transmit(self.credit.note_taken(link))
        self._end_slice()

    def _lane(self, link: Link) -> Lane | None:
        """The lane of the frames that are being received; None if its channel was closed."""
        if not link.number or not link.name:
            return link
        found = self._lanes.get(link, {}).get(link.number)
        if found is None and not self.channels.was_opened(link.name, link.number):
            raise frames.FrameError(
                f"found a frame of channel {link.number}, which was not opened on this link"
            )
        return found

    def take_runs(self, lane: Lane, buffer: bytes, starts: list[int]) -> bool:
        """Process the frames of a buffer, with publications as runs. Return False, and do nothing,
        if this node takes no runs, or if the buffer has too few frames."""
        return False

    def _take_frame(self, link: Link, lane: Lane | None, buffer: bytes, start: int) -> None:
        message = frames.decode_from_below(buffer, start)
        found = self.connections.permissions_of(link)
        if found is not None:
            if isinstance(message, m.CHANNELS):
                self._take_channels(link, found, message)
            elif lane is not None:
                self._take(lane, self._rights_in(lane, found), message)
        elif (
            self.connections.is_stranger(link)
            and isinstance(message, m.Hello)
            and self.connections.greet(link, message, self._room_for)
        ):
            link.read("pressure", on=not self._pausing)
            self._begin_link(link, message)
        elif self.connections.is_stranger(link):
            self.connections.greet(link, message, self._room_for)

    def _begin_link(self, link: Link, hello: m.Hello) -> None:
        """Begin to use the link of a new neighbour. The channel that the greeting names has the
        number 0 on this link."""
        is_own = not hello.opens and hello.channel == self.door.channel
        flow = Flow(link.taken, link.sent, most=link.most_waiting)
        self.channels.begin_link(link.name, self.own if is_own else None, self.now, flow)
        if is_own:
            self.dispatch(self.machine.renew_rights(link.name, self.now))
        elif not hello.opens:
            self.transmit(self.channels.open(link.name, 0, hello.channel, self.now))
        channel, found = self._channel_of(link), self.connections.permissions_of(link)
        if channel is not None and found is not None:
            self._forget_subscriber(link, found, channel)

    def _take_channels(self, link: Link, found: Permissions, message: m.CHANNELS) -> None:
        """Handle a message about the channels of a link."""
        if isinstance(message, m.Open):
            reason = found.refuse_channel(message.channel, self.door.channel)
            self.machine.beyond[RIGHTS] += bool(reason)
            most = self.limits.channels if link.routes else self.limits.neighbour_channels
            if not reason and self.channels.of_link(link.name) >= most:
                reason = f"there are {most:,} channels on this link, expected no more"
            if reason:
                link.send(m.Closed(message.number, reason))
                return
            self.transmit(self.channels.open(link.name, message.number, message.channel, self.now))
            channel = self.channels.find(link.name, message.number)
            if channel is not None and message.number:
                lanes = self._lanes.setdefault(link, {})
                lanes[message.number] = ChannelLane(link, message.number)
                sent = channel.machine.renew_rights(link.name, self.now)
                self.transmit(self.channels.send(channel, sent, self.now))
                self._forget_subscriber(link, found, channel)
        elif isinstance(message, m.Close):
            self.transmit(self.channels.close(link.name, message.number, self.now))
            lane = self._lanes.get(link, {}).pop(message.number, None)
            if lane is not None:
                self.forget_lane(lane)
            link.forget_channel(message.number)
        elif isinstance(message, m.Credit):
            self.transmit(self.channels.links.take_credit(link.name, message, self.now))
        elif isinstance(message, m.Pulse | m.Repeat):
            waits = bool(len(self.backlog))
            self.transmit(self.channels.take_pulse(link.name, message, self.now, waits=waits))

    def _rights_in(self, lane: Lane, found: Permissions) -> Permissions:
        """The permissions of a neighbour in the channel of a lane."""
        if not found.by_channel:
            return found
        channel = self._channel_of(lane)
        return found if channel is None else found.in_channel(channel.name)

    def _forget_subscriber(self, link: Link, found: Permissions, channel: Channel) -> None:
        """Forget a neighbour's subscriptions in a channel in which it may no longer subscribe, so
        that it gets no more notifications of the channel."""
        if found.by_channel and "subscribe" not in found.in_channel(channel.name).may:
            machine = self.channels.wake(channel, self.now)
            machine.context.now = self.now
            machine.drop(link.name)
            self.transmit(self.channels.send(channel, machine.drain_outgoing(), self.now))

    def _take(self, link: Lane, found: Permissions, message: m.Message) -> None:
        refusal = found.refusal(message)
        if refusal:
            self._refuse(link, message, refusal)
            return
        if isinstance(message, m.Resubscribe) and isinstance(link, ChannelLane):
            self.channels.hear(link.name, link.number, message)
        if isinstance(message, m.Publish):
            link.link.told_in += 1
            if message.tag and not found.may_tag:
                message = msgspec.structs.replace(message, tag=b"")
            self.publications.put(link, message)
        elif isinstance(message, m.HandOver):
            self.take_part(link, message)
        elif isinstance(message, m.Goodbye):
            link.close("the other end said goodbye")
        elif isinstance(message, m.Present):  # taken at once, because later messages need the grant
            self._take_grant(link, found, message)
        elif isinstance(message, m.Identify):
            self._sign_ticket(link, found, message)
        elif isinstance(message, m.Report):
            if found.routes:
                self.reports.take(link.name, message, self.now)
        elif isinstance(message, m.Watch):
            if self.reports.watch(link.name):
                self.report([link.name])
        elif isinstance(message, m.Inspect):
            self._inspect(link, found, message)
        elif isinstance(message, m.Trace | m.Whose):  # other work waits for the answers
            self._take_later(link, message)
        elif not self._is_beyond(link, message):
            self.take_question(link, message)

    def _inspect(self, link: Lane, found: Permissions, message: m.Inspect) -> None:
        """Send a client what this node has learnt in a channel with relations. The client needs the
        right to subscribe to everything, because the answer contains places, times, tags and people
        from any notifications."""
        channel, answer, refusal = self._channel_of(link), m.Inspected(0), ""
        if channel is None or found.within or found.signed:
            refusal = f"{found.name!r} may not subscribe to everything here"
        else:
            machine = self.channels.wake(channel, self.now)
            machine.context.now = self.now
            machine.hear(link.name)
            if not machine.charges.may_ask(link.name):
                refusal = "there were too many requests; try again in a minute"
            elif self.early is not None:
                answer = self.early.inspect(channel)
                machine.charges.charge(link.name, 1 + len(answer.nodes))
        link.send(
            msgspec.structs.replace(
                answer,
                request=message.request,
                name=shorten(self.machine.name),
                channel=shorten("" if channel is None else channel.name),
                refusal=refusal,
            )
        )

    def _take_grant(self, link: Lane, found: Permissions, message: m.Present) -> None:
        channel = self._channel_of(link)
        if channel is None:
            return
        if found.direct:
            text = message.grant.decode("ascii", "replace")
            refusal = self.connections.renew_ticket(link.link, text)
        else:
            machine = self.channels.wake(channel, self.now)
            refusal = self._grants.take(
                channel.name, machine, link.name, found, message.grant, self.now
            )
        link.send(m.Presented(message.request, refusal))

    def _sign_ticket(self, link: Lane, found: Permissions, message: m.Identify) -> None:
        channel = self._channel_of(link)
        if channel is not None:
            link.send(
                self._tickets.sign(
                    self.machine, link.name, found, channel.name, message.request, self.now
                )
            )

    def take_part(self, link: Lane, message: m.HandOver) -> None:
        """Process a part that was handed over. It is processed in pieces, so that other senders get
        turns in between."""
        for piece in self.machine.split(message):
            link.link.told_in += len(piece) if isinstance(piece, Piece) else 0
            self.publications.put(link, piece)

    def take_question(self, link: Lane, message: m.Message) -> None:
        """Process a message that can wait a little."""
        self.backlog.put(link, message)

    def _is_beyond(self, link: Lane, message: m.Message) -> bool:
        """Should a large message be dropped instead of split, because its sender has asked for too
        much, or is in another life? If a sender is in another life, it is told the current life."""
        if not isinstance(message, m.Wanted) or len(message.nodes) <= PIECE:
            return False
        channel = self._channel_of(link)
        if channel is None:
            return True
        machine = self.channels.wake(channel, self.now)
        if message.epoch != machine.epoch:
            self._take_later(link, message)
            return True
        return not machine.may_want(link.name, len(message.nodes), self.now)

    def _channel_of(self, link: Lane) -> Channel | None:
        return self.channels.find(link.name, link.number if isinstance(link, ChannelLane) else 0)

    def _count_notified(self) -> tuple[int, int]:
        """How many notifications have arrived, and the number of marks of a recent one."""
        return self.publications.count + self.passed_on, self._marks

    def _are_behind(self) -> bool:
        return self.publications.are_behind

    def _take_later(self, link: Lane, message: m.Message) -> None:
        try:
            channel = self._channel_of(link)
            if channel is self.own:
                self.feed(link.name, message)
            elif channel is not None:
                self.feed_channel(channel, link, message)
        except Undecided:
            raise
        except TidingsError as problem:
            link.refuse(problem)

    def feed(self, name: str, message: m.Message) -> None:
        """Pass a message to the machine of the node's own channel. If the machine fails because of
        a bug, the link to the sender stays open, because it may be a router that serves many
        others."""
        try:
            sent = self.machine.receive(name, message, self.now)
        except TidingsError:
            raise
        except Exception:
            self._note_bug(name, message)
            sent = self.machine.drain_outgoing()
        if sent:
            self.transmit(self.channels.send(self.own, sent, self.now, source=name))

    def feed_channel(self, channel: Channel, link: Lane, message: m.Message) -> None:
        """Pass a message to the machine of another channel."""
        number = link.number if isinstance(link, ChannelLane) else 0
        try:
            out = self.channels.receive(link.name, number, message, self.now)
        except TidingsError:
            raise
        except Exception:
            self._note_bug(link.name, message)
            out = self.channels.send(channel, channel.machine.drain_outgoing(), self.now)
        self.transmit(out)

    def _note_bug(self, name: str, message: m.Message) -> None:
        kind = type(message).__name__
        _log.exception("%s: could not handle a %s from %r", self.machine.name, kind, name)
        self.machine.beyond["problems"] += 1

    def _refuse(self, link: Lane, message: m.Message, reason: str) -> None:
        """Count a refusal, and send the reason, if the sender waits for an answer. Refused messages
        that need no answer are not counted, because agents without the right to subscribe send such
        messages with every beat."""
        channel = self._channel_of(link)
        machine = self.machine if channel is None or channel.machine is None else channel.machine
        answer = answer_refused(message, machine.epoch, reason)
        if answer is not None:
            self.machine.beyond[RIGHTS] += 1
            link.send(answer)

    def _end_slice(self) -> None:
        self.transmit(())
        self.after_receiving()

    def after_receiving(self) -> None:
        """Called when all frames of a buffer have been processed, and after each slice of a
        queue."""

    # -- outgoing messages ---------------------------------------------------------------------

    def forward(
        self, buffer: bytes, starts: list[int], ends: list[int], channel: Channel | None = None
    ) -> None:
        """Forward frames of notifications of a channel, and cache them. Without `channel`, the
        node's own channel is used."""
        channel = channel or self.own
        if channel.extra is None:
            channel.extra = Forwarder(channel.machine)
        self.passed_on += len(starts)
        channel.told += len(starts)
        self._marks = frames.marks_at(buffer, starts[0])
        below = channel.below
        for name, (pieces, count) in channel.extra.forward(buffer, starts, ends).items():
            link = self.links.get(name)
            if link is not None and name in below:
                data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                number = below[name]
                if self.channels.links.flow_of(name).passes(number):
                    link.send_notifications(data, count, number)
                else:
                    link.drop(self.channels.links.hold_frames(name, number, data, count))
        channel.machine.cache.put_frames(buffer[starts[0] : ends[-1]])
        if self.early is not None:
            self.early.note_forwarded(channel, buffer, starts[0])

    def dispatch(self, sent: Iterable[Sent]) -> None:
        """Send the messages of the machine of the node's own channel."""
        self.transmit(self.channels.send(self.own, sent, self.now))

    def transmit(self, out: Iterable[Out]) -> None:
        """Send messages to the neighbours and nodes above that are connected."""
        self._transmit(out)
        # each message that is sent makes room for a waiting one, whose sender then gets new credit
        while more := [*self.channels.links.draw_again(self.now), *self.credit.pay()]:
            self._transmit(more)
        self.apply_back_pressure()

    def _transmit(self, out: Iterable[Out]) -> None:
        for to, number, message in out:
            link = self.link_to(to)
            if isinstance(message, m.Closed) and link is not None:
                lane = self._lanes.get(link, {}).pop(message.number, None)
                if lane is not None:
                    self.forget_lane(lane)
            if link is not None:
                try:
                    if isinstance(message, Frames):
                        link.send_notifications(message.data, message.many, number)
                    else:
                        link.send(message, number)
                except Exception:  # messages for other neighbours must still be sent
                    kind = type(message).__name__
                    _log.exception("%s: could not send a %s to %r", self.machine.name, kind, to)

    @property
    def nodes_above(self) -> Iterable[Name]:
        """The names of the links to nodes above."""
        return ()

    def link_to(self, name: Name) -> Link | None:
        """The link to a neighbour, or to a node above."""
        return self.links.get(name)

    def apply_back_pressure(self) -> None:
        """Read nothing from neighbours while too many bytes wait for the disk, or for a node above
        that does not keep up."""
        pausing = (
            self.machine.unsynced_bytes > self.limits.unsynced_bytes or self.is_above_overloaded()
        )
        if pausing != self._pausing:
            self._pausing = pausing
            for name, link in self.links.items():
                if name != UPSTREAM:
                    link.read("pressure", on=not pausing)

    def is_above_overloaded(self) -> bool:
        """Do too many bytes wait for a node above?"""
        return False

    def _unread_bytes(self, name: Name, number: int) -> int:
        """How many bytes from a neighbour, in one channel, wait in the queue of publications."""
        link = self.links.get(name)
        lane = self._lanes.get(link, {}).get(number, None) if link is not None and number else link
        return 0 if lane is None else self.publications.waiting(lane)

    def queued_bytes(self, name: Name) -> int:
        """How many bytes are queued for a neighbour."""
        link = self.links.get(name)
        return 0 if link is None else link.waiting

    def report(self, to: Iterable[Name]) -> None:
        """Send the status of this node and of the nodes below it."""
        to = [name for name in to if self.link_to(name) is not None]
        if not to:
            return
        now = self.now
        report = self.reports.gather(self.status(now), now)
        self.transmit((name, 0, report) for name in to)

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
            await self._attention.attend(pause)

    def _tick(self, now: float, *, reports: bool) -> None:
        self._check_links(now)
        if reports:  # report first: otherwise, the messages of this tick would count as waiting
            self.report([*self.nodes_above, *self.reports.watchers])
        self.dispatch(self.machine.tick(now))
        self.transmit(self.channels.tick(now, kept=False))
        for channel in self._channels_with_grants():
            sent = self._grants.expire(channel.machine, now)
            self.transmit(self.channels.send(channel, sent, now))
        self.after_receiving()
        self.connection_limits.report(self.machine.name, self.refusals, now)

    def _check_links(self, now: float) -> None:
        """Check links at each tick; subclasses also check the links to the nodes above."""
        self._attention.note_heard()
