"""The people of the demo: each has an agent at one of three routers; all agents run in one thread.

           root
          /    \\
        EWR    JFK
                |
               LGA
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tidings.model import EnvironmentProblem

if TYPE_CHECKING:
    from tidings import Agent, Subscription

ABOVE = {"EWR": "root", "JFK": "root", "LGA": "JFK"}
PATIENCE = 30.0  # seconds to wait for a router that is starting
AGAIN = 0.1
TOGETHER = 20  # people that connect at the same time
LATEST = 3  # how many of the latest flights are kept, each with the people who were notified


class Person(msgspec.Struct, frozen=True):
    who: str
    filter: str
    router: str


class SeenFlight(msgspec.Struct):
    """A flight that was delivered."""

    serial: int
    row: dict[str, Any]
    told: list[Person]


def place_people(named: Sequence[tuple[str, str]]) -> list[Person]:
    """Assign people, given as pairs of name and filter, to routers. A person whose filter names an
    airport of New York gets the router of that airport; all others are spread over the three
    routers in turn."""
    found = []
    for at, (who, text) in enumerate(named):
        router = next((one for one in ABOVE if f"'{one}'" in text), [*ABOVE][at % len(ABOVE)])
        found.append(Person(who, text, router))
    return found


class DemoPeople:
    """Agents that count the notifications that they receive."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self.everyone: list[Person] = []
        self.told: Counter[str] = Counter()
        self.repeated = 0  # deliveries of a flight that the person had already received
        self.problems: list[str] = []  # losses and breaks, each with the person's name
        self.latest: deque[SeenFlight] = deque(maxlen=LATEST)
        self.last = 0.0  # the time of the latest delivery
        self._addresses = addresses
        self._loop = asyncio.new_event_loop()
        self._open = contextlib.AsyncExitStack()
        self._readers: list[asyncio.Task[None]] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def join(self, people: Sequence[Person]) -> None:
        """Connect people and subscribe; when this returns, their filters are in force."""
        self._run(self._join(people))
        self.everyone += people

    def counts(self) -> Counter[str]:
        """How many notifications each person has received so far; the thread continues to count."""
        return Counter(dict(self.told))

    def count_through(self, router: str) -> tuple[int, int]:
        """The number of people at a router, and the number of notifications that they received."""
        here = [one.who for one in self.everyone if one.router == router]
        return len(here), sum(self.told[who] for who in here)

    def close(self) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- in the thread -------------------------------------------------------------------------

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _join(self, people: Sequence[Person]) -> None:
        room = asyncio.Semaphore(TOGETHER)
        await asyncio.gather(*(self._join_one(one, room) for one in people))

    async def _join_one(self, one: Person, room: asyncio.Semaphore) -> None:
        async with room:
            agent = await self._connect(self._addresses[one.router])
            told = agent.subscribe(one.filter)
            await told.__aenter__()
        self._readers.append(asyncio.create_task(self._read(one, told)))

    async def _connect(self, address: str) -> Agent:
        from tidings import connect

        limit = time.monotonic() + PATIENCE
        while True:
            try:
                return await self._open.enter_async_context(connect(address))
            except EnvironmentProblem:  # the router is starting
                if time.monotonic() > limit:
                    raise
                await asyncio.sleep(AGAIN)

    async def _read(self, one: Person, told: Subscription) -> None:
        from tidings import Break, Delivery, Lost

        known: set[int] = set()
        async for item in told:
            if isinstance(item, Lost | Break):
                self.problems.append(f"{one.who}: {item!r}")
            if not isinstance(item, Delivery):  # either a problem, or a note about an interruption
                continue
            self.repeated += item.serial in known
            known.add(item.serial)
            self.told[one.who] += 1
            self.last = time.monotonic()
            self._remember(item.serial, item.payload, one)

    def _remember(self, serial: int, payload: bytes, one: Person) -> None:
        for seen in self.latest:
            if seen.serial == serial:
                seen.told.append(one)
                return
        if not self.latest or serial > self.latest[-1].serial:
            self.latest.append(SeenFlight(serial, msgspec.json.decode(payload), [one]))

    async def _close(self) -> None:
        for task in self._readers:
            task.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        await self._open.aclose()
