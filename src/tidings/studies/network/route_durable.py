"""Measures durable publishing through a real rendezvous point.

    agent ──Publish──> [rendezvous point, journal] ──Notification──> a receiver that counts
          <─Published─

There are three measurements:

- an agent, used in the way applications use it, with many publications in flight;
- a raw socket, with publications encoded in advance, so that only the rendezvous point limits the
  rate;
- one publication at a time, compared with the cost of a sync on the same disk.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from tidings.files import sync_handle
from tidings.model import EnvironmentProblem
from tidings.network import connect
from tidings.routing.protocol import digest, frames, messages as m
from tidings.studies.host.process_usage import running_seconds
from tidings.studies.network.route_flow import Missing
from tidings.studies.network.route_peers import connect_to, end_process
from tidings.studies.network.route_tidings import RawPeer, start_node

PATIENCE = 20.0
ALIVE = 4.0  # seconds between two messages, so that the receiver does not count as silent
SYNC = 4096  # bytes written before each measured sync


class Durable(msgspec.Struct, frozen=True):
    """The measurements; times in milliseconds."""

    agent_rates: list[float]  # acknowledged publications per second of an agent
    raw_rates: list[float]  # acknowledged publications per second of a raw socket
    root_per_core: float  # raw publications per second of the rendezvous point's processor time
    alone_p50: float
    alone_p99: float
    sync_p50: float
    sync_p99: float
    window: int
    told: int  # the number of notifications that the receiver got, which is the number published


def measure_durable(
    folder: Path,
    seconds: float,
    rounds: int,
    window: int,
    payload: bytes,
    note: Callable[[str], None] = lambda _: None,
) -> Durable:
    """Run a rendezvous point whose journal is in a folder, and publish to it."""
    file = folder / "root.toml"
    file.write_text('name = "root"\nlisten = "127.0.0.1:0"\njournal = "journal.db"\n')
    processes: list[subprocess.Popen[bytes]] = []
    try:
        port = start_node(file, processes)
        counter = Counter(port, "n >= 0")
        agents, raws, spent, count = [], [], 0.0, 0
        syncs = sync_times(folder, 50)
        alone = asyncio.run(_publish_alone(port, payload, max(20, int(100 * seconds))))
        syncs += sync_times(folder, 50)  # syncs are measured before and after, because disks vary
        total = len(alone)
        for number in range(rounds):
            note(f"durable: round {number + 1} of {rounds}")
            done, took = asyncio.run(_publish_by_agent(port, payload, window, seconds))
            agents.append(done / took)
            before = running_seconds(processes[0].pid)
            sent, took = _publish_raw(port, f"raw{number}", payload, window, seconds)
            spent += running_seconds(processes[0].pid) - before
            raws.append(sent / took)
            count += sent
            total += done + sent
        counter.wait_for(total)
    finally:
        for process in processes:
            end_process(process)
    return Durable(
        agents, raws, count / max(spent, 0.01), *percentiles(alone), *percentiles(syncs), window,
        total,
    )  # fmt: skip


def percentiles(milliseconds: Sequence[float]) -> tuple[float, float]:
    """The 50th and the 99th percentile."""
    half, tail = np.percentile(np.asarray(milliseconds), [50, 99])
    return float(half), float(tail)


def sync_times(folder: Path, count: int) -> list[float]:
    """The milliseconds of each write with a sync."""
    spent = []
    descriptor = os.open(folder / "sync", os.O_WRONLY | os.O_CREAT)
    try:
        for _ in range(count):
            start = time.perf_counter()
            os.write(descriptor, bytes(SYNC))
            sync_handle(descriptor)
            spent.append((time.perf_counter() - start) * 1e3)
    finally:
        os.close(descriptor)
    return spent


async def _publish_alone(port: int, payload: bytes, count: int) -> list[float]:
    """Publish one notification at a time; return the milliseconds that each took."""
    spent = []
    async with connect(f"tidings://127.0.0.1:{port}") as agent:
        for number in range(count):
            start = time.perf_counter()
            await agent.publish({"n": number}, payload)
            spent.append((time.perf_counter() - start) * 1e3)
    return spent


async def _publish_by_agent(
    port: int, payload: bytes, window: int, seconds: float
) -> tuple[int, float]:
    """Publish with an agent; return the number of acknowledged publications and the seconds."""
    async with connect(f"tidings://127.0.0.1:{port}") as agent:
        start = time.perf_counter()
        waiting: deque[asyncio.Future[int]] = deque()
        count = 0
        while time.perf_counter() - start < seconds:
            while len(waiting) < window:
                waiting.append(agent.publish_soon({"n": count}, payload))
                count += 1
            await waiting.popleft()
            while waiting and waiting[0].done():
                waiting.popleft().result()
        await asyncio.gather(*waiting)
        return count, time.perf_counter() - start


def _publish_raw(
    port: int, name: str, payload: bytes, window: int, seconds: float
) -> tuple[int, float]:
    """Publish with a raw socket and with frames encoded in advance; return what `_publish_by_agent`
    returns."""
    peer = greet(port, name)
    encoded = itertools.count(1)
    content = b'{"n": 1}'

    def more(count: int) -> bytes:
        return b"".join(
            frames.encode(m.Publish(name, stamp, max(1, stamp - window), content, payload))
            for stamp in itertools.islice(encoded, count)
        )

    start = time.perf_counter()
    sent, done = window, 0
    peer.link.sendall(more(window))
    while done < sent:
        for message in peer.receive():
            if isinstance(message, m.Published):
                if message.refusal:
                    raise Missing(f"a publication was refused: {message.refusal}")
                done = max(done, message.stamp)
        free = window - (sent - done)
        if free and time.perf_counter() - start < seconds:
            peer.link.sendall(more(free))
            sent += free
    took = time.perf_counter() - start
    peer.link.close()
    return sent, took


def greet(port: int, name: str) -> RawPeer:
    """Connect to the node at a port, as a raw neighbour."""
    peer = RawPeer(connect_to(port))
    peer.say(m.Hello(name))
    while not any(isinstance(one, m.Welcome) for one in peer.receive()):
        pass
    return peer


class Counter:
    """A receiver that counts all notifications that match a filter, in its own thread."""

    def __init__(self, port: int, filter_: str) -> None:
        self._peer = greet(port, "counter")
        self._seen: set[int] = set()
        self._subscribe(filter_.encode())
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _subscribe(self, filter_: bytes) -> None:
        self._peer.say(m.Ask(1, filter_))
        deadline, node = time.monotonic() + PATIENCE, 0
        while time.monotonic() < deadline:
            for message in self._peer.receive():
                if isinstance(message, m.Answer):
                    if message.refusal:
                        raise EnvironmentProblem(message.refusal)
                    node = message.node
                    self._alive = m.Resubscribe(message.epoch, digest([node]))
                    self._peer.say(m.Subscribe(message.epoch, (node,)))
                elif isinstance(message, m.Setup) and message.node == node:
                    self._peer.link.settimeout(None)
                    return
        raise EnvironmentProblem(
            f"the rendezvous point did not answer the subscription within {PATIENCE:.0f} s"
        )

    def _run(self) -> None:
        buffer, said = b"", time.monotonic()
        while data := self._peer.link.recv(1 << 20):
            buffer += data
            starts, end = frames.split(buffer)
            for start in starts:
                if buffer[start + 4] == frames.NOTIFICATION:
                    self._seen.add(int.from_bytes(buffer[start + 24 : start + 32], "little"))
            buffer = buffer[end:]
            if time.monotonic() - said > ALIVE:
                said = time.monotonic()
                self._peer.say(self._alive)

    def wait_for(self, count: int) -> None:
        """Wait until `count` notifications have arrived; raise Missing if some are missing."""
        deadline = time.monotonic() + PATIENCE
        while len(self._seen) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        found = len(self._seen)
        self._peer.link.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._peer.link.close()
        if found != count:
            raise Missing(f"the receiver got {found:,} notifications, expected {count:,}")
