"""A publisher repeats its notifications in order until they are acknowledged, so that none is lost
or accepted twice. A publisher also finds out which acknowledged notifications were lost.

In a channel that works in the order of merit, acknowledgments come in any order, and some only
after minutes. The publisher notices such a channel when a stamp is acknowledged after a later one.
From then on, unacknowledged notifications do not hold later ones back (see unsettled.py).

Acknowledged notifications are lost if the journal of the rendezvous point has gone back in time.
The publisher learns this from the lineage (see lineage.py), or because the rendezvous point expects
a stamp that is already settled. Then the publisher reports which stamps are lost, and continues
under a new name, its next *incarnation*. The rendezvous point knows no stamp of that name, so it
accepts the next stamp that the publisher sends. Stamps are not reset, so subscribers can recognise
duplicates by the name without the incarnation.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from tidings.routing.clients.acknowledged_runs import AcknowledgedRuns, merge_spans
from tidings.routing.clients.unsettled import Unsettled, Waiting
from tidings.routing.forwarding.neighbours import Name, Sent
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.contents.bodies import About
from tidings.routing.protocol.lineage import Break, LineageState, LineageVerdict, StampRange
from tidings.routing.protocol.times import Times

AGAIN = 10  # how many notifications are repeated at first
GONE = "the rendezvous point has lost notifications that it acknowledged"
_INCARNATION = re.compile(r"~[0-9]+\Z")


def without_incarnation(name: str) -> str:
    """The part of a publisher's name that stays the same across incarnations."""
    return _INCARNATION.sub("", name) if "~" in name else name


