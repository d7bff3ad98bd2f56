"""The frames that passed a router most recently. Frames are parsed only if a neighbour has missed a
notification.

    chunks  [oldest] ... [ ] [ ] [newest]        searched from the newest on, each indexed once,
                              <───────────       and no further than needed

The notifications that a neighbour missed are mostly recent, so the search is short. The base class
keeps recovered notifications.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable

from tidings.routing.forwarding import Cache, cost_of, look_up
from tidings.routing.protocol import Notification, Range, frames

SMALL = 4096  # smaller chunks are merged with the next one; in bytes
OF_PLACE = 150  # bytes of memory for each mark in the index
LOOK = 256 << 10  # the most bytes that are searched to answer one request


class Chunk:
    """Consecutive frames of notifications."""

    __slots__ = ("data", "numbers")

    def __init__(self, data: bytes) -> None:
        self.data = data
        # the marks of the chunk if it is indexed, else None
        self.numbers: list[tuple[int, int]] | None = None


class FrameCache(Cache):
    """A cache of frames with a limit in bytes. It keeps the buffers that it is given, and copies
    their frames only to join small buffers. An indexed chunk also has a dictionary entry for each
    mark."""

    def __init__(self, most_bytes: int = 64 << 20) -> None:
        super().__init__(most_bytes=most_bytes // 8)
        self.most_chunk_bytes = most_bytes
        self.chunk_bytes = 0
        self._chunks: deque[Chunk] = deque()
        self._places: dict[int, dict[int, tuple[Chunk, int]]] = {}  # of indexed chunks

    def clear(self) -> None:
        super().clear()
        self._chunks.clear()
        self._places.clear()
        self.chunk_bytes = 0

    def put_frames(self, data: bytes) -> None:
        """Keep frames of notifications."""
        last = self._chunks[-1] if self._chunks else None
        if last is not None and last.numbers is None and len(last.data) + len(data) <= SMALL:
            last.data += data
        else:
            self._chunks.append(Chunk(data))
        self.chunk_bytes += len(data)
        while self.chunk_bytes > self.most_chunk_bytes:
            self._drop(self._chunks.popleft())

    def find(
        self, ranges: Iterable[Range], most_bytes: int = 1 << 62
    ) -> tuple[list[Notification], list[Range]]:
        there, rest = super().find(ranges, most_bytes)
        found = {one.serial: one for one in there}
        most_bytes -= sum(cost_of(len(one.payload), len(one.marks)) for one in there)
        places, rest = look_up(self._places, rest)
        unseen = self._latest_unseen() if rest else []
        count = 1
        # looking up all of `rest` is costly, so each round indexes twice as many chunks as the one
        # before
        while rest and unseen:
            for chunk in reversed(unseen[-count:]):
                self._look(chunk)
            del unseen[-count:]
            count *= 2
            more, rest = look_up(self._places, rest)
            places += more
        for chunk, start in places:
            if frames.place_of(chunk.data, start)[1] in found:
                continue
            front = frames.front_of(chunk.data, start)
            most_bytes -= cost_of(front.end - front.rest, front.marks)
            if most_bytes < 0 and found:
                break
            message = frames.decode(chunk.data, start)
            assert isinstance(message, Notification)
            found[message.serial] = message
        return [found[serial] for serial in sorted(found)], rest

    def _latest_unseen(self) -> list[Chunk]:
        """The latest chunks that are not indexed: only a few, so that the search is quick. Older
        notifications are requested from the node above."""
        found: list[Chunk] = []
        size = 0
        for chunk in reversed(self._chunks):
            if chunk.numbers is None:
                found.append(chunk)
                size += len(chunk.data)
                if size > LOOK:
                    break
        return found[::-1]

    def _look(self, chunk: Chunk) -> None:
        chunk.numbers = []
        for start in frames.split(chunk.data)[0]:
            with contextlib.suppress(frames.FrameError):  # forwarded frames were not checked
                frames.decode(chunk.data, start)
                place = chunk, start
                for node, number in frames.numbers_of(chunk.data, start):
                    self._places.setdefault(node, {}).setdefault(number, place)
                    chunk.numbers.append((node, number))
        self.chunk_bytes += OF_PLACE * len(chunk.numbers)

    def _drop(self, chunk: Chunk) -> None:
        self.chunk_bytes -= len(chunk.data) + OF_PLACE * len(chunk.numbers or ())
        for node, number in chunk.numbers or ():
            there = self._places.get(node, {})
            if there.get(number, (None, 0))[0] is chunk:
                del there[number]
                if not there:
                    del self._places[node]
