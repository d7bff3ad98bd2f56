"""Puts together payloads that arrived in pieces. A payload is delivered whole, or not at all.

Each piece is a notification: it is numbered, journalled, recovered or lost like any other. When
there are too many unfinished payloads, the oldest is dropped. Cost: the bytes of unfinished
payloads, up to MOST_BYTES.
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
        """Add a piece; return the payload if this was the last missing piece."""
        first, at, count = piece
        if not (at < count <= MOST_PIECES and stamp == first + at):
            return None  # a correct publisher never sends such a piece
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
