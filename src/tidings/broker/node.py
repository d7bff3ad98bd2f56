"""A running node: a state machine between links and a clock.

frames ──> links ──> messages ──> machine ──> messages ──> links ──> frames
               └──> notifications from above, by their fronts alone ──────┘
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tidings.broker.guard import GREETING, LEAST, Guard
from tidings.model import EnvironmentProblem
from tidings.network import Link, Policy
from tidings.network.forwarding import Forwarder
from tidings.network.frame_cache import FrameCache
from tidings.routing import frames, messages as m
from tidings.routing.downstream import Name, Sent
from tidings.routing.limits import Limits
from tidings.routing.rendezvous import Rendezvous
from tidings.routing.router import Router, Times

UPSTREAM = "<upstream>"  # no neighbour can have this name
RETRY = (0.1, 5.0)  # seconds before it is tried to connect again: at first, and at most

_log = logging.getLogger(__name__)


class Address(msgspec.Struct, frozen=True):
    host: str
    port: int


class Door(msgspec.Struct, frozen=True):
    """How others come in: where, with which certificate of ours, and who may: with a token that is
    known, or, where certificates count, with one that has the name in it. Without tokens and
    certificates anybody may."""

    address: Address = Address("127.0.0.1", 0)
    tls: ssl.SSLContext | None = None
    tokens: Mapping[str, str] | None = None  # token to name; "*" for any name
    certificates: bool = False
    channel: str = ""
    policy: Policy = Policy.DROP
    limits: Limits = Limits()

    def refusal(self, hello: m.Hello, certified: frozenset[str] = frozenset()) -> str:
        """Why somebody may not come in; empty if it may."""
        if hello.channel != self.channel:
            return f"found the channel {hello.channel!r}, expected {self.channel!r}"
        if not hello.name or hello.name == UPSTREAM:
            return "found no name"
        if self.tokens is None and not self.certificates:
            return ""
        if self.certificates and hello.name in certified:
            return ""
        allowed = (self.tokens or {}).get(hello.token)
        if allowed == "*" and hello.name in (self.tokens or {}).values():
            return f"the name {hello.name!r} is that of another token"
        if allowed is not None and allowed in ("*", hello.name):
            return ""
        return "the token is not one that is known here, and no certificate has the name"


class Node:
    """What routers and rendezvous points have in common when they run."""

    def __init__(self, machine: Router | Rendezvous, door: Door) -> None:
        self.machine = machine
        self.door = door
        self.links: dict[Name, Link] = {}
        self.limits = door.limits
        self.guard = Guard(door.limits)
        self._server: asyncio.Server | None = None
        self._pausing = False  # nothing is read from neighbours
        self._pressed = False  # the one above reads more slowly than it is sent to
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Listen, and begin to tick."""
        loop = asyncio.get_running_loop()
        address = self.door.address
        try:
            self._server = await loop.create_server(
                self._accept, address.host, address.port, ssl=self.door.tls,
                ssl_handshake_timeout=GREETING if self.door.tls else None,
            )  # fmt: skip
        except OSError as problem:
            raise EnvironmentProblem(
                f"{address.host}:{address.port} can't be listened at: {problem.strerror}"
            ) from None
        self._spawn(self._ticking())

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Let go of everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            self._server.close()
        for link in [*self.links.values()]:
            link.close("the router stops")
        self.guard.close_all("the router stops")
        if self._server is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), 2)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- who comes in --------------------------------------------------------------------------

    @property
    def refused(self) -> int:
        """Connections that were not let in, or ended because of what they said."""
        return self.guard.counts.total()

    def refusals(self) -> dict[str, int]:
        """Everything that was not done, and why: connections by the reason, messages by the limit
        that they were beyond."""
        found = dict(self.guard.counts + self.machine.beyond)
        return {**found, "senseless": self.machine.ignored} if self.machine.ignored else found

    def _accept(self) -> Link:
        limits = self.limits
        link = Link(self._received, self._ended, policy=self.door.policy,
                    largest=limits.greeting_bytes, most_waiting=limits.queue_bytes)  # fmt: skip
        link.strange = True
        self.guard.let_in(link)
        return link

    def _greet(self, link: Link, message: m.Message) -> None:
        self.guard.greeted(link)
        if not isinstance(message, m.Hello):
            self.guard.send_away(link, "expected a greeting")
            return
        refusal = self.door.refusal(message, link.certified()) or self._too_many(message.name)
        if refusal:
            self.guard.counts["greeting"] += 1
            link.close(refusal)
            return
        link.name = message.name
        link.largest, link.strange = self.limits.frame_bytes, False
        older = self.links.pop(message.name, None)
        self.links[message.name] = link
        if older is not None:
            older.close("another link of the same name was made")
        link.send(m.Welcome(self.machine.name))
        link.read(on=not self._pausing)
        link.read_at_once(LEAST)  # until it is seen how many speak

    def _too_many(self, name: str) -> str:
        """Why there is no room for a neighbour; empty if there is."""
        most, known = self.limits.neighbours, self.machine.neighbours
        if len(known) >= most and name not in known:
            for gone in [*known.keys() - self.links.keys()]:  # they say everything when they return
                self.machine.drop(gone)
            self.dispatch(self.machine.taken())
        if len(self.links) >= most and name not in self.links:
            return f"there are {len(self.links):,} neighbours, expected at most {most:,}"
        return ""

    def _ended(self, link: Link, reason: str) -> None:
        self.guard.left(link)
        if link.bad:
            self.guard.counts["bad frame"] += 1
        if self.links.get(link.name) is link:
            del self.links[link.name]
        _log.info("%s: %s: %s", self.machine.name, link.name or "a stranger", reason)

    # -- what comes in -------------------------------------------------------------------------

    def _received(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        now = self.now
        for start in starts:
            message = frames.decode_from_below(buffer, start)
            if link in self.guard:
                self._greet(link, message)
            elif isinstance(message, m.Goodbye):
                link.close("the other end said goodbye")
            elif link.name:
                self.dispatch(self.machine.receive(link.name, message, now))
        self.after_receiving()

    def after_receiving(self) -> None:
        """All frames of a buffer were taken."""

    def dispatch(self, sent: Iterable[Sent]) -> None:
        """Send what the machine wants to be sent, to those that are there."""
        for to, message in sent:
            link = self.links.get(to)
            if link is not None:
                link.send(message)
        self.breathe()

    def breathe(self) -> None:
        """Read nothing from neighbours while what they said waits, for the disk or for the one
        above: then it is for them to wait."""
        pausing = self._pressed or self.machine.unsynced_bytes > self.limits.unsynced_bytes
        if pausing != self._pausing:
            self._pausing = pausing
            for name, link in self.links.items():
                if name != UPSTREAM:
                    link.read(on=not pausing)

    def queued(self, name: Name) -> int:
        """Bytes that wait for a neighbour."""
        link = self.links.get(name)
        return 0 if link is None else link.waiting

    def _watch(self, now: float) -> None:
        self.machine.queued = self.queued
        below = {name: link for name, link in self.links.items() if name != UPSTREAM}
        self.guard.look(below, now, 3 * self.machine.times.expire)
        for name, link in below.items():
            known = self.machine.neighbours.get(name)
            if link.paused and known is not None:
                known.heard = now  # it can't be heard

    @property
    def now(self) -> float:
        return time.monotonic()

    async def _ticking(self) -> None:
        pause = min(self.machine.times.beat, self.machine.times.retry) / 2
        while True:
            now = self.now
            self._watch(now)
            self.dispatch(self.machine.tick(now))
            self.after_receiving()
            self.guard.report(self.machine.name, self.refusals, now)
            await asyncio.sleep(pause)


class RouterNode(Node):
    """A router that runs, and keeps a link to the one above it."""

    machine: Router

    def __init__(
        self,
        name: str,
        upstream: Address,
        door: Door,
        *,
        times: Times | None = None,
        token: str = "",
        tls: ssl.SSLContext | None = None,
        cache_bytes: int = 64 << 20,
    ) -> None:
        self._frames = FrameCache(cache_bytes)
        life = time.time_ns()
        machine = Router(name, UPSTREAM, times, self._frames, life, door.limits)
        super().__init__(machine, door)
        self.upstream = upstream
        self._hello = m.Hello(name, door.channel, token)
        self._tls = tls
        self._forwarder = Forwarder(machine)
        self._lost = asyncio.Event()

    async def start(self) -> None:
        await super().start()
        self._spawn(self._connecting())

    async def _connecting(self) -> None:
        loop, pause = asyncio.get_running_loop(), RETRY[0]
        while True:
            self._lost.clear()
            try:
                _, link = await loop.create_connection(
                    lambda: Link(self._from_above, self._above_ended, pressed=self._press),
                    self.upstream.host,
                    self.upstream.port,
                    ssl=self._tls,
                )
            except (OSError, ssl.SSLError) as problem:
                _log.info("%s: the router above: %s", self.machine.name, problem)
            else:
                link.send(self._hello)
                await self._lost.wait()
                pause = RETRY[0] if link.name else pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY[1])

    def _from_above(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        ends = [*starts[1:], starts[-1] + 4 + int.from_bytes(buffer[starts[-1] :][:4], "little")]
        first = 0
        while first < len(starts):
            last = first
            while last < len(starts) and buffer[starts[last] + 4] == frames.NOTIFICATION:
                last += 1
            if last > first and link.name:
                self._forward(buffer, starts[first:last], ends[first:last])
            if last < len(starts):
                self._take(link, frames.decode(buffer, starts[last]))
            first = last + 1

    def _take(self, link: Link, message: m.Message) -> None:
        if isinstance(message, m.Welcome):
            link.name = UPSTREAM
            self.links[UPSTREAM] = link
            self.dispatch(self.machine.connected(self.now))
        elif isinstance(message, m.Goodbye):
            _log.warning("%s: the router above: %s", self.machine.name, message.reason)
            link.close("goodbye")
        elif link.name:
            self.dispatch(self.machine.receive(UPSTREAM, message, self.now))

    def _forward(self, buffer: bytes, starts: list[int], ends: list[int]) -> None:
        epoch = int.from_bytes(buffer[starts[0] + 16 : starts[0] + 24], "little")
        if epoch != self.machine.epoch:  # the machine knows what to do about it
            for start in starts:
                message = frames.decode(buffer, start)
                self.dispatch(self.machine.receive(UPSTREAM, message, self.now))
            return
        for name, (pieces, count) in self._forwarder.forward(buffer, starts, ends).items():
            link = self.links.get(name)
            if link is not None:
                link.send_notifications(b"".join(pieces), count)
        self._frames.put_frames(buffer[starts[0] : ends[-1]], len(starts))

    def _press(self, much: bool) -> None:
        self._pressed = much
        self.breathe()

    def _above_ended(self, link: Link, reason: str) -> None:
        if self.links.get(UPSTREAM) is link:
            del self.links[UPSTREAM]
        _log.info("%s: the router above: %s", self.machine.name, reason)
        self._lost.set()
