"""Both ends of idle channels. The two ends send the messages that a rendezvous point and a
subscriber send in a channel in which nothing is published, and keep only the state that this needs.
So a single process can be both ends of ten thousand channels, and only the routers between them are
measured."""

from __future__ import annotations

import asyncio
import time

from tidings.network import Link
from tidings.routing.channels import ReceivedMessages, Repeats
from tidings.routing.protocol import Times, digest, frames, messages as m

NODE = 1
LIFE = 5


class IdleRoots:
    """The upper end: a rendezvous point for every channel that is opened."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self._repeats, self._heard = Repeats(), ReceivedMessages()
        self._link: Link | None = None
        self._server: asyncio.Server | None = None
        self.subscribed: set[int] = set()

    async def start(self) -> int:
        """Listen; return the port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Link(self._receive, lambda *_: None), "127.0.0.1", 0
        )
        return int(self._server.sockets[0].getsockname()[1])

    def stop(self) -> None:
        if self._link is not None:
            self._link.close("the measurement is over")
        if self._server is not None:
            self._server.close()

    def tick(self) -> None:
        """Call this once a beat."""
        if self._link is None:
            return
        self._link.send(_beat(0), 0)
        pulse = self._repeats.pulse()
        if pulse is not None:
            self._link.send(pulse)

    def _receive(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        for start in starts:
            message, number = frames.decode(buffer, start), link.number
            if isinstance(message, m.Hello):
                link.name, self._link = message.name, link
                link.send(m.Welcome("roots"))
            elif isinstance(message, m.Trace):
                link.send(m.Lineage(LIFE, message.request, (m.Life(LIFE, 1),)), number)
                self._beat(link, number)
            elif isinstance(message, m.Subscribe) and message.nodes:
                link.send(m.Setup(LIFE, NODE, (), (), 0, 0), number)
                self.subscribed.add(number)
                self._beat(link, number)
            elif isinstance(message, m.Resubscribe) and number:
                self._heard.put(number, message)
            elif isinstance(message, m.Pulse) and self._heard.take(message, time.monotonic()):
                link.send(m.Repeat())
            elif isinstance(message, m.Repeat):
                for one, said in self._repeats.said.items():
                    link.send(said, one)

    def _beat(self, link: Link, number: int) -> None:
        message = _beat(number in self.subscribed)
        if number and self._repeats.is_news(number, message):
            link.send(message, number)


def _beat(nodes: int) -> m.Beat:
    return m.Beat(LIFE, 0, {}, digest([NODE] if nodes else []), 0)


class IdleSubscribers:
    """The lower end: one subscriber in each of many channels, over one link."""

    def __init__(self, times: Times, channels: int) -> None:
        self._times = times
        self._channels = channels
        self._repeats, self._heard = Repeats(), ReceivedMessages()
        self._link: Link | None = None
        self.pulses = 0  # received pulses that were for all channels
        self.subscribed: set[int] = set()
        self.welcome = asyncio.Event()

    async def connect(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        _, link = await loop.create_connection(
            lambda: Link(self._receive, lambda *_: None, largest=frames.LARGEST_DOWN),
            "127.0.0.1", port,
        )  # fmt: skip
        self._link = link
        link.send(m.Hello("subscribers", "", routes=True, opens=True))
        await self.welcome.wait()

    def open(self, number: int) -> None:
        """Open a channel, and subscribe there."""
        assert self._link is not None
        self._link.send(m.Open(number, f"channel-{number:06}"))
        self._link.send(m.Trace(number), number)

    def tick(self) -> None:
        """Call this once for each interval of resubscriptions."""
        pulse = self._repeats.pulse()
        if self._link is not None and pulse is not None:
            self._link.send(pulse)

    @property
    def bytes_in(self) -> int:
        return 0 if self._link is None else self._link.bytes_in

    def stop(self) -> None:
        if self._link is not None:
            self._link.close("the measurement is over")

    def _receive(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        for start in starts:
            message, number = frames.decode(buffer, start), link.number
            if isinstance(message, m.Welcome):
                link.name = message.name
                self.welcome.set()
            elif isinstance(message, m.Beat) and number:
                self._heard.put(number, message)
                if number not in self.subscribed:
                    link.send(m.Subscribe(LIFE, (NODE,)), number)
            elif isinstance(message, m.Setup):
                self.subscribed.add(number)
                wants = m.Resubscribe(LIFE, digest([NODE]), 0)
                if self._repeats.is_news(number, wants):
                    link.send(wants, number)
            elif isinstance(message, m.Lineage):
                link.send(m.Subscribe(LIFE, (NODE,)), number)
            elif isinstance(message, m.Pulse):
                if self._heard.take(message, time.monotonic()):
                    link.send(m.Repeat())
                elif message.size == self._channels:
                    self.pulses += 1
            elif isinstance(message, m.Repeat):
                for one, said in self._repeats.said.items():
                    link.send(said, one)
