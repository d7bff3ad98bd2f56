"""A running router, which keeps a link to the node above it."""

from __future__ import annotations

import asyncio
import logging
import ssl

import msgspec

from tidings.broker.admission.listen import UPSTREAM, Address, Door
from tidings.broker.admission.permissions import Tokens
from tidings.broker.server import CACHE_BYTES, Server
from tidings.network import FrameCache, Link, draw_life, sentence_of
from tidings.routing.forwarding import Forwarding, Router
from tidings.routing.protocol import Times, frames, messages as m

RETRY = (0.1, 5.0)  # seconds before the next attempt to connect: the first and the longest pause

_log = logging.getLogger(__name__)


class RouterNode(Server):
    """A router between the node above it and its neighbours."""

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
        forwarding: Forwarding | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._frames = FrameCache(cache_bytes)
        machine = Router(name, UPSTREAM, times, self._frames, draw_life(), door.limits)
        super().__init__(machine, door, forwarding)
        self.upstream = upstream
        self._hello = m.Hello(name, door.channel, token, routes=True)
        self._tls = tls
        self._lost = asyncio.Event()
        self._said = ""  # the last warning about the node above

    def renew(self, tokens: Tokens | None, token: str = "") -> int:
        self._hello = msgspec.structs.replace(self._hello, token=token)
        return super().renew(tokens, token)

    async def start(self) -> None:
        await super().start()
        self._spawn(self._keep_connected())

    # -- the link to the node above ------------------------------------------------------------

    async def _keep_connected(self) -> None:
        loop, pause = asyncio.get_running_loop(), RETRY[0]
        patience = self.machine.times.silent
        while True:
            self._lost.clear()
            try:
                async with asyncio.timeout(patience):
                    _, link = await loop.create_connection(
                        self._make_link_above, self.upstream.host, self.upstream.port, ssl=self._tls
                    )
            except (OSError, ssl.SSLError) as problem:  # a timeout is an OSError too
                self._say_of_above(sentence_of(problem))
            else:
                link.send(self._hello)
                late = loop.call_later(patience, self._end_unwelcome, link)
                try:
                    await self._lost.wait()
                finally:
                    late.cancel()
                    link.close("the router stops")  # does nothing if the link is already closed
                pause = RETRY[0] if link.name else pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY[1])

    def _make_link_above(self) -> Link:
        patience = self.machine.times.silent
        return Link(self._from_above, self._handle_end_above, pressed=self._note_pressure,
                    patience=patience, largest=frames.LARGEST_DOWN)  # fmt: skip

    def _check_links(self, now: float) -> None:
        """Close the link to the node above if no beats arrive."""
        super()._check_links(now)
        above = self.links.get(UPSTREAM)
        if above is not None and now - above.heard > 2 * self.machine.times.silent:
            above.abort("nothing was heard for too long")

    def _end_unwelcome(self, link: Link) -> None:
        if not link.name:
            link.abort("no answer to the greeting arrived in time")

    def _note_pressure(self, much: bool) -> None:
        self._upstream_is_slow = much
        self.apply_back_pressure()

    def _handle_end_above(self, link: Link, reason: str) -> None:
        if self.links.get(UPSTREAM) is link:
            del self.links[UPSTREAM]
        self.reports.end_link(link, above=True)
        if not link.name and not self._said:
            refused = "; over TLS, certificates are refused so" if self._tls is not None else ""
            self._say_of_above(f"{reason} before it answered{refused}")
        _log.info("%s: the router above: %s", self.machine.name, reason)
        self._lost.set()

    def _say_of_above(self, reason: str) -> None:
        """Log a reason about the node above, but not the same one twice in a row."""
        if reason != self._said:
            self._said = reason
            _log.warning("%s: the router above: %s", self.machine.name, reason)

    # -- messages from above -------------------------------------------------------------------

    def _from_above(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        ends = [*starts[1:], starts[-1] + frames.size_at(buffer, starts[-1])]
        if link.name and frames.are_notifications(buffer, starts):
            link.told_in += len(starts)
            self._pass_on(buffer, starts, ends)
            return
        first = 0
        while first < len(starts):
            last = first
            while last < len(starts) and buffer[starts[last] + 4] == frames.NOTIFICATION:
                last += 1
            if last > first and link.name:
                link.told_in += last - first
                self._pass_on(buffer, starts[first:last], ends[first:last])
            if last < len(starts):
                self._take_from_above(link, frames.decode(buffer, starts[last]))
            first = last + 1

    def _take_from_above(self, link: Link, message: m.Message) -> None:
        if isinstance(message, m.Welcome):
            link.name = UPSTREAM
            self.above, self._said = message.name, ""
            self.links[UPSTREAM] = link
            self.dispatch(self.machine.join_upstream(self.now))
        elif isinstance(message, m.Goodbye):
            self._say_of_above(message.reason)
            link.close("goodbye")
        elif link.name:
            self.feed(UPSTREAM, message)

    def _pass_on(self, buffer: bytes, starts: list[int], ends: list[int]) -> None:
        """Forward frames without decoding them if they belong to this life. Serials increase, so
        the last frame has the highest serial. It is enough to check the first and the last frame,
        because nodes exchange a lineage between two lives."""
        first, _ = frames.place_of(buffer, starts[0])
        last, serial = frames.place_of(buffer, starts[-1])
        if first == last == self.machine.epoch:
            if not serial:  # published as fast: look for the last that was not
                serial = max(frames.place_of(buffer, start)[1] for start in starts)
            self.machine.note_passed(serial)
            self.forward(buffer, starts, ends)
            return
        for start in starts:  # the state machine handles frames of other lives
            self.feed(UPSTREAM, frames.decode(buffer, start))
