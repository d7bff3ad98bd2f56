"""Who stands at the door of a node, and who is sent away: bounds on what connections take.

connect ──> stranger ──Hello──> neighbour          the oldest stranger goes for one too many;
               └─ too late, too much, no token ──> refused and counted        neighbours never
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from tidings.network import Link
from tidings.routing.forwarding import Name
from tidings.routing.protocol import Limits

GREETING = 10.0  # seconds until whoever connects must have said who it is
TURN = 128 << 10  # bytes that are read from all neighbours together before anything else is done,
LEAST = 1 << 10  # and from each of them
REPORT = 10.0  # seconds between two lines about what was refused

_log = logging.getLogger(__name__)


class ConnectionLimits:
    """Strangers, and the counters of a node."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.counts: Counter[str] = Counter()
        """Connections that were ended, by the reason."""
        self._strangers: dict[Link, asyncio.TimerHandle] = {}
        self._quiet: dict[Name, tuple[Link, int, float]] = {}  # batches then, and since when
        self._came: dict[Link, int] = {}  # bytes
        self._reported: dict[str, int] = {}
        self._report_at = 0.0

    # -- strangers -----------------------------------------------------------------------------

    def __contains__(self, link: object) -> bool:
        """Has somebody not said yet who it is?"""
        return link in self._strangers

    def __len__(self) -> int:
        return len(self._strangers)

    def admit(self, link: Link) -> None:
        """Somebody connects."""
        if len(self._strangers) >= self.limits.strangers:
            self.send_away(next(iter(self._strangers)), "too many strangers")
        loop = asyncio.get_running_loop()
        self._strangers[link] = loop.call_later(
            GREETING, self.send_away, link, "nothing was said for too long"
        )

    def end_greeting(self, link: Link) -> None:
        """Somebody has said something, and is no stranger any more."""
        self._strangers.pop(link).cancel()

    def send_away(self, link: Link, reason: str) -> None:
        """End a link, and count why."""
        self.counts[reason] += 1
        link.close(reason)
        self.remove(link)

    def remove(self, link: Link) -> None:
        """A link is over."""
        timer = self._strangers.pop(link, None)
        if timer is not None:
            timer.cancel()

    def strangers(self) -> list[Link]:
        return [*self._strangers]

    # -- neighbours ----------------------------------------------------------------------------

    def check(self, links: dict[Name, Link], now: float, patience: float) -> None:
        """End the links of neighbours that are read from and say nothing whole for too long, and
        the longest queues where all together are too long."""
        quiet: dict[Name, tuple[Link, int, float]] = {}
        for name, link in [*links.items()]:
            before = self._quiet.get(name)
            if before is None or before[:2] != (link, link.batches) or link.paused:
                before = link, link.batches, now
            quiet[name] = before
            if now - before[2] > patience:
                self.send_away(link, "nothing was said for too long")
        self._quiet = quiet
        self._share_time(links)
        sizes = {link: link.waiting + link.unfinished for link in links.values()}
        total = sum(sizes.values())
        for link in sorted(sizes, key=sizes.__getitem__, reverse=True):
            if total <= self.limits.all_queues_bytes:
                break
            total -= sizes[link]
            self.send_away(link, "all queues together are too long, and this is the longest")

    def _share_time(self, links: dict[Name, Link]) -> None:
        """The more neighbours speak, the less of each is read at once: who says little is not to
        wait for those that never stop. A router speaks for many, who would wait for each other."""
        came = {link: link.bytes_in for link in links.values()}
        busy = sum(self._came.get(link) != size for link, size in came.items())
        self._came = came
        for link in came:
            share = TURN if link.routes else TURN // max(busy, 1)
            link.read_at_once(max(LEAST, share))

    # -- what is told of it --------------------------------------------------------------------

    def report(self, name: str, found: Callable[[], dict[str, int]], now: float) -> None:
        """Log what was refused, when there is something new and not too often."""
        if now < self._report_at:
            return
        counts = found()
        if counts != self._reported:
            self._reported, self._report_at = counts, now + REPORT
            said = ", ".join(f"{why}: {count:,}" for why, count in sorted(counts.items()))
            _log.warning("%s: refused so far: %s", name, said)
