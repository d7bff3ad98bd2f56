"""The queue of a channel in order of merit: under overload, the most valuable publications go
first.

    publication ──> nothing waits, and the slice is not over ──> machine
        └──> merit queue, in memory and on the disk ──> a slice of time ──> machine
    index work: some after each slice, and more when nothing waits

Publications of one publisher can overtake each other. As in every channel, a publication is
acknowledged when it is in the journal, so waiting publications are not lost: if this process ends,
publishers send them again. Parts from pipelines do not wait in this queue: they wait elsewhere, and
take turns. Publications that wait in the queue use up no credit of their link: otherwise later
publications would wait at routers and agents, which don't know the merits.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from tidings.broker.links import Lane
from tidings.broker.queues.merit_queue import MeritQueue, Unreadable
from tidings.broker.queues.publications import OVERHEAD, Publications, Waiting
from tidings.broker.queues.spill import Spill
from tidings.routing.protocol import messages as m
from tidings.routing.root import Run

MOST_MEMORY = 16 << 20  # bytes of publications that wait in memory; more wait on the disk
# While one of these two limits is exceeded, nothing is read from links.
MOST_WAITING = 2 << 30  # bytes of waiting publications
MOST_COUNT = 2_000_000  # publications; those on the disk take about 800 bytes of memory each
# Seconds. A publication takes several turns of the event loop: it is read, processed, written and
# released. Under overload, the queue uses up its slice in every turn of the event loop, so slices
# are short.
SLICE = 0.00025
BUSY_WORK, IDLE_WORK = 1, 64  # forwarded messages to learn from after a slice
REASON = "publications by merit"

_log = logging.getLogger(__name__)


class Merits(Protocol):
    """Computes the merits of publications."""

    def merit(self, message: m.Publish) -> float:
        """The merit of a publication. Never raises."""

    def work(self, most: int) -> int:
        """Learn from at most `most` forwarded messages; return how many are still left."""


class MeritPublications(Publications):
    """The publications of neighbours, those with the highest merit first."""

    def __init__(
        self,
        take: Callable[[Lane, Any], None],
        done: Callable[[], None],
        merits: Merits,
        spill: Spill,
        *,
        ageing: float,
        most_memory: int = MOST_MEMORY,
        most_waiting: int = MOST_WAITING,
        most_count: int = MOST_COUNT,
    ) -> None:
        super().__init__(take, done)
        self._merits = merits
        self._spill = spill
        self._most_memory, self._most_waiting = most_memory, most_waiting
        self._most_count = most_count
        decoder = msgspec.msgpack.Decoder(m.Publish)
        self._queue: MeritQueue[Lane, m.Publish] = MeritQueue(
            spill, msgspec.msgpack.encode, decoder.decode, most_bytes=most_memory, ageing=ageing
        )
        self._known: dict[Lane, set[tuple[str, int]]] = {}  # waiting: (publisher, stamp)
        self._paused: set[Lane] = set()

    def __len__(self) -> int:
        return len(self._turns) + len(self._queue)

    @property
    def waits(self) -> bool:
        """Are there publications that wait for their turn?"""
        return bool(self._queue)

    @property
    def spilled(self) -> int:
        """The number of publications that wait on the disk."""
        return self._queue.spilled

    def put(self, link: Lane, message: Waiting) -> None:
        if isinstance(message, Run):
            for one in message.take_rest():
                self.put(link, one)
        elif isinstance(message, m.Publish) and message.stamp:  # fast publications have no stamp
            self._put_in_order(link, message)
        else:
            super().put(link, message)

    def _put_in_order(self, link: Lane, message: m.Publish) -> None:
        self.count += 1
        begun = time.monotonic()
        if not self._queue and begun < self._until:
            self._process(link, message)
            self._schedule()  # this may have left messages to learn from
            return
        key = message.publisher, message.stamp
        if key in self._known.get(link, ()):
            return  # a repetition of a waiting publication, which is acknowledged later
        if not len(self):
            self._since = begun
        size = OVERHEAD + len(message.content) + len(message.payload)
        self._queue.put(link, message, size, self._merits.merit(message), begun, key)
        self._known.setdefault(link, set()).add(key)
        if self._is_full(1):
            self._paused.add(link)
            link.read(REASON, on=False)
        self._schedule()

    def _is_full(self, part: int) -> bool:
        """Is the queue so long that reading from links must pause? Reading resumes when the queue
        is half as long (`part=2`)."""
        queue = self._queue
        return (
            queue.memory > self._most_memory  # happens only if the disk is full
            or queue.size > self._most_waiting // part
            or len(queue) > self._most_count // part
        )

    def forget(self, link: Lane) -> None:
        super().forget(link)
        self._queue.forget(link)
        self._known.pop(link, None)
        self._paused.discard(link)

    def close(self) -> None:
        """Delete the publications on the disk."""
        self._spill.close()

    def _has_work(self) -> bool:
        return bool(self._turns or self._queue or self._merits.work(0))

    def _work(self) -> None:
        self._scheduled = False
        try:
            self._serve()
        finally:  # after a failure, go on with the next publication
            self._schedule()

    def _serve(self) -> None:
        if self._turns:
            self._turns.serve(self._take, time.monotonic() + SLICE)
        until = time.monotonic() + SLICE
        while self._queue:
            self._take_best()
            if time.monotonic() >= until:
                break
        self._merits.work(BUSY_WORK if self._queue else IDLE_WORK)
        if self._paused and not self._is_full(2):
            for link in self._paused:
                link.read(REASON, on=True)
            self._paused.clear()
        self._done()

    def _take_best(self) -> None:
        try:
            link, message = self._queue.take()
        except Unreadable as problem:  # not acknowledged, so it is sent again
            _log.error("could not read a waiting publication from the disk: %s", problem)
            self._settle(problem.sender, problem.key)
            return
        self._settle(link, (message.publisher, message.stamp))
        self._process(link, message)

    def _settle(self, link: Lane, key: tuple[str, int]) -> None:
        """Note that a publication has left the queue."""
        known = self._known[link]
        known.discard(key)
        if not known:
            del self._known[link]
