"""Notifications through a router, many at a time, by what is in front of them.

    buffer  [frame][frame][frame][frame] ...        labels ──> plan, known until the graph changes
                                                    plan: for each neighbour, as it is, or how else

Neighbouring frames that go to a neighbour as they are go as one slice. Nothing is decoded but the
front of a frame, and that of frames with labels that are known not at all beyond finding them.
"""

from __future__ import annotations

import socket
import struct
import time

import msgspec

from tidings.routing import frames, messages as m
from tidings.routing.downstream import Downstream, Name
from tidings.routing.ways import Forwarding, Mode

MOST_PLANS = 100_000
_FRONT = struct.Struct("<IBBHI")


class Way(msgspec.Struct, frozen=True):
    """What a neighbour gets of notifications with some labels."""

    neighbour: Name
    kept: tuple[int, ...] | None  # which marks; None for the frame as it is
    labels: bytes


Plan = tuple[Way, ...]
Batch = tuple[list[bytes | memoryview], int]  # pieces to be sent, and how many frames


class Forwarder:
    """The plans of one router. What goes to whom is collected by `forward`, in order."""

    def __init__(self, router: Downstream) -> None:
        self.router = router
        self._plans: dict[bytes, Plan] = {}
        self._version = -1

    def forward(self, buffer: bytes, starts: list[int], ends: list[int]) -> dict[Name, Batch]:
        """Frames of notifications that follow each other, by neighbour."""
        if self._version != self.router.version:
            self._plans.clear()
            self._version = self.router.version
        if self.router.forwarding.mode is Mode.ADAPTIVE and starts:
            sole = self.router.graph.sole()
            if sole is not None:
                return {sole: ([memoryview(buffer)[starts[0] : ends[-1]]], len(starts))}
        out: dict[Name, _Pieces] = {}
        view = memoryview(buffer)
        plans, unpack = self._plans, _FRONT.unpack_from
        for start, end in zip(starts, ends, strict=True):
            length, _, _, marks, size = unpack(buffer, start)
            first = start + frames.HEAD + 16 * marks
            if length + 4 < frames.HEAD or first + size > end:
                raise frames.FrameError("found a notification that is shorter than its parts")
            labels = buffer[first : first + size]
            plan = plans.get(labels)
            if plan is None:
                plan = self._plan(labels, marks)
            for way in plan:
                pieces = out.get(way.neighbour)
                if pieces is None:
                    pieces = out[way.neighbour] = _Pieces()
                if way.kept is None:
                    pieces.add_slice(start, end, view)
                else:
                    front = frames.front_of(buffer, start)
                    pieces.add(frames.relabelled(buffer, front, way.kept, way.labels), view)
        return {name: (pieces.done(view), pieces.count) for name, pieces in out.items()}

    def _plan(self, labels: bytes, marks: int) -> Plan:
        known = tuple(frames.decode_labels(labels, marks))
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        plan = self._plans[labels] = tuple(
            Way(neighbour, way.kept, frames.encode_labels(way.labels))
            for neighbour, way in self.router.ways(known).items()
        )
        return plan


class _Pieces:
    """What goes to one neighbour: slices of the buffer that follow each other are one."""

    __slots__ = ("_end", "_start", "count", "pieces")

    def __init__(self) -> None:
        self.pieces: list[bytes | memoryview] = []
        self.count = 0
        self._start = self._end = -1

    def add_slice(self, start: int, end: int, view: memoryview) -> None:
        self.count += 1
        if start == self._end:
            self._end = end
        else:
            self._close(view)
            self._start, self._end = start, end

    def add(self, piece: bytes, view: memoryview) -> None:
        self.count += 1
        self._close(view)
        self.pieces.append(piece)

    def done(self, view: memoryview) -> list[bytes | memoryview]:
        self._close(view)
        return self.pieces

    def _close(self, view: memoryview) -> None:
        if self._end >= 0:
            self.pieces.append(view[self._start : self._end])
        self._start = self._end = -1


def measure_costs(rounds: int = 5) -> Forwarding:
    """What it costs on this machine to write a front anew, and to pass a byte through a socket. The
    least of some rounds counts: others had to wait for something. It takes a few milliseconds."""
    marks = tuple(m.Mark(node, 1, (node,)) for node in range(1, 5))
    frame = frames.encode(m.Notification(1, 1, marks, bytes(200), "publisher", 1))
    labels = frames.encode_labels([(1,), (2,)])
    rewrite, byte = float("inf"), float("inf")
    near, far = socket.socketpair()
    with near, far:
        data = bytes(1 << 16)
        for _ in range(rounds):
            begun = time.perf_counter_ns()
            for _ in range(200):
                frames.relabelled(frame, frames.front_of(frame, 0), (0, 1), labels)
            rewrite = min(rewrite, (time.perf_counter_ns() - begun) / 200)
            begun = time.perf_counter_ns()
            for _ in range(8):
                sent = near.send(data)
                while sent:
                    sent -= len(far.recv(sent))
            byte = min(byte, (time.perf_counter_ns() - begun) / (8 * len(data)))
    return Forwarding(Mode.ADAPTIVE, rewrite, byte)
