"""The questions of a subscriber that are open, and when to ask them again.

    counting      how far have the nodes counted?
    recovering    where are these missing notifications?

One of the two is open at a time. A busy network is asked less often, because every question costs
a whole answer: twice as long after each time without an answer, and not before the last answer
would have come.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidings.routing.protocol.messages import Range
from tidings.routing.protocol.times import Times

MOST_DOUBLED = 2  # times that the pause is doubled
PATIENCE = 1.5  # times as long as the last answer took
REMEMBERED = 32  # questions whose time is remembered


class Questions:
    """The open questions of one subscriber."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self.request = 0
        """The number of the last question."""
        self.counting: float | None = None
        """Since when the count is waited for."""
        self.recovering: float | None = None
        """When missing notifications were asked for, or some of them came."""
        self.asked_for: list[Range] = []
        self.was_answered = False
        """Was there an answer for what is asked for, that did not bring it?"""
        self._unanswered = 0  # how often it was asked since an answer
        self._when: dict[int, float] = {}  # questions, the oldest first
        self._took = 0.0  # seconds that the last answer took

    def number(self) -> int:
        """The number of a new question."""
        self.request += 1
        return self.request

    def is_open(self) -> bool:
        return self.counting is not None or self.recovering is not None

    def close(self) -> None:
        self.counting = self.recovering = None

    def count(self, now: float) -> int:
        """Note that the count is asked for; return the number of the question."""
        self.counting = now
        return self._ask(now)

    def recover(self, ranges: Iterable[Range], now: float) -> int:
        """Note that missing notifications are asked for; return the number of the question."""
        ranges = list(ranges)
        if ranges != self.asked_for:
            self.was_answered = False
        self.counting, self.recovering, self.asked_for = None, now, ranges
        return self._ask(now)

    def _ask(self, now: float) -> int:
        self._when[self.number()] = now
        if len(self._when) > REMEMBERED:
            del self._when[next(iter(self._when))]
        return self.request

    def end(self, request: int, now: float) -> None:
        """Note that the answer to a question, perhaps an earlier one, is there."""
        asked = self._when.pop(request, None)
        if asked is not None:
            self._took = now - asked

    def note_answered(self) -> None:
        self._unanswered = 0

    def is_due(self, since: float | None, now: float) -> bool:
        """Is it time to ask again what was asked at a time?"""
        pause = self._times.retry * 2 ** min(self._unanswered, MOST_DOUBLED)
        took = min(PATIENCE * self._took, self._times.request)  # later, nobody knows the question
        if since is None or now - since <= max(pause, took):
            return False
        self._unanswered += 1
        return True
