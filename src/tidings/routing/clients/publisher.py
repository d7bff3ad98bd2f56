"""A publisher: repeats its notifications in order until they are acknowledged, so that none is lost
or accepted twice. It also finds out which acknowledged notifications are gone.

They are gone when the journal of the rendezvous point went back in time. The publisher learns this
from the lineage (see lineage.py), or because the rendezvous point expects a stamp that is already
settled. Then it reports which stamps are gone, and continues under a new name, its next
*incarnation*. The rendezvous point knows no stamp of that name, so it accepts the next one. Stamps
are not reset, so subscribers can recognise duplicates by the name without the incarnation.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable

import msgspec

from tidings.routing.clients.acknowledged_runs import AcknowledgedRuns, merge_spans
from tidings.routing.forwarding.neighbours import Name, Sent
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.bodies import About
from tidings.routing.protocol.lineage import Break, Span, Standing, Verdict
from tidings.routing.protocol.times import Times

MOST_BYTES = 16 << 20  # of notifications that are sent and not acknowledged, unless it is only one
AGAIN = 10  # notifications that are repeated at once
GONE = "the rendezvous point has lost notifications that it acknowledged"
_INCARNATION = re.compile(r"~[0-9]+\Z")


def without_incarnation(name: str) -> str:
    """The lasting name of a publisher."""
    return _INCARNATION.sub("", name) if "~" in name else name


Waiting = tuple[bytes, bytes, About | None]


class Refused(msgspec.Struct, frozen=True):
    """A notification that the rendezvous point refused, and why."""

    stamp: int
    reason: str


class Publisher:
    """Stamps its notifications 1, 2, 3, ... At most `window` of them are sent and unacknowledged.

    A publisher that is restarted under the same name continues after its last acknowledged stamp.
    Notifications that were not acknowledged must be published again.
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
        """The last stamp that is settled: on the disk, or refused."""
        self.refused: list[Refused] = []
        self.breaks: deque[Break] = deque()
        self._incarnation = 0
        self._before = acknowledged  # stamps up to this one are from an earlier start
        self._standing = Standing(self.times)
        self._runs = AcknowledgedRuns()
        self._traced = float("-inf")
        self._waiting: deque[Waiting] = deque()  # notifications after `acknowledged`
        self._done: set[int] = set()  # settled stamps after the first unsettled one
        self._sent_bytes = 0  # of those of them that were sent
        self._sent = 0  # how many of the waiting notifications were sent
        self._allowed = window  # how many may be sent; fewer after a silence
        self._said = 0.0

    @property
    def name(self) -> str:
        return f"{self.base}~{self._incarnation}" if self._incarnation else self.base

    @property
    def waiting(self) -> int:
        """How many notifications are not acknowledged."""
        return len(self._waiting)

    def publish(
        self, content: bytes, payload: bytes, now: float, about: About | None = None
    ) -> list[Sent]:
        """Publish the next notification. Afterwards its stamp is `acknowledged + waiting`."""
        if not self._waiting:
            self._said = now
        self._waiting.append((content, payload, about))
        return self._send_more()

    def publish_all(
        self, pairs: Iterable[tuple[bytes, bytes]], now: float, time: int = 0
    ) -> list[Sent]:
        """Publish many notifications, each as content and payload. With a time, in microseconds
        since 1970, subscribers get the content, too."""
        if not self._waiting:
            self._said = now
        for content, payload in pairs:
            about = About(content, "", time) if time else None
            self._waiting.append((content, payload, about))
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
        """Repeat notifications that were not acknowledged in time: a few at first, and more as
        acknowledgments come. Also send a sign of life, because silent publishers do not hear of
        other lives."""
        anyway = bool(self._runs) and now - self._traced >= self.times.resubscribe
        out = self._trace(now, anyway=anyway)
        if not self._waiting or now - self._said <= self.times.retry:
            return out
        self._said = now
        return out + self._say_again(min(AGAIN, self.window))

    # -- acknowledgments -----------------------------------------------------------------------

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
            content, payload, _ = self._waiting.popleft()
            if self._sent:
                self._sent -= 1
                self._sent_bytes -= len(content) + len(payload)
            self.acknowledged += 1
            self._done.remove(self.acknowledged)
            self._allowed = min(self._allowed + 1, self.window)
            self._said = now
        return self._send_more()

    # -- lost notifications --------------------------------------------------------------------

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
        return self._say_again(self.window)  # acknowledgments of the previous life are ignored

    def _lack(self, expected: int) -> list[Sent]:
        """Handle a report that the rendezvous point lacks a stamp and all after it. Perhaps nothing
        acknowledged is gone: the rendezvous point does not remember every refused stamp."""
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

    # -- sending -------------------------------------------------------------------------------

    def _say_again(self, allowed: int) -> list[Sent]:
        self._sent = self._sent_bytes = 0
        self._allowed = allowed
        return self._send_more()

    def _send_more(self) -> list[Sent]:
        out: list[Sent] = []
        first = self.acknowledged + 1
        while self._sent < min(self._allowed, len(self._waiting)):
            content, payload, about = self._waiting[self._sent]
            size = len(content) + len(payload)
            if self._sent and self._sent_bytes + size > MOST_BYTES:
                break
            self._sent_bytes += size
            stamp = first + self._sent
            if about is None:
                message = m.Publish(self.name, stamp, first, content, payload)
            else:
                message = m.Publish(
                    self.name, stamp, first, content, payload, about.content is not None,
                    about.subject, about.time, about.piece,
                )  # fmt: skip
            out.append((self.router, message))
            self._sent += 1
        return out
