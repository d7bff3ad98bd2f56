"""Handle new connections to a TLS server until their handshakes are done.

An asyncio server silently drops clients that fail the TLS handshake. A probe examines the first
bytes before TLS reads them. A client without TLS gets a readable refusal, and `on_refused` is
called for every failed handshake.
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

LINGER = 1.0  # seconds in which a refused client can read the reason
IN_THE_CLEAR = "found a connection without TLS, expected TLS: use an address with tidings+tls://"


class TlsProbe(asyncio.Protocol):
    """One new connection. `accept` creates the link of the connection when the handshake is done;
    `on_refused` gets the reason if the handshake fails; `on_left` is called when the probe is
    over."""

    def __init__(
        self,
        tls: ssl.SSLContext,
        seconds: float,
        accept: Callable[[], Link],
        on_refused: Callable[[str], None],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        on_left: Callable[[TlsProbe], None],
    ) -> None:
        self._tls = tls
        self._seconds = seconds
        self._accept = accept
        self._on_refused = on_refused
        self._spawn = spawn
        self._on_left = on_left
        self._transport: asyncio.Transport | None = None
        self._early = b""  # data that arrived before the link was created
        self._is_refused = False
        self._lost = asyncio.Event()
        self._there = asyncio.Event()  # set at the first bytes, or at the end of the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # before Python 3.11.5, a transport would go on reading if it were paused here
        asyncio.get_running_loop().call_soon(self._begin, transport)

    def _begin(self, transport: asyncio.Transport) -> None:
        transport.pause_reading()  # keep the first bytes for TLS
        self._spawn(self._enter(transport))

    def data_received(self, data: bytes) -> None:
        if not self._is_refused:
            self._early += data

    def connection_lost(self, _: Exception | None) -> None:
        self._on_left(self)
        self._lost.set()
        self._there.set()

    def end(self, reason: str) -> None:
        """Refuse this connection."""
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
        except asyncio.CancelledError:  # the server stops
            transport.abort()
            raise
        except TimeoutError:
            self._on_refused("nothing was received for too long")
            transport.abort()
        except ConnectionError:
            self._on_refused("it closed the connection; perhaps it does not trust our certificate")
            transport.abort()
        except OSError as problem:  # including TLS errors
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
        # closing a socket with unread input would also discard the output that is not sent yet
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
    """Look at the first bytes without consuming them. The result is empty if the other end has
    closed the connection."""
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
    """Are these the first bytes of a TLS connection? If a greeting without TLS began with these
    bytes, it would have to be longer than 64 KiB."""
    return first[0] == 0x16 and (len(first) < 3 or (first[1] == 3 and first[2] in (1, 2, 3)))
