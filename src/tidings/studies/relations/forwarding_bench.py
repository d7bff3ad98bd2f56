"""Measures what relations cost a router: the processor time for each notification that the router
forwards.

    upper link ──> scan, restore ──> plans ──> four lower links, to nowhere
                                        `────> noted, and learnt from now and then

    plain      a channel without relations
    context    notifications have contexts, so they are longer
    learning   in addition, the router learns from the contexts, as often as a busy node
    early      in addition, each body arrives early, and is forwarded early to the neighbours for
               which its context has enough merit

The four variants are measured in turn, without sockets. First, the benchmark checks that the four
neighbours get the same notifications in all variants.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence

import msgspec
import numpy as np

from tidings.broker.early import PAUSE, SLICE, pause_when_busy
from tidings.network import Forwarder, FrameCache, Link, load_scan_kernels
from tidings.relations import SemanticStore, Term, encode_terms
from tidings.routing.early import LEAST_BODY, Early, SentBodies, encode_early
from tidings.routing.forwarding import Forwarding, Mode, Name, Router
from tidings.routing.learning import EarlySettings, Learning
from tidings.routing.protocol import frames, make_front, messages as m
from tidings.studies.workloads.checking import WrongMatches
from tidings.studies.workloads.draws import draw_bounded_zipf

TOPICS, NEIGHBOURS = 1_000, 4
BUFFER = 64 << 10  # bytes that arrive at once
EXPONENT = 1.1


class ForwardingRow(msgspec.Struct, frozen=True):
    """Notifications with bodies of one size."""

    body: int
    """Bytes."""
    plain_micros: float
    context_micros: float
    learning_micros: float
    early_micros: float | None
    """None if bodies are too small to be sent early."""
    served: float | None
    """The share of the notifications to neighbours whose bodies had been sent early."""
    useless: float | None
    """The share of the early bytes that went to neighbours that did not need them."""


class _Null(asyncio.Transport):
    """A transport that sends nothing, and keeps the data if `kept` is a list."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[bytes] | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.kept is not None:
            self.kept.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False


class RouterPath:
    """The path that notifications take through a router."""

    def __init__(self, seed: int, *, learns: bool) -> None:
        rng = np.random.default_rng([seed, TOPICS])
        self.router = Router("r", "up")
        self.router.epoch = 1
        self.router.forwarding = Forwarding(Mode.ADAPTIVE)
        names = [f"n{at}" for at in range(NEIGHBOURS)]
        for name in names:
            self.router.hear(name)
        for node in range(1, TOPICS + 1):
            self.router.graph.insert(node, (), ())
            for name in names:
                if rng.random() < 0.5:
                    self.router.subscriptions.add(name, node)
        self.router.drain_outgoing()
        self.forwarder = Forwarder(self.router)
        if learns:
            self.forwarder.learning = Learning(self.router, EarlySettings(SemanticStore()), 0.0)
        self.cache = FrameCache()
        self.wires: dict[Name, _Null] = {}
        self.links: dict[Name, Link] = {}
        for name in names:
            self.links[name] = Link(lambda *_: None, lambda *_: None)
            self.wires[name] = _Null()
            self.links[name].connection_made(self.wires[name])
        # The processor seconds of this path, without those of the others, and when to learn next.
        self._fed, self._next = 0.0, PAUSE

    def _receive(self, _: Link, buffer: bytes, starts: list[int]) -> None:
        ends = [*starts[1:], starts[-1] + frames.size_at(buffer, starts[-1])]
        for name, (pieces, count) in self.forwarder.forward(buffer, starts, ends).items():
            data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            self.links[name].send_notifications(data, count)
        self.cache.put_frames(buffer[starts[0] : ends[-1]])

    def _take_early(self, _: Link, early: Early) -> None:
        learning = self.forwarder.learning
        if learning is None or not learning.is_new(*early.key):
            return
        served = learning.find_served(early.context)
        if served:
            early = early._replace(hops=early.hops - 1, merit=max(served.values()))
            frame = encode_early(early)
            for name in served:
                self.links[name].send_early(early, 0, frame)

    def work(self, *, everything: bool = False) -> None:
        """Learn as a busy node does: for a slice of time after each pause."""
        learning = self.forwarder.learning
        if learning is not None and (everything or self._fed > self._next):
            begun = time.process_time()
            while learning.work(0.0) and (everything or time.process_time() < begun + SLICE):
                pass
            took = time.process_time() - begun
            self._next = self._fed + took + pause_when_busy(took)

    async def feed(self, buffers: Sequence[bytes]) -> float:
        """Receive and forward the buffers of a new connection; return the processor seconds."""
        upper = Link(self._receive, lambda *_: None, early=self._take_early)
        upper.connection_made(_Null())
        before, begun = self._fed, time.process_time()
        for buffer in buffers:
            upper.data_received(buffer)
            await asyncio.sleep(0)  # links write at the end of a turn
            self._fed = before + time.process_time() - begun
            self.work()
        took = time.process_time() - begun
        self._fed = before + took
        return took


