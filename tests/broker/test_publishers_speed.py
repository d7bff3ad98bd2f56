"""The processor time of a rendezvous point for each of 10,000 publications per second, sent by one
publisher and by a hundred, with 10,000 filters. docs/performance.md quotes the figures:

    pytest -m bench --log-cli-level=INFO tests/broker/test_publishers_speed.py
"""

from __future__ import annotations

import contextlib
import logging
import statistics
import subprocess
import threading
import time
from pathlib import Path

import pytest
from tests.waiting import eventually

from tidings.model import EnvironmentProblem
from tidings.routing.protocol import digest, frames, messages as m
from tidings.studies.host.process_usage import running_seconds
from tidings.studies.network.route_durable import greet
from tidings.studies.network.route_parts import distinct_filters, start_root
from tidings.studies.network.route_peers import end_process
from tidings.studies.network.route_tidings import RawPeer
from tidings.studies.workloads.workloads import make_workload

pytestmark = pytest.mark.bench

log = logging.getLogger(__name__)
RATE = 10_000  # publications per second, of all publishers together
SECONDS = 2.0
TICK = 0.001
ROUNDS = 3


class Receiver:
    """Wants every notification, and throws it away."""

    def __init__(self, port: int, nodes: tuple[int, ...]) -> None:
        peer = greet(port, "receiver")
        peer.say(m.Ask(1, b"a1 >= 0"))
        epoch = 0
        while not epoch:
            epoch = next((o.epoch for o in peer.receive() if isinstance(o, m.Answer)), 0)
        peer.say(m.Subscribe(epoch, nodes))
        peer.link.settimeout(None)
        self.peer, self._alive = peer, m.Resubscribe(epoch, digest(nodes))
        self.received = 0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        said = time.monotonic()
        with contextlib.suppress(OSError):
            while data := self.peer.link.recv(1 << 20):
                self.received += len(data)
                if time.monotonic() - said > 3:
                    said = time.monotonic()
                    self.peer.say(self._alive)


class Publishers:
    """Publishers with a link each, that send their publications at a steady pace."""

    def __init__(self, port: int, count: int, lines: list[bytes]) -> None:
        self.peers = [greet(port, f"p{count}/{at}") for at in range(count)]
        self._stamps = [0] * count
        self._acknowledged = [0] * count
        self._lines = lines
        self._sent = 0
        for at, peer in enumerate(self.peers):
            peer.link.settimeout(None)
            threading.Thread(target=self._listen, args=(at, peer), daemon=True).start()

    def _listen(self, at: int, peer: RawPeer) -> None:
        with contextlib.suppress(OSError, EnvironmentProblem):
            while True:
                for message in peer.receive():
                    if isinstance(message, m.Published):
                        assert not message.refusal, message.refusal
                        self._acknowledged[at] = max(self._acknowledged[at], message.stamp)

    def run(self, seconds: float) -> int:
        """Send for so long, and wait for the acknowledgments; return how many were sent."""
        begun, first, count = time.monotonic(), self._sent, len(self.peers)
        while (passed := time.monotonic() - begun) < seconds:
            buffers: dict[int, bytes] = {}
            while self._sent - first < passed * RATE:
                at = self._sent % count
                self._stamps[at] += 1
                stamp = self._stamps[at]
                line = self._lines[self._sent % len(self._lines)]
                told = m.Publish(f"p{count}/{at}", stamp, max(1, stamp - 2000), line, bytes(200))
                buffers[at] = buffers.get(at, b"") + frames.encode(told)
                self._sent += 1
            for at, buffer in buffers.items():
                self.peers[at].link.sendall(buffer)
            time.sleep(TICK)
        eventually(lambda: self._acknowledged == self._stamps)
        return self._sent - first


def test_one_publisher_and_a_hundred(tmp_path: Path) -> None:
    workload = make_workload("mixed", 10_000, 16_384, 1)
    stored, lines = distinct_filters(workload), [*workload.event_lines()]
    processes: list[subprocess.Popen[bytes]] = []
    times: dict[int, list[float]] = {1: [], 100: []}
    opened: list[RawPeer] = []
    try:
        port = start_root(tmp_path, stored, processes)
        receiver = Receiver(port, tuple(node for node, _ in stored))
        opened.append(receiver.peer)
        both = {count: Publishers(port, count, lines) for count in times}
        opened += [peer for one in both.values() for peer in one.peers]
        for number in range(ROUNDS + 1):
            for count, publishers in both.items():
                before = running_seconds(processes[0].pid)
                begun = time.monotonic()
                sent = publishers.run(SECONDS)
                rate = sent / (time.monotonic() - begun)
                took = (running_seconds(processes[0].pid) - before) / sent * 1e6
                if number:  # the first round fills caches
                    times[count].append(took)
                log.info(f"{count} publishers: {rate:,.0f}/s acknowledged, {took:.1f} us each")
        assert receiver.received
    finally:
        for process in processes:
            end_process(process)
        for peer in opened:
            peer.link.close()
    one, many = (statistics.median(some) for some in times.values())
    log.info(f"one publisher {one:.1f} us, a hundred {many:.1f} us: {many / one:.1f} times")
