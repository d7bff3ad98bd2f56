"""A neighbour that can send any bytes, over its own socket."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from tests.broker.fuzzing import framed

from tidings.routing.protocol import frames, messages as m

PATIENCE = 10.0  # seconds that a router may take to read what it is sent
AGAIN = 4.0  # seconds between two signs of life


def packed(tag: str, *fields: object) -> bytes:
    """The frame of a message, whatever its fields are."""
    return framed(msgspec.msgpack.encode([tag, *fields]))


def shortened(reason: str) -> str:
    """A refusal without what differs from one to the next."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d[\d,.]*", "_", reason.partition("\n")[0])[:90]


class Over(Exception):
    """The router has ended the connection, or does not read."""


class Raw:
    """One connection, greeted. `hear` gets messages from above; refusals are counted here."""

    def __init__(
        self,
        port: int,
        name: str,
        token: str,
        counts: Counter[str],
        *,
        routes: bool = False,
        hear: Callable[[m.Message], None] | None = None,
        small: bool = False,
    ) -> None:
        self.counts = counts
        self.epoch = 0
        self.requests = 0
        self.answered = 0  # the last node that it was told
        self.publisher = name  # under which it publishes,
        self.stamp = 0  # and what it published last
        self._hear = hear
        self._rest = b""
        self._said_at = time.monotonic()
        self._socket = socket.socket()
        self._socket.settimeout(PATIENCE)
        if small:  # so that what is not read waits at the router
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        try:
            self._socket.connect(("127.0.0.1", port))
        except OSError:
            self.close()
            raise Over("no connection") from None
        self.say(m.Hello(name, "", token, routes), m.Resubscribe(0, m.Digest()))

    def say(self, *messages: m.Message) -> None:
        self.send(b"".join(map(frames.encode, messages)))

    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError:
            with contextlib.suppress(Over):
                self.take()  # perhaps it said why
            self.close()
            self.counts["ended"] += 1
            raise Over("sending failed") from None
        self._said_at = time.monotonic()

    def ask(self, interest: str) -> None:
        self.requests += 1
        self.send(packed("ask", self.requests, interest.encode()))

    def publish(self, attributes: object, payload: bytes = b"x") -> None:
        """Publish attributes, or bytes that pass for some."""
        content = attributes if isinstance(attributes, bytes) else msgspec.json.encode(attributes)
        self.stamp += 1
        self.say(m.Publish(self.publisher, self.stamp, self.stamp, content, payload))

    def keep_alive(self) -> None:
        if time.monotonic() - self._said_at > AGAIN:
            self.say(m.Resubscribe(self.epoch, m.Digest()))

    def take(self, seconds: float = 0.0) -> None:
        """Hear what there is, for so long."""
        until = time.monotonic() + seconds
        while True:
            left = max(0.0, until - time.monotonic())
            try:
                if not select.select([self._socket], [], [], left)[0]:
                    return
                data = self._socket.recv(1 << 18)
            except (OSError, ValueError):
                data = b""
            if not data:
                self.close()
                self.counts["ended"] += 1
                raise Over("the router ended it")
            self._take(data)

    def is_there(self) -> bool:
        """Has the router not ended it? What it said is not read."""
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP)
        return not poll.poll(0)

    def close(self) -> None:
        self._socket.close()

    def _take(self, data: bytes) -> None:
        self._rest += data
        starts, end = frames.split(self._rest, 64 << 20)
        for start in starts:
            if self._rest[start + 4] == frames.NOTIFICATION:
                self.counts["told"] += 1
                if self._hear is None:
                    continue
            self._note(frames.decode(self._rest, start))
        self._rest = self._rest[end:]

    def _note(self, message: m.Message) -> None:
        if isinstance(message, m.Down) and message.epoch:
            self.epoch = message.epoch
        if isinstance(message, m.Refuse):
            self.counts["refused: no such node"] += len(message.nodes)
        refusal: Any = getattr(message, "refusal", "")
        if isinstance(message, m.Goodbye):
            refusal = message.reason
        if refusal:
            self.counts[f"refused: {shortened(refusal)}"] += 1
        elif isinstance(message, m.Answer):
            self.counts["answered"] += 1
            self.answered = message.node
        elif isinstance(message, m.Published):
            self.counts["acknowledged"] += 1
        if self._hear is not None:
            self._hear(message)
