"""Starts routers of tidings as real processes. A client plays the rendezvous point above these
routers, and raw sockets play the neighbours below them.
"""

from __future__ import annotations

import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidings.model import EnvironmentProblem
from tidings.routing.protocol import digest, frames, messages as m
from tidings.studies.network.route_flow import Receiver, System
from tidings.studies.network.route_peers import connect_to, end_process

EPOCH = 7
PUBLISHER = "publisher-1"
PATIENCE = 20.0  # seconds within which everything must become ready
CALM = 3600.0  # seconds, long enough that no neighbour counts as silent during a measurement


class RawPeer:
    """A raw socket that sends and receives messages before the measurement starts."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self._rest = b""

    def say(self, *messages: m.Message) -> None:
        self.link.sendall(b"".join(map(frames.encode, messages)))

    def receive(self) -> list[m.Message]:
        """Wait for data; return the complete messages in it."""
        data = self.link.recv(1 << 20)
        if not data:
            raise EnvironmentProblem("a router closed the connection")
        buffer = self._rest + data
        starts, end = frames.split(buffer)
        self._rest = buffer[end:]
        return [frames.decode(buffer, start) for start in starts]


class FakeRoot(RawPeer):
    """Plays the rendezvous point: every node exists, and is below the given parents."""

    def __init__(self, link: socket.socket, parents: Mapping[int, m.Label]) -> None:
        super().__init__(link)
        self.parents = parents
        self.wanted: set[int] = set()

    def greet(self) -> None:
        while not any(isinstance(one, m.Hello) for one in self.receive()):
            pass
        self.say(m.Welcome("root"))
        self.beat()

    def beat(self) -> None:
        self.say(m.Beat(EPOCH, 0, {}, digest(self.wanted), 0))

    def answer(self) -> None:
        """Send the router the parents and children of the nodes that it asks for."""
        for message in self.receive():
            if isinstance(message, (m.Subscribe, m.Wanted)) and message.epoch == EPOCH:
                for node in message.nodes:
                    self.wanted.add(node)
                    above = tuple(one for one in self.parents.get(node, ()) if one in self.wanted)
                    below = tuple(one for one in self.wanted if node in self.parents.get(one, ()))
                    self.say(m.Setup(EPOCH, node, above, below, 0, 0))


def start_tidings(
    folder: Path,
    nodes: Sequence[int],
    payloads: Sequence[bytes],
    wants: Sequence[Sequence[int]],
    *,
    parents: Mapping[int, m.Label] | None = None,
    hops: int = 1,
) -> System:
    """Start a chain of routers, with a receiver for each list in `wants`. `nodes` contains the node
    of each payload."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(PATIENCE)
    processes: list[subprocess.Popen[bytes]] = []
    links: list[socket.socket] = [server]

    def stop() -> None:
        for link in links:
            link.close()
        for process in reversed(processes):
            end_process(process)

    try:
        port = server.getsockname()[1]
        for hop in range(hops):
            port = _start(folder / f"router{hop}.toml", f"router{hop}", port, processes)
        link, _ = server.accept()
        links.append(link)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.settimeout(PATIENCE)
        above = FakeRoot(link, parents or {})
        above.greet()
        peers = [RawPeer(connect_to(port)) for _ in wants]
        links += [peer.link for peer in peers]
        for number, peer in enumerate(peers):
            peer.say(m.Hello(f"receiver{number}"))
            while not any(isinstance(one, m.Welcome) for one in peer.receive()):
                pass
        _settle(above, peers, wants)
        given = [_frame(*one) for one in zip(nodes, payloads, strict=True)]
        receivers = _receivers(above, peers, given)
    except BaseException:
        stop()
        raise
    size = len(given[0])
    return System(
        "tidings", [process.pid for process in processes], above.link, receivers, b"".join(given),
        size, size - len(payloads[0]), stop,
    )  # fmt: skip


def _start(file: Path, name: str, above: int, processes: list[subprocess.Popen[bytes]]) -> int:
    """Run a router below the node at the port `above`; return the port that it listens on."""
    file.write_text(
        f'name = "{name}"\nlisten = "127.0.0.1:0"\nupstream = "127.0.0.1:{above}"\n'
        f"[times]\nsilent = {CALM}\nexpire = {CALM}\nresubscribe = {CALM}\n"
    )
    return start_node(file, processes)


def start_node(file: Path, processes: list[subprocess.Popen[bytes]]) -> int:
    """Run the router or root that a file describes; return the port that it listens on."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tidings", "router", "--config", str(file)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    processes.append(process)
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    if not line:
        raise EnvironmentProblem(f"the router described by {file} did not start")
    return int(line.rsplit(":", 1)[1])


def _settle(above: FakeRoot, peers: Sequence[RawPeer], wants: Sequence[Sequence[int]]) -> None:
    """Subscribe all receivers. Repeat each subscription until it is answered, because the routers
    of a chain possibly do not know the epoch yet."""
    missing = {id(peer): set(nodes) for peer, nodes in zip(peers, wants, strict=True)}
    by_link = {peer.link: peer for peer in peers}
    deadline, again = time.monotonic() + PATIENCE, 0.0
    with selectors.DefaultSelector() as selector:
        for link in (above.link, *by_link):
            selector.register(link, selectors.EVENT_READ)
        while any(missing.values()):
            now = time.monotonic()
            if now > deadline:
                raise EnvironmentProblem(
                    f"the routers did not answer all subscriptions within {PATIENCE:.0f} s"
                )
            if now > again:
                again = now + 1.0
                for peer in peers:
                    if missing[id(peer)]:
                        peer.say(m.Subscribe(EPOCH, tuple(missing[id(peer)])))
            for key, _ in selector.select(0.1):
                if key.fileobj is above.link:
                    above.answer()
                    continue
                peer = by_link[key.fileobj]  # type: ignore[index]
                for message in peer.receive():
                    if isinstance(message, m.Setup):
                        missing[id(peer)].discard(message.node)
    above.beat()


def _frame(node: int, payload: bytes) -> bytes:
    mark = m.Mark(node, 1_000_000, (node,))
    return frames.encode(m.Notification(EPOCH, 5_000_000, (mark,), payload, PUBLISHER, 5_000_000))


def _receivers(above: FakeRoot, peers: Sequence[RawPeer], given: Sequence[bytes]) -> list[Receiver]:
    """Send each notification once, and check everything that arrives."""
    time.sleep(0.3)  # let the routers finish exchanging messages
    expected = [frames.decode(one) for one in given]
    found: list[list[m.Notification]] = [[] for _ in peers]
    for at, one in enumerate(given, start=1):
        above.link.sendall(one)
        if at % 500 == 0 or at == len(given):
            for peer, its in zip(peers, found, strict=True):
                while len(its) < at:
                    its += [one for one in peer.receive() if isinstance(one, m.Notification)]
    receivers = []
    for peer, its in zip(peers, found, strict=True):
        sizes = {len(frames.encode(one)) for one in its}
        if len(sizes) != 1 or [one.payload for one in its] != [
            one.payload for one in expected if isinstance(one, m.Notification)
        ]:
            raise EnvironmentProblem("a router changed or reordered notifications")
        (size,) = sizes
        receivers.append(Receiver(peer.link, size, size - len(its[0].payload)))
    return receivers