def measure_forwarding(
    seed: int, count: int, repeats: int, bodies: Sequence[int] = (100, 5_000)
) -> list[ForwardingRow]:
    """Forward `count` notifications in each variant, for each size of bodies."""
    load_scan_kernels()
    return [asyncio.run(_measure(seed, count, repeats, body)) for body in bodies]


async def _measure(seed: int, count: int, repeats: int, body: int) -> ForwardingRow:
    rng = np.random.default_rng([seed, body])
    topics = draw_bounded_zipf(rng, EXPONENT, TOPICS, count).tolist()
    paths = {
        "plain": RouterPath(seed, learns=False), "context": RouterPath(seed, learns=False),
        "learning": RouterPath(seed, learns=True),
    }  # fmt: skip
    if body >= LEAST_BODY:
        paths["early"] = RouterPath(seed, learns=True)
    spent: dict[str, list[float]] = {name: [] for name in paths}
    stamp = 1
    first = {name: draw_buffers(topics[: count // 4], body, name, stamp) for name in paths}
    stamp += count
    await _check(paths, first)
    for turn in range(repeats + 1):  # the first turn warms up
        for name, path in paths.items():
            taken = await path.feed(draw_buffers(topics, body, name, stamp))
            if turn:
                spent[name].append(taken / count * 1e6)
        stamp += count
    micros = {name: statistics.median(found) for name, found in spent.items()}
    served, useless = _count_early(paths.get("early"))
    return ForwardingRow(
        body,
        micros["plain"],
        micros["context"],
        micros["learning"],
        micros.get("early"),
        served,
        useless,
    )


def draw_buffers(topics: Sequence[int], body: int, way: str, stamp: int) -> list[bytes]:
    """The buffers that a node above sends."""
    sent, found, size = SentBodies(), list[list[bytes]]([[]]), 0
    for at, topic in enumerate(topics):
        node, said = topic + 1, bytes(body)
        context = b"" if way == "plain" else encode_terms([Term("tag", f"T{node}")])
        mark = m.Mark(node, stamp + at, (node,))
        told = m.Notification(
            1, stamp + at, (mark,), make_front(context) + said, "publisher", stamp + at
        )
        frame: bytes | memoryview = frames.encode(told)
        if way == "early":
            early = Early(9, 1.0, context, b"publisher", stamp + at, said)
            sent.add(0, early)
            frame = encode_early(early) + bytes(sent.shorten(frame, 0))
        if size > BUFFER:
            found.append([])
            size = 0
        found[-1].append(bytes(frame))
        size += len(frame)
    return [b"".join(one) for one in found]


async def _check(paths: dict[str, RouterPath], buffers: dict[str, list[bytes]]) -> None:
    """Raise WrongMatches unless all neighbours get the same notifications, apart from their
    contexts."""
    told = {}
    for name, path in paths.items():
        for wire in path.wires.values():
            wire.kept = []
        await path.feed(buffers[name])
        path.work(everything=True)
        told[name] = {to: _read(wire.kept or []) for to, wire in path.wires.items()}
        for wire in path.wires.values():
            wire.kept = None
    for name, found in told.items():
        if found != told["plain"]:
            raise WrongMatches(
                f"neighbours get different notifications with {name!r} and with 'plain'"
            )


def _read(data: Sequence[bytes]) -> list[tuple[int, tuple[m.Mark, ...]]]:
    found: list[tuple[int, tuple[m.Mark, ...]]] = []

    def receive(_: Link, buffer: bytes, starts: list[int]) -> None:
        for start in starts:
            one = frames.decode(buffer, start)
            assert isinstance(one, m.Notification)
            found.append((one.serial, one.marks))

    link = Link(receive, lambda *_: None, early=lambda *_: None)
    link.connection_made(_Null())
    for piece in data:
        link.data_received(piece)
    return found


def _count_early(path: RouterPath | None) -> tuple[float | None, float | None]:
    if path is None:
        return None, None
    tables = [link.early_out for link in path.links.values() if link.early_out is not None]
    sent, used = sum(one.sent for one in tables), sum(one.used for one in tables)
    told = sum(link.told_out for link in path.links.values())
    return sum(one.referred for one in tables) / max(1, told), 1 - used / max(1, sent)