class Refused(msgspec.Struct, frozen=True):
    """A notification that the rendezvous point refused, and why."""

    stamp: int
    reason: str
    version: int = 0
    """If the tag was too old, the version at which to tag the notification again."""


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
        self.refused: list[Refused] = []
        self.early: list[int] = []
        """Stamps that were acknowledged although an earlier stamp was not; the reader of the list
        must empty it."""
        self.breaks: deque[Break] = deque()
        self._incarnation = 0
        self._before = acknowledged  # the last stamp of an earlier run of the publisher
        self._standing = LineageState(self.times)
        self._runs = AcknowledgedRuns()
        self._traced = float("-inf")
        self._unsettled = Unsettled(acknowledged, window)
        self._highest = 0  # the highest stamp that was acknowledged
        self._again = AGAIN
        self._said = 0.0

    @property
    def name(self) -> str:
        return f"{self.base}~{self._incarnation}" if self._incarnation else self.base

    @property
    def acknowledged(self) -> int:
        """The stamp up to which all notifications are settled: on the disk, or refused."""
        return self._unsettled.acknowledged

    @property
    def waiting(self) -> int:
        """How many notifications have stamps after `acknowledged`."""
        return self._unsettled.last - self._unsettled.acknowledged

    def publish(
        self,
        content: bytes,
        payload: bytes,
        now: float,
        about: About | None = None,
        tag: bytes = b"",
    ) -> list[Sent]:
        """Publish the next notification; its stamp is `acknowledged + waiting` after the call."""
        if not self._unsettled:
            self._said = now
        self._unsettled.add((content, payload, about, tag))
        return self._send_more(now)

    def publish_all(
        self,
        pairs: Sequence[tuple[bytes, bytes]],
        now: float,
        time: int = 0,
        tags: Sequence[bytes] = (),
    ) -> list[Sent]:
        """Publish many notifications, given as pairs of content and payload. If a time is given, in
        microseconds since 1970, subscribers also get the content. `tags` has the tags of the
        notifications, if they are tagged."""
        if not self._unsettled:
            self._said = now
        tags = tags or (b"",) * len(pairs)
        for (content, payload), tag in zip(pairs, tags, strict=True):
            about = About(content, "", time) if time else None
            self._unsettled.add((content, payload, about, tag))
        return self._send_more(now)

    def receive(self, message: m.Message, now: float) -> list[Sent]:
        out: list[Sent] = []
        if isinstance(message, m.Lineage):
            out = self._judge(message, now)
        elif isinstance(message, m.Down):
            taken = self._standing.accepts(message.epoch, now)
            if taken and isinstance(message, m.Published) and message.publisher == self.name:
                out = self._on_published(message, now)
        return out + self._trace(now)

    def join(self, now: float) -> list[Sent]:
        """Repeat all unsettled notifications over a new link, if stamps are settled in any order.
        Notifications that waited at the other end of the old link are gone. The publisher would not
        notice this by itself: the link is not silent, because other stamps are still being
        settled."""
        return self._say_again(now) if self._unsettled.is_unordered else []

    def tick(self, now: float) -> list[Sent]:
        """Repeat notifications that were not acknowledged in time: a few at first, and more as
        acknowledgments arrive. Also ask for the lineage now and then, because a publisher that
        sends nothing does not learn of a new life."""
        anyway = bool(self._runs) and now - self._traced >= self.times.resubscribe
        out = self._trace(now, anyway=anyway)
        unsettled = self._unsettled
        if unsettled.is_unordered:
            out += self._messages(unsettled.draw_due(now))
        if not unsettled or now - self._said <= self.times.retry:
            return out
        self._said = now
        if not unsettled.is_unordered:
            return out + self._say_again(now, min(AGAIN, self.window))
        many, self._again = self._again, 2 * self._again  # later publications do not wait for these
        return out + self._messages(unsettled.draw_first(many))

    # -- acknowledgments -----------------------------------------------------------------------

    def _on_published(self, message: m.Published, now: float) -> list[Sent]:
        if message.expected:
            return self._lack(message.expected, now)
        unsettled = self._unsettled
        first = unsettled.acknowledged + 1
        since = message.stamp if message.refusal else message.since
        upto = min(unsettled.last, message.stamp)
        stamps: Sequence[int] = range(max(first, since), upto + 1)
        if since > first or message.refusal or unsettled.is_unordered:
            stamps = [stamp for stamp in stamps if stamp in unsettled]
        if not stamps:
            return []
        if message.refusal:
            self.refused += [Refused(one, message.refusal, message.version) for one in stamps]
        else:
            self._runs.add(message.epoch, stamps[0], stamps[-1], message.serial)
            if stamps[-1] < self._highest:
                unsettled.widen(now)
            self._highest = max(self._highest, stamps[-1])
        if unsettled.settle(stamps):
            self._said, self._again = now, AGAIN
        if not message.refusal and stamps[-1] > unsettled.acknowledged:
            self.early += stamps
        return self._send_more(now)

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
            return self._begin_anew(lost, now)
        return self._say_again(now)  # acknowledgments of the previous life are ignored

    def _lack(self, expected: int, now: float) -> list[Sent]:
        """Handle a report that the rendezvous point lacks a stamp and all stamps after it. Such a
        report need not mean a loss: the rendezvous point does not remember every refused stamp."""
        if expected > self.acknowledged:
            return []
        lost = self._runs.take_from(expected)
        if expected <= self._before:
            lost = merge_spans((StampRange(expected, self._before), *lost))
        return self._begin_anew(lost, now)

    def _begin_anew(self, lost: tuple[StampRange, ...], now: float) -> list[Sent]:
        if lost:
            self.breaks.append(Break(GONE, lost))
        self._before = 0
        self._incarnation += 1
        self._highest = 0
        return self._say_again(now)

    # -- sending -------------------------------------------------------------------------------

    def _say_again(self, now: float, allowed: int | None = None) -> list[Sent]:
        self._unsettled.restart(now, allowed)
        return self._send_more(now)

    def _send_more(self, now: float) -> list[Sent]:
        return self._messages(self._unsettled.draw(now))

    def _messages(self, drawn: Iterable[tuple[int, Waiting]]) -> list[Sent]:
        out: list[Sent] = []
        first, name, router = self.acknowledged + 1, self.name, self.router
        for stamp, (content, payload, about, tag) in drawn:
            if about is None:
                message = m.Publish(name, stamp, first, content, payload, tag=tag)
            else:
                message = m.Publish(
                    name, stamp, first, content, payload, about.content is not None,
                    about.subject, about.time, about.piece, tag=tag,
                )  # fmt: skip
            out.append((router, message))
        return out
