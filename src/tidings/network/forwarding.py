"""Forwards many notifications at a time; of their frames, it reads only the fronts.

    buffer  [frame][frame][frame][frame] ...        labels ──> plan, cached until a node of the
                                                    labels changes, or one above
                                                    plan: how each neighbour gets a frame

Adjacent frames that go to a neighbour unchanged are sent as one slice. Only the front of a frame is
decoded, and not even that if its labels are known: the plan is then looked up by the bytes of the
labels.
"""

from __future__ import annotations

import socket
import struct
import time
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import msgspec

from tidings.network import scanning
from tidings.routing.forwarding import (
    Downstream,
    Forwarding,
    GraphChanges,
    HeaderCache,
    Mode,
    Name,
)
from tidings.routing.protocol import frames, messages as m

if TYPE_CHECKING:
    from tidings.routing.learning import Learning

MOST_PLANS = 100_000
_FRONT = struct.Struct("<IHHI")  # length, kind and version, marks, bytes of the labels
_FRONT_SIZE = _FRONT.size


class FrameWay(msgspec.Struct, frozen=True):
    """The form in which a neighbour gets the notifications that have certain labels."""

    neighbour: Name
    kept: tuple[int, ...] | None  # positions of the kept marks; None if the frame is not changed
    labels: bytes = b""  # the labels to send instead, if the frame changes


Plan = tuple[FrameWay, ...]
Batch = tuple[list[bytes | memoryview], int]  # the pieces to send, and how many frames they contain


class Forwarder:
    """The plans of one router. `forward` collects the frames for each neighbour, in order."""

    def __init__(self, router: Downstream) -> None:
        self.router = router
        self._plans: HeaderCache[bytes, Plan] = HeaderCache(MOST_PLANS)
        self._equal: dict[Plan, Plan] = {}  # equal plans share one object
        self._changes = router.caches.add(GraphChanges())
        self._seen = 0  # frames
        self._table = scanning.new_table()
        self.buffers = 0  # how many buffers of frames were forwarded
        self.learning: Learning | None = None
        """Learns from what is forwarded, if the channel has relations."""
        self._sole: Plan = ()

    def forward(self, buffer: bytes, starts: list[int], ends: list[int]) -> dict[Name, Batch]:
        """Split consecutive notification frames into the pieces that each neighbour gets."""
        self.buffers += 1
        if self._changes:
            self._catch_up()
        if self.router.forwarding.mode is Mode.ADAPTIVE and starts:
            sole = self.router.graph.sole_neighbour()
            if sole is not None:
                if self.learning is not None:
                    self._note_sole(self.learning, sole, buffer, starts)
                return {sole: ([memoryview(buffer)[starts[0] : ends[-1]]], len(starts))}
        out: dict[Name, _Pieces] = {}
        view = memoryview(buffer)
        if ends and len(buffer) - starts[-1] < frames.HEAD:
            raise frames.FrameError(frames.TOO_SHORT)
        self._seen += len(starts)
        if self._seen > scanning.BUSY and self._table is None:
            scanning.ask_for_kernels()
            self._table = scanning.new_table()
        if self._table is not None and len(buffer) >= scanning.LEAST:
            runs = self._table.runs(buffer, starts[0], ends[-1], self.plan_of)
        else:
            runs = self._runs(buffer, starts)
        runs.append((len(starts), ()))
        if self.learning is not None:
            self._note(self.learning, buffer, starts, runs)
        for (first, plan), (last, _) in pairwise(runs):
            if plan:
                self._give(plan, out, view, starts[first:last], ends[first:last])
        return {name: (pieces.finish(), pieces.count) for name, pieces in out.items()}

    def _note(
        self, learning: Learning, buffer: bytes, starts: list[int], runs: list[tuple[int, Plan]]
    ) -> None:
        """Note forwarded frames that have contexts, so that the node learns from them, but only as
        many as there is room for."""
        room = learning.room
        if not room:
            learning.left_out += len(starts)
            return
        learning.left_out += max(0, len(starts) - room)
        for (first, plan), (last, _) in pairwise(runs):
            for start in starts[first : min(last, first + room)] if plan else ():
                context = frames.context_at(buffer, start)
                if context:
                    marks, size = _FRONT.unpack_from(buffer, start)[2:]
                    labels = start + frames.HEAD + 16 * marks
                    learning.note(context, buffer[labels : labels + size], marks, plan)
            room -= min(room, last - first)
            if not room:
                return

    def _note_sole(self, learning: Learning, sole: Name, buffer: bytes, starts: list[int]) -> None:
        """Like `_note`, for frames that all go to one neighbour. Their labels are not read."""
        if not self._sole or self._sole[0].neighbour != sole:
            self._sole = (FrameWay(sole, None),)
        self._note(learning, buffer, starts, [(0, self._sole), (len(starts), ())])

    def _runs(self, buffer: bytes, starts: list[int]) -> list[tuple[int, Plan]]:
        """Return, for each run, its first frame and its plan. A run consists of adjacent frames
        with the same plan. Cost: one lookup for each frame."""
        runs: list[tuple[int, Plan]] = []
        known, unpack, head = self._plans.known.get, _FRONT.unpack_from, frames.HEAD
        run: Plan | None = None
        for at, start in enumerate(starts):
            length, _, marks, size = unpack(buffer, start)
            first = start + head + 16 * marks
            last = first + size
            if last > start + 4 + length:
                raise frames.FrameError(frames.TOO_SHORT)
            plan = known(buffer[first:last])
            if plan is None:
                plan = self._plan(buffer[first:last], marks)
            if plan is not run:
                run = plan
                runs.append((at, plan))
        return runs

    def plan_of(self, labels: bytes, marks: int) -> Plan:
        """The plan for the notifications that have these labels."""
        plan = self._plans.known.get(labels)
        return self._plan(labels, marks) if plan is None else plan

    def _catch_up(self) -> None:
        """Forget the plans that are affected by changes to the graph."""
        if self._changes.everything:
            self._forget()
        else:
            for labels in self._plans.drop(self._changes.nodes):
                if self._table is not None:
                    self._table.drop(labels)
        self._changes.forget()

    def _forget(self) -> None:
        self._plans.clear()
        self._equal.clear()
        if self._table is not None:
            self._table.clear()

    def _give(
        self,
        plan: Plan,
        out: dict[Name, _Pieces],
        view: memoryview,
        starts: list[int],
        ends: list[int],
    ) -> None:
        """Add frames that have the same plan to the pieces of each neighbour."""
        for way in plan:
            pieces = out.get(way.neighbour)
            if pieces is None:
                pieces = out[way.neighbour] = _Pieces(view)
            pieces.count += len(starts)
            if way.kept is None:
                pieces.add_slice(starts[0], ends[-1])
            else:
                for start, end in zip(starts, ends, strict=True):
                    pieces.add_relabelled(start, end, way)

    def _plan(self, labels: bytes, marks: int) -> Plan:
        known = tuple(frames.decode_labels(labels, marks))
        if len(self._plans) >= MOST_PLANS or len(self._equal) >= MOST_PLANS:
            self._forget()
        plan: Plan = tuple(
            FrameWay(neighbour, None)
            if way.kept is None
            else FrameWay(neighbour, way.kept, frames.encode_labels(way.labels))
            for neighbour, way in self.router.ways(known).items()
        )
        plan = self._equal.setdefault(plan, plan)
        return self._plans.put(labels, plan, chain.from_iterable(known))


