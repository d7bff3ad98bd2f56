"""Holds notifications back until all earlier ones have arrived.

    arrived   4 5 . 7 8        7 and 8 are held back until 6 arrives or is known to be lost

Links keep the order, and a node that drops notifications sends `Skipped`. So there are two reasons
to hold a notification back: earlier numbers are missing, or may be missing. The next beat resolves
the doubt, because it says how many notifications there were up to its serial.

The subscriber asks for missing notifications. It gives up on notifications that an answer reports
as lost, and on those that do not arrive within `gap` seconds although the question was answered.
While nobody answers, the subscriber goes on asking. A notification that arrives after a later one
was handed out counts as lost.

After a long absence, notifications of many nodes may be missing. The numbers of each node are in
the order of serials. So the notifications that arrive are merged by serial, and those up to the
*frontier* are handed out:

    node 7    complete up to serial 20      node 9    complete up to 12: the frontier is 12
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidings.routing.clients.tracker import Tracker
from tidings.routing.protocol import messages as m


class Held(NamedTuple):
    """A notification that is held back, and the filters that it matches."""

    serial: int
    message: m.Notification
    matched: tuple[str, ...]


class Ordering:
    """The notifications that one subscriber holds back."""

    def __init__(self) -> None:
        self._held: list[tuple[int, int, Held]] = []  # a heap: serial, order of arrival
        self._count = 0
        self._doubt = False  # whether notifications before the next one may be missing
        self._after = 0  # the first serial that arrived since the doubt began
        self.since = 0.0
        """When the first held notification arrived, or the subscriber last made progress."""
        self.last = 0
        """The serial that was handed out last."""
        self.counted = 0
        """The serial up to which the tracker knows all missing numbers."""
        self._reached: dict[int, int] = {}  # by node: up to this serial, no number is missing

    def __len__(self) -> int:
        return len(self._held)

    def doubt(self) -> None:
        self._doubt, self._after = True, 0

    @property
    def in_doubt(self) -> bool:
        return self._doubt

    def settle(self, upto: int) -> None:
        """Note that nothing is missing up to a serial. The doubt ends if this includes the first
        notification that arrived since the doubt began: the serial of beats moves on only once all
        nodes on the way have this subscription again."""
        if self._after and upto >= self._after:
            self._doubt = False

    def reach(self, marks: Iterable[m.Mark], serial: int, tracker: Tracker) -> None:
        """Note that a notification has arrived."""
        for mark in marks:
            if tracker.has_all(mark):
                self._reached[mark.node] = max(serial, self._reached.get(mark.node, 0))

    def reached(self, node: int) -> int:
        """A serial up to which no number of a node is missing."""
        return self._reached.get(node, 0)

    def frontier(self, tracker: Tracker) -> int:
        """A serial up to which nothing is missing, as far as is known."""
        return min([self.counted, *map(self.reached, tracker.incomplete())])

    def needs_count(self, tracker: Tracker) -> bool:
        """Are notifications held back only because the tracker may not know all missing numbers?"""
        return bool(self._held) and self.frontier(tracker) == self.counted

    def hold(self, one: Held, now: float) -> None:
        if self._doubt and not self._after:
            self._after = one.serial
        if not self._held:
            self.since = now
        self._count += 1
        heapq.heappush(self._held, (one.serial, self._count, one))

    def release(self, upto: int | None = None) -> Iterator[Held]:
        """Take out the held notifications up to a serial, or all of them, in order."""
        while self._held and (upto is None or self._held[0][0] <= upto):
            yield heapq.heappop(self._held)[2]

    def begin_anew(self) -> None:
        """Forget everything, because the next serials may be smaller."""
        self._held.clear()
        self._reached.clear()
        self._doubt, self.last, self.counted = False, 0, 0
