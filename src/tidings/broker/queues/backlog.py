"""The backlog: work for subscriptions, which waits while notifications arrive.

    notifications ──────────────────────────> see publications.py
    Subscribe, Ask, Recover ... ──> backlog ──> a slice of time, then the event loop has its turn

Work for a subscription takes much longer than work for a notification, and can wait a little. So
the backlog is processed for about a millisecond at a time, and notifications that arrive meanwhile
go first. While notifications arrive, the backlog gets about a third of the time: after each slice,
it pauses for twice the processor time of the slice. That is enough for 600 new filters per second,
if each takes half a millisecond. Only this thread's processor time is counted: if elapsed time were
counted, the backlog would get almost no time on a busy machine. A slice that begins late, because
notifications or other processes took the time, is longer. If publications are behind, they go
first: all slices are short, and the backlog gets about a seventh of the time.

While notifications with many marks arrive, changes to the graph are also batched. Each change to
the graph invalidates cached plans. It is cheaper to compute the plans of a thousand marks once,
after many changes, than again after each change.

Neighbours take turns, and so do the owners behind a router; the messages of each owner stay in
order. If too many messages of a neighbour are waiting, nothing more is read from it until most of
them have been processed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import msgspec

from tidings.broker.links import Lane
from tidings.broker.queues.turns import REST_BEHIND, Turns
from tidings.routing.protocol import messages as m

SLICE = 0.001  # seconds
LONG_SLICE = 0.01  # seconds of a slice that begins late, or while notifications have many marks
MANY_MARKS = 20  # with this many marks or more, slices are long
REST = 2.0  # the pause after a slice is this many times its processor time
REST_PER_MARK = 0.0001  # seconds of pause per mark of a notification, if that makes it longer
MOST_REST = 0.1  # the longest pause because of marks, in seconds
PIECE = 256  # how many nodes of a Subscribe are processed together
MOST_WAITING = 1000  # the most messages of one neighbour that may wait
MOST_WAITING_ALL = 10_000  # the most waiting messages of all neighbours


class Backlog:
    """Waiting messages; their senders take turns. `take` processes one message."""

    def __init__(
        self,
        take: Callable[[Lane, m.Message], None],
        done: Callable[[], None],
        notified: Callable[[], tuple[int, int]] = lambda: (0, 0),
        are_behind: Callable[[], bool] = lambda: False,
    ) -> None:
        """`done` is called after each slice. `notified` returns how many notifications have arrived
        so far, and the number of marks of a recent one; `are_behind` returns whether publications
        are behind."""
        self._take = take
        self._done = done
        self._notified = notified
        self._are_behind = are_behind
        self._before = 0  # how many notifications had arrived at the last slice
        self._turns: Turns[m.Message] = Turns("backlog", MOST_WAITING, MOST_WAITING_ALL)
        self._scheduled = False
        self._due = 0.0  # when the next slice should begin

    def __len__(self) -> int:
        return len(self._turns)

    def put(self, link: Lane, message: m.Message) -> None:
        owner = message.owner if isinstance(message, m.Ask) else ""
        for piece in _pieces(message):
            self._turns.put(link, owner, piece)
        self._schedule()

    def forget(self, link: Lane) -> None:
        self._turns.forget(link)

    def _schedule(self, rest: float = 0.0) -> None:
        if not self._scheduled and self._turns:
            self._scheduled = True
            self._due = time.monotonic() + rest
            loop = asyncio.get_running_loop()
            if rest:
                loop.call_later(rest, self._work)
            else:
                loop.call_soon(self._work)

    def _work(self) -> None:
        self._scheduled = False
        notified, marks = self._notified()
        busy, self._before = notified > self._before, notified
        now, begun = time.monotonic(), time.thread_time()
        length, rest = SLICE, REST
        if busy and marks >= MANY_MARKS:
            length = LONG_SLICE
        elif busy and self._are_behind():
            rest = REST_BEHIND
        elif busy:
            length = min(LONG_SLICE, SLICE + max(0.0, now - self._due) / REST)
        self._turns.serve(self._take, now + length)
        self._done()
        took = time.thread_time() - begun
        if busy:
            self._schedule(max(rest * took, min(MOST_REST, REST_PER_MARK * marks)))
        else:  # even without notifications, slow filters get only about a third of the time
            self._schedule(REST * (took - SLICE) if took > 2 * SLICE else 0.0)


def _pieces(message: m.Message) -> Iterator[m.Message]:
    if isinstance(message, m.Subscribe | m.Unsubscribe) and len(message.nodes) > PIECE:
        for at in range(0, len(message.nodes), PIECE):
            yield msgspec.structs.replace(message, nodes=message.nodes[at : at + PIECE])
    elif isinstance(message, m.Wanted) and len(message.nodes) > PIECE:
        part, parts = message.slice
        many = min(16, 1 + len(message.nodes) // PIECE)
        found: list[list[int]] = [[] for _ in range(many)]
        for node in message.nodes:
            at, rest = divmod(node, parts)
            if rest == part:
                found[at % many].append(node)
        for at, nodes in enumerate(found):
            some = m.Slice(part + at * parts, parts * many)
            yield m.Wanted(message.epoch, tuple(nodes), some)
    else:
        yield message
