"""Sends bodies early in channels with relations, and learns from forwarded notifications.

    publication at the root, early body at a router ──> learning: whom does its context serve?
                                                             └──> links: Early, if there is room
    frames that were forwarded ──> noted ──(when there is nothing else to do)──> learnt

Without relations, a node does none of this. A rendezvous point knows from its file whether its
channel has relations; a router has to look: from time to time, it checks whether a frame of a
channel has a context.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from tidings.broker.early.early_counts import EarlyCounts
from tidings.broker.early.learnt_report import report_learnt
from tidings.broker.early.pauses import Pauses
from tidings.network import Forwarder, Link
from tidings.routing.channels import Channel, Channels
from tidings.routing.early import (
    LARGEST_BODY,
    LEAST_BODY,
    Early,
    SharedBodies,
    SharedBody,
    encode_early,
)
from tidings.routing.forwarding import Name
from tidings.routing.protocol import body_of, frames, messages as m
from tidings.routing.root import Run

if TYPE_CHECKING:
    from tidings.routing.learning import EarlySettings, Learning

LOOK_AGAIN = 64  # a router examines one in this many buffers of a channel for a context
HOPS = 32  # the most routers that pass an early body on
LOAD_AGAIN = 60.0  # seconds after which relations that could not be loaded are tried again
SLICE = 0.0005  # seconds of work between two pauses
WINDOW, SHARE = 0.1, 0.2  # a time in seconds, and the share of this time that early bodies may take

_log = logging.getLogger(__name__)


class Sending(Protocol):
    """The part of a node's interface that this module needs."""

    channels: Channels
    links: dict[Name, Link]

    @property
    def now(self) -> float: ...
    def is_busy(self) -> bool:
        """Are messages waiting to be processed?"""


