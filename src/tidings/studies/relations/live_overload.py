"""Measures a channel in order of merit under overload: `tidings bench relations --only overload
--live`.

A rendezvous point and a router run as separate processes. All agents connect to the router, and
publish and subscribe over real connections. The rendezvous point has a processor of its own, as on
a machine of its own; the router and the agents, which make the load, share the others.

    learn      each topic is published once
    closed     the next publication follows an acknowledgment: this gives the sustainable rate
    calm       a quarter of the sustainable rate: how long publications take without overload
    overload   twice the sustainable rate, for `seconds`, without waiting for acknowledgments
    recovery   half of the sustainable rate, until nothing waits

Topics are drawn uniformly, and each has a different merit: below topic k, there are k words that
were forwarded before. So the top decile by merit consists of the publications of the last tenth of
the topics. All publications must be acknowledged and delivered once, and their serials must have no
gaps.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from tidings.model import EnvironmentProblem, pause_gc
from tidings.relations import StoreSettings, Weights, load_relations
from tidings.relations.merit import ForwardedMerit
from tidings.studies.host.machine_info import MachineInfo, describe_machine
from tidings.studies.host.process_usage import processor_seconds, resident_memory
from tidings.studies.relations.live_traffic import Traffic, open_traffic

TOPICS = 50
PUBLISHERS = 32  # each keeps at most 65,536 publications in flight
IN_FLIGHT = 512  # publications in flight, to find the sustainable rate
SAMPLE = 0.25  # seconds
FEW = 0.02  # the queue counts as empty if it holds less than this many seconds of publications
Note = Callable[[str], None]


class LiveOverloadReport(msgspec.Struct, frozen=True):
    machine: MachineInfo
    seed: int
    rate: float
    """The rate that the channel sustained in a closed loop, in publications per second."""
    calm_rate: float
    overload_rate: float
    """The rate at which publications were really sent under overload, per second."""
    served_rate: float
    """The rate at which publications were delivered under overload, per second."""
    seconds: float
    published: int
    """All publications. There is a report only if each publication was acknowledged and delivered
    once, and if the serials have no gaps."""
    delivered: int
    gaps: int
    """Serials between the first and the last that did not arrive."""
    most_waiting: int
    """The highest number of publications that were sent but not yet delivered."""
    most_on_disk_megabytes: float
    """The largest size of the files of waiting publications at the rendezvous point."""
    drained_after: float
    """Seconds from the end of the overload until no publication waited any more."""
    calm_p50_millis: float
    calm_p99_millis: float
    """Latencies of the top decile by merit, from publication to delivery, without overload."""
    top_p50_millis: float
    top_p99_millis: float
    """Latencies of the top decile, from the first second of overload until no publication waited
    any more."""
    ratio: float
    """The p99 latency of the top decile under overload, divided by its p99 latency without
    overload."""
    all_p99_millis: float
    longest_seconds: float
    calm_deciles_millis: list[float]
    deciles_millis: list[float]
    """The p99 latency of each decile by merit, the lowest decile first: without overload, and with
    overload."""
    root_megabytes: float
    """The peak memory of the rendezvous point; the next field is its memory before the overload."""
    root_megabytes_before: float
    root_share: float
    router_share: float
    driver_share: float
    """Processor time under overload as a share of a core: rendezvous point, router, agents."""


class _Nodes:
    """A rendezvous point and a router below it, as processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        words = [f"W{one}" for one in range(TOPICS - 1)]
        topics = [f"T{one}" for one in range(TOPICS)]
        lines = [f"{one} = []" for one in topics]
        lines += [f"{one} = {topics[at + 1 :]}" for at, one in enumerate(words)]
        (folder / "relations").mkdir()
        (folder / "relations" / "tags.toml").write_text("[words]\n" + "\n".join(lines) + "\n")
        self.topics = [*topics, *words]

    def start(self) -> int:
        """Start the rendezvous point and the router; return the port of the router."""
        root, router = self.folder / "root.toml", self.folder / "router.toml"
        head = 'name = "{}"\nlisten = "127.0.0.1:0"\n'
        root.write_text(
            head.format("root") + 'journal = "journal.db"\n[relations]\nfolder = "relations"\n'
            'language = ""\ntag = "topic"\norder = "merit"\n'
        )
        port = self._start(root)
        router.write_text(head.format("router") + f'upstream = "127.0.0.1:{port}"\n')
        return self._start(router)

    def _start(self, file: Path) -> int:
        command = [sys.executable, "-m", "tidings", "router", "--config", str(file)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        if not line:
            raise EnvironmentProblem(f"the router described by {file} did not start")
        return int(line.rsplit(":", 1)[1])

    def pin(self) -> set[int]:
        """Give the rendezvous point a processor of its own, if there are two; return the processors
        that this process could use before."""
        if not hasattr(os, "sched_setaffinity"):  # not on macOS
            return set()
        own, *others = sorted(before := os.sched_getaffinity(0))
        if others:
            _move_process(self.processes[0].pid, {own})
            _move_process(self.processes[1].pid, set(others))
            _move_process(os.getpid(), set(others))
        return before

    def stop(self) -> None:
        """Kill both processes; their data is no longer needed."""
        for one in reversed(self.processes):
            one.kill()
            one.communicate()

    def merits(self) -> list[float]:
        """The merits of all topics, if each was forwarded once."""
        semantic = load_relations(self.folder / "relations", language=None)
        merits = ForwardedMerit(semantic, Weights(), StoreSettings())
        terms = [(term,) for one in self.topics if (term := semantic.term("tag", one))]
        for at, one in enumerate(terms):
            merits.note(one, [at], 0.0)
        merits.work(len(terms))
        return [merits.of(one) for one in terms][:TOPICS]

    def spilled_bytes(self) -> int:
        """The size in bytes of the files with waiting publications."""
        found = 0
        for file in Path(self.folder, "journal.db.waiting").glob("*"):
            try:
                found += file.stat().st_size
            except OSError:  # the file was deleted meanwhile
                continue
        return found

    def memory(self) -> int:
        return resident_memory(self.processes[0].pid)[1]

    def processor_times(self) -> tuple[float, float, float]:
        root, router = (processor_seconds(one.pid) for one in self.processes)
        return root, router, time.process_time()


def _move_process(pid: int, processors: set[int]) -> None:
    """Let all threads of a process run only on these processors."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), processors)


class _Most:
    """The highest values seen while traffic runs."""

    def __init__(self) -> None:
        self.waiting = self.on_disk = self.memory = 0

    async def watch(self, nodes: _Nodes, traffic: Traffic) -> None:
        while True:
            self.waiting = max(self.waiting, traffic.waiting)
            self.on_disk = max(self.on_disk, nodes.spilled_bytes())
            self.memory = max(self.memory, nodes.memory())
            await asyncio.sleep(SAMPLE)


def bench_live_overload(
    seconds: float = 300.0, *, seed: int = 1, publishers: int = PUBLISHERS,
    note: Note = lambda _: None,
) -> LiveOverloadReport:  # fmt: skip
    """Run the overload; raises WrongMatches if a publication is lost or delivered twice."""
    with tempfile.TemporaryDirectory(prefix="tidings-overload-") as folder:
        nodes = _Nodes(Path(folder))
        try:
            port = nodes.start()
            before = nodes.pin()
            try:
                with pause_gc():  # a garbage collection in this process would look like latency
                    return asyncio.run(_measure(nodes, port, seconds, seed, publishers, note))
            finally:
                if before:
                    _move_process(os.getpid(), before)
        finally:
            nodes.stop()


async def _measure(
    nodes: _Nodes, port: int, seconds: float, seed: int, publishers: int, note: Note
) -> LiveOverloadReport:
    rng = np.random.default_rng([seed, 17])
    some = min(10.0, max(2.0, seconds / 2))
    most = _Most()
    async with open_traffic(port, nodes.topics, publishers) as traffic:
        note("learning")
        for topic in range(len(nodes.topics)):
            traffic.publish(topic, time.monotonic())
        await traffic.settle()
        note("the sustainable rate")
        drawn = rng.integers(0, TOPICS, 10_000).tolist()
        await traffic.run_closed(drawn, some / 2, IN_FLIGHT)  # kernels are loaded
        rate = await traffic.run_closed(drawn, some, IN_FLIGHT)
        note(f"without overload: a quarter of {rate:,.0f} a second")
        calm = traffic.published
        calm_took = await traffic.run_open(rng, TOPICS, rate / 4, 2 * some)
        await traffic.settle()
        before = nodes.memory()
        watching = asyncio.create_task(most.watch(nodes, traffic))
        note(f"{seconds:g} s at twice the rate")
        load, served, spent = traffic.published, len(traffic.serials), nodes.processor_times()
        took = await traffic.run_open(rng, TOPICS, 2 * rate, seconds)
        shares = [(b - a) / took for a, b in zip(spent, nodes.processor_times(), strict=True)]
        loaded, served = traffic.published - load, len(traffic.serials) - served
        note(f"half the rate: {traffic.waiting:,} wait")
        drained = await traffic.run_open(
            rng, TOPICS, rate / 2, 60 + 20 * seconds, until_below=int(2 + FEW * rate)
        )
        last = traffic.published
        await traffic.settle()
        watching.cancel()
    traffic.check()
    merits = nodes.merits()
    order = sorted(range(TOPICS), key=merits.__getitem__)
    tenth = TOPICS // 10
    deciles = [set(order[at * tenth : (at + 1) * tenth]) for at in range(10)]
    calm_waits = [traffic.waits(calm, load, one) * 1e3 for one in deciles]
    waits = [traffic.waits(load, last, one) * 1e3 for one in deciles]
    calm_p99s = [float(np.quantile(one, 0.99)) for one in calm_waits]
    p99s = [float(np.quantile(one, 0.99)) for one in waits]
    together = np.concatenate(waits)
    delivered, gaps = traffic.count_serials()
    root_share, router_share, driver_share = shares
    return LiveOverloadReport(
        machine=describe_machine(), seed=seed, rate=rate, calm_rate=(load - calm) / calm_took,
        overload_rate=loaded / took, served_rate=served / took, seconds=seconds,
        published=traffic.published, delivered=delivered, gaps=gaps, most_waiting=most.waiting,
        most_on_disk_megabytes=most.on_disk / 1e6, drained_after=drained,
        calm_p50_millis=float(np.median(calm_waits[-1])), calm_p99_millis=calm_p99s[-1],
        top_p50_millis=float(np.median(waits[-1])), top_p99_millis=p99s[-1],
        ratio=p99s[-1] / calm_p99s[-1], all_p99_millis=float(np.quantile(together, 0.99)),
        longest_seconds=float(together.max()) / 1e3, calm_deciles_millis=calm_p99s,
        deciles_millis=p99s, root_megabytes=most.memory / 1e6,
        root_megabytes_before=before / 1e6, root_share=root_share, router_share=router_share,
        driver_share=driver_share,
    )  # fmt: skip
