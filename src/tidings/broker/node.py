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
import weakref
from collections.abc import Iterable
from typing import Any

import msgspec

from tidings.broker.entry import Pass, Tokens, admit
from tidings.model import EnvironmentProblem
from tidings.network import Link, Policy
from tidings.network.doorstep import Doorstep
from tidings.network.forwarding import Forwarder
from tidings.network.frame_cache import FrameCache
from tidings.network.tls import sentence_of
from tidings.routing import frames, messages as m
from tidings.routing.downstream import Name, Sent
from tidings.routing.rendezvous import Rendezvous
from tidings.routing.router import Router, Times

UPSTREAM = "<upstream>"  # no neighbour can have this name
GREETING = 10.0  # seconds until whoever connects must have said who it is
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
    tokens: Tokens | None = None  # token to name, "*" for any, or to a Grant
    certificates: bool = False
    channel: str = ""
    policy: Policy = Policy.DROP
    largest: int = frames.LARGEST

    def admit(
        self, hello: m.Hello, certified: frozenset[str] = frozenset(), reserved: Iterable[str] = ()
    ) -> Pass | str:
        """The pass of whoever says hello, or why it may not come in. `certified` are the names in
        its certificate, `reserved` those that came with one before."""
        if hello.channel != self.channel:
            return f"found the channel {hello.channel[:80]!r}, expected {self.channel!r}"
        if not hello.name or hello.name == UPSTREAM:
            return "found no name"
        if not self.is_guarded:
            return Pass(hello.name)
        return admit(hello, self.tokens, certified if self.certificates else frozenset(), reserved)

    @property
    def is_guarded(self) -> bool:
        return self.tokens is not None or self.certificates


