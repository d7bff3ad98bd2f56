"""Hands parts over in order, several at a time, until all are acknowledged.

    parts ──> in flight (at most 8) ──Taken──> done
                  └── all of them are sent again after the link was lost

The root accepts parts in order. So the acknowledgment of a part also covers the parts before it.
Only the refusal of the first part in flight counts: a later part may be refused just because an
earlier part was lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tidings.routing.protocol import messages as m

MOST_UNDER_WAY = 8


class Hander:
    """The parts of one source that are in flight."""

    def __init__(self) -> None:
        self._under_way: deque[m.HandOver] = deque()
        self.done = 0
        """Parts that were acknowledged."""
        self.refused: m.Taken | None = None
        """The answer that refused the first part in flight; None if it was not refused."""

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def has_room(self) -> bool:
        return len(self._under_way) < MOST_UNDER_WAY

    def offer(self, part: m.HandOver) -> m.HandOver:
        """Add a part to those in flight; return the message to send."""
        self._under_way.append(part)
        return part

    def again(self) -> Iterable[m.HandOver]:
        """All parts that must be sent again, because answers may have been lost."""
        self.refused = None
        return tuple(self._under_way)

    def receive(self, message: m.Message) -> bool:
        """Process an answer; return True if it concerns a part in flight."""
        if not isinstance(message, m.Taken):
            return False
        keys = [(one.source, one.batch, one.part) for one in self._under_way]
        key = message.source, message.batch, message.part
        if key not in keys:
            return False
        at = keys.index(key)
        if message.refusal:
            if at == 0:
                self.refused = message
            return at == 0
        for _ in range(at + 1):
            self._under_way.popleft()
        self.done += at + 1
        self.refused = None
        return True
