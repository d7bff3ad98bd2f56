"""Periodic work for a node's neighbours: closes links of silent ones, and sends beats to idle ones.

    tick ──────────── some ── others ── others ──────────── tick

For thousands of neighbours, this takes tens of milliseconds, in which nothing is forwarded. So
between two ticks, the work is divided into steps; each step serves some of the neighbours.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol

from tidings.broker.admission.connection_limits import ConnectionLimits
from tidings.broker.admission.listen import UPSTREAM
from tidings.network import Link
from tidings.routing.channels import KEEP_ALIVE, Channels
from tidings.routing.forwarding import Name, Router, Sent
from tidings.routing.root import Rendezvous

STEPS = 8  # the number of steps between two ticks, if there are many neighbours

_log = logging.getLogger(__name__)


class Attended(Protocol):
    """The part of a node's interface that this module needs."""

    machine: Router | Rendezvous
    links: dict[Name, Link]

    @property
    def now(self) -> float: ...

    def dispatch(self, sent: Iterable[Sent]) -> None: ...


class Attention:
    """The periodic work for the neighbours of a node."""

    def __init__(self, node: Attended, channels: Channels, limits: ConnectionLimits) -> None:
        self._node, self._channels, self._limits = node, channels, limits

    async def attend(self, seconds: float) -> None:
        """Do the work for all neighbours, in steps that are spread over `seconds`."""
        node = self._node
        links = [(name, link) for name, link in node.links.items() if name != UPSTREAM]
        steps = min(STEPS, 1 + len(links) // 100)
        for step in range(steps):
            try:
                self._attend_to(links[step::steps], node.now)
                if step == steps - 1:
                    self._limits.end_check(link for _, link in links)
                node.dispatch(node.machine.keep_alive(node.now, KEEP_ALIVE * steps))
            except Exception:  # the next steps may succeed
                _log.exception("%s: the neighbours could not be checked", node.machine.name)
            await asyncio.sleep(seconds / steps)

    def _attend_to(self, links: Iterable[tuple[Name, Link]], now: float) -> None:
        """Close the links of silent neighbours, because live ones send something every few seconds.
        Links from which reading is paused stay open."""
        expire = self._node.machine.times.expire
        links = [(name, link) for name, link in links if not link.is_over]
        self._limits.check_some((link for _, link in links), now, 3 * expire)
        neighbours = self._node.machine.neighbours
        for name, link in links:
            if link.paused:
                link.heard = now
            elif now - link.heard > expire:
                link.abort("nothing was heard for too long")
            elif self._channels.links.is_stuck(name):
                link.close("the receiver does not read the messages of a channel")
            known = neighbours.get(name)
            if known is not None:  # the state machine does not see messages in the backlog yet
                known.heard = max(known.heard, link.heard)

    def note_heard(self) -> None:
        """Tell each neighbour's channels when the neighbour was last heard from."""
        for channel in self._channels.awake.values():
            if not channel.is_kept:
                for name in channel.below:
                    neighbour = channel.machine.neighbours.get(name)
                    link = self._node.links.get(name)
                    if neighbour is not None and link is not None:
                        neighbour.heard = max(neighbour.heard, link.heard)
