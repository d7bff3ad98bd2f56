"""Where those wait who come to a door with TLS, until it is known that they speak it.

A server of asyncio drops whoever fails at TLS without a word to anybody. Here the first bytes are
looked at: whoever speaks in the clear is told so in the clear, and whatever goes wrong with TLS is
said to the owner.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

from tidings.network.link import Link
from tidings.network.tls import sentence_of
from tidings.routing.protocol import frames, messages as m

LINGER = 1.0  # seconds in which whoever is turned away may read why
IN_THE_CLEAR = "found a connection in the clear, expected TLS: the address is tidings+tls://"


class TlsProbe(asyncio.Protocol):
    """One that came. `accept` gives the link that it gets when TLS is there; `on_refused` is told
    why it gets none; `on_left` that it is here no more."""

    def __init__(
        self,
        tls: ssl.SSLContext,
        seconds: float,
        accept: Callable[[], Link],
        on_refused: Callable[[str], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        on_left: Callable[[TlsProbe], None],
    ) -> None:
        self._tls = tls
        self._seconds = seconds
        self._accept = accept
        self._on_refused = on_refused
        self._spawn = spawn
        self._on_left = on_left
        self._transport: asyncio.Transport | None = None
        self._early = b""  # came before the link was there
        self._is_refused = False
        self._lost = asyncio.Event()
        self._there = asyncio.Event()  # the first bytes are, or nobody waits for them any more

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # before 3.11.5, a transport that is paused right here reads all the same
        asyncio.get_running_loop().call_soon(self._begin, transport)

    def _begin(self, transport: asyncio.Transport) -> None:
        transport.pause_reading()  # what comes is for TLS
        self._spawn(self._enter(transport))

    def data_received(self, data: bytes) -> None:
        if not self._is_refused:
            self._early += data

    def connection_lost(self, _: Exception | None) -> None:
        self._on_left(self)
        self._lost.set()
        self._there.set()

    def end(self, reason: str) -> None:
        """Nobody waits for this one any longer."""
        self._on_refused(reason)
        self._there.set()
        if self._transport is not None:
            self._transport.abort()

    async def _enter(self, transport: asyncio.Transport) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                first = await _first_bytes(transport, self._there)
                if not first:
                    transport.abort()
                    return
                if not _is_tls(first):
                    self._on_refused(IN_THE_CLEAR)
                    await self._say_in_the_clear(transport)
                    return
                secure = await asyncio.get_running_loop().start_tls(
                    transport, self, self._tls, server_side=True
                )
        except asyncio.CancelledError:  # the owner stops
            transport.abort()
            raise
        except TimeoutError:
            self._on_refused("nothing was said for too long")
            transport.abort()
        except ConnectionError:
            self._on_refused("it ended the connection, as those do who don't trust a certificate")
            transport.abort()
        except OSError as problem:  # those of TLS among them
            self._on_refused(sentence_of(problem))
            transport.abort()
        else:
            if secure is not None:
                self._hand_over(secure)

    def _hand_over(self, transport: asyncio.Transport) -> None:
        self._on_left(self)
        link = self._accept()
        link.connection_made(transport)
        transport.set_protocol(link)
        if self._early:
            link.data_received(self._early)
        if self._lost.is_set():
            link.connection_lost(None)

    async def _say_in_the_clear(self, transport: asyncio.Transport) -> None:
        # what was not read when a socket is closed makes it forget what it was to send
        self._is_refused = True
        transport.resume_reading()
        transport.write(frames.encode(m.Goodbye(IN_THE_CLEAR)))
        transport.write_eof()
        try:
            async with asyncio.timeout(LINGER):
                await self._lost.wait()
        except TimeoutError:
            transport.abort()


async def _first_bytes(transport: asyncio.Transport, there: asyncio.Event) -> bytes:
    """What came first; it is left where it is. Nothing if the other end left."""
    loop = asyncio.get_running_loop()
    number = transport.get_extra_info("socket").fileno()
    with socket.socket(fileno=os.dup(number)) as copy:
        loop.add_reader(copy, there.set)
        try:
            await there.wait()
        finally:
            loop.remove_reader(copy)
        try:
            return copy.recv(3, socket.MSG_PEEK)
        except BlockingIOError:
            return b""


def _is_tls(first: bytes) -> bool:
    """A greeting of ours that begins so would be longer than 64 KiB."""
    return first[0] == 0x16 and (len(first) < 3 or (first[1] == 3 and first[2] in (1, 2, 3)))
