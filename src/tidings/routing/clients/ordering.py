"""Holds notifications back until those before them have come.

    arrived   4 5 . 7 8        6 is missing: 7 and 8 are held back until it comes or is lost

Links keep the order, and whoever drops notifications says so (`Skipped`). So there are two reasons
for holding back: numbers are known to be missing, or some may be. In doubt, the next beat tells,
because it says how many notifications there were up to its serial.

A gap holds back what follows for at most `gap` seconds without progress, while the rendezvous point
is heard; then the subscriber gives up on it. What comes after that, too late for its place, counts
as lost.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from tidings.routing.protocol import messages as m


class Held(NamedTuple):
    """A notification that is held back, and the filters that it matches."""

    serial: int
    message: m.Notification
    matched: tuple[str, ...]


class Ordering:
    """The notifications that one subscriber holds back."""

    def __init__(self) -> None:
        self._held: list[tuple[int, int, Held]] = []  # a heap of serials, in the order they came
        self._count = 0
        self._doubt = False  # may notifications be missing before the next that comes?
        self._after = 0  # the first serial that came since then
        self.since = 0.0
        """When the first of those held back came, or one of those that are missing."""
        self.last = 0
        """The serial that was handed out last."""

    def __len__(self) -> int:
        return len(self._held)

    def doubt(self) -> None:
        self._doubt, self._after = True, 0

    @property
    def in_doubt(self) -> bool:
        return self._doubt

    def settle(self, upto: int) -> None:
        """Note that nothing is missing up to a serial. If it is that of the first one that came
        since the doubt began, all nodes on the way have this subscription again: only then does the
        serial of their beats move on."""
        if self._after and upto >= self._after:
            self._doubt = False

    def hold(self, one: Held, now: float) -> None:
        if self._doubt and not self._after:
            self._after = one.serial
        if not self._held:
            self.since = now
        self._count += 1
        heapq.heappush(self._held, (one.serial, self._count, one))

    def release(self, upto: int | None = None) -> Iterator[Held]:
        """Those up to a serial, or all of them, in order."""
        while self._held and (upto is None or self._held[0][0] <= upto):
            yield heapq.heappop(self._held)[2]

    def begin_anew(self) -> None:
        """Serials may begin again with smaller ones."""
        self._held.clear()
        self._doubt, self.last = False, 0
