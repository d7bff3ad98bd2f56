"""The protocol by which Spark hands batches of rows to a rendezvous point, each batch exactly once.
No I/O happens here.

    task     rows ------>            makes them durable
             <------- kept
    driver   commit ---->            makes the batch durable, delivers it
             <-- committed           or `missing`, if the point lacks rows of the batch

A *stream* is any source of rows that numbers its batches. A task sends the rows of one partition
under an *attempt*, a number that no other attempt at the partition uses, in this run or any other.
So the rows of a failed attempt are never mixed with those of a later one. When a batch is
committed, the rows that the commit does not name are dropped.

Any message may be lost, duplicated or late:
- the state of a point depends only on its log, replayed through `receive`;
- a reply is true once the record of the same outcome is durable, so the record is written before
  the reply is sent;
- a committed batch never changes: more rows for it, or another commit, have no effect and are
  answered with `committed`;
- `kept` is cumulative, and rows after a gap are ignored, so a sender that gets no reply resends
  everything after the last row known to be kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import NamedTuple

import msgspec

from tidings.spark.handover.handover_messages import (
    Abort,
    Commit,
    Committed,
    Kept,
    Missing,
    Part,
    Pending,
    Reply,
    Request,
    Rows,
)


class Outcome(NamedTuple):
    """The steps that a request needs, in this order: log the record, deliver the rows, reply."""

    record: Request | None
    delivered: list[bytes]
    reply: Reply


class Point:
    """The receiving side: pending rows and committed batches, per stream."""

    def __init__(self) -> None:
        self._committed: dict[str, Numbers] = {}
        # (stream, batch) -> (partition, attempt) -> rows
        self._pending: dict[tuple[str, int], dict[tuple[int, int], list[bytes]]] = {}

    def receive(self, request: Request) -> Outcome:
        """Handle a request, from a client or from the log. The same log gives the same state."""
        stream, batch = request.stream, request.batch
        if batch in self._committed.get(stream, ()):
            return Outcome(None, [], Committed(stream, batch))
        if isinstance(request, Rows):
            return self._keep(request)
        if isinstance(request, Commit):
            return self._commit(request)
        record = None
        if isinstance(request, Abort) and (stream, batch) in self._pending:
            del self._pending[stream, batch]
            record = request
        return Outcome(record, [], Pending(stream, batch))

    def _keep(self, rows: Rows) -> Outcome:
        attempts = self._pending.get((rows.stream, rows.batch), {})
        have = len(attempts.get((rows.partition, rows.attempt), ()))
        record = None
        if rows.first <= have < rows.first + len(rows.payloads):
            attempts = self._pending.setdefault((rows.stream, rows.batch), {})
            kept = attempts.setdefault((rows.partition, rows.attempt), [])
            record = msgspec.structs.replace(
                rows, first=have, payloads=rows.payloads[have - rows.first :]
            )
            kept += record.payloads
            have = len(kept)
        reply = Kept(rows.stream, rows.batch, rows.partition, rows.attempt, have)
        return Outcome(record, [], reply)

    def _commit(self, commit: Commit) -> Outcome:
        attempts = self._pending.get((commit.stream, commit.batch), {})
        parts = sorted(commit.parts)
        found = [attempts.get((part.partition, part.attempt), []) for part in parts]
        missing = [part for part, rows in zip(parts, found, strict=True) if len(rows) != part.rows]
        if missing:
            return Outcome(None, [], Missing(commit.stream, commit.batch, missing))
        self._committed.setdefault(commit.stream, Numbers()).add(commit.batch)
        self._pending.pop((commit.stream, commit.batch), None)
        delivered = [row for rows in found for row in rows]
        return Outcome(commit, delivered, Committed(commit.stream, commit.batch))


class Sender:
    """The sending side of one attempt: the rows not yet known to be kept, and what to send next.

    Holds at most `window` messages. Call `rewind` after a timeout or a new connection.
    """

    def __init__(
        self, stream: str, batch: int, partition: int, attempt: int, window: int = 8
    ) -> None:
        self._key = (stream, batch, partition, attempt)
        self._waiting: deque[Rows] = deque()
        self._window = window
        self._sent = 0  # of those waiting
        self._count = 0
        self.committed = False
        """True if another run has committed the batch; then nothing more needs to be sent."""

    @property
    def part(self) -> Part:
        """The description of this attempt for the commit; valid once all rows are kept."""
        return Part(self._key[2], self._key[3], self._count)

    @property
    def full(self) -> bool:
        """Whether the window is full, so that `offer` must wait for a `kept`."""
        return len(self._waiting) >= self._window

    @property
    def done(self) -> bool:
        """Whether all offered rows are kept."""
        return not self._waiting

    def offer(self, payloads: list[bytes]) -> None:
        """Add the next rows of the partition."""
        if payloads and not self.committed:
            self._waiting.append(Rows(*self._key, self._count, payloads))
        self._count += len(payloads)

    def pull(self) -> Rows | None:
        """The next message to send, or None if all have been sent."""
        if self._sent == len(self._waiting):
            return None
        self._sent += 1
        return self._waiting[self._sent - 1]

    def rewind(self) -> None:
        """Resend all rows that are not known to be kept."""
        self._sent = 0

    def receive(self, reply: Reply) -> None:
        """Handle a reply. An old reply, or one for another attempt, has no effect."""
        if isinstance(reply, Committed) and (reply.stream, reply.batch) == self._key[:2]:
            self.committed = True
            self._waiting.clear()
            self._sent = 0
        if not isinstance(reply, Kept):
            return
        if (reply.stream, reply.batch, reply.partition, reply.attempt) != self._key:
            return
        while self._waiting:
            oldest = self._waiting[0]
            if oldest.first + len(oldest.payloads) > reply.count:
                return
            self._waiting.popleft()
            self._sent = max(0, self._sent - 1)


class Numbers:
    """A set of integers, stored as ranges: consecutive integers take little memory."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # exclusive

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        place = bisect_right(self._starts, number) - 1
        return place >= 0 and number < self._ends[place]

    def add(self, number: int) -> None:
        if number in self:
            return
        place = bisect_right(self._starts, number)
        if place < len(self._starts) and self._starts[place] == number + 1:
            self._starts[place] = number
        else:
            self._starts.insert(place, number)
            self._ends.insert(place, number + 1)
        if place and self._ends[place - 1] == number:
            self._ends[place - 1] = self._ends.pop(place)
            del self._starts[place]
