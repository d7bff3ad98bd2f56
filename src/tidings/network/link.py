"""One link: bytes come in and are frames, frames go out and are bytes.

What is to be sent in one turn of the event loop is written together. What waits is bounded: a
neighbour that reads more slowly than it is sent to is cut off, or loses notifications, which it
notices by their numbers and asks for. Other messages are never dropped; there are
few of them, and a neighbour for which even those pile up is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum

from tidings.network import scanning
from tidings.routing import frames, messages as m

MOST_WAITING = 32 << 20  # bytes


class Policy(Enum):
    """What becomes of a neighbour that is too slow."""

    DROP = "drop"  # notifications, until it has caught up
    DISCONNECT = "disconnect"


class Link(asyncio.Protocol):
    """One end of a connection. `received` gets a buffer and where its frames begin; `ended` is told
    why, once."""

    def __init__(
        self,
        received: Callable[[Link, bytes, list[int]], None],
        ended: Callable[[Link, str], None],
        *,
        largest: int = frames.LARGEST,
        most_waiting: int = MOST_WAITING,
        policy: Policy = Policy.DROP,
    ) -> None:
        self._received = received
        self._ended = ended
        self.largest = largest
        self.most_waiting = most_waiting
        self.policy = policy
        self.name = ""
        self.dropped = 0  # notifications
        self.bytes_in = self.bytes_out = 0
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._out: list[bytes | memoryview] = []
        self._out_size = 0
        self._flushing = False
        self._over = ""  # why

    # -- sending -------------------------------------------------------------------------------

    def send(self, message: m.Message) -> None:
        """Send a message, at the end of this turn of the event loop."""
        if isinstance(message, m.Notification):
            self.send_notifications(frames.encode(message), 1)
        else:
            self._put(frames.encode(message))
            if self.waiting > 2 * self.most_waiting:
                self.close("it does not read what it is sent")

    def send_notifications(self, data: bytes | memoryview, count: int) -> None:
        """Send frames of notifications, unless too much waits already."""
        if self.waiting > self.most_waiting:
            if self.policy is Policy.DISCONNECT:
                self.close("it reads more slowly than it is sent to")
            self.dropped += count
        else:
            self._put(data)

    @property
    def waiting(self) -> int:
        """Bytes that are not sent yet."""
        transport = self._transport
        return self._out_size + (0 if transport is None else transport.get_write_buffer_size())

    def _put(self, data: bytes | memoryview) -> None:
        if self._over:
            return
        self._out.append(data)
        self._out_size += len(data)
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        out, self._out = self._out, []
        self.bytes_out += self._out_size
        self._out_size = 0
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    def certified(self) -> frozenset[str]:
        """The names in the certificate of the other end, if it has one that was verified."""
        transport = self._transport
        found = None if transport is None else transport.get_extra_info("peercert")
        if not found:
            return frozenset()
        names = {value for kind, value in found.get("subjectAltName", ()) if kind == "DNS"}
        for part in found.get("subject", ()):
            names |= {value for kind, value in part if kind == "commonName"}
        return frozenset(names)

    def close(self, reason: str) -> None:
        """End the link, after what was sent before; the other end is told why."""
        if self._over or self._transport is None:
            return
        self._put(frames.encode(m.Goodbye(reason)))
        self._flush()
        self._end(reason)
        self._transport.close()

    # -- what asyncio calls --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self.bytes_in += len(data)
        buffer = self._rest + data if self._rest else data
        try:
            starts, end = scanning.split(buffer, self.largest)
            self._rest = buffer[end:] if end < len(buffer) else b""
            if starts:
                self._received(self, buffer, starts)
        except frames.FrameError as problem:
            self.close(str(problem))

    def connection_lost(self, problem: Exception | None) -> None:
        self._end("the connection was lost" if problem is None else f"it was lost: {problem}")

    def _end(self, reason: str) -> None:
        if not self._over:
            self._over = reason
            self._out.clear()
            self._out_size = 0
            self._ended(self, reason)
