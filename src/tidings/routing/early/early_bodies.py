"""The early bodies of a link. Both ends of the link keep the same bodies.

    sender     early 0   early 1   reference to 0   early 2 ...     in the order of the connection
    receiver   {0}       {0, 1}    {1}              {1, 2}          the same at the sender

Both ends keep the latest bodies within the same bounds, and drop each body after a reference to it
was sent. So at each position of the stream, both have the same bodies, and a reference always finds
its body, as in the dynamic table of HPACK. A new connection begins with empty tables.

Before the sender refers to an early body, it compares the whole body with that of the notification.
So a reference always leads to the right body; if a different body was sent early, the notification
is sent whole. The sender may forget a body (shared_bodies.py); then it keeps only the position and
the size.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from tidings.routing.early.early_frames import Early, position_at, refer, restore
from tidings.routing.early.shared_bodies import SharedBody
from tidings.routing.protocol import frames

MOST_BODIES = 1_024
MOST_BYTES = 4 << 20
LEAST_BODY = 1 << 10
"""Smaller bodies are not sent early: the early frame would cost more than it saves later."""
LARGEST_BODY = MOST_BYTES // 4

Item = TypeVar("Item")
Key = tuple[bytes, int]  # the publisher and the stamp


class _Latest(Generic[Item]):
    """The latest items by position, within the bounds."""

    def __init__(self) -> None:
        self.items: dict[int, tuple[Item, int]] = {}  # each item and its size, by position
        self.bytes = 0
        self._next = 0

    def add(self, item: Item, size: int) -> list[tuple[Item, int]]:
        """Add an item; return the items that are dropped to make room for it."""
        self.items[self._next] = item, size
        self._next += 1
        self.bytes += size
        dropped = []
        while len(self.items) > MOST_BODIES or self.bytes > MOST_BYTES:
            dropped.append(self.take(next(iter(self.items))))
        return dropped

    def take(self, position: int) -> tuple[Item, int]:
        found = self.items.pop(position)
        self.bytes -= found[1]
        return found

    @property
    def last(self) -> int:
        """The position of the latest item."""
        return self._next - 1


class KeptBodies:
    """The early bodies that came over a link."""

    def __init__(self) -> None:
        self._latest: _Latest[bytes] = _Latest()

    def __len__(self) -> int:
        return len(self._latest.items)

    @property
    def size(self) -> int:
        """The total size of the bodies that are kept, in bytes."""
        return self._latest.bytes

    def add(self, early: Early) -> None:
        """Keep a body; raise FrameError if the sender must not send it early."""
        size = len(early.body)
        if size > LARGEST_BODY:
            raise frames.FrameError(
                f"found an early body of {size:,} bytes, expected at most {LARGEST_BODY:,}"
            )
        self._latest.add(early.body, size)

    def restore(self, buffer: bytes, start: int) -> bytes:
        """The whole frame of the notification whose reference begins at `start`; raise FrameError
        if the body is not kept."""
        position = position_at(buffer, start)
        if position not in self._latest.items:
            raise frames.FrameError(
                f"found a reference to the early body {position}, expected one of the "
                f"{len(self):,} that are kept"
            )
        return restore(buffer, start, self._latest.take(position)[0])


class SentBodies:
    """The early bodies that were sent over a link."""

    def __init__(self) -> None:
        self._latest: _Latest[tuple[int, Key, SharedBody]] = _Latest()
        # by the channel's number on the link, so that frames of other channels need not be read
        self._positions: dict[int, dict[Key, int]] = {}
        self.sent = self.used = 0  # bytes
        self.referred = 0  # notifications
        self.useless = 0  # bytes of bodies that were dropped before a notification referred to them

    def __len__(self) -> int:
        return len(self._latest.items)

    @property
    def size(self) -> int:
        """The total size of the bodies that are kept, in bytes."""
        return self._latest.bytes

    def add(self, number: int, early: Early, body: SharedBody | None = None) -> None:
        """Record that a body was sent early in the channel with this number on the link. `body`
        is the copy that the links of the node share."""
        size = len(early.body)
        self.sent += size
        kept = number, early.key, body or SharedBody(early.body)
        for (channel, gone, _), dropped in self._latest.add(kept, size):
            self.useless += dropped
            self._forget(channel, gone)
        self._positions.setdefault(number, {})[early.key] = self._latest.last

    def _forget(self, number: int, key: Key) -> None:
        known = self._positions.get(number, {})
        if known.pop(key, None) is not None and not known:
            del self._positions[number]

    def clear(self) -> None:
        """Free the bodies, because the link has ended."""
        self._latest, self._positions = _Latest(), {}

    def shorten(self, data: bytes | memoryview, number: int) -> bytes | memoryview:
        """Frames of notifications, with references for those whose bodies were sent early."""
        known = self._positions.get(number)
        if not known:
            return data
        pieces: list[bytes | memoryview] = []
        view = memoryview(data)
        done = at = 0
        while at < len(data) and known:
            end = at + frames.size_at(view, at)
            if end - at >= LEAST_BODY:
                found = self._refer(view, at, end, number, known)
                if found is not None:
                    pieces += view[done:at], found
                    done = end
            at = end
        return b"".join((*pieces, view[done:])) if pieces else data

    def _refer(
        self, view: memoryview, at: int, end: int, number: int, known: dict[Key, int]
    ) -> bytes | None:
        publisher, stamp, first = frames.origin_at(view, at)
        position = known.get((publisher, stamp))
        if position is None:
            return None
        early = self._latest.items[position][0][2].data
        if early is None:
            self._forget(number, (publisher, stamp))
            return None
        body = end - len(early)
        # views are compared byte by byte, which is slower than a copy
        if body < first or bytes(view[body:end]) != early:
            return None  # the publisher has repeated the stamp with another body
        self._forget(number, (publisher, stamp))
        self.used += self._latest.take(position)[1]
        self.referred += 1
        return refer(view, at, body, position)
