"""The locators of a router: one for each channel in which the router needs places of nodes.

    channel "fx", the router's own    from the start until the router stops
    channel "tea"                     from the first node whose place the router needs,
                                      until the channel sleeps or is dropped, or no
                                      preprocessor was found for a minute

Each channel has its own preprocessors. A router may have thousands of channels, and few of them get
new nodes, so preprocessors are sought only in channels that need them. In a channel without a
locator, the node above gives the places. A channel in which no preprocessor was found has to wait
before it gets a locator again, each time twice as long, so that other channels get theirs.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol

import msgspec

from tidings.broker.links.locator import Locator
from tidings.routing.channels import Channel, Channels
from tidings.routing.protocol import Times, messages as m

MOST = 100  # the most channels with a locator; in all others, the node above is asked
FRUITLESS = 60.0  # a locator ends after this many seconds without a preprocessor
LONGEST_REST = 3600.0  # the most seconds until a channel gets a locator again
MOST_RESTS = 20_000  # of so many channels it is known that they wait; the oldest are forgotten


class Rest(NamedTuple):
    """A channel in which no preprocessor was found gets no locator until this time."""

    until: float
    seconds: float


class Located(Protocol):
    """The part of a router's interface that this module needs."""

    channels: Channels
    own: Channel

    def send_above(self, channel: Channel, message: m.Message) -> bool: ...
    def take_places(self, channel: Channel, asked: m.Locate, answer: m.Located | None) -> None: ...


class Locators:
    """The locators of one router, by channel."""

    def __init__(
        self,
        node: Located,
        hello: m.Hello,
        times: Times,
        tls: ssl.SSLContext | None,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[Any]],
        *,
        show_token: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`hello` has the name and the token of the router; see also `Locator`."""
        self._clock = clock
        self._found: dict[str, float] = {}  # when each locator began, or last had a preprocessor
        self._rests: dict[str, Rest] = {}
        self._node = node
        self._hello = hello
        self._times, self._tls, self._spawn = times, tls, spawn
        self._show_token = show_token
        self._known: dict[str, tuple[Channel, Locator, asyncio.Task[Any]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, channel: Channel | None) -> Locator | None:
        """The locator of a channel; None if the channel has none at present."""
        known = None if channel is None else self._known.get(channel.name)
        return known[1] if known is not None and known[0] is channel else None

    def ask(self, channel: Channel, question: m.Locate) -> None:
        """Ask a preprocessor of a channel for the places of nodes."""
        locator = self.find(channel)
        if locator is None:
            self._node.take_places(channel, question, None)
        else:
            locator.ask(question)

    def receive(self, channel: Channel | None, message: m.Message) -> bool:
        """Process a message from above that is for a locator; return False for all others."""
        locator = self.find(channel)
        if locator is None:
            return False
        if isinstance(message, m.Found) and locator.preprocessors.expects(message):
            self._spawn(locator.preprocessors.receive(message))
            return True
        if isinstance(message, m.Identified):
            locator.preprocessors.take_ticket(message)
            return True
        return False

    def tend(self) -> None:
        """Begin to seek preprocessors in the channels that need places, and end this in the
        channels that sleep or were dropped, or have no preprocessors. Call this at each tick."""
        awake, own, now = self._node.channels.awake, self._node.own, self._clock()
        for name, (channel, locator, _) in [*self._known.items()]:
            if awake.get(name) is not channel:
                self._end(name)
                continue
            channel.machine.locating.is_on = len(locator.preprocessors) > 0  # it may be new
            if len(locator.preprocessors):
                self._found[name] = now
                self._rests.pop(name, None)
            elif channel is not own and now - self._found[name] > FRUITLESS:
                self._end(name)
                self._rest(name, now)
                channel.machine.locating.lacked = 0
        for channel in [*awake.values()]:
            if channel.name not in self._known and (
                channel is own
                or (
                    channel.machine.locating.lacked
                    and len(self._known) < MOST
                    and (channel.name not in self._rests or now >= self._rests[channel.name].until)
                )
            ):
                self._begin(channel)
                self._found[channel.name] = now

    def _rest(self, name: str, now: float) -> None:
        """Give a channel no locator for some time."""
        before = self._rests.pop(name, None)
        seconds = FRUITLESS if before is None else min(2 * before.seconds, LONGEST_REST)
        self._rests[name] = Rest(now + seconds, seconds)
        if len(self._rests) > MOST_RESTS:
            del self._rests[next(iter(self._rests))]

    def _begin(self, channel: Channel) -> None:
        def change(some: bool) -> None:
            if channel.machine is not None:
                channel.machine.locating.is_on = some

        locator = Locator(
            lambda message: self._node.send_above(channel, message),
            msgspec.structs.replace(self._hello, channel=channel.name), self._times, self._tls,
            lambda asked, answer: self._node.take_places(channel, asked, answer), change,
            show_token=self._show_token and channel is self._node.own,
        )  # fmt: skip
        self._spawn(locator.answer_forever())
        seeking = self._spawn(locator.preprocessors.seek_forever())
        self._known[channel.name] = channel, locator, seeking

    def _end(self, name: str) -> None:
        channel, locator, seeking = self._known.pop(name)
        del self._found[name]
        if channel.machine is not None:
            channel.machine.locating.is_on = False
        seeking.cancel()
        locator.close()

    def use_token(self, token: str) -> None:
        """From the next connection on, show this token."""
        self._hello = msgspec.structs.replace(self._hello, token=token)
        for _, locator, _ in self._known.values():
            locator.preprocessors.use_token(token)

    def close(self) -> None:
        for name in [*self._known]:
            self._end(name)
