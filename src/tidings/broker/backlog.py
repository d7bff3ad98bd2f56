"""Subscription work, which waits while there are notifications.

    notifications ──────────────────────────> at once
    Subscribe, Ask, Wanted ... ──> backlog ──> a slice of time, then the event loop has its turn

A subscription takes much longer than a notification, and nobody minds if it takes a little longer
still. So what neighbours want is looked at for a millisecond or so, and then whatever came in
meanwhile goes first. Messages of a neighbour stay in their order. A neighbour for which too much
waits is not read from until that is done.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator

import msgspec

from tidings.network import Link
from tidings.routing import messages as m

SLICE = 0.001  # seconds
REST = 3.0  # times as long as it took too long, others have the loop for themselves
PIECE = 256  # nodes of a Subscribe that are looked at together
MOST_WAITING = 1000  # messages of one neighbour,
MOST_WAITING_ALL = 10_000  # and of all together

URGENT = (m.Publish, m.Recover, m.Trace)
"""What neighbours say about notifications, and what they must know to go on."""


class Backlog:
    """What waits, in the order in which it came. `take` does the work."""

    def __init__(self, take: Callable[[Link, m.Message], None], done: Callable[[], None]) -> None:
        """`done` is called after each slice."""
        self._take = take
        self._done = done
        self._queue: deque[tuple[Link, m.Message]] = deque()
        self._waiting: Counter[Link] = Counter()
        self._paused: set[Link] = set()
        self._scheduled = False

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, link: Link, message: m.Message) -> None:
        for piece in _pieces(message):
            self._queue.append((link, piece))
            self._waiting[link] += 1
        if self._waiting[link] > MOST_WAITING or len(self._queue) > MOST_WAITING_ALL:
            self._paused.add(link)
            link.read("backlog", on=False)
        self._schedule()

    def forget(self, link: Link) -> None:
        """A link is over: whoever comes back says everything anew."""
        if self._waiting.pop(link, 0):
            self._queue = deque(one for one in self._queue if one[0] is not link)
        self._paused.discard(link)

    def _schedule(self, rest: float = 0.0) -> None:
        if not self._scheduled and self._queue:
            self._scheduled = True
            loop = asyncio.get_running_loop()
            if rest:
                loop.call_later(rest, self._work)
            else:
                loop.call_soon(self._work)

    def _work(self) -> None:
        self._scheduled = False
        until = time.monotonic() + SLICE
        while self._queue:
            link, message = self._queue.popleft()
            self._waiting[link] -= 1
            if not self._waiting[link]:
                del self._waiting[link]
            self._take(link, message)
            if time.monotonic() >= until:
                break
        if self._paused and len(self._queue) <= MOST_WAITING_ALL // 2:
            for link in [*self._paused]:
                if self._waiting[link] <= MOST_WAITING // 2:
                    self._paused.remove(link)
                    link.read("backlog", on=True)
        self._done()
        # filters that are dear to place get a part of the time, and not half of it
        late = time.monotonic() - until
        self._schedule(REST * late if late > SLICE else 0.0)


def _pieces(message: m.Message) -> Iterator[m.Message]:
    if isinstance(message, m.Subscribe | m.Unsubscribe) and len(message.nodes) > PIECE:
        for at in range(0, len(message.nodes), PIECE):
            yield msgspec.structs.replace(message, nodes=message.nodes[at : at + PIECE])
    elif isinstance(message, m.Wanted) and len(message.nodes) > PIECE:
        part, parts = message.slice
        many = min(16, 1 + len(message.nodes) // PIECE)
        for at in range(many):
            some = m.Slice(part + at * parts, parts * many)
            yield m.Wanted(message.epoch, tuple(filter(some.has, message.nodes)), some)
    else:
        yield message
