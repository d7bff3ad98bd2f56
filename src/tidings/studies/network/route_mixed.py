"""Measures durable publishing of JSON, one notification per frame, against many filters.

    raw socket, or agent.publish_many ──Publish──> [rendezvous point, journal] ──> a receiver
                                      <─Published─                                 that counts

The filters and the attributes are those of the workload `mixed`. If nats-server is installed,
JetStream is measured with the same payloads. JetStream keeps the stream in files, which it does not
sync, and has one consumer.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from tidings.channel.interests import ArrayInterests
from tidings.model import EnvironmentProblem
from tidings.network import connect
from tidings.routing.protocol import frames, messages as m
from tidings.studies.host.ports import free_ports
from tidings.studies.host.process_usage import running_seconds
from tidings.studies.network.route_durable import PATIENCE, greet
from tidings.studies.network.route_flow import Missing
from tidings.studies.network.route_parts import CountingReceiver, distinct_filters, start_root
from tidings.studies.network.route_peers import (
    NATS_CONNECT,
    connect_to,
    end_process,
    nats_subscribe,
    start_program,
    wait_until,
)
from tidings.studies.workloads.workloads import make_workload

FILTERS = 10_000
EVENTS = 16_384  # distinct events; the notifications cycle through their attributes
BURST = 500  # publications that are sent together


class Mixed(msgspec.Struct, frozen=True):
    """The measurements."""

    raw_rates: list[float]  # acknowledged publications per second of a raw socket
    many_rates: list[float]  # acknowledged publications per second of an agent's publish_many
    root_per_core: float  # raw publications per second of the rendezvous point's processor time
    filters: int
    content: float  # bytes of the attributes of a notification, on average
    window: int
    told: int  # notifications that the receiver got: all those that match a filter
    jetstream_rates: list[float]  # acknowledged publications per second; empty without nats-server


def measure_mixed(
    folder: Path,
    seconds: float,
    rounds: int,
    window: int,
    payload: bytes,
    *,
    seed: int = 1,
    peers: bool = True,
    note: Callable[[str], None] = lambda _: None,
) -> Mixed:
    """Run a rendezvous point whose journal is in a folder, and publish to it."""
    note(f"mixed: placing {FILTERS:,} filters")
    workload = make_workload("mixed", FILTERS, EVENTS, seed)
    stored, lines = distinct_filters(workload), [*workload.event_lines()]
    processes: list[subprocess.Popen[bytes]] = []
    raws, many, jets, spent, count = list[float](), list[float](), list[float](), 0.0, 0
    events = [msgspec.json.decode(line) for line in lines]
    interests = ArrayInterests(None, stored, stored[-1][0])
    matching = np.array([bool([*interests.tag(line)]) for line in lines])

    def count_told(first: int, many: int) -> int:
        """How many of `many` notifications, from `first` on, match a filter."""
        return int(matching[np.arange(first, first + many) % len(lines)].sum())

    try:
        port = start_root(folder, stored, processes)
        receiver = CountingReceiver(port, [node for node, _ in stored])
        warm = encode_bursts("warm", lines, payload, window, 5_000)
        told = count_told(1, publish_raw(port, "warm", warm, window)[0])
        for number in range(rounds):
            note(f"mixed: round {number + 1} of {rounds}")
            name, most = f"raw{number}", int(150_000 * seconds)
            encoded = [*encode_bursts(name, lines, payload, window, most)]
            before = running_seconds(processes[0].pid)
            sent, took = publish_raw(port, name, encoded, window, seconds)
            spent += running_seconds(processes[0].pid) - before
            raws.append(sent / took)
            count += sent
            told += count_told(1, sent)
            sent, took = asyncio.run(_publish_many(port, events, payload, seconds))
            many.append(sent / took)
            told += count_told(0, sent)
            if peers:
                jets.append(_publish_to_jetstream(folder / f"jets{number}", payload, window,
                                                  seconds))  # fmt: skip
        receiver.wait_for(told)
        receiver.end()
    finally:
        for process in processes:
            end_process(process)
    content = sum(map(len, lines)) / len(lines)
    return Mixed(
        raws, many, count / max(spent, 0.01), len(stored), content, window, told, jets
    )  # fmt: skip


def encode_bursts(
    name: str,
    lines: Sequence[bytes],
    payload: bytes,
    window: int,
    count: int,
    tags: Sequence[bytes] = (),
) -> Iterator[bytes]:
    """Frames of publications, in bursts. If tags are given, each publication has the tag of its
    line."""
    tags = tags or (b"",) * len(lines)
    for first in range(1, count + 1, BURST):
        yield b"".join(
            frames.encode(
                m.Publish(
                    name, at, max(1, at - window), lines[at % len(lines)], payload,
                    tag=tags[at % len(lines)],
                )
            )
            for at in range(first, first + BURST)
        )  # fmt: skip


def publish_raw(
    port: int, name: str, bursts: Iterator[bytes] | Sequence[bytes], window: int,
    seconds: float = PATIENCE,
) -> tuple[int, float]:  # fmt: skip
    """Publish with a raw socket; return the number of acknowledged publications and the seconds."""
    peer, given = greet(port, name), iter(bursts)
    sent = done = 0
    start = time.perf_counter()
    while True:
        while sent - done + BURST <= window and time.perf_counter() - start < seconds:
            burst = next(given, None)
            if burst is None:
                seconds = 0.0
                break
            peer.link.sendall(burst)
            sent += BURST
        if done == sent:
            break
        for message in peer.receive():
            if isinstance(message, m.Published):
                if message.refusal:
                    raise Missing(f"a publication was refused: {message.refusal}")
                done = max(done, message.stamp)
    took = time.perf_counter() - start
    peer.link.close()
    return sent, took


async def _publish_many(
    port: int, events: Sequence[dict[str, object]], payload: bytes, seconds: float
) -> tuple[int, float]:
    """Publish with an agent's publish_many; return what `_publish_raw` returns."""
    async with connect(f"tidings://127.0.0.1:{port}") as agent:
        start = time.perf_counter()
        until = start + seconds

        def pairs() -> Iterator[tuple[dict[str, object], bytes]]:
            for at in itertools.count():
                if not at % BURST and time.perf_counter() >= until:
                    return
                yield events[at % len(events)], payload

        sent = await agent.publish_many(pairs())
        return sent, time.perf_counter() - start


