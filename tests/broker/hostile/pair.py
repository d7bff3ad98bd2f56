"""The honest publisher and subscriber, as a process that also measures latency.

    python -m tests.broker.hostile.pair PORT OUT

It publishes 50 a second without waiting for acknowledgments, and every few seconds takes another
subscription for a while. With SIGTERM it stops publishing, waits for what is under way, and writes
what it saw to the file.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from pathlib import Path

import msgspec

from tidings.network.agent import Agent, Refusal, connect
from tidings.routing.clients import Interrupted, Resumed
from tidings.routing.clients.subscriber import Delivery

PAUSE = 0.02
LAST = 60.0  # seconds that what is under way may take
OTHER = 5.0  # seconds between two more subscriptions


Latencies = list[tuple[float, float]]  # when it was published, and for how many seconds it went


class Seen(msgspec.Struct):
    """What the pair tells at the end."""

    published: int
    told: Latencies
    acknowledged: Latencies
    in_force: list[float]  # seconds that other subscriptions took
    lost: list[int]  # those that were acknowledged and not told
    wrong: list[str]


class Pair:
    """What the two of them have seen so far."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self.told: dict[int, float] = {}
        self.acknowledged: dict[int, float] = {}
        self.in_force: list[float] = []  # seconds that another subscription took
        self.asking = 0.0  # since when one is not in force yet,
        self.asked = 0.0  # until when it was waited for
        self.wrong: list[str] = []
        self.under_way: set[asyncio.Task[None]] = set()

    async def read(self, agent: Agent) -> None:
        async with agent.subscribe("pair = 'ours'") as told:
            async for one in told:
                if isinstance(one, Interrupted | Resumed):
                    continue
                if not isinstance(one, Delivery):
                    self.wrong.append(f"the subscriber got {one!r}"[:300])
                    continue
                number = int(one.payload)
                if number in self.told:
                    self.wrong.append(f"number {number} came twice")
                self.told[number] = time.monotonic()

    async def publish(self, agent: Agent) -> None:
        due = time.monotonic()
        while True:
            number = len(self.begun)
            self.begun.append(time.monotonic())
            waiting = agent.publish_soon({"pair": "ours", "n": number}, b"%d" % number)
            task = asyncio.create_task(self._acknowledge(number, waiting))
            self.under_way.add(task)
            task.add_done_callback(self.under_way.discard)
            due = max(due + PAUSE, time.monotonic() - 1)
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _acknowledge(self, number: int, waiting: asyncio.Future[int]) -> None:
        try:
            await waiting
            self.acknowledged[number] = time.monotonic()
        except Refusal as problem:
            self.wrong.append(f"number {number} was refused: {problem}"[:300])

    async def take_others(self, agent: Agent) -> None:
        while True:
            await asyncio.sleep(OTHER)
            start = self.asking = time.monotonic()
            try:
                async with agent.subscribe(f"pair = 'ours' AND n > {len(self.begun)}") as told:
                    self.in_force.append(time.monotonic() - start)
                    self.asking = 0.0
                    await anext(told)
            except Refusal as problem:
                self.wrong.append(f"another subscription was refused: {problem}"[:300])

    def is_done(self) -> bool:
        return not self.under_way and self.told.keys() >= self.acknowledged.keys()

    def seen(self) -> Seen:
        begun = self.begun
        if self.asking:  # it took at least so long
            self.in_force.append(self.asked - self.asking)
        return Seen(
            len(begun),
            [(begun[n], when - begun[n]) for n, when in self.told.items()],
            [(begun[n], when - begun[n]) for n, when in self.acknowledged.items()],
            self.in_force,
            sorted(self.acknowledged.keys() - self.told.keys()),
            self.wrong,
        )


async def work(port: int) -> Pair:
    pair = Pair()
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    there = f"tidings://127.0.0.1:{port}"
    async with (
        connect(there, name="reader", token="reads") as reader,
        connect(there, name="writer", token="writes") as writer,
    ):
        tasks = [asyncio.create_task(pair.read(reader))]
        await asyncio.sleep(1)
        tasks += [
            asyncio.create_task(pair.publish(writer)),
            asyncio.create_task(pair.take_others(reader)),
        ]
        await over.wait()
        pair.asked = time.monotonic()
        tasks[1].cancel()
        tasks[2].cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST):
                while not pair.is_done():  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        await asyncio.sleep(1)  # for what comes twice
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                pair.wrong.append(f"a task ended: {task.exception()!r}"[:300])
        for task in (*tasks, *pair.under_way):
            task.cancel()
    return pair


if __name__ == "__main__":
    found = asyncio.run(work(int(sys.argv[1])))
    Path(sys.argv[2]).write_bytes(msgspec.json.encode(found.seen()))
