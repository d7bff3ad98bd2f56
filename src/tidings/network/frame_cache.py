"""The frames that passed a router last, as they came; looked into only when somebody missed one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from tidings.routing import frames
from tidings.routing.cache import Cache
from tidings.routing.messages import Notification, Range


class Chunk(msgspec.Struct, frozen=True):
    """Frames of notifications, one behind the other."""

    data: bytes
    count: int


class FrameCache(Cache):
    """A cache that keeps bytes, and reads what it has not read yet when it is asked.

    Cost of keeping: a reference to a buffer, or a copy where other frames are between. Bounded in
    bytes; what was read is held to the same bound, with the objects that it takes.
    """

    overhead = 250

    def __init__(self, most_bytes: int = 64 << 20) -> None:
        super().__init__(most=1 << 62, most_bytes=most_bytes)
        self._chunks: deque[Chunk] = deque()
        self._unread = 0  # bytes

    def clear(self) -> None:
        super().clear()
        self._chunks.clear()
        self._unread = 0

    def put_frames(self, data: bytes, count: int) -> None:
        """Keep frames of notifications."""
        self._chunks.append(Chunk(data, count))
        self._unread += len(data)
        while self._unread > self.most_bytes:
            self._unread -= len(self._chunks.popleft().data)

    def find(
        self, ranges: Iterable[Range], most_bytes: int = 1 << 62
    ) -> tuple[list[Notification], list[Range]]:
        while self._chunks:
            chunk = self._chunks.popleft()
            for message in frames.decode_all(chunk.data):
                if isinstance(message, Notification):
                    self.put(message)
        self._unread = 0
        return super().find(ranges, most_bytes)
