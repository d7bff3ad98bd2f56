"""A publisher: says each notification until it is acknowledged, in order, so that none is lost and
none is taken twice."""

from __future__ import annotations

from collections import deque

import msgspec

from tidings.routing import messages as m
from tidings.routing.downstream import Name, Sent
from tidings.routing.router import Times

AGAIN = 10  # that are said again at once


class Refused(msgspec.Struct, frozen=True):
    """A notification that the rendezvous point did not take, and why."""

    stamp: int
    reason: str


class Publisher:
    """Stamps its notifications 1, 2, 3, ... At most `window` of them are under way at once.

    A publisher that is started again under the same name goes on after the last stamp that it was
    given, and those that were not acknowledged must be published again.
    """

    def __init__(
        self,
        name: str,
        router: Name,
        times: Times | None = None,
        *,
        window: int = 1000,
        acknowledged: int = 0,
    ) -> None:
        self.name = name
        self.router = router
        self.times = times or Times()
        self.window = window
        self.acknowledged = acknowledged
        """The last stamp that is done with: on the disk, or refused."""
        self.refused: list[Refused] = []
        self._waiting: deque[tuple[bytes, bytes]] = deque()  # those after it
        self._done: set[int] = set()  # those of them that are done with, though one before is not
        self._sent = 0  # how many of them were sent
        self._allowed = window  # how many may be: fewer after silence, as saying them is no help
        self._said = 0.0

    @property
    def waiting(self) -> int:
        """How many are not acknowledged."""
        return len(self._waiting)

    def publish(self, content: bytes, payload: bytes, now: float) -> list[Sent]:
        """Take the next notification; its stamp is `acknowledged + waiting` afterwards."""
        if not self._waiting:
            self._said = now
        self._waiting.append((content, payload))
        return self._send_more()

    def receive(self, message: m.Message, now: float) -> list[Sent]:
        if not isinstance(message, m.Published) or message.publisher != self.name:
            return []
        first, last = self.acknowledged + 1, self.acknowledged + len(self._waiting)
        since = message.stamp if message.refusal else message.since
        news = set(range(max(first, since), min(last, message.stamp) + 1)) - self._done
        if message.refusal:
            self.refused += [Refused(stamp, message.refusal) for stamp in news]
        self._done |= news
        while self.acknowledged + 1 in self._done:
            self._waiting.popleft()
            self._sent = max(self._sent - 1, 0)
            self.acknowledged += 1
            self._done.remove(self.acknowledged)
            self._allowed = min(self._allowed + 1, self.window)
            self._said = now
        return self._send_more()

    def tick(self, now: float) -> list[Sent]:
        """Say again what was not acknowledged for a while: the first few, and more as they are."""
        if not self._waiting or now - self._said <= self.times.retry:
            return []
        self._said = now
        self._sent = 0
        self._allowed = min(AGAIN, self.window)
        return self._send_more()

    def _send_more(self) -> list[Sent]:
        out: list[Sent] = []
        first = self.acknowledged + 1
        while self._sent < min(self._allowed, len(self._waiting)):
            content, payload = self._waiting[self._sent]
            stamp = first + self._sent
            out.append((self.router, m.Publish(self.name, stamp, first, content, payload)))
            self._sent += 1
        return out
