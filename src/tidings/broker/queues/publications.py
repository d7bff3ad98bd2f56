"""Publications, which others may not delay.

    what comes ──> nothing waits, and the slice is not over ──> machine
           └─────> turns ──> a slice of time, then the event loop has its turn ──> machine

One that comes alone is taken at once. Where many come, each publisher has its turn, as far as it is
known here: what comes by a router and begins with the same name is one publisher. All guests behind
a router are one, as the names of guests say nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tidings.broker.queues.turns import Turns
from tidings.network import Link
from tidings.routing.protocol import messages as m

SLICE = 0.002  # seconds
MOST_BYTES = 4 << 20  # that wait of one link,
MOST_BYTES_ALL = 64 << 20  # and of all together
OVERHEAD = 256  # bytes of one that waits, beside what it says


class Publications:
    """What neighbours publish. `take` does the work."""

    def __init__(self, take: Callable[[Link, m.Publish], None], done: Callable[[], None]) -> None:
        """`done` is called after each slice."""
        self._take = take
        self._done = done
        self._turns: Turns[m.Publish] = Turns("publications", MOST_BYTES, MOST_BYTES_ALL)
        self._until = 0.0
        self.count = 0  # of those that came
        self._scheduled = False

    def __len__(self) -> int:
        return len(self._turns)

    def begin(self) -> None:
        """A buffer came: a slice of what is in it may be taken at once."""
        self._until = time.monotonic() + SLICE

    def put(self, link: Link, message: m.Publish) -> None:
        self.count += 1
        begun = time.monotonic()
        if not self._turns and begun < self._until:
            self._take(link, message)
            self._turns.charge_alone(link, time.monotonic() - begun)
            return
        name = message.publisher.partition("/")[0]
        size = OVERHEAD + len(message.content) + len(message.payload)
        self._turns.put(link, name, message, size)
        self._schedule()

    def forget(self, link: Link) -> None:
        self._turns.forget(link)

    def _schedule(self) -> None:
        if not self._scheduled and self._turns:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        self._scheduled = False
        self._turns.serve(self._take, time.monotonic() + SLICE)
        self._done()
        self._schedule()
