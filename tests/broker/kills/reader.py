"""A process with subscribers that record what they receive, and judge it at the end.

python -m tests.broker.kills.reader FOLDER TIMES NUMBER SEED VISITORS CHANNELS {KEPT=ADDRESS}...

Some stay, from before the first notification to the end; visitors come and go. One has a name: it
comes and goes too, and confirms some of what it is told. CHANNELS are names with commas between
them: who stays is subscribed in all of them, over one link.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import msgspec
from tests.broker.kills.board import FINISH, PUBLISH, PUBLISHERS, STOP, Board
from tests.broker.kills.notes import (
    KEPT,
    NAMED,
    Interest,
    Ledger,
    NamedLedger,
    Verdict,
    between,
    in_channel,
)
from tests.waiting import until

from tidings.model import EnvironmentProblem
from tidings.network.agent import Agent, Subscription, connect
from tidings.routing.clients import Delivery
from tidings.routing.clients.subscriber import Lost
from tidings.routing.protocol.lineage import Break
from tidings.routing.protocol.times import Times

FOREVER = 1e6  # seconds: whoever started this ends it
PATIENCE = 120.0  # seconds until everything that was acknowledged must be here
QUIET = 1.5  # seconds in which nothing may be told a second time


class Reader:
    def __init__(
        self, folder: Path, number: int, seed: int, times: Times, channels: Sequence[str]
    ) -> None:
        self.board = Board(folder / "board")
        self.channels = channels
        self.folder = folder
        self.number = number
        self.chance = random.Random(f"{seed} reader {number}")
        self.times = times
        self.verdicts: list[Verdict] = []
        self.visits = self.entered = self.named = 0
        self.told = 0

    async def stay(self, address: str, interest: Interest) -> None:
        async with connect(address, times=self.times) as agent, asyncio.TaskGroup() as group:
            for which in range(len(self.channels)):
                group.create_task(self._stay_in(agent, which, interest))

    async def _stay_in(self, agent: Agent, which: int, interest: Interest) -> None:
        channel = agent.channel(self.channels[which])
        async with channel.subscribe(interest[0]) as one:
            self.entered += 1
            wants = in_channel(interest, which, len(self.channels))
            async with self._writing(one, Ledger(wants)) as ledger:
                await until(lambda: self.board.stage >= FINISH, FOREVER)
                await self._judge(ledger, {}, "kept")

    async def visit(self, address: str) -> None:
        """Come and go, at one agent."""
        async with connect(address, times=self.times) as agent:
            await until(lambda: self.board.stage >= PUBLISH, FOREVER)
            while self.board.stage < STOP:
                await self._visit_once(agent)
                await asyncio.sleep(self.chance.uniform(0, 1.0))

    async def _visit_once(self, agent: Agent) -> None:
        interest = between(self.chance.randrange(90), self.chance.randrange(1, 10))
        which = self.chance.randrange(len(self.channels))
        interest = in_channel(interest, which, len(self.channels))
        async with agent.channel(self.channels[which]).subscribe(interest[0]) as one:
            # whatever is published from now on is acknowledged after the entering
            after = {number: self.board.said(number) for number in range(PUBLISHERS)}
            async with self._writing(one, Ledger(interest)) as ledger:
                with contextlib.suppress(TimeoutError):
                    await until(lambda: self.board.stage >= STOP, self.chance.uniform(0.2, 8.0))
                await self._judge(ledger, after, "visit")
                self.visits += 1

    async def return_under_a_name(self, addresses: Sequence[str]) -> None:
        """Come and go, at any router, and go on after what was confirmed."""
        interest = in_channel(NAMED, 0, len(self.channels))
        ledger, after = NamedLedger(interest), dict[int, int]()
        is_over = False
        while not is_over:
            is_over = self.board.stage >= FINISH
            with contextlib.suppress(EnvironmentProblem):  # the router is away
                async with (
                    connect(self.chance.choice(addresses), name=f"named-{self.number}",
                            times=self.times) as agent,
                    agent.channel(self.channels[0]).subscribe(interest[0], name="mine") as one,
                ):  # fmt: skip
                    if not after:
                        after = {number: self.board.said(number) for number in range(PUBLISHERS)}
                        self.entered += 1
                    ledger.begin_stay()
                    await self._read_named(one, ledger, after, is_over)
            is_over = is_over and bool(self.named)
            await asyncio.sleep(0.05)

    async def _read_named(
        self, one: Subscription, ledger: NamedLedger, after: dict[int, int], to_the_end: bool
    ) -> None:
        """Read for a while and confirm some; or read to the end, and judge."""
        told: list[Delivery] = []
        async with self._writing(one, ledger, told.append):
            if to_the_end:
                await self._judge(ledger, after, "kept")
                self.named += 1
                return
            with contextlib.suppress(TimeoutError):
                await until(lambda: self.board.stage >= FINISH, self.chance.uniform(0.1, 1.5))
            with contextlib.suppress(TimeoutError):  # preferably between the pieces of a payload
                await until(lambda: self.board.stage >= STOP or is_between(one, told), 1.0)
            if told and self.chance.random() < 0.8:
                many = self.chance.choice(
                    (len(told), len(told), self.chance.randrange(1, len(told) + 1))
                )
                await one.confirm(told[many - 1], PATIENCE)
                ledger.confirm(many)

    @contextlib.asynccontextmanager
    async def _writing(
        self,
        one: Subscription,
        ledger: Ledger,
        note: Callable[[Delivery], object] = lambda _: None,
    ) -> AsyncIterator[Ledger]:
        async def write() -> None:
            async for what in one:
                if isinstance(what, Lost):
                    ledger.verdict.lost += what.numbers
                elif isinstance(what, Break):
                    ledger.verdict.breaks += 1
                    ledger.verdict.examples.append(what.reason)
                elif isinstance(what, Delivery):
                    ledger.put(what.payload)
                    note(what)
                    self.told += 1
                    self.board.tell(self.number, self.told)

        task = asyncio.create_task(write())
        try:
            yield ledger
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _judge(self, ledger: Ledger, after: dict[int, int], kind: str) -> None:
        """Wait for what is acknowledged by now, and a little for what must not come."""
        upto = {number: self.board.acknowledged(number) for number in range(PUBLISHERS)}
        late = time.monotonic() + PATIENCE
        missing = ledger.missing(after, upto)
        while missing and time.monotonic() < late:
            await asyncio.sleep(0.2)
            missing = [one for one in missing if not ledger.has(*one)]
        if kind == "kept":
            await asyncio.sleep(QUIET)
        self.verdicts.append(ledger.conclude(missing))


def is_between(one: Subscription, told: list[Delivery]) -> bool:
    """Has anything come after the first piece of a payload, and before its last?"""
    unfinished = one._machine._handout._pieces._found.values()
    first = min((min(parts.serials) for parts in unfinished), default=1 << 62)
    return bool(told) and told[-1].serial > first


async def main(
    folder: str, times: str, number: str, seed: str, visitors: str, channels: str, *kept: str
) -> None:
    read = msgspec.json.decode(times, type=Times)
    reader = Reader(Path(folder), int(number), int(seed), read, channels.split(","))
    each = [one.split("=", 1) for one in kept]
    async with asyncio.TaskGroup() as group:
        for which, address in each:
            group.create_task(reader.stay(address, KEPT[int(which)]))
        for at in range(int(visitors)):
            group.create_task(reader.visit(each[at % len(each)][1]))
        group.create_task(reader.return_under_a_name([address for _, address in each]))
        await until(lambda: reader.entered == 1 + len(each) * len(reader.channels), FOREVER)
        (reader.folder / f"reader-{number}.ready").touch()
    (reader.folder / f"reader-{number}.json").write_bytes(msgspec.json.encode(reader.verdicts))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