class Node:
    """What routers and rendezvous points have in common when they run."""

    def __init__(self, machine: Router | Rendezvous, door: Door) -> None:
        self.machine = machine
        self.door = door
        self.links: dict[Name, Link] = {}
        self.refused = 0  # connections
        self._server: asyncio.Server | None = None
        self._greeting: dict[Link, asyncio.TimerHandle] = {}
        self._accepted: weakref.WeakSet[Link] = weakref.WeakSet()
        self._passes: dict[Link, Pass] = {}
        self._certified: set[str] = set()  # names that came with a certificate
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Listen, and begin to tick."""
        loop = asyncio.get_running_loop()
        address = self.door.address
        try:
            self._server = await loop.create_server(self._enter, address.host, address.port)
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
        links = {*self.links.values(), *self._accepted}
        for link in links:
            link.close("the router stops")
        await asyncio.gather(*(link.wait_gone() for link in links))
        if self._server is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), 2)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- who comes in --------------------------------------------------------------------------

    def _enter(self) -> asyncio.Protocol:
        if self.door.tls is None:
            return self._accept()
        return Doorstep(self.door.tls, GREETING, self._accept, self._turned_away, self._spawn)

    def _turned_away(self, reason: str) -> None:
        self.refused += 1
        _log.warning("%s: a stranger: %s", self.machine.name, reason)

    def _accept(self) -> Link:
        link = Link(self._received, self._ended, policy=self.door.policy, largest=self.door.largest)
        self._accepted.add(link)
        loop = asyncio.get_running_loop()
        self._greeting[link] = loop.call_later(
            GREETING, link.close, "nothing was said for too long"
        )
        return link

    def _greet(self, link: Link, message: m.Message) -> None:
        timer = self._greeting.pop(link)
        timer.cancel()
        found: Pass | str = "expected a greeting"
        certified = link.certified()
        if isinstance(message, m.Hello):
            found = self.door.admit(message, certified, self._certified)
        if isinstance(found, Pass):
            older = self.links.get(found.neighbour)
            if older is not None:
                if not found.may_replace(self._passes[older]):
                    found = f"the name {found.name[:80]!r} is that of another who is here"
                else:
                    older.close("another link of the same name was made")
        if isinstance(found, str):
            self._turned_away(found)
            link.close(found)
            return
        if self.door.certificates and found.name in certified:
            self._certified.add(found.name)
        link.name = found.neighbour
        self.links[link.name] = link
        self._passes[link] = found
        publisher = found.publisher if self.door.is_guarded else ""
        link.send(m.Welcome(self.machine.name, publisher))

    def _ended(self, link: Link, reason: str) -> None:
        timer = self._greeting.pop(link, None)
        if timer is not None:
            timer.cancel()
            if link.bytes_in:  # others may look whether somebody is here
                self._turned_away(reason)
        self._passes.pop(link, None)
        if self.links.get(link.name) is link:
            del self.links[link.name]
        _log.info("%s: %s: %s", self.machine.name, link.name or "a stranger", reason)

    # -- what comes in -------------------------------------------------------------------------

    def _received(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        now = self.now
        for start in starts:
            message = frames.decode(buffer, start)
            if link in self._greeting:
                self._greet(link, message)
            elif isinstance(message, m.Goodbye):
                link.close("the other end said goodbye")
            elif link in self._passes:
                refusal = self._passes[link].refusal(message)
                if refusal:
                    self._refuse(link, message, refusal)
                else:
                    self.dispatch(self.machine.receive(link.name, message, now))
        self.after_receiving()

    def _refuse(self, link: Link, message: m.Message, reason: str) -> None:
        """Say why to whoever waits for an answer; agents say other things by themselves."""
        epoch = self.machine.epoch
        if isinstance(message, m.Publish):
            link.send(m.Published(epoch, message.publisher, message.stamp, reason))
        elif isinstance(message, m.Ask):
            link.send(m.Answer(epoch, message.request, refusal=reason))

    def after_receiving(self) -> None:
        """All frames of a buffer were taken."""

    def dispatch(self, sent: Iterable[Sent]) -> None:
        """Send what the machine wants to be sent, to those that are there."""
        for to, message in sent:
            link = self.links.get(to)
            if link is not None:
                link.send(message)

    @property
    def now(self) -> float:
        return time.monotonic()

    async def _ticking(self) -> None:
        pause = min(self.machine.times.beat, self.machine.times.retry) / 2
        while True:
            self.dispatch(self.machine.tick(self.now))
            self.after_receiving()
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
        machine = Router(name, UPSTREAM, times, self._frames, life=time.time_ns())
        super().__init__(machine, door)
        self.upstream = upstream
        self._hello = m.Hello(name, door.channel, token, routes=True)
        self._tls = tls
        self._forwarder = Forwarder(machine)
        self._lost = asyncio.Event()
        self._said = ""  # what is wrong with the router above

    async def start(self) -> None:
        await super().start()
        self._spawn(self._connecting())

    async def _connecting(self) -> None:
        loop, pause = asyncio.get_running_loop(), RETRY[0]
        while True:
            self._lost.clear()
            try:
                _, link = await loop.create_connection(
                    lambda: Link(self._from_above, self._above_ended),
                    self.upstream.host,
                    self.upstream.port,
                    ssl=self._tls,
                )
            except (OSError, ssl.SSLError) as problem:
                self._say_of_above(sentence_of(problem))
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
            self._said = ""
            self.links[UPSTREAM] = link
            self.dispatch(self.machine.connected(self.now))
        elif isinstance(message, m.Goodbye):
            self._say_of_above(message.reason)
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

    def _above_ended(self, link: Link, reason: str) -> None:
        if self.links.get(UPSTREAM) is link:
            del self.links[UPSTREAM]
        if not link.name and not self._said:
            refused = "; over TLS, certificates are refused so" if self._tls is not None else ""
            self._say_of_above(f"{reason} before it answered{refused}")
        _log.info("%s: the router above: %s", self.machine.name, reason)
        self._lost.set()

    def _say_of_above(self, reason: str) -> None:
        """Once, however often it is tried again."""
        if reason != self._said:
            self._said = reason
            _log.warning("%s: the router above: %s", self.machine.name, reason)
