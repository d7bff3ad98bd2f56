"""Measures a rendezvous point with many interests: the time of a new interest and of a restart.

    journal with N filters ──> start, compiling ──> restart ──> Ask one at a time, and at a rate,
                                                                with and without publications

The filters, including the new ones, come from the workload `mixed`. Each publication is compared
with all of them, and matches few (steady_publishing.py). A receiver gets every publication.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from tidings.model import EnvironmentProblem
from tidings.routing.protocol import messages as m
from tidings.store.journal import FileJournal
from tidings.studies.host.process_usage import running_seconds
from tidings.studies.network import steady_publishing
from tidings.studies.network.route_durable import PATIENCE, Counter, greet, percentiles
from tidings.studies.network.route_flow import Missing
from tidings.studies.network.route_peers import end_process
from tidings.studies.network.route_tidings import CALM, RawPeer, start_node
from tidings.studies.network.steady_publishing import (
    RECEIVED,
    SteadyPublisher,
    can_read,
    draw_contents,
)
from tidings.studies.workloads.workloads import make_workload

INTERESTS = 1_000_000
ALONE = 500  # interests that are requested one at a time
RATE = 500.0  # interests per second
WRITTEN = 50_000  # filters that are written to the journal together
ROOT = f"""\
name = "root"
listen = "127.0.0.1:0"
journal = "journal.db"
[times]
silent = {CALM}
expire = {CALM}
resubscribe = {CALM}
[limits]
new_nodes = 1_000_000
all_new_nodes = 1_000_000
all_nodes = 20_000_000
"""
Note = Callable[[str], None]


class AskLatencies(msgspec.Struct, frozen=True):
    """Milliseconds from Ask to Answer, which is sent when the node is on the disk."""

    rate: float  # interests per second; 0 if they are requested one at a time
    published: float  # publications per second that are sent at the same time
    count: int
    p50: float
    p99: float
    most: float
    processor: float  # milliseconds of the rendezvous point's processor time per interest
    publication_p50: float = 0.0  # milliseconds from a publication to its acknowledgment
    publication_p99: float = 0.0
    received: int = 0  # publications that the receiver got: all of them


class InterestsRun(msgspec.Struct, frozen=True):
    """The measurements."""

    interests: int
    first_start: float  # seconds until the node listens, including the compilation
    restart: float  # seconds until the node listens and has placed an interest
    memory: float  # bytes per interest, beyond the memory of a rendezvous point that has none
    mapped: float  # resident bytes of mapped files, per interest
    asked: list[AskLatencies]


def measure_interests(
    folder: Path,
    seconds: float,
    count: int = INTERESTS,
    *,
    seed: int = 1,
    note: Note = lambda _: None,
) -> InterestsRun:
    """Run a rendezvous point whose journal is in a folder, and ask it for nodes."""
    note(f"interests: writing {count:,} filters")
    known, new = _filters(count, 10 + ALONE + int(2 * RATE * seconds), seed)
    _write(folder / "journal.db", known)
    note("interests: the first start")
    first = start_first(folder)
    return ask_for_more(folder, seconds, len(known), first, new, note)


def start_first(folder: Path) -> float:
    """Start and stop the rendezvous point of a folder; return the seconds until it listened."""
    file = folder / "root.toml"
    file.write_text(ROOT)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        begun = time.perf_counter()
        start_node(file, processes)
        took = time.perf_counter() - begun
        processes[0].send_signal(signal.SIGTERM)
        processes[0].wait(PATIENCE)
    finally:
        for process in processes:
            end_process(process)
    return took


def ask_for_more(
    folder: Path, seconds: float, count: int, first: float, new: Iterator[bytes], note: Note
) -> InterestsRun:
    """Restart a rendezvous point that has interests, and add new ones."""
    empty, contents = _memory_when_empty(folder / "empty"), draw_contents()
    processes: list[subprocess.Popen[bytes]] = []
    try:
        note("interests: a restart")
        begun = time.perf_counter()
        port = start_node(folder / "root.toml", processes)
        pid = processes[0].pid
        asker = _Asker(greet(port, "asker"), new)
        asker.peer.link.settimeout(6 * PATIENCE)
        asker.ask_one()
        restart = time.perf_counter() - begun
        memory, mapped = _memory(pid)
        asker.ask_alone(9)
        note("interests: one at a time")
        asked = [_time(pid, 0.0, lambda: asker.ask_alone(ALONE))]
        note(f"interests: {RATE:,.0f} per second")
        asked.append(_time(pid, RATE, lambda: asker.ask_at(RATE, seconds)))
        note(
            f"interests: the same, with {steady_publishing.PUBLISHED:,.0f} publications per second"
        )
        counter = Counter(port, RECEIVED)
        publisher = SteadyPublisher(port, contents)
        with publisher:
            beside = _time(pid, RATE, lambda: asker.ask_at(RATE, seconds))
        asker.close()
        counter.wait_for(len(publisher))
        half, tail = percentiles(publisher.milliseconds().tolist())
        asked.append(
            msgspec.structs.replace(
                beside,
                published=publisher.rate,
                publication_p50=half,
                publication_p99=tail,
                received=len(publisher),
            )
        )
    finally:
        for process in processes:
            end_process(process)
    return InterestsRun(count, first, restart, (memory - empty) / count, mapped / count, asked)


def _filters(count: int, more: int, seed: int) -> tuple[list[bytes], Iterator[bytes]]:
    """Distinct filters for the journal, and other filters to add later."""
    workload = make_workload("mixed", count + count // 4 + 2 * more, 1, seed)
    distinct = list(dict.fromkeys(text.encode() for _, text in workload.texts()))
    if len(distinct) < count + more:
        raise EnvironmentProblem(
            f"found {len(distinct):,} distinct filters, expected at least {count + more:,}"
        )
    return distinct[:count], iter(distinct[count:])


def _write(path: Path, filters: Sequence[bytes]) -> None:
    journal = FileJournal(path)
    journal.begin_life(1)
    for at in range(0, len(filters), WRITTEN):
        for number, text in enumerate(filters[at : at + WRITTEN], at + 1):
            journal.add_node(number, text, "owner")
        batch = journal.take()
        assert batch is not None
        journal.write(batch)
    journal.close()


def _memory_when_empty(folder: Path) -> int:
    folder.mkdir()
    file = folder / "root.toml"
    file.write_text(ROOT)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        port = start_node(file, processes)
        asker = _Asker(greet(port, "asker"), iter([b"n = 1"]))
        asker.ask_one()
        asker.close()
        return _memory(processes[0].pid)[0]
    finally:
        for process in processes:
            end_process(process)


def _memory(pid: int) -> tuple[int, int]:
    """The resident bytes of a process, and how many of these bytes belong to mapped files."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines)
    total, mapped = (1024 * int(found[name].split()[0]) for name in ("VmRSS", "RssFile"))
    return total, mapped


