"""Publishers and subscribers of the live overload: open and closed loops, and the deliveries.

Publishers are agents that publish without waiting for acknowledgments. The payload of every
publication begins with its number. Latencies are measured from the time at which a publication was
due, so a publisher that is late makes them longer, not shorter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import numpy as np

from tidings.model import EnvironmentProblem
from tidings.network import Agent, Subscription, connect
from tidings.routing.clients import Delivery, Interrupted, Resumed
from tidings.studies.workloads.checking import WrongMatches

PAYLOAD = 500  # bytes
PATIENCE = 60.0  # seconds
TEXT = b"all work and no play makes jack a dull boy; " * 5
IDLE = 60  # filters that search the text and match nothing, as work for the rendezvous point
SHORTEST = 0.0005  # the shortest sleep in seconds
Times = np.ndarray[tuple[int], np.dtype[np.float64]]


class Traffic:
    """Publications by number: their topics, when they were due, and when they arrived."""

    def __init__(self, publishers: Sequence[Agent], topics: Sequence[str]) -> None:
        self._publishers = publishers
        self._topics = topics
        self._contents = [b'{"topic":"%s","text":"%s"}' % (one.encode(), TEXT) for one in topics]
        self._pad = bytes(PAYLOAD - 8)
        self.topics: list[int] = []
        self.due: list[float] = []
        self.arrived: list[float] = []
        self.serials: list[int] = []
        self.acknowledged = self.twice = 0
        self.problem: BaseException | None = None
        self.news = asyncio.Event()

    @property
    def published(self) -> int:
        return len(self.due)

    @property
    def waiting(self) -> int:
        """How many publications have not been delivered yet."""
        return len(self.due) - len(self.serials)

    def publish(self, topic: int, due: float) -> None:
        number = len(self.due)
        self.topics.append(topic)
        self.due.append(due)
        self.arrived.append(0.0)
        agent = self._publishers[number % len(self._publishers)]
        data = number.to_bytes(8, "big") + self._pad
        agent.publish_content(self._contents[topic], data).add_done_callback(self._note)

    def _note(self, done: asyncio.Future[int]) -> None:
        if done.cancelled() or (problem := done.exception()) is None:
            self.acknowledged += not done.cancelled()
        else:
            self.problem = self.problem or problem
        self.news.set()

    async def read(self, told: Subscription) -> None:
        """Record what a subscription yields, until it ends."""
        async for item in told:
            if isinstance(item, Delivery):
                number = int.from_bytes(item.payload[:8], "big")
                if self.arrived[number]:
                    self.twice += 1
                    continue
                self.arrived[number] = time.monotonic()
                self.serials.append(item.serial)
            elif not isinstance(item, Interrupted | Resumed):
                self.problem = self.problem or WrongMatches(f"a subscriber was told {item}")

    async def run_closed(self, topics: Sequence[int], seconds: float, in_flight: int) -> float:
        """Keep `in_flight` publications in flight; return how many were acknowledged per second."""
        begun, before, first = time.monotonic(), self.acknowledged, self.published
        at = 0
        while (now := time.monotonic()) < begun + seconds:
            while self.published - first < self.acknowledged - before + in_flight:
                self.publish(topics[at % len(topics)], now)
                at += 1
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), PATIENCE)
            self._need_no_problem()
        rate = (self.acknowledged - before) / (time.monotonic() - begun)
        await self.settle()
        return rate

    async def run_open(
        self, rng: np.random.Generator, choices: int, rate: float, seconds: float,
        *, until_below: int = -1,
    ) -> float:  # fmt: skip
        """Publish at random times, without waiting for acknowledgments, for `seconds`, or until
        fewer than `until_below` wait; return how long that took."""
        begun = time.monotonic()
        now = due = begun
        while now < begun + seconds:
            topics = rng.integers(0, choices, 1024).tolist()
            for gap, topic in zip(rng.exponential(1 / rate, 1024).tolist(), topics, strict=True):
                due += gap
                now = time.monotonic()
                if now < due:
                    await asyncio.sleep(max(SHORTEST, due - now))
                if due >= begun + seconds or self.waiting < until_below:
                    return now - begun
                self.publish(topic, due)
                if now - due > 0.005 and not self.published % 16:
                    await asyncio.sleep(0)  # the publisher is late, but other tasks must run
            self._need_no_problem()
        return now - begun

    async def settle(self, seconds: float = PATIENCE) -> None:
        """Wait until every publication is acknowledged and delivered."""
        end = time.monotonic() + seconds
        while self.waiting or self.acknowledged < self.published:
            self._need_no_problem()
            if time.monotonic() > end:
                raise WrongMatches(
                    f"{self.published:,} publications: {self.acknowledged:,} acknowledged and "
                    f"{len(self.serials):,} delivered after {seconds:g} s more"
                )
            await asyncio.sleep(0.02)

    def check(self) -> None:
        """Raise WrongMatches if a publication was delivered twice, or a serial is missing."""
        self._need_no_problem()
        found = sorted(self.serials)
        if self.twice or found != [*range(found[0], found[0] + self.published)]:
            raise WrongMatches(
                f"{self.published:,} publications: {self.twice:,} were delivered twice, and "
                f"{len(set(found)):,} different serials from {found[0]:,} to {found[-1]:,} arrived"
            )

    def count_serials(self) -> tuple[int, int]:
        """How many different serials arrived, and how many between them are missing."""
        found = set(self.serials)
        return len(found), max(found) - min(found) + 1 - len(found)

    def waits(self, first: int, last: int, topics: set[int]) -> Times:
        """The latencies of the publications that have the numbers `first` up to `last` and the
        given topics."""
        chosen = (one for one in range(first, last) if self.topics[one] in topics)
        return np.array([self.arrived[one] - self.due[one] for one in chosen] or [0.0])

    def _need_no_problem(self) -> None:
        if self.problem is not None:
            raise self.problem


@asynccontextmanager
async def open_traffic(port: int, topics: Sequence[str], publishers: int) -> AsyncIterator[Traffic]:
    """Agents at the router at a port, with a subscription to each topic. One more agent has filters
    that match nothing."""
    async with AsyncExitStack() as stack:
        address = f"tidings://127.0.0.1:{port}"
        agents = [
            await stack.enter_async_context(connect(address, timeout=PATIENCE, direct=False))
            for _ in range(publishers + 2)
        ]
        traffic = Traffic(agents[2:], topics)
        for at in range(IDLE):
            idle = agents[1].subscribe(f"text LIKE '%play {at} work%'", timeout=PATIENCE)
            await stack.enter_async_context(idle)
        readers = []
        for topic in topics:
            wanted = agents[0].subscribe(f"topic = '{topic}'", timeout=PATIENCE)
            told = await stack.enter_async_context(wanted)
            readers.append(asyncio.create_task(traffic.read(told)))
        try:
            yield traffic
        finally:
            for one in readers:
                one.cancel()
            found = await asyncio.gather(*readers, return_exceptions=True)
    for problem in found:
        if isinstance(problem, Exception):
            raise EnvironmentProblem(f"a subscriber ended: {problem}") from problem
