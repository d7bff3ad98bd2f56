"""Measures a queue in order of merit under overload: `tidings bench relations --only overload`.

A root in simulated time serves publications one after the other; the time for each is drawn around
a mean. The queue, the merits and the files are real; only the clock and the service are simulated,
so the result does not depend on how busy the machine is.

    learn     messages are forwarded, and the merits are learnt from them
    calm      half of the sustainable load: how long publications take without overload
    overload  twice the sustainable load, for `seconds`
    recovery  half of the sustainable load again, until nothing waits

Topics follow Zipf's law with exponent 1.1. The top decile consists of the publications that had the
highest merit when they arrived. Every publication must be served exactly once.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np

from tidings.broker.queues import MeritQueue, Spill
from tidings.relations import StoreSettings, Weights
from tidings.relations.merit import ForwardedMerit
from tidings.studies.host.machine_info import MachineInfo, describe_machine
from tidings.studies.relations.relations_bench import EXPONENT, draw_topic_tree
from tidings.studies.workloads.checking import WrongMatches
from tidings.studies.workloads.draws import draw_bounded_zipf

RATE = 2000.0  # publications per second that the simulated root can sustain
TOPICS, WANTED = 100_000, 0.5  # WANTED: the share of topics with subscribers, the most popular
LEARNT = 20_000
PAYLOAD = 500  # bytes
MEMORY = 1 << 20  # bytes of publications that wait in memory
Note = Callable[[str], None]


class OverloadReport(msgspec.Struct, frozen=True):
    machine: MachineInfo
    seed: int
    rate: float
    """The sustained rate, in publications per second."""
    seconds: float
    published: int
    served: int
    """There is a report only if each publication was served exactly once."""
    most_waiting: int
    most_on_disk: int
    most_in_memory_bytes: int
    drained_after: float
    """Seconds from the end of the overload until no publication waited any more."""
    calm_p99_millis: float
    """The latency of the top decile by merit, without overload."""
    top_p50_millis: float
    top_p99_millis: float
    """Latencies of the top decile, from the first second of overload until nothing waited."""
    ratio: float
    """The p99 latency of the top decile under overload, divided by its p99 latency without
    overload."""
    all_p99_millis: float
    longest_seconds: float
    merit_micros: float
    """Processor time to compute the merit of the first publication of a topic."""
    queue_micros: float
    """Processor time to put a publication into the queue, which is partly on disk, and to take it
    out."""
    peak_megabytes: float


def bench_overload(
    seconds: float = 300.0, *, rate: float = RATE, ageing: float = 600.0, seed: int = 1,
    note: Note = lambda _: None,
) -> OverloadReport:  # fmt: skip
    """Simulate the overload; raises WrongMatches if a publication is lost or served twice."""
    machine = describe_machine()
    rng = np.random.default_rng([seed, 17])
    semantic = draw_topic_tree(TOPICS)
    merits = ForwardedMerit(semantic, Weights(), StoreSettings(least=1, most=10_000))
    wanted = int(TOPICS * WANTED)
    note(f"learning from {LEARNT:,} messages")
    for topic in draw_bounded_zipf(rng, EXPONENT, TOPICS, LEARNT).tolist():
        if topic < wanted:
            term = semantic.term("tag", f"T{topic + 1}")
            merits.note((term,) if term else (), [topic], 0.0)
            merits.work(1)
    calm = _draw(rng, 0.0, min(30.0, 2 * seconds), rate / 2)
    load = _draw(rng, 0.0, seconds, 2 * rate)
    after = _draw(rng, seconds, 10 * seconds, rate / 2)
    spent = [0.0]

    @cache
    def worth(topic: int) -> float:
        term = semantic.term("tag", f"T{topic + 1}")
        start = time.process_time()
        found = merits.of((term,)) if term else 0.0
        spent[0] += time.process_time() - start
        return found

    with tempfile.TemporaryDirectory(prefix="tidings-overload-") as folder:
        note("without overload")
        before = _Simulation(Path(folder, "calm"), worth, rate, ageing, rng)
        before.run(calm)
        note(f"{seconds:g} s at twice the load, then half")
        run = _Simulation(Path(folder, "load"), worth, rate, ageing, rng)
        run.run(chain(load, after), recovers_from=seconds)
    served = run.check()
    limit = np.quantile(np.concatenate([before.merits(), run.merits()]), 0.9)
    calm_top, top = before.waits(limit), run.waits(limit)
    calm_p99, p99 = float(np.quantile(calm_top, 0.99)), float(np.quantile(top, 0.99))
    waits = run.waits(float("-inf"))
    return OverloadReport(
        machine, seed, rate, seconds, run.published, served, run.most_waiting, run.most_on_disk,
        run.most_memory, run.now - seconds, calm_p99 * 1e3, float(np.median(top)) * 1e3, p99 * 1e3,
        p99 / calm_p99, float(np.quantile(waits, 0.99)) * 1e3, float(waits.max()),
        spent[0] / max(1, worth.cache_info().misses) * 1e6,
        run.spent / max(1, run.published) * 1e6,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )  # fmt: skip


def _draw(
    rng: np.random.Generator, start: float, end: float, rate: float
) -> Iterator[tuple[float, int]]:
    """Times and topics of publications that arrive at random."""
    now = start
    while now < end:
        gaps = rng.exponential(1 / rate, 4096)
        topics = draw_bounded_zipf(rng, EXPONENT, TOPICS, 4096).tolist()
        for gap, topic in zip(gaps.tolist(), topics, strict=True):
            now += gap
            if now >= end:
                return
            yield now, topic


class _Simulation:
    """A root in simulated time."""

    def __init__(
        self,
        folder: Path,
        worth: Callable[[int], float],
        rate: float,
        ageing: float,
        rng: np.random.Generator,
    ) -> None:
        self._queue: MeritQueue[str, bytes] = MeritQueue(
            Spill(folder), bytes, bytes, most_bytes=MEMORY, ageing=ageing
        )
        self._worth, self._rate, self._rng = worth, rate, rng
        self.now = 0.0
        self.published = self.most_waiting = self.most_on_disk = self.most_memory = 0
        self.spent = 0.0
        self._came: list[tuple[float, float]] = []  # time and merit of each publication, by number
        self._done: list[tuple[int, float]] = []  # number, time

    def run(
        self, arrivals: Iterator[tuple[float, int]], recovers_from: float = float("inf")
    ) -> None:
        """Serve all arrivals. From the time `recovers_from` on, stop as soon as the queue is
        empty."""
        pending = next(arrivals, None)
        draws: list[float] = []
        while pending is not None or self._queue:
            if not self._queue and pending is not None:
                self.now = max(self.now, pending[0])
            while pending is not None and pending[0] <= self.now:
                self._put(*pending)
                pending = next(arrivals, None)
            if not self._queue:
                continue
            if not draws:
                draws = self._rng.gamma(4.0, 1 / (4.0 * self._rate), 4096).tolist()
            self._serve(draws.pop())
            if not self._queue and self.now >= recovers_from:
                return

    def _put(self, at: float, topic: int) -> None:
        merit = self._worth(topic)
        number = self.published
        self._came.append((at, merit))
        self.published += 1
        data = number.to_bytes(8, "big") + bytes(PAYLOAD)
        start = time.process_time()
        self._queue.put("link", data, len(data), merit, at)
        self.spent += time.process_time() - start
        self.most_waiting = max(self.most_waiting, len(self._queue))
        self.most_memory = max(self.most_memory, self._queue.memory)
        if not number % 1024:
            self.most_on_disk = max(self.most_on_disk, self._queue.spilled)

    def _serve(self, takes: float) -> None:
        start = time.process_time()
        _, data = self._queue.take()
        self.spent += time.process_time() - start
        self.now += takes
        self._done.append((int.from_bytes(data[:8], "big"), self.now))

    def check(self) -> int:
        """How many publications were served; raises WrongMatches unless each was served once."""
        found = [number for number, _ in self._done]
        if sorted(found) != list(range(self.published)):
            raise WrongMatches(
                f"found {len(set(found)):,} publications served in {len(found):,} turns, expected "
                f"{self.published:,} publications, each served once"
            )
        return len(found)

    def merits(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([merit for _, merit in self._came])

    def waits(self, least: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The latencies of publications with at least the given merit."""
        found = [at - self._came[one][0] for one, at in self._done if self._came[one][1] >= least]
        return np.array(found or [0.0])
