"""A connection to a rendezvous point that survives restarts of the point.

While the point is down or restarting, each message is resent until it is answered; the protocol
(handover.py) makes that harmless. If all attempts fail for `patience` seconds, the link raises
`EnvironmentProblem`, and Spark retries the task or the batch.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from tidings.model import EnvironmentProblem
from tidings.spark.handover.handover import Sender
from tidings.spark.handover.handover_messages import (
    Commit,
    Committed,
    Frames,
    Kept,
    Missing,
    Reply,
    Request,
    frame,
)

PATIENCE = 60.0
"""Seconds without an answer after which a link gives up."""

_SILENCE = 10.0  # seconds without an answer after which a new connection is tried
_PAUSE = (0.05, 1.0)  # seconds between two attempts: the first pause, the longest pause
_CHUNK = 256 * 1024


class Link:
    """A client's connection to the point; not thread-safe."""

    def __init__(self, host: str, port: int, patience: float = PATIENCE) -> None:
        self._address = (host, port)
        self._patience = patience
        self._socket: socket.socket | None = None
        self._replies: list[Reply] = []
        self._frames: Frames[Reply] = Frames(Reply)
        self._failing_since: float | None = None
        self._pause = _PAUSE[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def push(self, sender: Sender, chunks: Iterable[list[bytes]]) -> None:
        """Send rows; return when all are durable at the point, or the batch is committed."""
        for payloads in chunks:
            sender.offer(payloads)
            while sender.full:
                self._step(sender)
        while not sender.done:
            self._step(sender)

    def ask(self, request: Request) -> Reply:
        """Send a request other than rows, and return the reply."""
        while True:
            try:
                self._connected().sendall(frame(request))
                while True:
                    reply = self._next()
                    if isinstance(reply, Kept):
                        continue  # a late reply to rows that were sent twice
                    if (reply.stream, reply.batch) == (request.stream, request.batch):
                        return reply
            except (OSError, ValueError) as error:
                self._retry(error)

    def commit(self, commit: Commit) -> None:
        """Commit a batch, so that it is delivered; raise EnvironmentProblem if rows are missing."""
        reply = self.ask(commit)
        if isinstance(reply, Missing):
            raise EnvironmentProblem(
                f"Batch {commit.batch} of {commit.stream} cannot be committed: the rendezvous "
                f"point lacks rows of {len(reply.parts)} partitions. The batch must be sent again."
            )
        assert isinstance(reply, Committed)

    def _step(self, sender: Sender) -> None:
        """Send all messages that are ready, and handle one reply."""
        try:
            if self._socket is None:
                sender.rewind()
            connection = self._connected()
            while (rows := sender.pull()) is not None:
                connection.sendall(frame(rows))
            sender.receive(self._next())
        except (OSError, ValueError) as error:
            self._retry(error)

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=_SILENCE)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def _next(self) -> Reply:
        while not self._replies:
            data = self._connected().recv(_CHUNK)
            if not data:
                raise ConnectionError("the connection was closed")
            self._replies.extend(self._frames.feed(data))
        self._failing_since = None
        self._pause = _PAUSE[0]
        return self._replies.pop(0)

    def _retry(self, error: Exception) -> None:
        self._close()
        now = time.monotonic()
        # Count from the first failure, not from the last reply: the rows themselves may have taken
        # long to arrive.
        self._failing_since = self._failing_since or now
        if now - self._failing_since > self._patience:
            host, port = self._address
            raise EnvironmentProblem(
                f"The rendezvous point at {host}:{port} does not answer: {error}."
            ) from error
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _PAUSE[1])

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._replies = []
        self._frames = Frames(Reply)
