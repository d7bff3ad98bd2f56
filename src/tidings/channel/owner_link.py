"""The link from a pipeline to the owner of a channel, for code without `async`.

    with ChannelLink("tidings://127.0.0.1:7400") as link:   or the folder of the channel, as a Path
        known = link.changes()                          all nodes, at a version
        news = link.changes(known.version, known.life)  the changes since
        link.hand_over(parts)                           on the owner's disk when this returns

The link connects when it is first needed. If the connection is lost, it connects again, because the
owner may be restarted at any time. On the new connection, every unanswered message is sent again;
the owner still stores each part only once.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from tidings.channel.changes import Changes, Description, NodeChange
from tidings.channel.link_work import Handing, Later, PagedQuestion, Work
from tidings.channel.owner_connection import (
    Connection,
    LostConnection,
    OwnerAddress,
    OwnerFolder,
    OwnerPlace,
)
from tidings.channel.tagged_part import Part
from tidings.network import TimedOut, context_for, parse_address
from tidings.routing.protocol import messages as m

TIMEOUT = 60.0  # seconds to wait for an answer, including the time for new connections
PAUSES = (0.1, 2.0)  # the first and the longest pause in seconds before another attempt
GREETING = 10.0  # seconds for one attempt to connect
SIGN = 4.0  # after waiting this many seconds, the link sends a message to show that it is alive


class ChannelLink:
    """A link to the owner of a channel. Its methods raise Refusal if the owner refuses, and
    TimedOut if there is no progress for `timeout` seconds. If several threads make calls, they take
    turns."""

    def __init__(
        self,
        address: str | Path,
        *,
        token: str = "",
        authorities: str | None = None,
        timeout: float = TIMEOUT,
        name: str | None = None,
    ) -> None:
        """`address` is the owner's address, or the channel's folder. A folder needs no token.
        `name` is needed only if the token is bound to a name."""
        self.address = str(address)
        name = name or f"pipeline-{uuid.uuid4().hex}"
        if isinstance(address, Path):
            self._place: OwnerPlace = OwnerFolder(address)
            self._hello = m.Hello(name)
        else:
            place = parse_address(address)
            self._place = OwnerAddress(place, context_for(place, None, authorities))
            self._hello = m.Hello(name, place.channel, token)
        self._timeout = timeout
        self._connection: Connection | None = None
        self._request = 0
        self._signed = 0.0  # when a message last showed that this end is alive
        self._lock = threading.Lock()

    def describe(self) -> Description:
        """The definition of the channel."""
        with self._lock:
            asking = PagedQuestion(m.Describe(self._next_request()))
            self._do(asking)
        found = asking.follower.described
        assert found is not None
        return Description(
            found.name, found.life, found.attributes, found.extra, found.preprocessor
        )

    def changes(self, since: int = 0, life: int = 0) -> Changes:
        """The changes to nodes since a version, up to the owner's current version. All these
        changes are on the owner's disk. The removal of an unknown node must be ignored."""
        with self._lock:
            question = m.Follow(self._next_request(), since, life, follower=self._hello.name)
            asking = PagedQuestion(question)
            self._do(asking)
        found = asking.follower.changed
        assert found is not None
        changes = tuple(NodeChange(*one) for one in found.changes)
        return Changes(found.life, found.version, found.whole, changes)

    def hand_over(self, parts: Iterable[Part]) -> int:
        """Hand parts over, and return their number when all are on the owner's disk. Parts that the
        owner already has are acknowledged once more. Raise Outdated if a part was tagged with a
        version that is too old."""
        with self._lock:
            handing = Handing(iter(parts))
            self._do(handing)
        return handing.hander.done

    def report_fault(self, predicate: str, version: str, reason: str) -> None:
        """Report that a predicate fails here. The owner then switches the predicate off for
        everybody; this call does not wait for that, but `describe` shows it."""
        with self._lock:
            told = m.Fault(predicate[: m.LONGEST_NAME], version, reason[: m.LONGEST_REASON])
            self._do(PagedQuestion(m.Describe(self._next_request()), before=told))

    def close(self) -> None:
        """Close the connection. The next call opens another connection."""
        with self._lock:
            self._drop()

    def __enter__(self) -> ChannelLink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- internals -----------------------------------------------------------------------------

    def _next_request(self) -> int:
        self._request += 1 << 20  # reserves a number for each page of the answer
        return self._request

    def _do(self, work: Work) -> None:
        """Do the work; if the connection is lost, open another, as long as there is progress."""
        moved, pause = time.monotonic(), PAUSES[0]
        while True:
            before = moved
            try:
                connection = self._connect(moved + self._timeout)
                work.begin(connection, moved + self._timeout)
                while not work.is_done:
                    moved = self._step(connection, work, moved)
                return
            except (LostConnection, Later) as problem:
                reason = str(problem)
            except BaseException:  # a late answer must not be taken for the next answer
                self._drop()
                raise
            self._drop()
            pause = PAUSES[0] if moved > before else min(2 * pause, PAUSES[1])
            if time.monotonic() + pause - moved > self._timeout:
                self._give_up(reason)
            time.sleep(pause)

    def _step(self, connection: Connection, work: Work, moved: float) -> float:
        """Send and receive what can be sent and received now; return the time of the last
        progress."""
        limit = moved + self._timeout
        if work.send(connection, limit):
            return time.monotonic()
        now = time.monotonic()
        if now >= limit:
            self._give_up("it does not answer")
        if now - max(moved, self._signed) > SIGN:  # the owner disconnects a silent client
            self._signed = now
            connection.send(m.Trace(0), limit)
            work.remind(connection, limit)
        for message in connection.receive(min(limit, now + SIGN)):
            if isinstance(message, m.Goodbye):
                raise LostConnection(f"{self.address} closed the connection: {message.reason}")
            if work.receive(message):
                moved = time.monotonic()
        return moved

    def _connect(self, limit: float) -> Connection:
        if self._connection is None:
            until = min(limit, time.monotonic() + GREETING)
            self._connection = Connection(self._place, self._hello, until)
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _give_up(self, problem: str) -> NoReturn:
        self._drop()
        raise TimedOut(
            f"{self.address}: no answer from the owner of the channel for {self._timeout:g} "
            f"seconds: {problem}"
        )
