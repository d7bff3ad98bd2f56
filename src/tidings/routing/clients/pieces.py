"""Puts payloads together that came in pieces. One arrives whole, or not at all.

A piece is a notification of its own: it is numbered, journalled, recovered or lost like any other.
A payload of which a piece never comes is dropped when there are too many unfinished ones. Cost: the
bytes of unfinished payloads, up to MOST_BYTES.
"""

from __future__ import annotations

from tidings.routing.protocol.bodies import Piece

MOST = 64  # unfinished payloads
MOST_BYTES = 1 << 30  # of unfinished payloads
MOST_PIECES = 4096  # of one payload


class Pieces:
    """The unfinished payloads of a subscriber, by publisher and the stamp of the first piece."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, int], dict[int, bytes]] = {}  # the oldest first
        self._bytes = 0

    def clear(self) -> None:
        self._parts.clear()
        self._bytes = 0

    def add(self, publisher: str, stamp: int, piece: Piece, data: bytes) -> bytes | None:
        """Add a piece; return the payload if it is the last that was missing."""
        first, at, count = piece
        if not (at < count <= MOST_PIECES and stamp == first + at):
            return None  # nobody publishes such a piece
        key = publisher, first
        parts = self._parts.setdefault(key, {})
        if at not in parts:
            parts[at] = data
            self._bytes += len(data)
        if len(parts) == count:
            self._drop(key)
            return b"".join(parts[one] for one in range(count))
        while len(self._parts) > MOST or self._bytes > MOST_BYTES:
            self._drop(next(iter(self._parts)))
        return None

    def _drop(self, key: tuple[str, int]) -> None:
        self._bytes -= sum(map(len, self._parts.pop(key).values()))
