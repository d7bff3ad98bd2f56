"""The columns of a part that was handed over. The columns are checked once, and stored in pieces.

A part can have tens of thousands of notifications, and other clients must not wait for all of them.
So a part is split into pieces that take a millisecond or two each. A piece refers to the columns of
its part and copies nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidings.model import TidingsError
from tidings.routing.protocol import frames, messages as m

ROWS = 2048  # the most notifications in a piece
NODES = 1 << 14  # nodes in a piece, unless a single notification has more
BYTES = 1 << 20  # bytes of payload in a piece, unless a single notification has more

Numbers = npt.NDArray[np.int64]


class Columns:
    """A part as arrays; see `HandOver` for their meaning. Raise TidingsError if the columns are
    inconsistent."""

    def __init__(self, message: m.HandOver, most_bytes: int) -> None:
        if message.size > most_bytes:
            raise TidingsError(
                f"found a part of {message.size:,} bytes, expected at most {most_bytes:,}"
            )
        self.message = message
        self.node_starts = _starts(message.node_starts, "node_starts", len(message.nodes) // 8)
        self.payload_starts = _starts(
            message.payload_starts, "payload_starts", len(message.payloads)
        )
        self.nodes = _numbers(message.nodes, "nodes")
        self.payloads = message.payloads
        self.refused = False
        """Whether the sender was told that the part is refused."""
        if len(self.node_starts) != len(self.payload_starts):
            raise TidingsError(
                f"found nodes of {len(self):,} notifications but payloads of "
                f"{len(self.payload_starts) - 1:,}, expected the same number"
            )
        if len(self.nodes) and self.nodes.min() < 1:
            raise TidingsError(f"found node {self.nodes.min()}, expected positive numbers")
        most = int(np.diff(self.node_starts).max(initial=0))
        if most > frames.MOST_MARKS:
            raise TidingsError(
                f"found a notification with {most:,} nodes, expected at most {frames.MOST_MARKS:,}"
            )

    def __len__(self) -> int:
        return len(self.node_starts) - 1

    def pieces(self) -> list[Piece]:
        """The pieces of the part; an empty part has one empty piece."""
        found: list[Piece] = []
        at = 0
        while at < len(self) or not found:
            nodes = np.searchsorted(self.node_starts, self.node_starts[at] + NODES, "right") - 1
            size = self.payload_starts[at] + BYTES
            payloads = np.searchsorted(self.payload_starts, size, "right") - 1
            end = min(max(at + 1, min(int(nodes), int(payloads))), at + ROWS, len(self))
            found.append(Piece(self, at, end))
            at = end
        return found


class Piece(m.Message, frozen=True):
    """Consecutive notifications of a part. A piece is never sent over a link."""

    of: Columns
    first: int
    end: int

    @property
    def message(self) -> m.HandOver:
        return self.of.message

    @property
    def is_last(self) -> bool:
        """Whether this is the last piece of its part."""
        return self.end == len(self.of)

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        starts, nodes = self.of.payload_starts, self.of.node_starts
        payloads = int(starts[self.end] - starts[self.first])
        return payloads + 8 * int(nodes[self.end] - nodes[self.first]) + 16 * len(self)

    def __len__(self) -> int:
        return self.end - self.first


def _numbers(data: bytes, name: str) -> Numbers:
    if len(data) % 8:
        raise TidingsError(f"{name}: found {len(data):,} bytes, expected integers of 8 bytes each")
    # a copy, because kernels would be compiled again for read-only arrays
    return np.frombuffer(data, "<i8").copy()


def _starts(data: bytes, name: str, end: int) -> Numbers:
    found = _numbers(data, name)
    if not len(found) or found[0] or found[-1] != end or (np.diff(found) < 0).any():
        shown = "nothing" if not len(found) else f"{found[0]:,} ... {found[-1]:,}"
        raise TidingsError(f"{name}: found {shown}, expected increasing numbers from 0 to {end:,}")
    return found
