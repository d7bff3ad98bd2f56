"""The publications of a publisher that are not settled, and which of them to send next.

    add ──> waiting ──draw, as far as the window allows──> sent ──settle, in any order──> gone

A rendezvous point that works in the order of merit settles stamps in any order, and some of them
only after minutes. Publications that wait at the rendezvous point must not hold later ones back. So
only unsettled publications count against the window, and the window is wider as soon as stamps are
settled out of order. From then on, each publication in flight is repeated on its own, at growing
intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from tidings.routing.protocol.contents.bodies import About

MOST_BYTES = 16 << 20  # bytes in flight, unless a single notification is larger
WIDE = 1 << 16  # notifications in flight, if they are settled in any order
WIDE_BYTES = 128 << 20
PATIENCE = 60.0  # seconds until an unsettled publication is repeated; the pause doubles each time
MOST_AGAIN = 500  # the most publications that are repeated at a time

Waiting = tuple[bytes, bytes, About | None, bytes]  # content, payload, metadata, tag


class Unsettled:
    """Publications by stamp. At most `window` publications are in flight."""

    def __init__(self, acknowledged: int, window: int) -> None:
        self.acknowledged = acknowledged
        """The stamp up to which all publications are settled."""
        self.last = acknowledged
        """The last stamp that was given."""
        self.is_unordered = False
        """Whether stamps are settled in any order."""
        self.sent = 0
        """How many publications are in flight."""
        self.sent_bytes = 0
        self._window = window
        self._allowed = window  # how many may be in flight; fewer after a silence
        self._waiting: dict[int, Waiting] = {}
        self._next = acknowledged + 1  # the next stamp to send
        self._due: list[tuple[float, float, int]] = []  # when to repeat, pause until then, stamp

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __contains__(self, stamp: int) -> bool:
        return stamp in self._waiting

    def add(self, one: Waiting) -> None:
        self.last += 1
        self._waiting[self.last] = one

    def settle(self, stamps: Iterable[int]) -> int:
        """Forget stamps; return how many of them were unsettled."""
        count = 0
        for stamp in stamps:
            one = self._waiting.pop(stamp, None)
            if one is None:
                continue
            count += 1
            if stamp < self._next:
                self.sent -= 1
                self.sent_bytes -= _size(one)
        while self.acknowledged < self.last and self.acknowledged + 1 not in self._waiting:
            self.acknowledged += 1
        self._next = max(self._next, self.acknowledged + 1)
        self._allowed = min(self._allowed + count, self._window)
        return count

    def widen(self, now: float) -> None:
        """Expect stamps to be settled in any order from now on, and widen the window."""
        if not self.is_unordered:
            self.is_unordered = True
            self._window = self._allowed = max(self._window, WIDE)
            self._await_sent(now)

    def restart(self, now: float, allowed: int | None = None) -> None:
        """Send all publications again: `allowed` at first, by default as many as fit the window,
        and more as these are settled."""
        self._next = self.acknowledged + 1
        self.sent = self.sent_bytes = 0
        self._allowed = self._window if allowed is None else min(allowed, self._window)
        self._await_sent(now)

    def draw(self, now: float) -> Iterator[tuple[int, Waiting]]:
        """The next publications to send."""
        most = WIDE_BYTES if self.is_unordered else MOST_BYTES
        while self._next <= self.last and self.sent < self._allowed:
            stamp = self._next
            one = self._waiting.get(stamp)
            if one is not None:
                size = _size(one)
                if self.sent and self.sent_bytes + size > most:
                    return
                self.sent += 1
                self.sent_bytes += size
                if self.is_unordered:
                    heappush(self._due, (now + PATIENCE, PATIENCE, stamp))
            self._next += 1
            if one is not None:
                yield stamp, one

    def draw_first(self, many: int) -> Iterator[tuple[int, Waiting]]:
        """The oldest publications in flight, at most `many`, to be repeated."""
        for at, (stamp, one) in enumerate(self._waiting.items()):
            if at == many or stamp >= self._next:
                return
            yield stamp, one

    def draw_due(self, now: float) -> Iterator[tuple[int, Waiting]]:
        """The publications in flight that are due to be repeated, if stamps are settled in any
        order."""
        for _ in range(MOST_AGAIN):
            while self._due and self._due[0][2] not in self._waiting:
                heappop(self._due)
            if not self._due or self._due[0][0] > now:
                return
            _, after, stamp = heappop(self._due)
            heappush(self._due, (now + 2 * after, 2 * after, stamp))
            yield stamp, self._waiting[stamp]

    def _await_sent(self, now: float) -> None:
        self._due.clear()
        if self.is_unordered:
            sent = (stamp for stamp in self._waiting if stamp < self._next)
            self._due += [(now + PATIENCE, PATIENCE, stamp) for stamp in sent]
            heapify(self._due)


def _size(one: Waiting) -> int:
    return len(one[0]) + len(one[1])
