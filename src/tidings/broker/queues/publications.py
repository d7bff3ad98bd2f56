"""The queue of publications, in which no publisher can delay others for long.

    publication, run of publications ──> nothing waits, and the slice is not over ──> machine
           └──────> turns ──> a slice of time, then the event loop has its turn ──> machine

The parts that sources hand over wait here too, in pieces, under the name of their source.
Publications of one publisher that arrive together wait as one run, and waiting runs are joined. If
the first part of a run takes a long time, the rest waits for the publisher's next turn. A single
publication is processed at once. When many publications arrive, publishers take turns. Publications
from one router count as publications of one publisher if the names of their publishers agree up to
the first "/". So all guests behind a router count as one, which is intended, because guests can use
any name.

Questions about new filters need the event loop too. While neighbours ask such questions, a run
begins at most once every GATHERED seconds. Then each run has more publications, and each
publication costs less.

Publications are *behind* if the queue has held some without a break for a while. Then questions
about filters, which can wait longer, get less time (backlog.py, preparing.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from tidings.broker.links import Lane
from tidings.broker.queues.turns import Turns
from tidings.routing.protocol import messages as m
from tidings.routing.root import MOST_ROWS, Piece, Run, join_runs

SLICE = 0.002  # seconds
# GATHERED: seconds from the start of one run to the start of the next, if a question about a filter
# arrived less than SHARED seconds ago.
GATHERED, SHARED = 0.004, 0.02
# Publications are behind if the queue has held some without a break for this many seconds.
BEHIND = GATHERED + 0.005
LINGER = 2, 5  # turns of the event loop for which runs wait for more publications: least, most
MOST_BYTES = 4 << 20  # the most bytes that may wait from one link
MOST_BYTES_ALL = 64 << 20  # the most bytes that may wait from all links together
OVERHEAD = 256  # bytes that a waiting publication takes in addition to its content and payload

Waiting = m.Publish | m.HandOver | Piece | Run


class Publications:
    """Publications of neighbours. `take` processes a publication, a run or a piece."""

    def __init__(self, take: Callable[[Lane, Any], None], done: Callable[[], None]) -> None:
        """`done` is called after each slice."""
        self._process = take
        self._done = done
        self._turns: Turns[Waiting] = Turns("publications", MOST_BYTES, MOST_BYTES_ALL)
        self._until = 0.0
        self._since = 0.0  # the last time at which the queue was empty
        self.count = 0  # publications received so far
        self._scheduled = False
        self._rows = self._rows_before = 0  # roughly how many publications wait in runs
        self._lingered = 0
        self._shared_until = self._begun = float("-inf")  # `_begun`: when runs last began

    def __len__(self) -> int:
        return len(self._turns)

    def waiting(self, link: Lane) -> int:
        """The bytes that wait in the queue for a lane."""
        return self._turns.size_of(link)

    @property
    def are_behind(self) -> bool:
        """Are publications behind, so that other work should take less time?"""
        return len(self) > 0 and time.monotonic() - self._since > BEHIND

    def begin(self) -> None:
        """A new buffer arrived: begin a slice, during which publications may be processed at
        once."""
        self._until = time.monotonic() + SLICE

    def expect_questions(self) -> None:
        """A question about a filter has arrived, and more may follow."""
        self._shared_until = time.monotonic() + SHARED

    def put(self, link: Lane, message: Waiting) -> None:
        self.count += message.left if isinstance(message, Run) else 1
        begun = time.monotonic()
        if not len(self):
            self._since = begun
        if isinstance(message, Run):
            self._turns.put(link, *_place_of(message))
            self._rows += message.left
            self._schedule_runs()
            return
        if not self._turns and begun < self._until:
            self._take(link, message)
            self._turns.charge_alone(link, time.monotonic() - begun)
            return
        self._turns.put(link, *_place_of(message))
        self._schedule()

    def _take(self, link: Lane, message: Waiting) -> None:
        if not isinstance(message, Run):
            self._process(link, message)
            return
        name, rows = _place_of(message)[0], message.left

        def fits(other: Waiting) -> bool:
            nonlocal rows
            if not isinstance(other, Run) or other.publisher != message.publisher:
                return False
            rows += other.left
            return rows <= MOST_ROWS

        more = [one for one in self._turns.take_more(link, name, fits) if isinstance(one, Run)]
        run = join_runs([message, *more])
        left = run.left
        self._rows = max(0, self._rows - left)
        self._process(link, run)
        if run.is_done or link.is_over:
            return
        if run.left < left:
            self._rows += run.left
            self._turns.put_first(link, *_place_of(run))
        else:  # the whole run would fail again; one by one, only bad publications fail
            for one in reversed(run.take_rest()):
                self._turns.put_first(link, *_place_of(one))
        self._schedule()

    def forget(self, link: Lane) -> None:
        self._turns.forget(link)

    def _schedule(self) -> None:
        if not self._scheduled and self._has_work():
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._work)

    def _has_work(self) -> bool:
        return bool(self._turns)

    def _schedule_runs(self) -> None:
        """Like `_schedule`, but wait a few turns of the event loop for more publications. The more
        publications are processed together, the less each of them costs."""
        if not self._scheduled and self._turns:
            self._scheduled = True
            self._lingered, self._rows_before = 0, self._rows
            asyncio.get_running_loop().call_soon(self._linger)

    def _linger(self) -> None:
        least, most = LINGER
        self._lingered += 1
        comes, self._rows_before = self._rows > self._rows_before, self._rows
        if self._lingered <= (most if comes else least) and self._rows < MOST_ROWS:
            asyncio.get_running_loop().call_soon(self._linger)
            return
        now = time.monotonic()
        wait = self._begun + GATHERED - now
        if wait > 0 and now < self._shared_until and self._rows < MOST_ROWS:
            asyncio.get_running_loop().call_later(wait, self._work)
        else:
            self._work()

    def _work(self) -> None:
        self._scheduled = False
        self._begun = time.monotonic()
        self._turns.serve(self._take, self._begun + SLICE)
        self._done()
        if not self._turns:
            self._rows = 0
        if self._rows:
            self._schedule_runs()
        else:
            self._schedule()


def _place_of(message: Waiting) -> tuple[str, Waiting, int]:
    """The name whose turn a message needs, the message itself, and its size in bytes."""
    if isinstance(message, m.Publish):
        size = OVERHEAD + len(message.content) + len(message.payload)
        return message.publisher.partition("/")[0], message, size
    if isinstance(message, Run):
        size = OVERHEAD * message.left + message.size
        return message.publisher.partition("/")[0], message, size
    if isinstance(message, Piece):
        return message.message.source, message, OVERHEAD + message.size
    return message.source, message, OVERHEAD + message.size
