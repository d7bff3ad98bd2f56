"""Measures how fast a rendezvous point accepts notifications that were tagged elsewhere.

    pipeline ──HandOver, 4 MiB of columns──> [rendezvous point, journal] ──> a receiver that counts
             <─Taken, on the disk──────────

The filters and the tags come from the workload `mixed` and its events. The rendezvous point does
not match anything, so tagging is not part of the time.
"""

from __future__ import annotations

import itertools
import random
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.channel import Changes, ChannelLink, Part
from tidings.channel.interests import ArrayInterests
from tidings.filters import parse
from tidings.model import EnvironmentProblem
from tidings.routing.protocol import digest, frames, messages as m
from tidings.store.journal import FileJournal
from tidings.studies.host.process_usage import running_seconds
from tidings.studies.network.route_durable import PATIENCE, greet
from tidings.studies.network.route_flow import Missing
from tidings.studies.network.route_peers import end_process
from tidings.studies.network.route_tidings import start_node
from tidings.studies.workloads.workloads import Workload, make_workload

FILTERS = 10_000
ROWS = 16_384  # the number of notifications in a part
EVENTS = 16_384  # distinct events; each notification has the tag of one of them
DIFFERENT = 8  # the number of parts that are made in advance
ALIVE = 4.0  # seconds between two messages, so that the receiver does not count as silent
AT_ONCE = 1 << 18  # bytes that the receiver examines at a time

Tags = Sequence[tuple[int, ...]]


class PartRun(msgspec.Struct, frozen=True):
    """The measurements."""

    rates: list[float]  # notifications per second, from the first part to the last acknowledgment
    told_rates: list[float]  # notifications per second, until the receiver has all of them
    root_per_core: float  # notifications per second of the rendezvous point's processor time
    filters: int
    rows: int  # the number of notifications in a part
    marks: float  # the mean number of marks per notification
    told: int  # the number of notifications that the receiver got, which is the number handed over


def measure_parts(
    folder: Path,
    seconds: float,
    rounds: int,
    payload: int,
    *,
    seed: int = 1,
    note: Callable[[str], None] = lambda _: None,
) -> PartRun:
    """Run a rendezvous point whose journal is in a folder, and hand parts over to it."""
    note(f"parts: tagging with {FILTERS:,} filters")
    stored, tags = _tag_events(FILTERS, seed)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        note("parts: starting")
        port = start_root(folder, stored, processes)
        receiver = CountingReceiver(port, [node for node, _ in stored])
        rates, told, spent, total = [], [], 0.0, 0
        with ChannelLink(f"tidings://127.0.0.1:{port}") as link:
            source = _Source(link.changes(), tags, payload, seed)
            link.hand_over(source.parts(0.0))  # a warm-up, not measured
            receiver.wait_for(source.rows)
            for number in range(rounds):
                note(f"parts: round {number + 1} of {rounds}")
                before, begun = running_seconds(processes[0].pid), time.perf_counter()
                rows = link.hand_over(source.parts(seconds)) * ROWS
                rates.append(rows / (time.perf_counter() - begun))
                told.append(rows / (receiver.wait_for(source.rows) - begun))
                spent += running_seconds(processes[0].pid) - before
                total += rows
        receiver.end()
    finally:
        for process in processes:
            end_process(process)
    marks = sum(map(len, tags)) / len(tags)
    return PartRun(
        rates, told, total / max(spent, 0.01), len(stored), ROWS, marks, source.rows
    )  # fmt: skip


def _tag_events(filters: int, seed: int) -> tuple[list[tuple[int, bytes]], Tags]:
    """Distinct filters with their nodes, and the tags of events that match some of them."""
    workload = make_workload("mixed", filters, EVENTS, seed)
    stored = distinct_filters(workload)
    interests = ArrayInterests(None, stored, stored[-1][0])
    tags = (tuple(sorted(interests.tag(line))) for line in workload.event_lines())
    return stored, [tag for tag in tags if tag]


def distinct_filters(workload: Workload) -> list[tuple[int, bytes]]:
    """The distinct filters of a workload, with their nodes."""
    distinct: dict[bytes, tuple[int, bytes]] = {}
    for number, text in workload.texts():
        distinct.setdefault(parse(text).key, (1 + number, text.encode()))
    return sorted(distinct.values())