class EarlySending:
    """Sends the early bodies of one node, and keeps what the node has learnt."""

    def __init__(
        self,
        node: Sending,
        load: Callable[[], EarlySettings],
        others: Callable[[], bool] | None = None,
    ) -> None:
        """`load` loads the settings and files of relations, in a thread. `others` does a short step
        of other work. When nothing is left to be learnt, `others` is called repeatedly until it
        returns False."""
        self._others = others
        self._node = node
        self._load = load
        self._serving: EarlySettings | None = None
        self._loading: asyncio.Task[None] | None = None
        self._failed = -LOAD_AGAIN  # when loading failed
        self._said = ""  # the text of the last warning about a body
        self._waiting: set[Channel] = set()  # channels that learn once relations are loaded
        self._learning: dict[Channel, Learning] = {}
        self._working = False
        self._pauses = Pauses()
        self._counts = EarlyCounts()
        self._bodies = SharedBodies()
        self._window, self._spent = 0.0, 0.0

    # -- learning ------------------------------------------------------------------------------

    def note_forwarded(self, channel: Channel, buffer: bytes, start: int) -> None:
        """Frames of a channel were forwarded; the first of them begins at `start`. If the first
        frame has a context, learning begins in the channel. If learning had already begun in the
        channel, it soon continues with the frames that the forwarder has noted."""
        forwarder: Forwarder = channel.extra
        if forwarder.learning is not None:
            if forwarder.learning.pending:
                self._work_soon(channel, forwarder.learning)
        elif forwarder.buffers % LOOK_AGAIN == 1 and frames.context_at(buffer, start):
            self.begin(channel)

    def begin(self, channel: Channel) -> None:
        """Begin to learn from the frames of a channel, at once or as soon as the relations are
        loaded."""
        if self._serving is not None:
            self._begin_now(channel, self._serving)
        elif time.monotonic() - self._failed >= LOAD_AGAIN:
            self._waiting.add(channel)
            if self._loading is None or self._loading.done():
                self._loading = asyncio.get_running_loop().create_task(self._load_soon())

    async def _load_soon(self) -> None:
        try:
            self._serving = await asyncio.get_running_loop().run_in_executor(None, self._load)
        except Exception:  # without relations, notifications are sent as usual
            _log.exception("can't load the relations; nothing is sent early")
            self._waiting.clear()
            self._failed = time.monotonic()
            return
        while self._waiting:
            self._begin_now(self._waiting.pop(), self._serving)

    def _begin_now(self, channel: Channel, serving: EarlySettings) -> None:
        from tidings.routing.learning import Learning

        if channel.asleep is None and isinstance(channel.extra, Forwarder):
            channel.extra.learning = Learning(channel.machine, serving, self._node.now)

    def _work_soon(self, channel: Channel, learning: Learning) -> None:
        self._learning[channel] = learning
        self._schedule()

    def ask_soon(self) -> None:
        """When there is time, ask the dictionary about the waiting names."""
        if self._serving is not None and self._asks(self._serving):
            self._schedule()

    @staticmethod
    def _asks(serving: EarlySettings) -> bool:
        return serving.asking is not None and serving.asking.pending > 0

    def _schedule(self) -> None:
        if not self._working:
            self._working = True
            asyncio.get_running_loop().call_later(self._pauses.seconds, self._work)

    def _work(self) -> None:
        self._working, left = False, False
        begun = time.monotonic()
        until = begun + SLICE
        try:
            for channel, learning in [*self._learning.items()]:
                if channel.asleep is not None or channel.extra.learning is not learning:
                    del self._learning[channel]
                    continue
                while not self._node.is_busy() and time.monotonic() < until:
                    if not learning.work(self._node.now):
                        del self._learning[channel]
                        break
            serving = self._serving
            while serving is not None and self._asks(serving) and serving.asking is not None:
                if self._node.is_busy() or time.monotonic() >= until:
                    break
                serving.asking.work()
            left = not self._learning and self._others is not None
            while left and not self._node.is_busy() and time.monotonic() < until:
                left = self._others is not None and self._others()
        except Exception:  # no notification is lost, only what these frames could have taught
            _log.exception("can't learn from forwarded notifications")
            self._learning.clear()
        self._pauses.note_slice(time.monotonic() - begun)
        if self._learning or left:
            self._schedule()
        self.ask_soon()

    def stop(self) -> None:
        if self._loading is not None:
            self._loading.cancel()

    # -- early bodies --------------------------------------------------------------------------

    def publish(
        self, channel: Channel, message: m.Publish | Run, context_of: Callable[[bytes], bytes]
    ) -> None:
        """Send the body of a publication early to the neighbours that its context selects."""
        learning: Learning | None = channel.extra.learning
        if learning is None or not len(learning.store):
            return
        for one in _large_ones(message):
            body = body_of(one)
            publisher = one.publisher.encode()
            if len(body) > LARGEST_BODY or not learning.is_new(publisher, one.stamp):
                continue
            context = context_of(one.content)
            if context:
                self._send(channel, learning, Early(HOPS, 0.0, context, publisher, one.stamp, body))

    def pass_on(self, channel: Channel, early: Early) -> None:
        """Pass an early body on to the neighbours that its context selects. Never raises an
        exception: even if this fails, the link has kept the body, and the notification follows
        later."""
        try:
            self._pass_on(channel, early)
        except Exception as problem:
            if str(problem) != self._said:  # each body may cause the same exception
                self._said = str(problem)
                _log.exception("can't pass on an early body")

    def _pass_on(self, channel: Channel, early: Early) -> None:
        forwarder = channel.extra
        if not isinstance(forwarder, Forwarder) or channel.asleep is not None:
            return
        learning: Learning | None = forwarder.learning
        if learning is None:
            self.begin(channel)
        elif early.hops and learning.is_new(*early.key):
            self._send(channel, learning, early._replace(hops=early.hops - 1))

    def _send(self, channel: Channel, learning: Learning, early: Early) -> None:
        """Send a body to the neighbours that its context selects, unless early bodies have taken
        too much time lately: notifications come first."""
        begun = time.monotonic()
        if begun - self._window > WINDOW:
            self._window, self._spent = begun, 0.0
        if self._spent > WINDOW * SHARE:
            return
        served = learning.find_served(early.context)
        if served:
            early = early._replace(merit=max(served.values()))
            frame, body = encode_early(early), self._bodies.share(early.body)
            for name in served:
                self._send_to(channel, name, early, frame, body)
        self._spent += time.monotonic() - begun

    def _send_to(
        self, channel: Channel, name: Name, early: Early, frame: bytes, body: SharedBody
    ) -> None:
        """Send a body to a neighbour, unless a filter limits the neighbour's rights: the
        notification of an early body need not match that filter."""
        if channel.machine.context.within_of(name):
            return
        link, number = self._node.links.get(name), channel.below.get(name)
        if link is not None and number is not None:
            flow = self._node.channels.links.flow_of(name)
            if flow.passes(number) and flow.room(number) > len(frame):
                link.send_early(early, number, frame, body)

    # -- counts --------------------------------------------------------------------------------

    def end_link(self, link: Link) -> None:
        """Keep the counts of a link that has ended."""
        self._counts.end_link(link)

    def count(self) -> tuple[int, int]:
        """How many bytes were sent early, and how many of these a notification later referred
        to."""
        return self._counts.count(self._node.links.values())

    def inspect(self, channel: Channel) -> m.Inspected:
        """What the node has learnt in a channel, the most used terms first."""
        sent, used = self.count()
        learning: Learning | None = getattr(channel.extra, "learning", None)
        found = m.Inspected(0) if learning is None else report_learnt(learning)
        return msgspec.structs.replace(found, early=sent, early_used=used)


def _large_ones(message: m.Publish | Run) -> list[m.Publish]:
    """The publications whose bodies have the right size to be sent early."""
    if isinstance(message, Run):
        return [message.message(at) for at in message.find_large(LEAST_BODY, LARGEST_BODY)]
    is_large = LEAST_BODY <= len(message.payload) <= LARGEST_BODY
    return [message] if is_large and not message.fast else []