class _Pieces:
    """The pieces that are to be sent to one neighbour. Adjacent slices of the buffer are joined."""

    __slots__ = ("_end", "_start", "_view", "count", "pieces")

    def __init__(self, view: memoryview) -> None:
        self.pieces: list[bytes | memoryview] = []
        self.count = 0
        self._view = view
        self._start = self._end = -1

    def add_slice(self, start: int, end: int) -> None:
        if start != self._end:
            self._close()
            self._start = start
        self._end = end

    def add(self, piece: bytes) -> None:
        self._close()
        self.pieces.append(piece)

    def add_relabelled(self, start: int, end: int, way: FrameWay) -> None:
        """Add a frame whose labels are new. Only the part of a frame before the payload is
        rewritten; if the size of the labels stays the same, only the labels are rewritten."""
        length, kind, marks, size = _FRONT.unpack_from(self._view, start)
        first = start + frames.HEAD + 16 * marks
        new, kept = way.labels, way.kept
        if kept is None or len(kept) != marks:
            if kept and kept[-1] >= marks:
                raise frames.FrameError(
                    f"found {marks} marks, expected at least {kept[-1] + 1} for the labels"
                )
            front = frames.front_of(self._view, start)
            self.add(frames.relabel(self._view, front, kept or (), new))
            return
        if len(new) == size:
            self.add_slice(start, first)
        else:
            self.add(_FRONT.pack(length + len(new) - size, kind, marks, len(new)))
            self.add_slice(start + _FRONT_SIZE, first)
        self.add(new)
        self.add_slice(first + size, end)

    def finish(self) -> list[bytes | memoryview]:
        self._close()
        return self.pieces

    def _close(self) -> None:
        if self._end >= 0:
            self.pieces.append(self._view[self._start : self._end])
        self._start = self._end = -1


def measure_costs(rounds: int = 5) -> Forwarding:
    """Measure how long this machine takes to rewrite a front, and to pass a byte through a socket.
    The fastest round counts, because slower rounds may have been interrupted. Measuring takes a few
    milliseconds."""
    marks = tuple(m.Mark(node, 1, (node,)) for node in range(1, 5))
    frame = frames.encode(m.Notification(1, 1, marks, bytes(200), "publisher", 1))
    way = FrameWay("", (0, 1), frames.encode_labels([(1,), (2,)]))
    rewrite, byte = float("inf"), float("inf")
    near, far = socket.socketpair()
    with near, far:
        data = bytes(1 << 16)
        for _ in range(rounds):
            begun = time.perf_counter_ns()
            for _ in range(200):
                _Pieces(memoryview(frame)).add_relabelled(0, len(frame), way)
            rewrite = min(rewrite, (time.perf_counter_ns() - begun) / 200)
            begun = time.perf_counter_ns()
            for _ in range(8):
                sent = near.send(data)
                while sent:
                    sent -= len(far.recv(sent))
            byte = min(byte, (time.perf_counter_ns() - begun) / (8 * len(data)))
    return Forwarding(Mode.ADAPTIVE, rewrite, byte)
