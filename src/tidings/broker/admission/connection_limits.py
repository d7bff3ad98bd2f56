"""Limits on connections: how many strangers a node accepts, and how much data it queues.

connect ──> stranger ──Hello──> neighbour          too many strangers: the oldest is closed;
               └─ too late, too much, no token     neighbours never make way for strangers
                  ──> refused and counted
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from tidings.network import Link
from tidings.routing.protocol import Limits

GREETING = 10.0  # seconds within which a new connection must send its greeting
TURN = 128 << 10  # bytes read in one turn from all neighbours together
LEAST = 1 << 10  # the fewest bytes read in one turn from a neighbour
REPORT = 10.0  # seconds between two log lines about refusals

_log = logging.getLogger(__name__)


class LinkSample(msgspec.Struct):
    """The state of a neighbour's link at the last check."""

    batches: int
    at: float  # when the number of batches last changed
    bytes_in: int


class ConnectionLimits:
    """The strangers of a node, and its counters of refusals."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.counts: Counter[str] = Counter()
        """Connections that were closed, by reason."""
        self._strangers: dict[Link, asyncio.TimerHandle] = {}
        self._seen: dict[Link, LinkSample] = {}  # of neighbours
        self._busy = 0  # neighbours that were busy at the last check, or connected later
        self._busy_now = self._queued = 0  # counted by the check that is running
        self._reported: dict[str, int] = {}
        self._report_at = 0.0

    # -- strangers -----------------------------------------------------------------------------

    def __contains__(self, link: object) -> bool:
        """Whether this is the link of a stranger."""
        return link in self._strangers

    def __len__(self) -> int:
        return len(self._strangers)

    def admit(self, link: Link) -> None:
        """Admit a new stranger."""
        if len(self._strangers) >= self.limits.strangers:
            self.send_away(next(iter(self._strangers)), "too many strangers")
        loop = asyncio.get_running_loop()
        self._strangers[link] = loop.call_later(
            GREETING, self.send_away, link, "no complete message arrived in time"
        )

    def end_greeting(self, link: Link) -> None:
        """Stop the timer of a stranger that has sent its first message."""
        self._strangers.pop(link).cancel()

    def send_away(self, link: Link, reason: str) -> None:
        """Close a link, and count the reason."""
        self.counts[reason] += 1
        link.close(reason)
        self.remove(link)

    def remove(self, link: Link) -> None:
        """Forget a link that was closed."""
        self._seen.pop(link, None)
        timer = self._strangers.pop(link, None)
        if timer is not None:
            timer.cancel()

    def strangers(self) -> list[Link]:
        return [*self._strangers]

    # -- neighbours ----------------------------------------------------------------------------

    def check(self, links: Iterable[Link], now: float, patience: float) -> None:
        """Check all neighbours in one step."""
        links = [*links]
        self.check_some(links, now, patience)
        self.end_check(links)

    def check_some(self, links: Iterable[Link], now: float, patience: float) -> None:
        """Close the links of neighbours that sent no complete message for too long, unless reading
        from them is paused. A check of many neighbours is done in several steps, because the node
        forwards nothing during a step; `end_check` is the last step.

        The more neighbours send, the less is read from each of them at once. So neighbours that
        send little don't have to wait for those that send all the time. Routers always get a full
        turn, because they forward the messages of many clients."""
        share = self._share()
        for link in links:
            if link.is_over:
                continue
            size, batches = link.bytes_in, link.batches
            seen = self._seen.get(link)
            if seen is None:
                seen = self._seen[link] = LinkSample(batches, now, -1)
            if seen.batches != batches or link.paused:
                seen.batches, seen.at = batches, now
            if seen.bytes_in != size:
                seen.bytes_in = size
                self._busy_now += 1
            self._queued += link.waiting + link.unfinished
            link.read_at_once(TURN if link.routes else share)
            if now - seen.at > patience:
                self.send_away(link, "no complete message arrived in time")

    def end_check(self, links: Iterable[Link]) -> None:
        """If the queues of all these neighbours together are too long, close the links with the
        longest queues."""
        self._busy, self._busy_now = self._busy_now, 0
        queued, self._queued = self._queued, 0
        if queued <= self.limits.all_queues_bytes:
            return
        sizes = {one: one.waiting + one.unfinished for one in links if not one.is_over}
        total = sum(sizes.values())
        for link in sorted(sizes, key=sizes.__getitem__, reverse=True):
            if total <= self.limits.all_queues_bytes:
                break
            total -= sizes[link]
            self.send_away(link, "all queues together are too long, and this is one of the longest")

    def begin_reading(self, link: Link) -> None:
        """Set how much is read at once from a new neighbour, until the next check. Each new
        neighbour counts as busy, so if many connect at once, little is read from each."""
        self._busy += 1
        link.read_at_once(self._share())

    def _share(self) -> int:
        return max(LEAST, TURN // max(self._busy, 1))

    # -- the log -------------------------------------------------------------------------------

    def report(self, name: str, found: Callable[[], dict[str, int]], now: float) -> None:
        """Log the counts of refusals if they changed, but not too often."""
        if now < self._report_at:
            return
        counts = found()
        if counts != self._reported:
            self._reported, self._report_at = counts, now + REPORT
            said = ", ".join(f"{why}: {count:,}" for why, count in sorted(counts.items()))
            _log.warning("%s: refused so far: %s", name, said)
