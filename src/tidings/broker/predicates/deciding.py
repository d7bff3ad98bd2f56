"""Publications that wait for predicates.

    Undecided ──> queue of the publisher ──all calls of the first MOST_TOGETHER──> helpers
                        └──in order, when all are decided──> publications ──> machine

A publication that waits holds back only later publications of the same publisher. If the waiting
publications of a link have too many bytes, nothing is read from the link until their calls are
decided.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from tidings.broker.links import Lane
from tidings.preprocessing import PredicateCall
from tidings.routing.protocol import messages as m
from tidings.routing.root import Run

MOST_TOGETHER = 256  # the most publications whose calls are decided together
MOST_CALLS = 10_000  # once a batch has this many calls, no publication is added to it
MOST_BYTES = 4 << 20  # the most bytes that may wait from one link
OVERHEAD = 256  # bytes that a waiting publication takes besides its content and payload
REASON = "predicates"

_log = logging.getLogger(__name__)


class Deciding:
    """The publications that wait for predicates, by link and publisher."""

    def __init__(
        self,
        missing: Callable[[bytes], Sequence[PredicateCall]],
        ask: Callable[[Sequence[PredicateCall]], Awaitable[None]],
        put_on: Callable[[Lane, m.Publish], None],
    ) -> None:
        """`missing` lists the undecided calls that a notification needs; `ask` returns when calls
        are decided, or can't be decided; then `put_on` is called with the publications."""
        self._missing = missing
        self._ask = ask
        self._put_on = put_on
        self._queues: dict[tuple[Lane, str], deque[m.Publish]] = {}
        self._tasks: dict[tuple[Lane, str], asyncio.Task[None]] = {}
        self._bytes: dict[Lane, int] = {}
        self._ready: m.Publish | None = None  # the publication that is being passed on

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def holds(self, lane: Lane, message: m.Publish | Run) -> bool:
        """Must a message wait because earlier messages of its publisher wait?"""
        return message is not self._ready and (lane, message.publisher) in self._queues

    def put(self, lane: Lane, message: m.Publish) -> None:
        """Keep a publication until its calls are decided."""
        key = lane, message.publisher
        queue = self._queues.setdefault(key, deque())
        if message is self._ready:  # it needs more calls, and stays first in the queue
            queue.appendleft(message)
        else:
            queue.append(message)
        self._bytes[lane] = self._bytes.get(lane, 0) + _size(message)
        if self._bytes[lane] > MOST_BYTES:
            lane.read(REASON, on=False)
        if key not in self._tasks:
            self._tasks[key] = asyncio.get_running_loop().create_task(self._work(*key))

    def forget(self, lane: Lane) -> None:
        """Drop the publications of a closed link; their publishers repeat them."""
        self._bytes.pop(lane, None)
        for key in [key for key in self._queues if key[0] is lane]:
            del self._queues[key]
            self._tasks.pop(key).cancel()

    async def stop(self) -> None:
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, lane: Lane, publisher: str) -> None:
        key = lane, publisher
        queue = self._queues[key]
        try:
            while queue:
                calls: dict[bytes, PredicateCall] = {}
                count = 0
                while count < min(len(queue), MOST_TOGETHER) and len(calls) < MOST_CALLS:
                    calls.update((one.key, one) for one in self._missing(queue[count].content))
                    count += 1
                if calls:
                    await self._ask([*calls.values()])
                    continue
                for _ in range(count):
                    if not self._release(lane, queue):
                        break
                await asyncio.sleep(0)  # let other tasks run
        except Exception:  # the publisher repeats publications that were not acknowledged
            _log.exception("publications of %r could not be decided", publisher)
        finally:
            if self._tasks.get(key) is asyncio.current_task():
                del self._tasks[key], self._queues[key]

    def _release(self, lane: Lane, queue: deque[m.Publish]) -> bool:
        """Pass the first publication on; return False if it was put back because it needs more
        calls."""
        message = self._ready = queue.popleft()
        try:
            left = self._bytes.get(lane, 0) - _size(message)
            self._bytes[lane] = left
            if left <= MOST_BYTES // 2:
                lane.read(REASON, on=True)
            self._put_on(lane, message)
        finally:
            self._ready = None
        return not queue or queue[0] is not message


def _size(message: m.Publish) -> int:
    return OVERHEAD + len(message.content) + len(message.payload)