class _Source:
    """The parts of one source, as many as needed. The parts are copies of a few parts that were
    made in advance, with other keys."""

    def __init__(self, known: Changes, tags: Tags, payload: int, seed: int) -> None:
        chance = np.random.default_rng(seed)
        self.rows = 0  # how many notifications were handed over so far
        self._batch = itertools.count()
        self._parts = []
        payloads = random.Random(seed).randbytes(ROWS * payload)
        for _ in range(DIFFERENT):
            picked = [tags[at] for at in chance.integers(0, len(tags), ROWS).tolist()]
            starts = np.cumsum([0, *map(len, picked)], dtype=np.int64)
            nodes = np.array([node for tag in picked for node in tag], np.int64)
            self._parts.append(
                Part("bench", 0, 0, True, known.life, known.version, starts, nodes,
                     payload * np.arange(ROWS + 1), payloads)
            )  # fmt: skip

    def parts(self, seconds: float) -> Iterator[Part]:
        """Yield at least one part, and as many as can be sent in the given time."""
        begun = time.perf_counter()
        for batch in self._batch:
            self.rows += ROWS
            yield msgspec.structs.replace(self._parts[batch % DIFFERENT], batch=batch)
            if time.perf_counter() - begun >= seconds:
                return


def start_root(
    folder: Path, stored: Sequence[tuple[int, bytes]], processes: list[subprocess.Popen[bytes]]
) -> int:
    """Run a rendezvous point whose journal has these nodes and filters; return its port."""
    journal = FileJournal(folder / "journal.db")
    journal.begin_life(1)
    for node, text in stored:
        journal.add_node(node, text, "receiver")
    batch = journal.take()
    assert batch is not None
    journal.write(batch)
    journal.close()
    file = folder / "root.toml"
    file.write_text('name = "root"\nlisten = "127.0.0.1:0"\njournal = "journal.db"\n')
    return start_node(file, processes)


class CountingReceiver:
    """A neighbour that subscribes to every node and counts notifications, in a separate thread."""

    def __init__(self, port: int, nodes: Sequence[int]) -> None:
        self._peer = greet(port, "receiver")
        self._nodes = tuple(nodes)
        self._epoch = 0
        self._seen = self._last = 0
        self._came = 0.0  # the time at which the latest notification arrived
        self._wrong = ""
        self._subscribe()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _subscribe(self) -> None:
        self._peer.say(m.Trace(1))
        deadline, left = time.monotonic() + PATIENCE, set(self._nodes)
        while left and time.monotonic() < deadline:
            for message in self._peer.receive():
                if isinstance(message, m.Lineage) and not self._epoch:
                    self._epoch = message.epoch
                    self._peer.say(m.Subscribe(self._epoch, self._nodes))
                elif isinstance(message, m.Setup):
                    left.discard(message.node)
        if left:
            raise EnvironmentProblem(
                f"the rendezvous point did not answer {len(left):,} subscriptions within "
                f"{PATIENCE:.0f} s"
            )
        self._peer.link.settimeout(None)

    def _run(self) -> None:
        buffer, said = bytearray(), time.monotonic()
        while data := self._peer.link.recv(1 << 20):
            buffer += data
            if len(data) < AT_ONCE or len(buffer) > 4 * AT_ONCE:
                whole = bytes(buffer)
                starts, end = frames.split(whole, frames.LARGEST_DOWN)
                buffer = bytearray(whole[end:])
                self._count(np.frombuffer(whole, np.uint8), np.array(starts, np.int64))
            if time.monotonic() - said > ALIVE:
                said = time.monotonic()
                self._peer.say(m.Resubscribe(self._epoch, digest(self._nodes), self._last))

    def _count(self, data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> None:
        starts = starts[data[starts + 4] == frames.NOTIFICATION]
        if len(starts):
            serials = data[np.add.outer(starts + 24, np.arange(8))].view("<i8").ravel()
            if serials[0] <= self._last or (np.diff(serials) <= 0).any():
                self._wrong = f"a serial after {self._last:,} is not higher"
            self._last = int(serials[-1])
            self._seen += len(starts)
            self._came = time.perf_counter()

    def wait_for(self, count: int) -> float:
        """Wait until `count` notifications have arrived in total; return the time at which the last
        one arrived."""
        deadline = time.monotonic() + PATIENCE
        while self._seen < count and time.monotonic() < deadline:
            time.sleep(0.005)
        if self._seen != count or self._wrong:
            raise Missing(
                f"the receiver got {self._seen:,} notifications, expected {count:,}; {self._wrong}"
            )
        return self._came

    def end(self) -> None:
        self._peer.link.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._peer.link.close()
