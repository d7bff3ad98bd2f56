"""The link of a router to a node above it. Several nodes can lead to the same rendezvous point, so
the node above may have several addresses. When the link is lost, the router connects to the next of
them."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from tidings.broker.admission.listen import UPSTREAM, Address
from tidings.network import Link, sentence_of
from tidings.routing.early import Early
from tidings.routing.protocol import frames, messages as m

RETRY = (0.1, 5.0)  # seconds before the next attempt to connect: the first and the longest pause

_log = logging.getLogger(__name__)


def hop_name(name: str) -> str:
    """The name of a link to a node above; no neighbour can have such a name."""
    return f"{UPSTREAM[:-1]} {name}>" if name else UPSTREAM


class Above:
    """A hop: a node above, and the link to it."""

    def __init__(
        self,
        node: str,
        hop: str,
        addresses: Sequence[Address],
        hello: m.Hello,
        tls: ssl.SSLContext | None,
        patience: float,
        *,
        received: Callable[[Above, Link, bytes, list[int]], None],
        ended: Callable[[Above, Link], None],
        pressed: Callable[[Above], None],
        early: Callable[[Above, Link, Early], None],
    ) -> None:
        """`received` is called with received frames, `early` with a received early body, `ended`
        with a link that has ended, and `pressed` when `is_slow` changes."""
        self.hop = hop
        self._node = node
        self._addresses = deque(addresses)  # the first is in use, or is tried next
        self._hello = hello
        self._tls = tls
        self._patience = patience
        self._received, self._ended, self._pressed = received, ended, pressed
        self._early = early
        self.link: Link | None = None
        self.name = ""
        """The name of the node above, once it is known."""
        self.is_slow = False
        """Is the queue to the node above long?"""
        self._lost = asyncio.Event()
        self._said = ""  # the last warning about the node above

    @property
    def address(self) -> Address:
        """The address to which the router is connected, or which it tries next."""
        return self._addresses[0]

    def use_token(self, token: str) -> None:
        """Present another token from the next connection on."""
        self._hello = msgspec.structs.replace(self._hello, token=token)

    async def keep_connected(self) -> None:
        """Connect, and connect again whenever the link is lost."""
        loop, pause = asyncio.get_running_loop(), RETRY[0]
        while True:
            self._lost.clear()
            try:
                async with asyncio.timeout(self._patience):
                    _, link = await loop.create_connection(
                        self._make_link, self.address.host, self.address.port, ssl=self._tls
                    )
            except (OSError, ssl.SSLError) as problem:  # a timeout is an OSError too
                self._say(sentence_of(problem))
            else:
                link.send(self._hello)
                late = loop.call_later(self._patience, self._end_unwelcome, link)
                try:
                    await self._lost.wait()
                finally:
                    late.cancel()
                    link.close("the router stops")  # does nothing if the link is already closed
                pause = RETRY[0] if link.name else pause
            self._addresses.rotate(-1)  # another node may answer at once
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY[1])

    def _make_link(self) -> Link:
        return Link(
            lambda link, buffer, starts: self._received(self, link, buffer, starts),
            self._handle_end, pressed=self._note_pressure, patience=self._patience,
            largest=frames.LARGEST_DOWN, early=lambda link, early: self._early(self, link, early),
        )  # fmt: skip

    def check(self, now: float) -> None:
        """End the link if nothing was heard for too long."""
        if self.link is not None and now - self.link.heard > 2 * self._patience:
            self.link.abort("nothing was heard for too long")

    def welcome(self, link: Link, message: m.Welcome) -> None:
        """The node above accepts this router."""
        link.name = self.hop
        if self._said:
            _log.warning("%s: the router above: linked again", self._node)
        self.link, self.name, self._said = link, message.name, ""

    def say_goodbye(self, link: Link, message: m.Goodbye) -> None:
        self._say(message.reason)
        link.close("goodbye")

    def _end_unwelcome(self, link: Link) -> None:
        if not link.name:
            link.abort("no answer to the greeting arrived in time")

    def _note_pressure(self, much: bool) -> None:
        self.is_slow = much
        self._pressed(self)

    def _handle_end(self, link: Link, reason: str) -> None:
        if self.link is link:
            self.link = None
        self._ended(self, link)
        if not link.name and not self._said:
            refused = "; over TLS, a certificate may be refused" if self._tls is not None else ""
            self._say(f"{reason} before it answered{refused}")
        _log.info("%s: the router above: %s", self._node, reason)
        self._lost.set()

    def _say(self, reason: str) -> None:
        """Log a warning about the node above, but not the same warning twice in a row."""
        if reason != self._said:
            self._said = reason
            _log.warning("%s: the router above: %s", self._node, reason)
