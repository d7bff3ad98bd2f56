"""The processor time of a rendezvous point for publications that are processed many at a time,
against the same one by one, with 10,000 filters. docs/performance.md quotes the figures:

    pytest -m bench --log-cli-level=INFO tests/broker/test_runs_speed.py
"""

from __future__ import annotations

import logging
import statistics
import time
from pathlib import Path

import pytest

from tidings.broker.outgoing_frames.block_frames import join_frames
from tidings.broker.outgoing_frames.frame_warming import load_block_kernels
from tidings.broker.outgoing_frames.framed_rendezvous import FramedRendezvous
from tidings.channel.interests import ArrayInterests
from tidings.filters import Attributes
from tidings.network import Forwarder, FrameCache, measure_costs
from tidings.routing.protocol import Limits, frames, messages as m
from tidings.routing.root import Definition, find_runs
from tidings.store.journal import FileJournal
from tidings.studies.network.route_parts import distinct_filters
from tidings.studies.workloads.workloads import make_workload

pytestmark = pytest.mark.bench

log = logging.getLogger(__name__)
ROUNDS = 9


class Bench:
    """A rendezvous point with a journal, whose one neighbour wants everything. It has no event
    loop and no sockets."""

    def __init__(self, folder: Path, *, declared: bool = False, computing: int = 0) -> None:
        """If the attributes are `declared`, each has its own type. `computing` filters are added
        to the others."""
        workload = make_workload("mixed", 10_000, 16_384, 1)
        stored, self.lines = distinct_filters(workload), [*workload.event_lines()]
        attributes = None
        if declared:
            attributes = Attributes({one.name: one.kind for one in workload.attributes})
        last = max(node for node, _ in stored)
        for number in range(computing):
            name = workload.attributes[number].name
            is_text = workload.attributes[number].kind == "string"
            computed = f"length({name}) > 4" if is_text else f"{name} % 7 = 3"
            stored.append((last + 1 + number, computed.encode()))
        self.journal = FileJournal(folder / "journal")
        self.journal.begin_life(1)
        for node, text in stored:
            self.journal.add_node(node, text, "receiver")
        self.write()
        interests = ArrayInterests(attributes, self.journal.interests(), self.journal.history.base)
        interests.seal_recent()  # as they soon are; new filters are matched in another way
        memory = self.journal.memory(interests.all_placed())
        self.machine = FramedRendezvous(
            "root", interests, self.journal, memory, None, FrameCache(), Limits(), Definition()
        )
        self.machine.forwarding = measure_costs()
        self.forwarder = Forwarder(self.machine)
        nodes = tuple(node for node, _ in stored)
        self.machine.receive("receiver", m.Subscribe(self.machine.epoch, nodes), 0.0)
        self.stamp = 0
        load_block_kernels()

    def write(self) -> int:
        batch = self.journal.take()
        assert batch is not None
        self.journal.write(batch)
        return batch.upto

    def buffer(self, count: int) -> bytes:
        found = []
        for _ in range(count):
            self.stamp += 1
            line = self.lines[self.stamp % len(self.lines)]
            found.append(frames.encode(m.Publish("p", self.stamp, 1, line, bytes(200))))
        return b"".join(found)

    def take(self, buffer: bytes, *, together: bool) -> float:
        """Take all publications of a buffer; return the seconds of processor time."""
        begun = time.thread_time()
        starts, _ = frames.split(buffer)
        if together:
            for _, run in find_runs(buffer, starts):
                assert run is not None
                while not run.is_done:
                    self.machine.receive("p", run, 1.0)
        else:
            for start in starts:
                self.machine.receive("p", frames.decode_from_below(buffer, start), 1.0)
        self.machine.mark_stored(self.write(), 1.0)
        released, self.machine.released = self.machine.released, []
        for frames_run in join_frames(released):
            self.forwarder.forward(frames_run.data, frames_run.starts, frames_run.ends)
        return time.thread_time() - begun


@pytest.mark.parametrize("computing", [0, 10])
@pytest.mark.parametrize("declared", [False, True])
def test_runs_take_less(declared: bool, computing: int, tmp_path: Path) -> None:
    bench = Bench(tmp_path, declared=declared, computing=computing)
    ratios: dict[int, float] = {}
    for count in (100, 235, 580, 1000):
        times: dict[bool, list[float]] = {True: [], False: []}
        for number in range(ROUNDS + 2):
            for together in (True, False):
                took = bench.take(bench.buffer(count), together=together)
                if number > 1:  # the first ones fill caches
                    times[together].append(took / count * 1e6)
        ratios[count] = statistics.median(
            one / many for one, many in zip(times[False], times[True], strict=True)
        )
        line = (f"{count:,} at a time, {'declared' if declared else 'undeclared'}, {computing} "
                f"computing: {statistics.median(times[True]):.1f} us each, one by one "
                f"{statistics.median(times[False]):.1f} us, {ratios[count]:.1f} times")  # fmt: skip
        log.info(line)
    assert ratios[580] > 2
    assert ratios[100] > 0.8
