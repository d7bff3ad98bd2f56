"""Questions in groups take less processor time each than questions alone."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tidings.broker.outgoing_frames.framed_rendezvous import FramedRendezvous
from tidings.channel.interests import ArrayInterests, load_interest_kernels
from tidings.matching import load_kernels
from tidings.network import FrameCache
from tidings.routing.protocol import Limits, messages as m
from tidings.routing.root import Definition
from tidings.store.journal import FileJournal
from tidings.studies.workloads.workloads import make_workload

pytestmark = pytest.mark.bench

log = logging.getLogger(__name__)
INTERESTS = 20_000
SIZES = 1, 2, 3, 5, 10
QUESTIONS = 120  # in each round, for each size
ROUNDS = 5
STEPS = "read and look up", "insert", "write", "answer"


class Bench:
    """A rendezvous point with compiled interests and a journal, without an event loop."""

    def __init__(self, folder: Path) -> None:
        load_kernels()
        load_interest_kernels()
        workload = make_workload("mixed", 2 * INTERESTS, 1, 1)
        texts = [*dict.fromkeys(text.encode() for _, text in workload.texts())]
        self.journal = FileJournal(folder / "journal")
        self.journal.begin_life(1)
        for node, text in enumerate(texts[:INTERESTS], 1):
            self.journal.add_node(node, text, "owner")
        self.write()
        limits = Limits(new_nodes=1_000_000, all_new_nodes=1_000_000)
        self.interests = ArrayInterests(
            None, self.journal.interests(), self.journal.history.base, limits,
            folder=folder / "interests",
        )  # fmt: skip
        memory = self.journal.memory(self.interests.all_placed())
        self.machine = FramedRendezvous(
            "root", self.interests, self.journal, memory, None, FrameCache(), limits, Definition()
        )
        self._new = iter(texts[INTERESTS:])
        self._request = 0
        self._other = np.zeros(4 << 20, np.uint8)  # more than the caches of a core

    def write(self) -> int:
        batch = self.journal.take()
        assert batch is not None
        self.journal.write(batch)
        return batch.upto

    def ask(self, size: int) -> list[float]:
        """Answer a group of questions, after other work; the seconds of processor time of each
        step."""
        self._other += 1
        filters = [next(self._new) for _ in range(size)]
        times = [_timed(lambda: self.interests.prepare(filters)), 0.0]
        for one in filters:
            self._request += 1
            ask = m.Ask(self._request, one)
            times[1] += _timed(partial(self.machine.receive, "asker", ask, 1.0))
        upto: list[int] = []
        times.append(_timed(lambda: upto.append(self.write())))
        begun = time.thread_time()
        sent = self.machine.mark_stored(upto[0], 1.0)
        times.append(time.thread_time() - begun)
        answers = [message for _, message in sent if isinstance(message, m.Answer)]
        assert [one.request for one in answers] == [
            *range(self._request - size + 1, self._request + 1)
        ]
        assert all(one.node for one in answers)
        return times


def _timed(work: Callable[[], object]) -> float:
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def test_questions_in_groups_take_less(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for _ in range(50):
        bench.ask(1)
    found: dict[int, list[list[float]]] = {size: [] for size in SIZES}
    for _ in range(ROUNDS):
        for size in SIZES:
            groups = [bench.ask(size) for _ in range(QUESTIONS // size)]
            steps = [1e3 * sum(step) / QUESTIONS for step in zip(*groups, strict=True)]
            found[size].append([*steps, sum(steps)])
    medians = {size: [*map(statistics.median, zip(*found[size], strict=True))] for size in SIZES}
    for size, (*steps, total) in medians.items():
        told = ", ".join(f"{name} {took:.2f}" for name, took in zip(STEPS, steps, strict=True))
        log.info("groups of %d: %.2f ms each (%s)", size, total, told)
    assert medians[10][-1] < 0.8 * medians[1][-1]
