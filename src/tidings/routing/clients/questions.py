"""The open questions of a subscriber, and when to repeat them.

    counting      how many notifications has each node had?
    recovering    where are these missing notifications?

At any time, at most one of these two questions is open. Each repeated question causes another
complete answer, and routers drop answers that are too late. So a subscriber asks a busy network
less often, and for fewer notifications: each unanswered question doubles the pause, and the second
and all later ones also halve the number of notifications that are requested. The pause is at least
1.5 times as long as the last answer took, but no longer than routers remember a question.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidings.routing.protocol.messages import Range
from tidings.routing.protocol.times import Times

PATIENCE = 1.5  # the shortest pause, as a multiple of the time that the last answer took
VAIN = 2  # notifications are given up after this many answers in a row without any of them
REMEMBERED = 32  # the times of at most this many unanswered questions are kept


class Questions:
    """The open questions of one subscriber."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self.request = 0
        """The number of the last question."""
        self.counting: float | None = None
        """When the counts were requested; None if they were not."""
        self.recovering: float | None = None
        """When missing notifications were requested, or when the last of them arrived; None if none
        are requested."""
        self.asked_for: list[Range] = []
        self._had_no_room = False  # was there no room for a part of the last answer?
        self._vain = 0  # complete answers in a row without any of the requested notifications
        self._is_answered = False  # is the last question answered?
        self._unanswered = 0  # how often a question was repeated since the last answer
        self._when: dict[int, float] = {}  # the times of questions, the oldest first
        self._took = 0.0  # seconds that the last answer took

    def number(self) -> int:
        """Return the number of a new question."""
        self.request += 1
        return self.request

    def is_open(self) -> bool:
        return self.counting is not None or self.recovering is not None

    def close(self) -> None:
        self.counting = self.recovering = None

    def count(self, now: float) -> int:
        """Record a request for the counts; return the number of the question."""
        self.counting = now
        return self._ask(now)

    def recover(self, ranges: Iterable[Range], now: float) -> int:
        """Record a request for missing notifications; return the number of the question."""
        ranges = list(ranges)
        if ranges != self.asked_for:
            self._vain = 0
        self._had_no_room = self._is_answered = False
        self.counting, self.recovering, self.asked_for = None, now, ranges
        return self._ask(now)

    def _ask(self, now: float) -> int:
        self._when[self.number()] = now
        if len(self._when) > REMEMBERED:
            del self._when[next(iter(self._when))]
        return self.request

    def end(self, request: int, now: float) -> None:
        """Record that an answer arrived, perhaps to an earlier question than the last one."""
        asked = self._when.pop(request, None)
        if asked is not None:
            self._took = now - asked

    def end_counting(self) -> bool:
        """Record that the counts arrived; return False if they were not requested."""
        was_open, self.counting = self.counting is not None, None
        self._unanswered = 0 if was_open else self._unanswered
        return was_open

    def note_no_room(self) -> None:
        """Record that there was no room for a part of the answer, so the answer does not show what
        is lost."""
        self._had_no_room = True

    def note_vain(self, now: float) -> None:
        """Record that the answer arrived without any of the requested notifications. The
        notifications may still arrive; otherwise they are requested again later."""
        self.recovering = now
        self._is_answered = True
        self._vain += not self._had_no_room

    def note_progress(self) -> None:
        self._vain = 0

    @property
    def is_in_vain(self) -> bool:
        """Does no node seem to have the requested notifications? If so, the last question was
        answered, and several answers contained none of them."""
        return self._is_answered and self._vain >= VAIN

    def end_recovering(self) -> None:
        self.recovering, self._unanswered = None, 0

    def note_part(self, now: float) -> None:
        """Record that some of the missing notifications arrived, so the others are on their way."""
        if self.recovering is not None:
            self.recovering, self._unanswered = now, 0

    def limit(self, most: int, least: int) -> int:
        """How many notifications to request."""
        return max(least, most >> min(max(self._unanswered - 1, 0), 30))

    def is_due(self, since: float | None, now: float) -> bool:
        """Is it time to repeat a question that was asked at the time `since`?"""
        retry = self._times.retry
        pause = max(retry * 2 ** min(self._unanswered, 30), PATIENCE * self._took)
        if since is None or now - since <= min(pause, max(retry, self._times.request)):
            return False
        self._unanswered += 1
        return True
