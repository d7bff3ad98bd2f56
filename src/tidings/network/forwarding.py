"""Notifications through a router, many at a time, by what is in front of them.

    buffer  [frame][frame][frame][frame] ...        labels ──> plan, known until the graph changes
                                                    plan: for each neighbour, as it is, or how else

Neighbouring frames that go to a neighbour as they are go as one slice. Nothing is decoded but the
front of a frame, and that of frames with labels that are known not at all beyond finding them.
"""

from __future__ import annotations

import struct

import msgspec

from tidings.routing import frames
from tidings.routing.downstream import Downstream, Name

MOST_PLANS = 100_000
_FRONT = struct.Struct("<IBBHI")


class Way(msgspec.Struct, frozen=True):
    """What a neighbour gets of notifications with some labels."""

    neighbour: Name
    kept: tuple[int, ...] | None  # which marks; None for the frame as it is
    labels: bytes


Plan = tuple[Way, ...]


class Forwarder:
    """The plans of one router. What goes to whom is collected by `forward`, in order."""

    def __init__(self, router: Downstream) -> None:
        self.router = router
        self._plans: dict[bytes, Plan] = {}
        self._version = -1

    def forward(
        self, buffer: bytes, starts: list[int], ends: list[int]
    ) -> dict[Name, tuple[list[bytes | memoryview], int]]:
        """Frames of notifications, by neighbour: pieces to be sent, and how many frames."""
        if self._version != self.router.version:
            self._plans.clear()
            self._version = self.router.version
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
        ways: dict[Name, tuple[list[int], list[tuple[int, ...]]]] = {}
        for at, label in enumerate(frames.decode_labels(labels, marks)):
            for neighbour, new in self.router.route(label).items():
                kept, changed = ways.setdefault(neighbour, ([], []))
                kept.append(at)
                changed.append(new)
        found = []
        for neighbour, (kept, changed) in ways.items():
            new_labels = frames.encode_labels(changed)
            same = new_labels == labels  # then no mark is left out either
            found.append(Way(neighbour, None if same else tuple(kept), new_labels))
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        plan = self._plans[labels] = tuple(found)
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