# -- JetStream -------------------------------------------------------------------------------------


def _publish_to_jetstream(folder: Path, payload: bytes, window: int, seconds: float) -> float:
    """The rate of acknowledged publications to a stream in files. When this returns, the consumer
    has received all publications."""
    folder.mkdir()
    (port,) = free_ports(1)
    file = folder / "nats.conf"
    file.write_text(
        f'listen: "127.0.0.1:{port}"\nping_interval: "1h"\njetstream {{ store_dir: "{folder}" }}\n'
    )
    process = start_program("nats", "-c", str(file))
    try:
        reading, writing = _join_nats(port), _join_nats(port)
        _ask(writing, "STREAM.CREATE.s", {"name": "s", "subjects": ["s"], "storage": "file"})
        reading.sendall(nats_subscribe("d", 1))
        config = {"deliver_subject": "d", "ack_policy": "none", "deliver_policy": "all"}
        _ask(writing, "CONSUMER.CREATE.s", {"stream_name": "s", "config": config})
        counter = _Deliveries(reading)
        writing.sendall(nats_subscribe("a", 9))
        one = f"PUB s a {len(payload)}\r\n".encode() + payload + b"\r\n"
        burst, sent, done, rest = one * BURST, 0, 0, b""
        start = time.perf_counter()
        while True:
            while sent - done + BURST <= window and time.perf_counter() - start < seconds:
                writing.sendall(burst)
                sent += BURST
            if done == sent:
                break
            lines = (rest + writing.recv(1 << 20)).split(b"\r\n")
            rest = lines.pop()
            done += sum(b'"seq":' in line for line in lines)
            if any(b'"error"' in line for line in lines):
                raise EnvironmentProblem(f"JetStream refused a publication: {lines[:4]}")
        took = time.perf_counter() - start
        counter.wait_for(sent)
        writing.close()
        return sent / took
    finally:
        end_process(process)


def _join_nats(port: int) -> socket.socket:
    link = connect_to(port)
    wait_until(link, b"\r\n", "nats")  # INFO
    link.sendall(NATS_CONNECT + b"PING\r\n")
    wait_until(link, b"PONG\r\n", "nats")
    return link


def _ask(link: socket.socket, what: str, message: object) -> None:
    """Send a request to JetStream; raise EnvironmentProblem unless it is answered without an
    error."""
    data = json.dumps(message).encode()
    link.sendall(nats_subscribe("r", 5))
    link.sendall(f"PUB $JS.API.{what} r {len(data)}\r\n".encode() + data + b"\r\n")
    found, deadline = b"", time.monotonic() + PATIENCE
    while not (b"MSG r 5" in found and found.endswith(b"}\r\n")):
        found += link.recv(1 << 16)
        if b"PING\r\n" in found:
            found = found.replace(b"PING\r\n", b"")
            link.sendall(b"PONG\r\n")
        if b'"error"' in found or time.monotonic() > deadline:
            raise EnvironmentProblem(f"JetStream answered {found[:300]!r} to {what}")
    link.sendall(b"UNSUB 5\r\n")


class _Deliveries:
    """A consumer that counts the messages that it gets, in its own thread."""

    def __init__(self, link: socket.socket) -> None:
        self._link, self.count = link, 0
        link.settimeout(None)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        rest = b""
        while data := self._link.recv(1 << 20):
            data = rest + data
            if b"PING\r\n" in data:
                self._link.sendall(b"PONG\r\n")
            self.count += data.count(b"MSG s 1 ")  # publications have the subject `s`
            rest = data[-7:]

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.count < count and time.monotonic() < deadline:
            time.sleep(0.005)
        self._link.shutdown(socket.SHUT_RDWR)
        if self.count < count:
            raise Missing(f"the consumer of JetStream got {self.count:,}, expected {count:,}")
