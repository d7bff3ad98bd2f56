"""An agent that follows the advice of its channel: it asks which routers there are, measures round
trips, and moves to a better router.

    Advise ──> Advised ──> measure ──> choosing.py ──> AgentLink.move

The round-trip time is how long it takes to open a connection, which is then closed at once. If the
link of an agent uses TLS, the agent moves only to routers with TLS.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time

from tidings.model import EnvironmentProblem
from tidings.network.agents.agent_link import AgentLink
from tidings.network.router_url import RouterUrl, parse_address
from tidings.routing.clients import Choosing, ChoosingTimes
from tidings.routing.protocol import messages as m

FIRST = 1 << 59  # the first request number; the agent's other requests have lower numbers
LONGEST = 2.0  # a router that takes more seconds than this counts as unreachable

_log = logging.getLogger(__name__)


class Moving:
    """Moves one agent from router to router."""

    def __init__(self, link: AgentLink, times: ChoosingTimes) -> None:
        self._link = link
        self._times = times
        self._choosing = Choosing("", random.Random(), times)
        self._request = FIRST
        self._advice: asyncio.Queue[m.Advised] = asyncio.Queue()
        self.moves = 0
        """How often the agent has moved."""

    def receive(self, message: m.Advised) -> None:
        """Process the answer to Advise."""
        if message.request == self._request:
            self._advice.put_nowait(message)

    async def move_forever(self) -> None:
        """Ask for advice from time to time, and follow it."""
        asked = float("-inf")
        while True:
            now = time.monotonic()
            if now - asked >= self._times.ask:
                asked = now
                self._request += 1
                self._link.send_first(m.Advise(self._request))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(0.5, self._times.ask / 2)):
                    await self._take(await self._advice.get())
            await self._move_if_better()

    async def _take(self, advised: m.Advised) -> None:
        choosing = self._choosing
        choosing.note_move(self._link.router_name, time.monotonic())
        usable = [one for one in advised.routers if self._place_of(one.address) is not None]
        for name in choosing.take(usable, time.monotonic()):
            place = self._link.place if name == choosing.here else self._find(name)
            if place is not None:
                choosing.note_trip(name, await measure(place), time.monotonic())

    async def _move_if_better(self) -> None:
        choosing, now = self._choosing, time.monotonic()
        if not self._link.is_linked:
            return
        choosing.note_move(self._link.router_name, now)
        to = choosing.next_move(now)
        place = None if to is None else self._find(to)
        if to is None or place is None:
            return
        if await self._link.move(place):
            self.moves += 1
            _log.info("the agent moved to the router %r", to)
        else:
            choosing.note_failure(to, time.monotonic())

    def _find(self, name: str) -> RouterUrl | None:
        return self._place_of(self._choosing.addresses.get(name, ""))

    def _place_of(self, address: str) -> RouterUrl | None:
        """The router at an address, for the agent's channel; None if it can't be used."""
        try:
            found = parse_address(address)
        except EnvironmentProblem:
            return None
        here = self._link.place
        return found._replace(channel=here.channel) if found.secure == here.secure else None


async def measure(place: RouterUrl) -> float | None:
    """The round-trip time to a router in seconds; None if it can't be reached."""
    begun = time.perf_counter()
    try:
        async with asyncio.timeout(LONGEST):
            _, writer = await asyncio.open_connection(place.host, place.port)
    except OSError:  # a timeout is an OSError too
        return None
    took = time.perf_counter() - begun
    writer.close()
    return took
