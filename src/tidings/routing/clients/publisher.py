"""A publisher: says each notification until it is acknowledged, in order, so that none is lost and
none is taken twice; and knows of every one that was acknowledged and is gone.

That is so when the journal of the rendezvous point has gone back in time. It learns of it by the
lineage, see lineage.py, or because the point says that it expects a stamp that is done with. Then
it tells which stamps are gone, and goes on under another name, an *incarnation* of its own: of that
the point has no stamp, so it takes the next one as it comes. Stamps go on, so whoever drops what it
was told before can do so by the name without the incarnation.
"""

from __future__ import annotations

import re
from collections import deque

import msgspec

from tidings.routing.clients.acknowledged_runs import AcknowledgedRuns, merge_spans
from tidings.routing.forwarding.neighbours import Name, Sent
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.lineage import Break, Span, Standing, Verdict
from tidings.routing.protocol.times import Times

AGAIN = 10  # that are said again at once
GONE = "the rendezvous point does not have any more what it acknowledged"
_INCARNATION = re.compile(r"~[0-9]+\Z")


def without_incarnation(name: str) -> str:
    """By what a publisher is known for good."""
    return _INCARNATION.sub("", name) if "~" in name else name


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
        self.base = name
        """Its name without the incarnation."""
        self.router = router
        self.times = times or Times()
        self.window = window
        self.acknowledged = acknowledged
        """The last stamp that is done with: on the disk, or refused."""
        self.refused: list[Refused] = []
        self.breaks: deque[Break] = deque()
        self._incarnation = 0
        self._before = acknowledged  # stamps up to here are of another start
        self._standing = Standing(self.times)
        self._runs = AcknowledgedRuns()
        self._traced = float("-inf")
        self._waiting: deque[tuple[bytes, bytes]] = deque()  # those after it
        self._done: set[int] = set()  # those of them that are done with, though one before is not
        self._sent = 0  # how many of them were sent
        self._allowed = window  # how many may be: fewer after silence, as saying them is no help
        self._said = 0.0

    @property
    def name(self) -> str:
        return f"{self.base}~{self._incarnation}" if self._incarnation else self.base

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
        out: list[Sent] = []
        if isinstance(message, m.Lineage):
            out = self._judge(message, now)
        elif isinstance(message, m.Down):
            taken = self._standing.accepts(message.epoch, now)
            if taken and isinstance(message, m.Published) and message.publisher == self.name:
                out = self._on_published(message, now)
        return out + self._trace(now)

    def tick(self, now: float) -> list[Sent]:
        """Say again what was not acknowledged for a while: the first few, and more as they are. And
        be heard of: whoever is silent is not told of other lives."""
        anyway = bool(self._runs) and now - self._traced >= self.times.resubscribe
        out = self._trace(now, anyway=anyway)
        if not self._waiting or now - self._said <= self.times.retry:
            return out
        self._said = now
        return out + self._say_again(min(AGAIN, self.window))

    # -- what is acknowledged ------------------------------------------------------------------

    def _on_published(self, message: m.Published, now: float) -> list[Sent]:
        if message.expected:
            return self._lack(message.expected)
        first, last = self.acknowledged + 1, self.acknowledged + len(self._waiting)
        since = message.stamp if message.refusal else message.since
        news = set(range(max(first, since), min(last, message.stamp) + 1)) - self._done
        if message.refusal:
            self.refused += [Refused(stamp, message.refusal) for stamp in news]
        elif news:
            self._runs.add(message.epoch, min(news), max(news), message.serial)
        self._done |= news
        while self.acknowledged + 1 in self._done:
            self._waiting.popleft()
            self._sent = max(self._sent - 1, 0)
            self.acknowledged += 1
            self._done.remove(self.acknowledged)
            self._allowed = min(self._allowed + 1, self.window)
            self._said = now
        return self._send_more()

    # -- what is not there any more ------------------------------------------------------------

    def _trace(self, now: float, *, anyway: bool = False) -> list[Sent]:
        question = self._standing.next_question(now, anyway=anyway)
        if question is None:
            return []
        self._traced = now
        return [(self.router, question)]

    def _judge(self, message: m.Lineage, now: float) -> list[Sent]:
        if self._standing.judge(message, now) is Verdict.NOTHING:
            return []
        lost = self._runs.take_lost(self._standing.lineage)
        if lost:
            return self._begin_anew(lost)
        return self._say_again(self.window)  # answers of the life before are not heard

    def _lack(self, expected: int) -> list[Sent]:
        """The point says which stamp it expects: it has none from there on. It need not be that
        something acknowledged is gone, as it does not remember all that it refused."""
        if expected > self.acknowledged:
            return []
        lost = self._runs.take_from(expected)
        if expected <= self._before:
            lost = merge_spans((Span(expected, self._before), *lost))
        return self._begin_anew(lost)

    def _begin_anew(self, lost: tuple[Span, ...]) -> list[Sent]:
        if lost:
            self.breaks.append(Break(GONE, lost))
        self._before = 0
        self._incarnation += 1
        return self._say_again(self.window)

    # -- what is said --------------------------------------------------------------------------

    def _say_again(self, allowed: int) -> list[Sent]:
        self._sent = 0
        self._allowed = allowed
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
