"""A publisher repeats its notifications in order until they are acknowledged, so that none is lost
or accepted twice. It also finds out which acknowledged notifications are gone.

Acknowledged notifications are gone when the journal of the rendezvous point has gone back in time.
The publisher learns this from the lineage (see lineage.py), or because the rendezvous point expects
a stamp that is already settled. Then it reports which stamps are gone, and continues under a new
name, its next *incarnation*. The rendezvous point knows no stamp of that name, so it accepts the
next stamp that the publisher sends. Stamps are not reset, so subscribers can recognise duplicates
by the name without the incarnation.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from itertools import islice

import msgspec

from tidings.routing.clients.acknowledged_runs import AcknowledgedRuns, merge_spans
from tidings.routing.forwarding.neighbours import Name, Sent
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.bodies import About
from tidings.routing.protocol.lineage import Break, LineageVerdict, Span, Standing
from tidings.routing.protocol.times import Times

MOST_BYTES = 16 << 20  # bytes in flight, unless a single notification has more
AGAIN = 10  # notifications that are repeated at once
GONE = "the rendezvous point has lost notifications that it acknowledged"
_INCARNATION = re.compile(r"~[0-9]+\Z")


def without_incarnation(name: str) -> str:
    """The name of a publisher that stays the same across incarnations."""
    return _INCARNATION.sub("", name) if "~" in name else name


Waiting = tuple[bytes, bytes, About | None, bytes]  # content, payload, metadata, tag


class Refused(msgspec.Struct, frozen=True):
    """A notification that the rendezvous point refused, and why."""

    stamp: int
    reason: str
    version: int = 0
    """If its tag was too old: the version to tag it at."""


class Publisher:
    """Stamps its notifications 1, 2, 3, ... and has at most `window` of them in flight.

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
        """The name of the publisher without the incarnation."""
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
        self._sent_bytes = 0  # bytes of the waiting notifications that were sent
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
        self,
        content: bytes,
        payload: bytes,
        now: float,
        about: About | None = None,
        tag: bytes = b"",
    ) -> list[Sent]:
        """Publish the next notification; its stamp is `acknowledged + waiting` after the call."""
        if not self._waiting:
            self._said = now
        self._waiting.append((content, payload, about, tag))
        return self._send_more()

    def publish_all(
        self,
        pairs: Sequence[tuple[bytes, bytes]],
        now: float,
        time: int = 0,
        tags: Sequence[bytes] = (),
    ) -> list[Sent]:
        """Publish many notifications, given as pairs of content and payload. If a time is given, in
        microseconds since 1970, subscribers get the content, too. `tags` has the tags of the
        notifications, if they are tagged."""
        if not self._waiting:
            self._said = now
        tags = tags or (b"",) * len(pairs)
        for (content, payload), tag in zip(pairs, tags, strict=True):
            about = About(content, "", time) if time else None
            self._waiting.append((content, payload, about, tag))
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
        acknowledgments arrive. Also ask for the lineage now and then, because a publisher that
        sends nothing does not hear of a new life."""
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
        upto = min(last, message.stamp)
        if since <= first <= upto and not message.refusal and not self._done:
            # nearly always, the next ones are on the disk, and none was refused
            self._runs.add(message.epoch, first, upto, message.serial)
            self._settle(upto - first + 1, now)
            return self._send_more()
        news = set(range(max(first, since), upto + 1)) - self._done
        if message.refusal:
            version = message.version
            self.refused += [Refused(stamp, message.refusal, version) for stamp in news]
        elif news:
            self._runs.add(message.epoch, min(news), max(news), message.serial)
        self._done |= news
        settled = self.acknowledged
        while settled + 1 in self._done:
            settled += 1
            self._done.remove(settled)
        self._settle(settled - self.acknowledged, now)
        return self._send_more()

    def _settle(self, count: int, now: float) -> None:
        """Note that the next `count` notifications are settled."""
        if not count:
            return
        waiting = self._waiting
        sent = min(self._sent, count)  # after a silence, fewer may have been sent
        for at in range(count):
            content, payload, *_ = waiting.popleft()
            if at < sent:
                self._sent_bytes -= len(content) + len(payload)
        self._sent -= sent
        self.acknowledged += count
        self._allowed = min(self._allowed + count, self.window)
        self._said = now

    # -- lost notifications --------------------------------------------------------------------

    def _trace(self, now: float, *, anyway: bool = False) -> list[Sent]:
        question = self._standing.next_question(now, anyway=anyway)
        if question is None:
            return []
        self._traced = now
        return [(self.router, question)]

    def _judge(self, message: m.Lineage, now: float) -> list[Sent]:
        if self._standing.judge(message, now) is LineageVerdict.NOTHING:
            return []
        lost = self._runs.take_lost(self._standing.lineage)
        if lost:
            return self._begin_anew(lost)
        return self._say_again(self.window)  # acknowledgments of the previous life are ignored

    def _lack(self, expected: int) -> list[Sent]:
        """Handle a report that the rendezvous point lacks a stamp and all after it. This need not
        be a loss: the rendezvous point does not remember every refused stamp."""
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
        first, name, router = self.acknowledged + 1, self.name, self.router
        most = min(self._allowed, len(self._waiting))
        for content, payload, about, tag in islice(self._waiting, self._sent, most):
            size = len(content) + len(payload)
            if self._sent and self._sent_bytes + size > MOST_BYTES:
                break
            self._sent_bytes += size
            stamp = first + self._sent
            if about is None:
                message = m.Publish(name, stamp, first, content, payload, tag=tag)
            else:
                message = m.Publish(
                    name, stamp, first, content, payload, about.content is not None,
                    about.subject, about.time, about.piece, tag=tag,
                )  # fmt: skip
            out.append((router, message))
            self._sent += 1
        return out
