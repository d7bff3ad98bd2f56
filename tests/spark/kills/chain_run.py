"""A run of the whole chain: processes are killed again and again while rows come and interests are
added, and what agents were told is judged at the end.

all        the driver with its Java process, its daemon and its workers, at one stroke
driver     the Python driver alone; what it started is ended a little later
jvm        the Java process alone
worker     a Python worker; the stream goes on
root       the rendezvous point
router     one of the routers
between    the driver, after a commit and before the rendezvous point has the batch: that is stopped
           until the driver is dead, and then takes what is still on its way
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.broker.kills.tree import ROOT
from tests.spark.chain import Chain, Event, Interest
from tests.spark.kills.judge import files_of_batches
from tests.spark.kills.scene import KINDS, PLACES, Daily, draw_filter
from tests.spark.kills.victims import send
from tests.waiting import wait_for

from tidings.spark.channel.handing_over import read_handed

PATIENCE = 300.0  # seconds that a batch may take to reach the rendezvous point
MOST_DEATHS = 5  # of drivers, by themselves
MOST_BEHIND = 400  # rows that the pipeline may have to catch up
MOST_INTERESTS = 40


class Feeder(Daily):
    """Puts files of rows into the source."""

    def __init__(self, chain: Chain, chance: random.Random) -> None:
        super().__init__(chance, 0.3)
        self.chain, self.count = chain, 0

    def once(self) -> None:
        if self.chain.rows - self.chain.handed_rows() < MOST_BEHIND:
            self.chain.put([self._row() for _ in range(self.chance.randrange(1, 60))])

    def _row(self) -> Event:
        self.count += 1
        row: dict[str, Any] = {"id": self.count, "price": self.chance.randrange(100)}
        return row | {"kind": self.chance.choice(KINDS), "place": self.chance.choice(PLACES)}


class Joiner(Daily):
    """Adds interests while rows come; some are given up again."""

    def __init__(self, chain: Chain, chance: random.Random) -> None:
        super().__init__(chance, 3.0)
        self.chain = chain
        self.stayed: list[Interest] = []
        self.left: list[Interest] = []

    def once(self) -> None:
        agent = self.chance.choice(self.chain.agents)
        if len(self.stayed) < MOST_INTERESTS:
            self.stayed.append(agent.subscribe(draw_filter(self.chance)))
        if len(self.stayed) > 3 and self.chance.random() < 0.3:
            gone = self.stayed.pop(self.chance.randrange(len(self.stayed)))
            gone.end()
            self.left.append(gone)


class ChainRun:
    """One chain in one folder, from the first row to the verdict."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.chain = Chain(folder)
        self.killed: list[str] = []
        self.deaths = 0
        self.between = 0  # drivers that died between a commit and the end of handing over
        self._began = time.monotonic()
        self._old: list[Any] = []
        self.feeder = Feeder(self.chain, random.Random(seed + 1))
        self.joiner = Joiner(self.chain, random.Random(seed + 2))
        self.kept: list[Interest] = []

    def go(self, kinds: list[str]) -> str:
        chain = self.chain
        try:
            chain.start()
            for at in ("e0", "e1", "i0", ROOT):
                filters = [draw_filter(self.chance) for _ in range(3)]
                self.kept += chain.listen(at, "id >= 0", *filters).interests
            chain.run_pipeline()
            self.feeder.start()
            self._progress(2)
            self.joiner.start()
            for kind in kinds:
                self._progress(1)
                time.sleep(self.chance.uniform(0, 1.5))
                getattr(self, f"_kill_{kind}")()
                self.killed.append(kind)
                self.say(
                    f"{len(self.killed):2d}. killed {kind} after {len(chain.outbox.log)} batches"
                )
            self._progress(2)
            self.joiner.stop()
            self.feeder.stop()
            self._wait(lambda: chain.handed_rows() >= chain.rows)
            return self._judge()
        finally:
            for one in self._old:
                one.end()
            chain.end()

    def say(self, line: str) -> None:
        sys.stdout.write(f"  {time.monotonic() - self._began:6.1f} s  {line}\n")
        sys.stdout.flush()

    # -- progress ------------------------------------------------------------------------------

    def _handed(self) -> int:
        found = read_handed(self.chain.outbox.channel_folder)
        return -1 if found is None else found.batch

    def _progress(self, batches: int) -> None:
        goal = self._handed() + batches
        self._wait(lambda: self._handed() >= goal)

    def _wait(self, what: Any) -> None:
        def look() -> bool:
            pipeline = self.chain.pipeline
            if pipeline is not None and not pipeline.alive():
                self.deaths += 1
                assert self.deaths <= MOST_DEATHS, self.chain.errors()
                self.say(f"the driver ended with {pipeline.process.returncode}, starts again")
                pipeline.end()
                self.chain.run_pipeline()
            return bool(what())

        assert wait_for(look, PATIENCE), self.chain.errors()

    # -- kills ---------------------------------------------------------------------------------

    def _kill_all(self) -> None:
        assert self.chain.pipeline is not None
        self.chain.pipeline.end()
        self.chain.run_pipeline()

    def _kill_driver(self) -> None:
        old = self.chain.pipeline
        assert old is not None
        old.process.kill()
        old.process.wait()
        self._old.append(old)
        self.chain.run_pipeline()
        time.sleep(self.chance.uniform(0, 3))
        old.end()

    def _kill_jvm(self) -> None:
        pipeline = self.chain.pipeline
        assert pipeline is not None
        for pid in pipeline.part("jvm"):
            send(pid)
        assert wait_for(lambda: not pipeline.alive(), 60), self.chain.errors()
        pipeline.end()
        self.chain.run_pipeline()

    def _kill_worker(self) -> None:
        pipeline = self.chain.pipeline
        assert pipeline is not None
        self._wait(lambda: pipeline.part("worker"))
        for pid in pipeline.part("worker")[:1]:
            send(pid)

    def _kill_root(self) -> None:
        self._kill_node(ROOT)

    def _kill_router(self) -> None:
        self._kill_node(self.chance.choice([*self.chain.tree.names[1:]]))

    def _kill_node(self, name: str) -> None:
        self.chain.tree.check()
        self.chain.tree.kill(name)
        time.sleep(self.chance.uniform(0, 2))
        self.chain.tree.start(name)

    def _kill_between(self) -> None:
        tree, pipeline = self.chain.tree, self.chain.pipeline
        assert pipeline is not None
        outbox, root = self.chain.outbox, tree.nodes[ROOT].process.pid
        # a batch that has its version can be committed without the rendezvous point
        self._wait(lambda: outbox.read_pin(len(outbox.log)) is not None)
        before = len(outbox.log)
        os.kill(root, signal.SIGSTOP)
        try:
            wait_for(lambda: len(outbox.log) > before, 10)
            time.sleep(self.chance.uniform(0, 0.3))  # for the parts to leave
            left = len(outbox.log) - 1 - self._handed()
            pipeline.end()
        finally:
            os.kill(root, signal.SIGCONT)
        self.between += left > 0
        self.say(f"      committed and not handed over: {left}")
        self.chain.run_pipeline()

    # -- verdict -------------------------------------------------------------------------------

    def _judge(self) -> str:
        chain = self.chain
        chain.tree.check()
        batches = files_of_batches(chain.folder, len(chain.outbox.log))
        assert sorted(name for names in batches for name in names) == sorted(chain.files)
        rows = [row for names in batches for name in names for row in chain.files[name]]
        for one in self.kept:
            one.check(rows)
        for one in self.joiner.stayed:
            must: list[Event] = []
            for number, names in enumerate(batches):
                commit = chain.outbox.read_commit(number)
                assert commit is not None
                if commit.micros > one.began:
                    must += (row for name in names for row in chain.files[name])
            one.check(must, rows)
        for one in self.joiner.left:
            one.check([], rows)
        time.sleep(1)
        every = [*self.kept, *self.joiner.stayed, *self.joiner.left]
        assert all(count == 1 for one in every for count in one.ids.values())
        told = sum(one.ids.total() for one in every)
        found = (
            f"{len(self.killed)} kills, {len(batches)} batches, {len(rows)} rows, {len(every)} "
            f"interests, {told} told; 0 lost, 0 doubled, 0 breaks; "
            f"{self.between} between commit and hand-over, {self.deaths} deaths of drivers"
        )
        self.say(found)
        return found
