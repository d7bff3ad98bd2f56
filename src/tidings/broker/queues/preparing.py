"""Reads filters in a thread, before the questions about them wait in the backlog.

    Ask ──> turns ──> as many as fit into TIME ──thread──> read, looked up ──> backlog ──> machine

Questions that wait are prepared together. Reading a filter and looking for its neighbours among
compiled nodes changes nothing, so a thread can do both while notifications are tagged. The state
machine then only has to insert the node. Without a result from the thread, the state machine does
all the work.

Owners take turns here as in the backlog, and are charged for the time of the thread.

A group of questions has fixed costs: two switches between threads, and a sync of the journal. So
while questions overlap, a new group starts at most once every PERIOD, and takes all questions that
have arrived by then. A question that arrives when no other is being answered does not wait.

The thread and the event loop share the interpreter. While publications are behind, groups of
questions are small, and the thread pauses after each group, as the backlog does after each slice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from tidings.broker.links import Lane
from tidings.broker.queues.turns import REST_BEHIND, Turns
from tidings.routing.protocol import messages as m

TIME = 0.01  # roughly how many seconds a group of filters should take
BRIEF = 0.001  # replaces TIME while publications are behind
FIRST = 0.001  # seconds that one filter takes: the first estimate
MOST = 64  # the most filters that are prepared together
PERIOD = 0.003  # seconds between the starts of two groups, while questions overlap
MOST_WAITING = 1000  # the most waiting questions of one neighbour
MOST_WAITING_ALL = 10_000  # the most questions that may wait, all neighbours together


_log = logging.getLogger(__name__)


class Preparing:
    """Questions whose filters are not prepared yet. `prepare` runs in a thread, and returns the
    seconds that each filter took. After that, `put_on` is called with each question."""

    def __init__(
        self,
        prepare: Callable[[Sequence[bytes]], list[float]],
        put_on: Callable[[Lane, m.Ask], None],
        is_answering: Callable[[], bool] = lambda: False,
        are_behind: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_answering` returns whether earlier questions are still being answered, and
        `are_behind` whether publications are behind."""
        self._prepare = prepare
        self._put_on = put_on
        self._turns: Turns[m.Ask] = Turns("preparing", MOST_WAITING, MOST_WAITING_ALL)
        self._task: asyncio.Task[None] | None = None
        self._each = FIRST  # how many seconds each of the latest filters took
        self._open: set[Lane] = set()  # links whose questions are being prepared
        self._is_answering = is_answering
        self._are_behind = are_behind
        self._overlap = False  # has a question arrived while others were being answered?
        self._begun = float("-inf")  # when the last group began

    def __len__(self) -> int:
        return len(self._turns)

    def put(self, link: Lane, message: m.Ask) -> None:
        is_working = self._task is not None and not self._task.done()
        self._overlap = self._overlap or is_working or self._is_answering()
        self._turns.put(link, message.owner, message)
        if not is_working:
            self._task = asyncio.get_running_loop().create_task(self._work())

    def forget(self, link: Lane) -> None:
        self._turns.forget(link)
        self._open.discard(link)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._turns:
            time = BRIEF if self._are_behind() else TIME
            most = max(1, min(MOST, int(time / max(self._each, 1e-6))))
            wait = self._begun + PERIOD - loop.time()
            if self._overlap and wait > 0 and len(self._turns) < most:
                await asyncio.sleep(wait)
                if not self._turns:  # the links that asked have all closed
                    return
            self._begun = loop.time()
            self._overlap = len(self._turns) > 1
            taken = [self._turns.take() for _ in range(min(most, len(self._turns)))]
            self._open = {link for link, _ in taken}
            filters = [message.stored for _, message in taken]
            try:
                times = await loop.run_in_executor(None, self._prepare, filters)
            except Exception:  # the state machine repeats this work, and reports the problem
                _log.exception("filters could not be prepared")
                times = [FIRST] * len(taken)
            self._each = sum(times) / len(times)
            for (link, message), seconds in zip(taken, times, strict=True):
                if link in self._open:
                    self._turns.charge(link, message.owner, seconds)
                    self._put_on(link, message)
            self._turns.resume()
            if self._are_behind():
                await asyncio.sleep(REST_BEHIND * sum(times))

    async def stop(self) -> None:
        """Wait until the thread is done. The questions that are still waiting are never
        prepared."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
