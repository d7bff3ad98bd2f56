"""Publishes at a steady rate against many filters, and counts what a receiver gets.

    SteadyPublisher ──Publish──> [rendezvous point] ──Notification──> Counter
                    <─Published─

Each publication has `n = 1` and KEPT attributes of an event of the workload `mixed`. So its tag is
found among all filters of that workload, as for a whole event, but it matches few of them: of
1,000,000 filters, 1.8 on average and 15 at most. A whole event would match 190, and would measure
mainly how its marks are written. The receiver subscribes to `n = 1`, so it gets every publication.
"""

from __future__ import annotations

import itertools
import select
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.model import EnvironmentProblem
from tidings.routing.protocol import frames, messages as m
from tidings.studies.network.route_durable import PATIENCE, greet
from tidings.studies.network.route_flow import Missing
from tidings.studies.workloads.workloads import make_workload

EVENTS = 2_000  # distinct contents, which are published in turn
KEPT = 8  # the last attributes of each event, which filters test least often
PUBLISHED = 20_000.0  # publications per second
TURN = 0.002  # seconds between two groups of publications
PAYLOAD = 200
PUBLISHER = "publisher"  # the name of the neighbour that publishes
WINDOW = 50_000  # the highest number of publications in flight
RECEIVED = "n = 1"  # the filter of the receiver


def draw_contents() -> list[bytes]:
    """The contents of publications."""
    events = make_workload("mixed", 1, EVENTS).events
    names = events.column_names[-KEPT:]
    return [msgspec.json.encode({"n": 1, **row}) for row in events.select(names).to_pylist()]


class SteadyPublisher:
    """Publishes at a steady rate, in two threads, while the block runs."""

    def __init__(self, port: int, contents: Sequence[bytes]) -> None:
        self._contents = contents
        self._peer = greet(port, PUBLISHER)
        self._peer.link.settimeout(PATIENCE)
        self._sent: list[float] = []  # when each publication was due
        self._done: list[tuple[int, float]] = []  # each acknowledged stamp, and when
        self._stop = threading.Event()
        self._all_sent = threading.Event()
        self._sender, self._hearer = (
            threading.Thread(target=one, daemon=True) for one in (self._run, self._hear)
        )
        self._problem = ""
        self.rate = 0.0

    def __len__(self) -> int:
        """How many publications were sent."""
        return len(self._sent)

    def __enter__(self) -> SteadyPublisher:
        self._sender.start()
        self._hearer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._sender.join(2 * PATIENCE)
        self._all_sent.set()
        self._hearer.join(2 * PATIENCE)
        self._peer.link.close()
        if self._problem or not self._done or self._done[-1][0] < len(self._sent):
            raise Missing(f"publications were not acknowledged: {self._problem}")

    def _run(self) -> None:
        payload, group = bytes(PAYLOAD), int(PUBLISHED * TURN)
        contents = itertools.cycle(self._contents)
        begun = due = time.perf_counter()
        while not self._stop.is_set():
            stamps = range(len(self._sent) + 1, len(self._sent) + group + 1)
            data = b"".join(
                frames.encode(m.Publish(PUBLISHER, stamp, max(1, stamp - WINDOW), one, payload))
                for stamp, one in zip(stamps, contents, strict=False)
            )
            time.sleep(max(0.0, due - time.perf_counter()))
            self._sent += [due] * group
            self._peer.link.sendall(data)
            due += TURN
        self.rate = len(self._sent) / (time.perf_counter() - begun)

    def _hear(self) -> None:
        while not (self._all_sent.is_set() and self._done and self._done[-1][0] >= len(self._sent)):
            if not can_read(self._peer.link, 0.1):
                continue
            try:
                found = self._peer.receive()
            except (OSError, EnvironmentProblem) as problem:
                self._problem = str(problem)
                return
            now = time.perf_counter()
            for message in found:
                if isinstance(message, m.Published):
                    if message.refusal:
                        self._problem = message.refusal
                        return
                    self._done.append((message.stamp, now))

    def milliseconds(self) -> npt.NDArray[Any]:
        """For each publication, the time from when it was due until it was acknowledged."""
        stamps = np.maximum.accumulate([stamp for stamp, _ in self._done])
        at = np.searchsorted(stamps, np.arange(1, len(self._sent) + 1))
        heard = np.array([when for _, when in self._done])
        found: npt.NDArray[Any] = (heard[at] - np.array(self._sent)) * 1e3
        return found


def can_read(link: socket.socket, seconds: float) -> bool:
    """Wait until data has arrived. `select.select` refuses descriptors above 1,023, which a process
    with many links has."""
    poll = select.poll()
    poll.register(link, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
