"""A root, two routers, agents with overlapping filters, and a pipeline that hands tagged rows over,
while the root is killed at random moments: every agent gets exactly what `Filter.matches` says,
once, and the serials have the order of the hand-over.

An interest holds from the first batch that was begun after its acknowledgment. Of earlier batches
an agent may get rows too, if they were tagged with a node below its own. TIDINGS_KILLS says how
often the root is killed in the long run.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

import msgspec
import pytest
from tests.broker.kills.tagging import Row, Tagging
from tests.broker.kills.tree import ROOT, TIMES, Tree
from tests.waiting import until

from tidings.filters import parse
from tidings.network import Agent, Subscription, connect
from tidings.routing.clients import Delivery, Interrupted, Resumed

STAY = ["k >= 0", "k < 50", "k < 30 AND p = 1", "k BETWEEN 20 AND 60", "p IN (1, 2)", "k = 7",
        "p = 1 OR k > 90", "k >= 0"]  # fmt: skip


class Told(msgspec.Struct):
    """What one subscription was told."""

    text: str
    since: float = 0.0  # when it was in force
    upto: float = float("inf")  # when it was ended
    deliveries: list[Delivery] = []
    others: list[object] = []

    def judge(self, rows: list[Row]) -> None:
        condition = parse(self.text)
        assert not self.others, (self.text, self.others)
        by_number = {row.number: row for row in rows}
        told = [int(one.payload) for one in self.deliveries]
        assert len(set(told)) == len(told), f"{self.text}: told something twice"
        for number in told:
            assert condition.matches(by_number[number].event), (self.text, by_number[number])
        in_order = [int(one.payload) for one in sorted(self.deliveries, key=lambda one: one.serial)]
        assert in_order == sorted(told), f"{self.text}: the serials have another order"
        assert self.missing(rows) == set(), self.text

    def missing(self, rows: list[Row]) -> set[int]:
        condition = parse(self.text)
        due = {
            row.number for row in rows
            if self.since < row.begun < self.upto and condition.matches(row.event)
        }  # fmt: skip
        return due - {int(one.payload) for one in self.deliveries}


class Watch:
    """Agents at the routers, and what they are told."""

    def __init__(self, agents: list[Agent], seed: int) -> None:
        self.agents = agents
        self.chance = random.Random(f"{seed} watch")
        self.told: list[Told] = []

    async def stay(self, text: str, over: asyncio.Event) -> None:
        told = Told(text)
        self.told.append(told)
        async with self.chance.choice(self.agents).subscribe(text) as subscription:
            told.since = time.monotonic()
            reading = asyncio.create_task(self._read(subscription, told))
            await over.wait()
            reading.cancel()

    async def visit(self, over: asyncio.Event) -> None:
        """Come and go. What was due while it was here must come before it leaves."""
        while not over.is_set():
            low = self.chance.randrange(90)
            leave = asyncio.Event()
            task = asyncio.create_task(self.stay(f"k BETWEEN {low} AND {low + 8}", leave))
            await asyncio.sleep(self.chance.uniform(0.5, 3))
            self.told[-1].upto = time.monotonic()
            leave.set()
            await task

    async def _read(self, subscription: Subscription, told: Told) -> None:
        async for one in subscription:
            if isinstance(one, Delivery):
                told.deliveries.append(one)
            elif not isinstance(one, Interrupted | Resumed):
                told.others.append(one)


async def run(folder: Path, seed: int, kills: int) -> tuple[Tagging, Watch, int]:
    chance = random.Random(seed)
    tree = Tree(folder, {"i0": ROOT, "i1": ROOT})
    killed = 0
    over = asyncio.Event()
    try:
        for name in tree.names:
            tree.start(name)
        said = [folder / f"{name}.errors" for name in tree.names]
        await until(lambda: all("listens" in one.read_text() for one in said))
        places = [tree.addresses[name] for name in ("i0", "i1", ROOT)]
        async with (
            connect(places[0], times=TIMES) as first,
            connect(places[1], times=TIMES) as second,
        ):
            watch = Watch([first, second], seed)
            tasks = [asyncio.create_task(watch.stay(text, over)) for text in STAY]
            await until(lambda: all(one.since for one in watch.told) and len(watch.told) == 8)
            tagging = Tagging(places[2], seed)
            tagging.start()
            visits = asyncio.create_task(watch.visit(over))
            while killed < kills:
                before = tagging.parts
                await until(lambda: tagging.parts > before + 3 or not tagging.is_alive())
                assert tagging.is_alive(), tagging.problem
                await asyncio.sleep(chance.uniform(0, 0.5))
                tree.kill(ROOT)
                killed += 1
                await asyncio.sleep(chance.uniform(0, 1.0))
                tree.start(ROOT)
            before = tagging.batches
            await until(lambda: tagging.batches > before + 3 or not tagging.is_alive())
            await asyncio.get_running_loop().run_in_executor(None, tagging.stop)
            visits.cancel()
            staying = watch.told[: len(STAY)]
            await until(lambda: not any(one.missing(tagging.rows) for one in staying))
            over.set()
            await asyncio.gather(*tasks, visits, return_exceptions=True)
        tree.check()
    finally:
        tree.end()
    return tagging, watch, killed


def judge(tagging: Tagging, watch: Watch) -> None:
    for told in watch.told[: len(STAY)]:
        told.judge(tagging.rows)
    for told in watch.told[len(STAY) :]:
        # a visitor leaves before everything may have come, so only what came is judged
        msgspec.structs.replace(told, since=float("inf")).judge(tagging.rows)
    assert tagging.rows


@pytest.mark.timeout(300)
def test_two_kills(tmp_path: Path, seed: int) -> None:
    tagging, watch, killed = asyncio.run(run(tmp_path, seed, 2))
    judge(tagging, watch)
    assert killed == 2
    assert tagging.parts > 10


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_kills(tmp_path: Path, seed: int) -> None:
    kills = int(os.environ.get("TIDINGS_KILLS", "60"))
    tagging, watch, _ = asyncio.run(run(tmp_path, seed, kills))
    judge(tagging, watch)
    assert len(watch.told) > len(STAY) + 10
