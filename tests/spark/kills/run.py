"""A run: a pipeline is killed again and again while the world goes on, and judged at the end.

all         the driver with its Java process, its daemon and its workers, at one stroke
driver      the Python driver alone; its Java process is left to itself for a while
orphan      the same, and the Java process sleeps until another driver is at work, then wakes up
jvm         the Java process alone
daemon      the process that Spark's Python workers come from
worker      a Python worker; the stream goes on
executor    on a cluster: a process that tasks run in
lost        on a cluster of its own: a worker of the cluster, with its executor
"""

from __future__ import annotations

import random
import signal
import sys
import time
from pathlib import Path

from tests.spark.kills.judge import Judge
from tests.spark.kills.scene import FILE, Changer, Feeder
from tests.spark.kills.victims import Cluster, Driver, clean_up_after, send
from tests.waiting import wait_for

from tidings.spark.outbox.outbox import Outbox

PATIENCE = 300.0  # seconds that a driver is given to commit something
MOST_DEATHS = 5  # of drivers, by themselves
CARRIES_ON = ("worker", "daemon")  # of these the driver must not die


class Run:
    """One pipeline in one folder, from the first notification to the verdict."""

    def __init__(self, folder: Path, seed: int, master: str = "local[2,4]", **more: str) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.killed: list[str] = []
        self.deaths = 0  # of drivers, by themselves
        self._began = time.monotonic()
        self._old: list[Driver] = []
        (folder / "in").mkdir()
        self.outbox = Outbox(folder / "out")
        self._done = self._commits_seen = 0
        self.changer = Changer(folder, random.Random(seed + 1))
        self.feeder = Feeder(folder, random.Random(seed + 2), self._has_fewer)
        self.cluster = Cluster(folder) if master == "standalone" else None
        if self.cluster is not None:
            master = self.cluster.url
        settings = "\n".join(f'"{key}" = "{value}"' for key, value in more.items())
        (folder / "pipeline.toml").write_text(FILE.format(master=master, settings=settings))
        self.driver = Driver(folder)

    def go(self, kinds: list[str]) -> str:
        """Kill as told, let it run dry, judge."""
        self.changer.start()
        self.feeder.start()
        try:
            for kind in kinds:
                self._await_moment(kind)
                self._kill(kind)
            self.say("no more kills")
            self._progress(2)
            self.feeder.stop()
            self.changer.stop()
            self._run_dry()
        finally:
            for one in (self.driver, *self._old):
                one.end()
            if self.cluster is not None:
                self.cluster.end()
            clean_up_after(self.folder)
        found = Judge(self.folder, self.feeder, self.changer).judge()
        self.say(found)
        return found

    def say(self, line: str) -> None:
        sys.stdout.write(f"  {time.monotonic() - self._began:6.1f} s  {line}\n")
        sys.stdout.flush()

    # -- moments -------------------------------------------------------------------------------

    def _await_moment(self, kind: str) -> None:
        """A random moment, most often within a batch, now and then while a driver starts."""
        if kind not in CARRIES_ON and self.chance.random() < 0.15:
            time.sleep(self.chance.uniform(0, 8))
        else:
            self._progress(1)
            wait_for(self._in_batch, 10)
            time.sleep(self.chance.uniform(0, 1.5))
        if kind in ("worker", "daemon", "executor"):
            assert self._wait(lambda: bool(self._part(kind))), self._errors()

    def _in_batch(self) -> bool:
        return self.outbox.read_pin(len(self.outbox.commits())) is not None

    def _progress(self, batches: int) -> None:
        """Wait for commits; a driver that died by itself is started again, and counted."""
        goal = len(self.outbox.commits()) + batches
        assert self._wait(lambda: len(self.outbox.commits()) >= goal), self._errors()

    def _wait(self, what: object) -> bool:
        assert callable(what)

        def look() -> bool:
            if not self.driver.alive():
                self.deaths += 1
                assert self.deaths <= MOST_DEATHS, self._errors()
                self.say(f"the driver ended with {self.driver.process.returncode}, starts again")
                self.driver.end()  # what it started goes too
                self._restart()
            return bool(what())

        return wait_for(look, PATIENCE)

    # -- kills ---------------------------------------------------------------------------------

    def _kill(self, kind: str) -> None:
        batch = len(self.outbox.commits())
        where = f"in batch {batch}" if self._in_batch() else f"before batch {batch}"
        getattr(self, f"_kill_{kind}")()
        self.killed.append(kind)
        self.say(f"{len(self.killed):2d}. killed {kind} {where}")
        if kind in CARRIES_ON:
            before = self.driver
            self._progress(2)
            assert self.driver is before, f"the driver died of a killed {kind}: {self._errors()}"

    def _kill_all(self) -> None:
        self.driver.end()
        self._restart()

    def _kill_driver(self) -> None:
        old = self.driver
        self._old.append(old)
        old.process.kill()
        old.process.wait()
        self._restart()
        time.sleep(self.chance.uniform(0, 5))
        old.end()

    def _kill_orphan(self) -> None:
        old = self.driver
        java = old.part("jvm")
        for pid in java:
            send(pid, signal.SIGSTOP)
        old.process.kill()
        old.process.wait()
        self._old.append(old)
        self._restart()
        self._progress(1)
        for pid in java:
            send(pid, signal.SIGCONT)
        wait_for(lambda: not old.members(), self.chance.uniform(2, 12))
        self.say(f"      the orphan went on; left of it when it is ended: {len(old.members())}")
        old.end()

    def _kill_jvm(self) -> None:
        for pid in self.driver.part("jvm"):
            send(pid)
        if not wait_for(lambda: not self.driver.alive(), 60):
            raise AssertionError(f"the driver outlives its Java process: {self._errors()}")
        self.driver.end()
        self._restart()

    def _kill_worker(self) -> None:
        self._kill_one("worker")

    def _kill_daemon(self) -> None:
        self._kill_one("daemon")

    def _kill_executor(self) -> None:
        self._kill_one("executor")

    def _kill_one(self, role: str) -> None:
        pids = self._part(role)
        if pids:  # else it went by itself just now
            send(self.chance.choice(pids))

    def _part(self, role: str) -> list[int]:
        homes = [self.driver] if self.cluster is None else [self.driver, *self.cluster.workers]
        return [pid for home in homes for pid in home.part(role)]

    def _kill_lost(self) -> None:
        assert self.cluster is not None
        at = self.chance.randrange(len(self.cluster.workers))
        self.cluster.workers[at].end()
        self.cluster.workers[at] = self.cluster.new_worker()

    def _restart(self) -> None:
        self.driver = Driver(self.folder)

    # -- how far it is -------------------------------------------------------------------------

    def _has_fewer(self, rows: int) -> bool:
        return self.feeder.rows - self._rows_done() < rows

    def _rows_done(self) -> int:
        while (commit := self.outbox.read_commit(self._commits_seen)) is not None:
            self._done += commit.rows + commit.refused
            self._commits_seen += 1
        return self._done

    def _run_dry(self) -> None:
        assert self._wait(lambda: self._rows_done() >= self.feeder.rows), self._errors()
        assert self._rows_done() == self.feeder.rows
        time.sleep(1)
        assert self._rows_done() == self.feeder.rows

    def _errors(self) -> str:
        return (self.folder / "errors").read_text(errors="replace")[-3000:]
