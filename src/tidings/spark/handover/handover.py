"""How Spark hands batches of rows to a rendezvous point, each batch once. No I/O happens here.

    task     rows ------>            makes them durable
             <------- kept
    driver   commit ---->            makes the batch durable, delivers it
             <-- committed           or `missing`, when rows it names are not there

A *stream* is whatever has batch numbers of its own. A task sends the rows of one partition under an
*attempt*, a number that no other try at the partition has, in this run or another one. So what a
failed try left behind is never mixed up with the rows of a later one, and what no commit names is
dropped with the commit of its batch.

Any message may be lost, or come twice, or late:
- the state of a point is what `receive` makes of its log, and of nothing else;
- what a reply says is true of the log once the record of the same outcome is durable, so the record
  is written first and the reply sent after it;
- a batch that was committed stays as it was then: more rows for it, or another commit, change
  nothing and are answered with `committed`;
- `kept` is cumulative, and rows beyond a gap are not taken, so a sender that hears nothing sends
  again from the last row that was kept.
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
    """What to do about a request, in this order: log the record, deliver the rows, reply."""

    record: Request | None
    delivered: list[bytes]
    reply: Reply


class Point:
    """The receiving side: what is kept and what is committed, per stream."""

    def __init__(self) -> None:
        self._committed: dict[str, Numbers] = {}
        # (stream, batch) -> (partition, attempt) -> rows
        self._pending: dict[tuple[str, int], dict[tuple[int, int], list[bytes]]] = {}

    def receive(self, request: Request) -> Outcome:
        """Take a request, from a client or from the log. The same log gives the same state."""
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
    """The sending side of one attempt: what is not known to be kept, and what to send next.

    At most `window` messages are held. After silence or a new connection, `rewind`.
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
        """Another run has committed the batch: nothing more needs to be sent."""

    @property
    def part(self) -> Part:
        """What was sent, once all of it is kept."""
        return Part(self._key[2], self._key[3], self._count)

    @property
    def full(self) -> bool:
        """Nothing can be offered before something is kept."""
        return len(self._waiting) >= self._window

    @property
    def done(self) -> bool:
        """All that was offered is kept."""
        return not self._waiting

    def offer(self, payloads: list[bytes]) -> None:
        """Rows that come next in the partition."""
        if payloads and not self.committed:
            self._waiting.append(Rows(*self._key, self._count, payloads))
        self._count += len(payloads)

    def pull(self) -> Rows | None:
        """The next message to send, or None when there is nothing to do but wait."""
        if self._sent == len(self._waiting):
            return None
        self._sent += 1
        return self._waiting[self._sent - 1]

    def rewind(self) -> None:
        """Send again all that is not known to be kept."""
        self._sent = 0

    def receive(self, reply: Reply) -> None:
        """Take a reply; one that is old or meant for another changes nothing."""
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
    """A set of integers, small where they follow each other."""

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
