"""A publisher: says each notification until it is acknowledged, in order, so that none is lost and
none is taken twice."""

from __future__ import annotations

from collections import deque

import msgspec

from tidings.routing import messages as m
from tidings.routing.downstream import Name, Sent
from tidings.routing.router import Times


class Refused(msgspec.Struct, frozen=True):
    """A notification that the rendezvous point did not take, and why."""

    number: int
    reason: str


class Publisher:
    """Counts its notifications from 1. At most `window` of them are under way at once."""

    def __init__(
        self, name: str, router: Name, times: Times | None = None, window: int = 1000
    ) -> None:
        self.name = name
        self.router = router
        self.times = times or Times()
        self.window = window
        self.acknowledged = 0
        self.refused: list[Refused] = []
        self._epoch = 0
        self._life = 1  # a new one when the rendezvous point lost its memory
        self._before = 0  # stamps that were used up in lives before
        self._next = 1
        self._waiting: deque[tuple[int, bytes, bytes]] = deque()  # all that is not acknowledged
        self._sent = 0  # how many of them were sent
        self._said = 0.0

    @property
    def waiting(self) -> int:
        """How many are not acknowledged."""
        return len(self._waiting)

    def publish(self, content: bytes, payload: bytes, now: float) -> list[Sent]:
        self._waiting.append((self._next, content, payload))
        self._next += 1
        if len(self._waiting) == 1:
            self._said = now
        return self._send_more()

    def receive(self, message: m.Message, now: float) -> list[Sent]:
        if not isinstance(message, m.Down) or message.epoch < self._epoch:
            return []
        if message.epoch > self._epoch:
            new = bool(self._epoch)
            self._epoch = message.epoch
            if new:
                return self._begin_anew(now)
        if isinstance(message, m.Published) and message.life == self._life:
            if message.refusal:
                self.refused.append(Refused(self._before + message.number, message.refusal))
            while self._waiting and self._waiting[0][0] <= message.number:
                self._waiting.popleft()
                self._sent -= 1
                self.acknowledged += 1
                self._said = now
            return self._send_more()
        return []

    def tick(self, now: float) -> list[Sent]:
        """Say again what was not acknowledged for a while."""
        if self._waiting and now - self._said > self.times.retry:
            self._said = now
            self._sent = 0
            return self._send_more()
        return []

    def _begin_anew(self, now: float) -> list[Sent]:
        """Whoever counts our numbers has forgotten them."""
        self._life += 1
        self._before = self.acknowledged
        rest = [(content, payload) for _, content, payload in self._waiting]
        self._waiting = deque((at, *one) for at, one in enumerate(rest, start=1))
        self._next = len(rest) + 1
        self._sent, self._said = 0, now
        return self._send_more()

    def _send_more(self) -> list[Sent]:
        out: list[Sent] = []
        while self._sent < min(self.window, len(self._waiting)):
            number, content, payload = self._waiting[self._sent]
            stamp = self._before + number
            said = m.Publish(self.name, self._life, number, stamp, content, payload)
            out.append((self.router, said))
            self._sent += 1
        return out