def _time(pid: int, rate: float, ask: Callable[[], list[float]]) -> AskLatencies:
    before = running_seconds(pid)
    times = ask()
    spent = running_seconds(pid) - before
    return AskLatencies(
        rate, 0.0, len(times), *percentiles(times), max(times), 1e3 * spent / len(times)
    )  # fmt: skip


class _Asker:
    """Asks for nodes, and measures how long the answers take."""

    def __init__(self, peer: RawPeer, filters: Iterator[bytes]) -> None:
        self.peer = peer
        self._filters = filters
        self._request = 0
        self._sent: dict[int, float] = {}
        self._times: list[float] = []

    def close(self) -> None:
        self.peer.link.close()

    def ask_one(self) -> None:
        self._send(time.perf_counter())
        while self._sent:
            self._take()

    def ask_alone(self, count: int) -> list[float]:
        self._times = []
        for _ in range(count):
            self.ask_one()
        return self._times

    def ask_at(self, rate: float, seconds: float) -> list[float]:
        """Ask at a steady rate. The time of each question is measured from the time at which it was
        due."""
        self._times = []
        begun, count = time.perf_counter(), int(rate * seconds)
        due = [begun + at / rate for at in range(count)]
        at = 0
        while at < count or self._sent:
            now = time.perf_counter()
            while at < count and due[at] <= now:
                self._send(due[at])
                at += 1
            wait = due[at] - time.perf_counter() if at < count else PATIENCE
            if can_read(self.peer.link, max(0.0, wait)):
                self._take()
            elif at == count:
                raise Missing(f"{len(self._sent):,} interests were not answered")
        return self._times

    def _send(self, due: float) -> None:
        self._request += 1
        self._sent[self._request] = due
        self.peer.say(m.Ask(self._request, next(self._filters)))

    def _take(self) -> None:
        for message in self.peer.receive():
            if isinstance(message, m.Answer):
                if message.refusal:
                    raise Missing(f"an interest was refused: {message.refusal}")
                due = self._sent.pop(message.request, None)
                if due is not None:
                    self._times.append((time.perf_counter() - due) * 1e3)
