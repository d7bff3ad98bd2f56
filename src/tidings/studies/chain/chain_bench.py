"""Runs the whole chain on this machine, checks what agents receive, and measures each stage.

    rows ──> files or Kafka ──> Spark: driver, Java, workers ──> root ──> routers ──> agents
                                       ^ the agents' interests ──┘ ^── a publisher, with tags from
                                                                       a preprocessor

A run has three phases. In the first phase, everything starts, and two batches are processed. In the
second phase, rows arrive at a steady rate; interests are added and, on request, processes are
killed. In the third phase, many rows arrive at once. Latencies are measured in the second phase,
rates in the third.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tidings.model import EnvironmentProblem
from tidings.spark import kafka_jars
from tidings.studies.chain.chain_nodes import ABOVE, PREPROCESSOR, ChainNodes
from tidings.studies.chain.chain_report import AddedInterests, ChainReport
from tidings.studies.chain.chain_rows import (
    COLUMNS,
    DIALECTS,
    FIRST_PUBLISHED,
    WrittenInterest,
    draw_interest,
    draw_interests,
)
from tidings.studies.chain.chain_stages import (
    measure_latencies,
    measure_rates,
    place_rows,
)
from tidings.studies.chain.chain_stream import PipelineRun
from tidings.studies.chain.feeding import ChainPublisher, Feeder, FileSource, KafkaSource
from tidings.studies.chain.judging import (
    RowOracle,
    count_due,
    count_in_next_batch,
    count_out_of_order,
    find_times,
    judge,
    judge_published,
)
from tidings.studies.chain.killing import Killer
from tidings.studies.chain.listener_processes import Listeners
from tidings.studies.host.machine_info import MachineInfo, describe_machine

FIRST = 200  # rows of each of the first two batches
PATIENCE = 900.0  # seconds without any progress after which the run fails
AT_ONCE = 2_000  # rows in a file of the third phase
SILENCE = 60.0  # seconds without a delivery after which no more are expected
AFTER = 1.0  # seconds to wait for notifications that should not arrive
Note = Callable[[str], None]


def bench_chain(
    folder: Path,
    *,
    source: str = "files",
    agents: int = 100,
    processes: int = 4,
    rate: float = 300,
    seconds: float = 20,
    at_once: int = 10_000,
    added: int = 8,
    kills: int = 0,
    seed: int = 1,
    note: Note = lambda _: None,
) -> ChainReport:
    """Run the chain. With `kills`, the second phase lasts until that many processes were killed."""
    machine, began = describe_machine(), time.monotonic()
    run = ChainRun(folder, source, seed, note)
    with contextlib.closing(run):
        run.start(agents, processes)
        run.feed_first()
        run.feed_steadily(rate, seconds, added, kills)
        run.feed_at_once(at_once)
        return run.report(machine, began)


class ChainRun:
    """One run, in one folder."""

    def __init__(self, folder: Path, source: str, seed: int, note: Note) -> None:
        self._note, self._seed, self._source_kind = note, seed, source
        self._closing = contextlib.ExitStack()
        self._interests: list[WrittenInterest] = []
        self._since: list[int] = []  # when each interest was added; 0 for those added at the start
        self._added_from = self._steady_from = self._steady_to = 0
        self._folder = folder
        self.nodes = ChainNodes(folder, COLUMNS)
        self._closing.callback(self.nodes.end)
        if source == "kafka":
            note("starting Kafka")
            kafka_jars()  # download the connector before it is needed
        self._source = KafkaSource(folder) if source == "kafka" else FileSource(folder)
        self._closing.callback(self._source.end)
        root = self.nodes.addresses[self.nodes.names[0]]
        self.stream = PipelineRun(folder, root, self._source.settings)
        self._closing.callback(self.stream.end)
        self.feeder = Feeder(self._source, self.stream, seed)
        self.publisher = ChainPublisher(self.nodes.addresses["south"], seed + 3)
        self._closing.callback(self.publisher.stop)
        self._killer = Killer(self.nodes, self.stream, self._source.broker, seed + 1)
        self._closing.callback(self._killer.end)

    def close(self) -> None:
        self._closing.close()

    # -- phases --------------------------------------------------------------------------------

    def start(self, agents: int, processes: int) -> None:
        """Start the tree and the agents, each with an interest."""
        self._note("starting a rendezvous point, routers and agents")
        self._agents, self._processes = agents, min(processes, agents)
        self.nodes.start()
        self.listeners = Listeners(self._folder, self._processes)
        self._closing.callback(self.listeners.kill)
        self._interests = draw_interests(random.Random(self._seed + 2), agents)
        self._since = [0] * agents
        self.listeners.subscribe([(at, self._address(at), self._interests[at])
                                  for at in range(agents)])  # fmt: skip
        self._added_from = agents
        self.nodes.start(PREPROCESSOR)

    def feed_first(self) -> None:
        """Start the pipeline, and wait until it has handed over one batch, and another one after an
        interest was added. After that, workers have loaded the kernels for batches with and without
        new interests."""
        self._note("starting Spark")
        self.feeder.put(FIRST)
        self.stream.start()
        self._await_rows()
        self._add_interest()
        self.feeder.put(FIRST)
        self._await_rows()

    def feed_steadily(self, rate: float, seconds: float, added: int, kills: int) -> None:
        self._steady_from = len(self.feeder.rows)
        self.feeder.start(rate)
        self.publisher.start()
        began, pause = time.monotonic(), seconds / (added + 1)
        due = [began + pause * (at + 1) for at in range(added)]
        try:
            while True:
                now = time.monotonic()
                killed = self._killer.killed.total()
                if now - began >= seconds and killed >= kills and not due:
                    break
                if due and now >= due[0]:
                    due.pop(0)
                    self._add_interest()
                elif killed < kills:
                    self._progress(1, f"kill {killed + 1} of {kills}")
                    self._note(f"{killed + 1} of {kills} kills: {self._killer.kill_next()}")
                else:
                    self._check()
                    self._note(f"{now - began:.0f} of {seconds:.0f} s, "
                               f"{len(self.feeder.rows):,} rows")  # fmt: skip
                    time.sleep(0.2)
        finally:
            self.feeder.stop()
        self.publisher.stop()
        self._steady_to = len(self.feeder.rows)
        self._await_rows()

    def feed_at_once(self, count: int) -> None:
        left = count
        while left > 0:
            self.feeder.put(min(left, AT_ONCE))
            left -= AT_ONCE
        self._await_rows()

    def _add_interest(self) -> None:
        number = len(self._interests)
        chance = random.Random(self._seed * 1_000_003 + number)
        one = draw_interest(chance, number, DIALECTS[number % len(DIALECTS)])
        agent = chance.randrange(self._agents)
        self.listeners.subscribe([(agent, self._address(agent), one)])
        self._interests.append(one)
        self._since.append(self.listeners.in_force[number])

    def _address(self, agent: int) -> str:
        routers = [*ABOVE]
        return self.nodes.addresses[routers[agent % len(routers)]]

    # -- waiting -------------------------------------------------------------------------------

    def _check(self) -> None:
        self.nodes.check()
        self.stream.check()
        self.feeder.check()
        self.publisher.check()

    def _progress(self, batches: int, what: str) -> None:
        goal = self.stream.last() + batches
        for _ in self._waiting(self.stream.last, what):
            if self.stream.last() >= goal:
                return

    def _await_rows(self) -> None:
        """Wait until all rows are handed over to the rendezvous point."""
        for done in self._waiting(self.stream.rows, "rows"):
            if done >= len(self.feeder.rows):
                return
            self._note(f"{done:,} of {len(self.feeder.rows):,} rows are handed over")

    def _waiting(self, value: Callable[[], int], what: str) -> Iterator[int]:
        """Yield a value repeatedly; raise EnvironmentProblem if it stays the same for too long."""
        known, changed = value(), time.monotonic()
        while True:
            yield known
            time.sleep(0.05)
            self._check()
            if (now := value()) != known:
                known, changed = now, time.monotonic()
            elif time.monotonic() - changed > PATIENCE:
                raise EnvironmentProblem(
                    f"there was no progress for {PATIENCE:.0f} s while waiting for {what}: "
                    f"{self.stream.errors()}"
                )

    # -- the end -------------------------------------------------------------------------------

    def report(self, machine: MachineInfo, began: float) -> ChainReport:
        """Ask the oracle, wait for the deliveries that are due, and judge them."""
        rows, interests = self.feeder.rows, self._interests
        oracle = RowOracle(rows, lambda share: self._note(f"asking the oracle: {share:.0%}"))
        wanted = oracle.match_all(interests)
        published = self.publisher.rows
        wanted_beside = RowOracle(published).match_all(interests)
        commits = self.stream.commits()
        placed = place_rows(self.stream.outbox, commits, len(rows))
        due = count_due(wanted, placed.began, self._since)
        due += count_due(wanted_beside, find_times(published), self._since)
        self._await_told(due)
        everything = self.listeners.end()
        is_published = everything["id"] >= FIRST_PUBLISHED
        told = everything[~is_published]
        found = judge(rows, placed, wanted, self._since, told)
        found += judge_published(published, wanted_beside, self._since, everything[is_published])
        found = msgspec.structs.replace(found, out_of_order=count_out_of_order(everything))
        late = range(self._added_from, len(interests))
        next_ = [count_in_next_batch(placed, wanted[at], self._since[at], told, at) for at in late]
        steady, rest = slice(self._steady_from, self._steady_to), slice(self._steady_to, None)
        known = (rows, placed, commits, self.stream.handed, told)
        dialects = [one.dialect for one in interests]
        return ChainReport(
            machine,
            self._source_kind,
            self._seed,
            self._agents,
            self._processes,
            len(ABOVE),
            {name: dialects.count(name) for name in DIALECTS},
            len(rows),
            len(commits),
            len(published),
            self.publisher.preprocessed,
            time.monotonic() - began,
            breaks=len(self.listeners.problems),
            kills=self._killer.killed.total(),
            killed=dict(self._killer.killed),
            deaths=self.stream.deaths,
            added=AddedInterests(len(late), len([one for one in next_ if one is not None]),
                        next_.count(True)),
            latencies=measure_latencies(known[0], steady, *known[1:]),
            rates=measure_rates(known[0], rest, *known[1:]),
            problems=self.listeners.problems[:20],
            **msgspec.structs.asdict(found),
        )  # fmt: skip

    def _await_told(self, due: int) -> None:
        """Wait until the agents have received as many notifications as are due, or until no more
        arrive, which means that some are lost."""
        told, changed = -1, time.monotonic()
        while told < due and time.monotonic() - changed < SILENCE:
            self._check()
            if (now := self.listeners.count()) != told:
                told, changed = now, time.monotonic()
            self._note(f"{told:,} of {due:,} deliveries")
            time.sleep(0.1)
        time.sleep(AFTER)
