"""Puts together payloads that arrived in pieces. A payload is delivered whole, or not at all.

Each piece is a notification: it is numbered, journalled, recovered or lost like any other. A
publisher stamps the pieces of a payload one after the other. So if notifications come in order, any
other notification of the publisher shows that an unfinished payload will not be completed: a piece
was lost, and the loss was reported, or a piece was refused. In a channel that does not keep the
order of publishers, pieces are *scattered*: they are put together in any order, and only the limits
below end the wait.

Unfinished payloads are also dropped if there are too many of them. So is a payload of which no
piece has come for LONGEST seconds. Such a drop is reported as a loss. Cost: the bytes of unfinished
payloads, up to MOST_BYTES.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tidings.routing.protocol.contents.bodies import Piece

MOST = 64  # unfinished payloads
MOST_BYTES = 1 << 30  # of unfinished payloads
MOST_PIECES = 4096  # of unfinished payloads
LONGEST = 3600.0  # seconds; the longest time between two pieces of a payload
MOST_DROPPED = 4096  # dropped payloads to remember, because more of their pieces may come

Key = tuple[str, int]  # the publisher, and the stamp of the first piece


class Dropped(NamedTuple):
    """A payload that is not delivered: the serials of its pieces, and whether the loss must still
    be reported."""

    serials: list[int]
    is_news: bool


class Unfinished(msgspec.Struct):
    of: int
    in_order: bool
    parts: dict[int, bytes] = {}
    serials: list[int] = []
    since: float | None = None  # when the latest piece was first noticed by `tick`

    @property
    def size(self) -> int:
        return sum(map(len, self.parts.values()))


class Pieces:
    """The unfinished payloads of a subscriber."""

    def __init__(self, *, ordered: bool) -> None:
        self._ordered = ordered
        self._found: dict[Key, Unfinished] = {}  # the oldest first
        self._first: dict[str, int] = {}  # if ordered: the stamp of each publisher's first piece
        self._bytes = self._count = 0
        self._gone: dict[Key, None] = {}  # dropped payloads
        self.dropped: list[Dropped] = []
        """Payloads that were dropped; the reader of the list must empty it."""

    def __bool__(self) -> bool:
        return bool(self._found)

    def clear(self) -> None:
        self._found.clear()
        self._first.clear()
        self._bytes = self._count = 0

    def stamps(self) -> Iterator[tuple[str, int]]:
        """The publisher and the stamp of each piece of an unfinished payload."""
        for (publisher, first), one in self._found.items():
            yield from ((publisher, first + at) for at in one.parts)

    def pass_by(self, publisher: str, stamp: int, piece: Piece | None) -> None:
        """Call this for each notification of a publisher, before `add`: it drops the unfinished
        payload that the notification interrupts."""
        first = self._first.get(publisher)
        if first is None:
            return
        one = self._found[publisher, first]
        if piece != Piece(first, len(one.parts), one.of) or stamp != first + len(one.parts):
            self._drop((publisher, first), is_news=False)

    def add(
        self, publisher: str, stamp: int, serial: int, piece: Piece, data: bytes,
        *, scattered: bool = False,
    ) -> tuple[bytes, list[int]] | None:  # fmt: skip
        """Add a piece. If it was the last missing piece, return the payload and the serials of all
        pieces; otherwise None. A piece that can't be used is added to `dropped`."""
        first, at, of = piece
        key = publisher, first
        one = self._found.get(key)
        if one is None:
            one = Unfinished(of, self._ordered and not scattered, {}, [])
        is_next = not one.in_order or at == len(one.parts)
        if (
            not (0 < first == stamp - at and at < of == one.of <= MOST_PIECES)
            or at in one.parts
            or not is_next  # earlier pieces are lost, or older than the subscription
            or key in self._gone
        ):
            self.dropped.append(Dropped([serial], is_news=False))
            return None
        self._found[key] = one
        if one.in_order:
            self._first[publisher] = first
        one.parts[at] = data
        one.serials.append(serial)
        one.since = None
        self._bytes += len(data)
        self._count += 1
        if len(one.parts) == of:
            self._remove(key)
            return b"".join(one.parts[at] for at in range(of)), one.serials
        while len(self._found) > MOST or self._bytes > MOST_BYTES or self._count > MOST_PIECES:
            self._drop(next(iter(self._found)), is_news=True)
        return None

    def tick(self, now: float) -> None:
        """Drop payloads that have received no piece for LONGEST seconds."""
        for key, one in [*self._found.items()]:
            if one.since is None:
                one.since = now
            elif now - one.since > LONGEST:
                self._drop(key, is_news=True)

    def _drop(self, key: Key, *, is_news: bool) -> None:
        one = self._remove(key)
        self.dropped.append(Dropped(one.serials, is_news))
        if not one.in_order:
            self._gone[key] = None
            if len(self._gone) > MOST_DROPPED:
                del self._gone[next(iter(self._gone))]

    def _remove(self, key: Key) -> Unfinished:
        one = self._found.pop(key)
        if one.in_order:
            self._first.pop(key[0], None)
        self._bytes -= one.size
        self._count -= len(one.parts)
        return one
