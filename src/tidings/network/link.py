"""One link: turns received bytes into frames, and frames into bytes to send.

All messages that are sent in one turn of the event loop are written together. The queue is bounded:
a neighbour that reads too slowly is disconnected, or misses notifications. A neighbour that missed
notifications notices this by their numbers, and asks for them. Other messages are few, and are
never dropped; if they pile up nevertheless, the neighbour is disconnected.

A link carries the frames of several channels, each with a number on this link (see frames.py).
If frames of one channel are written together, they share one switch frame, which names the channel.
A link with a single channel uses the number 0 for it, and sends no frames that switch channels.

A body that is sent early is kept at both ends. The notification that follows contains only a
reference to the body, and the receiving link restores the whole frame (routing/early).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import accumulate

from tidings.model import TidingsError
from tidings.network import scanning
from tidings.network.tls import names_in, sentence_of
from tidings.routing.early import (
    Early,
    KeptBodies,
    SentBodies,
    SharedBody,
    decode_early,
    encode_early,
)
from tidings.routing.protocol import frames, messages as m

MOST_WAITING = 32 << 20  # bytes
PATIENCE = 12.0  # a connection is closed after this many seconds of silence
HIGH_WATER = 256 << 10  # `pressed` is called if more bytes than this are waiting
MOST_BEFORE_EARLY = 1 << 20  # if more bytes than this are waiting, nothing is sent early
LINGER = 5.0  # how many seconds the other end has to read the last bytes of a closed link


class Policy(Enum):
    """What to do with a neighbour that reads too slowly."""

    DROP = "drop"  # notifications are dropped until the neighbour has caught up
    DISCONNECT = "disconnect"


class Link(asyncio.Protocol):
    """One end of a connection. `received` is called with a buffer and the offsets of the frames in
    it; `ended` is called once, with the reason why the link ended."""

    def __init__(
        self,
        received: Callable[[Link, bytes, list[int]], None],
        ended: Callable[[Link, str], None],
        *,
        largest: int = frames.LARGEST,
        most_waiting: int = MOST_WAITING,
        policy: Policy = Policy.DROP,
        pressed: Callable[[bool], None] | None = None,
        patience: float = PATIENCE,
        early: Callable[[Link, Early], None] | None = None,
    ) -> None:
        """`pressed` is called with True when too much data is waiting to be sent, and with False
        when there is room again. `early` is called with each body that arrives early; without it,
        an early body ends the link."""
        self._received = received
        self._ended = ended
        self.largest = largest
        self.most_waiting = most_waiting
        self.policy = policy
        self._pressed = pressed
        self._early = early
        self.early_out: SentBodies | None = None  # the bodies that were sent early
        self._early_in: KeptBodies | None = None
        self.patience = patience
        self.name = ""
        self.dropped = 0  # notifications
        self._skipped: set[int] = set()  # channels whose latest notification was dropped
        self.number = 0
        """The channel of the frames that are passed to `received`."""
        self._out_number = 0  # the channel of the last frame that was sent
        self.bytes_in = self.bytes_out = 0
        self.taken: dict[int, int] = {}  # how many bytes of complete frames arrived, by channel
        self.sent: dict[int, int] = {}  # bytes of sent and waiting frames, by channel
        self.batches = 0  # how many batches of complete frames arrived
        self.strange = False  # True if the first frame must be processed by itself
        self.owner = ""  # the owner of this link; other links may have the same owner
        self.routes = False  # whether the other end is a router, which has many owners below it
        self._reasons: set[str] = set()  # for not reading
        # whether the other end sent an invalid frame or message
        self.bad = False
        # numbers of notifications; the callback `received` counts the incoming ones
        self.told_in = self.told_out = 0
        self.heard = time.monotonic()
        self._transport: asyncio.Transport | None = None
        self._rest = bytearray()  # the beginning of an incomplete frame
        self._needed = 0  # the size of that frame
        self._out: list[bytes | memoryview] = []
        self._out_size = 0
        self._flushing = False
        self._over = ""  # why the link ended
        self._gone = asyncio.Event()

    @property
    def link(self) -> Link:
        """This link itself: a link is its own lane for channel 0 (see broker/links/lane.py)."""
        return self

    # -- sending -------------------------------------------------------------------------------

    def send(self, message: m.Message, number: int = 0) -> None:
        """Send a message of a channel at the end of this turn of the event loop."""
        if isinstance(message, m.Notification):
            self.send_notifications(frames.encode(message), 1, number)
        else:
            self._put(frames.encode(message), number)
            if self.waiting > 2 * self.most_waiting:
                self.close("the receiver does not read its messages")

    def send_all(self, messages: Iterable[m.Message], number: int = 0) -> None:
        """Send messages that are not notifications, as one piece of data."""
        self._put(b"".join(map(frames.encode, messages)), number)
        if self.waiting > 2 * self.most_waiting:
            self.close("the receiver does not read its messages")

    def send_notifications(self, data: bytes | memoryview, count: int, number: int = 0) -> None:
        """Send frames of notifications, unless too much data is already waiting."""
        if self.waiting > self.most_waiting:
            self.drop(count)
            self._skipped.add(number)
        else:
            if number in self._skipped:
                self._skipped.remove(number)
                self._put(frames.encode(m.Skipped()), number)
            self.told_out += count
            if self.early_out:
                data = self.early_out.shorten(data, number)
            self._put(data, number)

    def send_early(
        self, early: Early, number: int = 0, frame: bytes = b"", body: SharedBody | None = None
    ) -> bool:
        """Send a body early, unless much data is waiting to be sent; return whether it was sent.
        `frame` is the frame of the body, if it is already encoded, and `body` the body itself, if
        links share it."""
        if self._over or self.waiting > MOST_BEFORE_EARLY:
            return False
        if self.early_out is None:
            self.early_out = SentBodies()
        self.early_out.add(number, early, body)
        self._put(frame or encode_early(early), number)
        return True

    def drop(self, count: int) -> None:
        """Count the notifications that are dropped because the other end reads too slowly."""
        if count and self.policy is Policy.DISCONNECT:
            self.close("the receiver reads too slowly")
        self.dropped += count

    @property
    def waiting(self) -> int:
        """How many bytes are still to be sent."""
        transport = self._transport
        return self._out_size + (0 if transport is None else transport.get_write_buffer_size())

    def _put(self, data: bytes | memoryview, number: int = 0) -> None:
        if self._over:
            return
        if number != self._out_number:
            self._out_number = number
            self._out.append(frames.encode_switch(number))
            self._out_size += frames.SWITCH_SIZE
        self._out.append(data)
        self._out_size += len(data)
        self.sent[number] = self.sent.get(number, 0) + len(data)
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

    def forget_channel(self, number: int) -> None:
        """Stop counting the bytes of a channel that was closed."""
        self.taken.pop(number, None)
        self.sent.pop(number, None)

    def certificate_names(self) -> frozenset[str]:
        """The names in the certificate of the other end, if the certificate was verified."""
        transport = self._transport
        found = None if transport is None else transport.get_extra_info("peercert")
        if not found:
            return frozenset()
        return names_in(found)

    def close(self, reason: str) -> None:
        """Tell the other end why the link ends, send everything that is waiting, and close it. If
        the other end does not read this data, the connection is cut off after a while."""
        if self._over:
            return
        transport = self._transport
        if transport is None:  # the link never had a connection
            self._end(reason)
            return
        self._put(frames.encode(m.Goodbye(reason)))
        self._flush()
        self._end(reason)
        if transport.get_write_buffer_size() > HIGH_WATER:
            transport.abort()
        else:
            transport.close()
            if transport.get_write_buffer_size():
                asyncio.get_running_loop().call_later(LINGER, transport.abort)

    def abort(self, reason: str) -> None:
        """Close the link at once, without telling the other end, because the other end is gone."""
        if not self._over and self._transport is not None:
            self._end(reason)
            self._transport.abort()

    def refuse(self, problem: TidingsError) -> None:
        """Close the link because the other end sent something invalid."""
        self.bad = True
        self.close(str(problem))

    @property
    def is_over(self) -> bool:
        """Has the link ended?"""
        return bool(self._over)

    @property
    def unfinished(self) -> int:
        """How many bytes of an incomplete frame have arrived."""
        return len(self._rest)

    def read(self, why: str, *, on: bool) -> None:
        """Add or remove a reason why the link does not read. While there is any such reason, the
        link reads nothing, so the other end must wait."""
        before = self.paused
        (self._reasons.discard if on else self._reasons.add)(why)
        transport = self._transport
        if transport is None or transport.is_closing() or self.paused == before:
            return
        if self.paused:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def read_at_once(self, size: int) -> None:
        """Set how many bytes are read before it is the turn of other links, if the transport
        supports this setting."""
        transport = self._transport
        if transport is not None and hasattr(transport, "max_size"):
            transport.max_size = size

    @property
    def paused(self) -> bool:
        """Whether reading from the other end is paused."""
        return bool(self._reasons)

    async def wait_gone(self, seconds: float = 1.0) -> None:
        """Wait until the connection is closed, which takes a while with TLS."""
        if self._transport is None:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._gone.wait()
        except TimeoutError:
            self._transport.abort()

    # -- called by asyncio ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        end_with_silence(transport, self.patience)
        if self._over:
            transport.abort()
        elif self._pressed is not None:
            transport.set_write_buffer_limits(high=HIGH_WATER)

    def pause_writing(self) -> None:
        if self._pressed is not None:
            self._pressed(True)

    def resume_writing(self) -> None:
        if self._pressed is not None:
            self._pressed(False)

    def data_received(self, data: bytes) -> None:
        is_first = not self.bytes_in
        self.bytes_in += len(data)
        self.heard = time.monotonic()
        if is_first and data[:2] == b"\x16\x03" and data[2:3] in (b"\1", b"\2", b"\3"):
            self.close("found TLS, expected none: use an address with tidings://")
            return
        if is_first and data[:5] == b"HTTP/":
            self.abort("found an HTTP server, expected a tidings router: check the port")
            return
        if self._rest:  # the pieces of a frame are joined once, when all of them have arrived
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest = bytearray()
        if self.strange and len(data) >= frames.SHORTEST:
            # the first frame tells the receiver which frames are allowed after it
            first = max(frames.size_at(data, 0), frames.SHORTEST)
            self._take(data[:first])
            data = data[first:]
        if data:
            self._take(data)

    def _take(self, data: bytes) -> None:
        """Process complete frames, channel by channel, and keep an incomplete one at the end."""
        at = 0
        try:
            while not self._over:
                begun = at
                starts, at = scanning.scan(data, at, self.largest)
                if starts:
                    self.batches += 1
                    self.taken[self.number] = self.taken.get(self.number, 0) + at - begun
                    self._received(self, data, starts)
                if at == len(data):
                    break
                number = frames.switch_at(data, at)
                if number is not None:
                    self.number = number
                    at += frames.SWITCH_SIZE
                elif frames.early_at(data, at):
                    at = self._take_early(data, at)
                else:
                    break
            if at < len(data) and not self._over:
                self._rest += data[at:]
                short = len(self._rest) < frames.SHORTEST
                self._needed = frames.SHORTEST if short else frames.size_at(self._rest, 0)
        except TidingsError as problem:
            self.refuse(problem)

    def _take_early(self, data: bytes, at: int) -> int:
        """Process early bodies, and restore notifications that refer to them; return the offset
        where these frames end."""
        if self._early is None:
            raise frames.FrameError("found an early body, expected early bodies only from above")
        kept = self._early_in
        if kept is None:
            kept = self._early_in = KeptBodies()
        whole: list[bytes] = []
        begun = at
        while kind := frames.early_at(data, at):
            if kind == frames.EARLY:
                early = decode_early(data, at)
                kept.add(early)
                self._early(self, early)
            else:
                whole.append(kept.restore(data, at))
            at += frames.size_at(data, at)
        self.taken[self.number] = self.taken.get(self.number, 0) + at - begun
        if whole and not self._over:
            self.batches += 1
            starts = [0, *accumulate(map(len, whole[:-1]))]
            self._received(self, b"".join(whole), starts)
        return at

    def connection_lost(self, problem: Exception | None) -> None:
        self._gone.set()
        lost = "the connection was lost"
        self._end(lost if problem is None else f"{lost}: {sentence_of(problem)}")

    def _end(self, reason: str) -> None:
        if not self._over:
            self._over = reason
            self._out.clear()
            self._out_size = 0
            self._rest = bytearray()
            self._early_in = None
            if self.early_out is not None:
                self.early_out.clear()
            if self._pressed is not None:
                self._pressed(False)
            self._ended(self, reason)


def keep_early(link: Link, early: Early) -> None:
    """A value of `early` for links that forward nothing. The function does nothing, because the
    link itself keeps the early body."""


def end_with_silence(transport: asyncio.Transport, seconds: float) -> None:
    """Let the operating system probe a connection whose other end is silent, and close it if the
    probes stay unanswered: the other end may have vanished without closing the connection."""
    found = transport.get_extra_info("socket")
    if found is None:
        return
    every = max(1, round(seconds / 3))
    wanted = {"TCP_KEEPIDLE": every, "TCP_KEEPINTVL": every, "TCP_KEEPCNT": 2,
              # longer than the other end may stop reading because of back-pressure
              "TCP_USER_TIMEOUT": round(5000 * seconds)}  # fmt: skip
    with contextlib.suppress(OSError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in wanted.items():
        option = getattr(socket, name, None)  # some systems lack some of these options
        if option is not None:
            with contextlib.suppress(OSError):
                found.setsockopt(socket.IPPROTO_TCP, option, value)
