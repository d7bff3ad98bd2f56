"""Holds notifications back until all earlier ones have arrived.

    arrived   4 5 . 7 8        7 and 8 are held back until 6 arrives or is known to be lost

Links keep the order, and a node that drops notifications sends `Skipped`. So there are two reasons
to hold a notification back: earlier numbers are missing, or may be missing. A later beat resolves
the doubt, because it says how many notifications there were up to its serial. The serial of that
beat must be at least that of the first notification that came over the link since the doubt began,
because dropped notifications have lower serials. Also, no node on the way may be `behind`, that is,
still joining the node above it. Until a node has joined, it gets the notifications of some filters
and misses those of other filters; its beats stay at an old serial, as if the network had no
traffic.

The subscriber asks for missing notifications. The subscriber gives up on notifications that an
answer reports as lost. The subscriber also gives up on notifications that no node seems to have:
those that do not arrive within `gap` seconds, if two answers in a row contained none of them
although there was room. While a question is open, the subscriber waits and asks again. A
notification that arrives after a later one was handed out counts as lost.

After a long absence, notifications of many nodes may be missing. The numbers of each node are in
the order of serials. So the notifications that arrive are merged by serial, and those up to the
*frontier* are handed out:

    node 7    complete up to serial 20      node 9    complete up to 12: the frontier is 12

Few notifications are held back if all nodes are complete up to about the same serial. So the
subscriber asks for as many numbers of each node as it expects up to a common serial, the *horizon*.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tidings.routing.clients.tracking import Stages, cut_ranges
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.contents.relation_reasons import Related


class HeldNotification(NamedTuple):
    """A notification that is held back, the filters that it matches and, if it matches none, how it
    is related to the filter."""

    serial: int
    message: m.Notification
    matched: tuple[str, ...]
    related: Related | None = None


def find_horizon(starts: Sequence[int], densities: Sequence[float], room: int) -> float:
    """The serial up to which `room` numbers are expected. After the serial starts[i], node i has
    densities[i] numbers per serial. The starts are in ascending order."""
    horizon, total, weighted = 0.0, 0.0, 0.0
    for start, density in zip(starts, densities, strict=True):
        if total and start >= horizon:
            break
        total += density
        weighted += density * start
        horizon = (room + weighted) / total
    return horizon


class Ordering:
    """The notifications that one subscriber holds back."""

    def __init__(self) -> None:
        self._held: list[
            tuple[int, int, HeldNotification]
        ] = []  # a heap, by serial and order of arrival
        self._count = 0
        self._doubt = False  # whether notifications before the next one might be missing
        self._after = 0  # the first serial that came over the link since the doubt began
        self._beaten = 0  # the highest serial of a beat since the doubt began
        self.since = 0.0
        """When the first held notification arrived, or when the subscriber last made progress."""
        self.last = 0
        """The serial that was handed out last."""
        self.counted = 0
        """The serial up to which the tracker knows all missing numbers."""
        self._reached: dict[int, int] = {}  # by node: up to this serial, no number is missing
        self._passed = 0  # no number of any node is missing up to this serial

    def __len__(self) -> int:
        return len(self._held)

    def doubt(self) -> None:
        self._doubt, self._after, self._beaten = True, 0, 0

    @property
    def in_doubt(self) -> bool:
        return self._doubt

    def hear(self, serial: int, complete: int) -> None:
        """Record the serial of a beat from a node that is not behind; nothing is missing up to the
        serial `complete`."""
        self._beaten = max(self._beaten, serial)
        self.settle(complete)

    def settle(self, upto: int) -> None:
        """Record that nothing is missing up to a serial. The doubt ends as soon as both `upto` and
        the serial of a beat have reached the serial of the first notification that came after the
        doubt began. Such a beat shows that all nodes on the way have this subscription again; an
        answer to a count does not."""
        if self._after and min(upto, self._beaten) >= self._after:
            self._doubt = False

    def reach(self, marks: Iterable[m.Mark], serial: int, tracker: Stages) -> None:
        """Record that a notification has arrived."""
        for mark in marks:
            if tracker.has_all(mark, serial):
                self._reached[mark.node] = max(serial, self._reached.get(mark.node, 0))

    def pass_by(self, serial: int) -> None:
        """Record that a notification has arrived and is handed out, while nothing is missing."""
        self.last = self._passed = serial

    def find_reached(self, node: int) -> int:
        """A serial up to which no notification of a node is missing."""
        return max(self._passed, self._reached.get(node, 0))

    def choose(
        self, missing: Iterable[m.Range], room: int, complete: int, highest: int
    ) -> list[m.Range]:
        """About `room` of the missing numbers: for each node, as many as are expected up to the
        horizon if they are spread evenly. Nothing is missing up to the serial `complete`. The node
        that holds back the most notifications comes first. Notifications after the last count can't
        be handed out yet, so they are requested only if no notification before the count is
        missing."""
        by_node: dict[int, list[m.Range]] = {}
        for one in missing:
            by_node.setdefault(one.node, []).append(one)
        nodes = sorted(by_node, key=self.find_reached)
        before = [node for node in nodes if max(complete, self.find_reached(node)) < self.counted]
        nodes, end = (before, self.counted) if before else (nodes, highest)
        starts = [max(complete, self.find_reached(node)) for node in nodes]
        counts = [sum(last - first + 1 for _, first, last in by_node[node]) for node in nodes]
        densities = [
            count / max(1, end - start) for count, start in zip(counts, starts, strict=True)
        ]
        horizon = min(end, find_horizon(starts, densities, room))
        found: list[m.Range] = []
        for node, start, density in zip(nodes, starts, densities, strict=True):
            if start < horizon or not found:
                found += cut_ranges(by_node[node], max(1, round((horizon - start) * density)))
        return found

    def frontier(self, tracker: Stages) -> int:
        """A serial up to which nothing is missing, as far as is known."""
        return min([self.counted, *map(self.find_reached, tracker.incomplete())])

    def needs_count(self, tracker: Stages) -> bool:
        """Are notifications held back only because the tracker may not know all missing numbers?"""
        return bool(self._held) and self.frontier(tracker) == self.counted

    def hold(self, one: HeldNotification, now: float, *, is_requested: bool) -> None:
        """Hold a notification back. A requested notification may have been sent before the doubt
        began, so its serial does not help to end the doubt."""
        if self._doubt and not self._after and not is_requested:
            self._after = one.serial
        if not self._held:
            self.since = now
        self._count += 1
        heapq.heappush(self._held, (one.serial, self._count, one))

    def release(self, upto: int | None = None) -> Iterator[HeldNotification]:
        """Take out the held notifications up to a serial, or all of them, in order."""
        while self._held and (upto is None or self._held[0][0] <= upto):
            yield heapq.heappop(self._held)[2]

    def begin_anew(self) -> None:
        """Forget everything, because the next serials may be smaller."""
        self._held.clear()
        self._reached.clear()
        self._doubt, self._passed, self.last, self.counted = False, 0, 0, 0
