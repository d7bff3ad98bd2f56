"""Many numbered notifications as columns: a piece of a part that was handed over, or publications
of a run.

    serials, stamps    increase by one from the first
    mark_starts        0     2  3        the marks of notification i: nodes[s : e], numbers[s : e]
    nodes, numbers     5  9  5
    matched_starts     0        3  5     all nodes that each notification matches
    matched            1  5  9  1  5
    payload_starts, payloads

Creating an object for each of the 16,000 notifications of a part would take longer than all other
steps together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.routing.protocol.marks import Marks
from tidings.routing.root.records.record import Record

Numbers = npt.NDArray[np.int64]
_JUMP = 1 << 32


class Progress(msgspec.Struct, frozen=True, array_like=True):
    """How far a source has handed over: the current part, and how many of its notifications were
    accepted."""

    batch: int
    part: int
    done: int  # notifications of the part that were accepted
    whole: bool  # whether the whole part was accepted
    last: bool  # whether the part is the last of its batch
    stamp: int  # the stamp of the last notification

    def anew(self) -> Progress:
        """The progress with which a source continues after the journal lost data: the source may
        begin with any batch, and no stamp is reused, not even a lost one."""
        return Progress(-1, 0, 0, whole=True, last=True, stamp=self.stamp + _JUMP)


class MarkColumns(NamedTuple):
    """The marks of notifications, and the last mark at each node."""

    starts: Numbers
    nodes: Numbers
    numbers: Numbers
    distinct: Numbers  # the distinct nodes
    which: Numbers  # for each mark, the position of its node in `distinct`
    last: Numbers  # for each distinct node, its last number
    rows: Numbers  # for each distinct node, the position of the notification with its last number


class MatchColumns(NamedTuple):
    """The nodes that notifications match, and how many notifications match each node."""

    starts: Numbers
    nodes: Numbers
    distinct: Numbers
    times: Numbers


class PayloadColumns(NamedTuple):
    starts: Numbers  # offsets in `data`, which may also contain other bytes
    data: bytes

    def each(self) -> Iterator[bytes]:
        """The payloads one by one."""
        return (bytes(self.data[start:end]) for start, end in pairwise(self.starts.tolist()))


class Block:
    """Many numbered notifications as columns. A block is immutable."""

    def __init__(
        self,
        source: str,
        progress: Progress | None,
        serial: int,
        marks: MarkColumns,
        matched: MatchColumns,
        payloads: PayloadColumns,
        stamp: int = 0,
    ) -> None:
        """`serial` is the serial of the first notification. `progress` says how far the source has
        got after the last notification. If a publisher sent the notifications, `progress` is None,
        and `stamp` is the stamp of the first notification."""
        self.source = source
        self.progress = progress
        self._stamp = stamp
        self.serial = serial
        self.marks = marks
        self.matched = matched
        self.payloads = payloads

    def __len__(self) -> int:
        return len(self.marks.starts) - 1

    @property
    def last_serial(self) -> int:
        return self.serial + len(self) - 1

    @property
    def stamp(self) -> int:
        """The stamp of the first notification."""
        return self._stamp if self.progress is None else self.progress.stamp - len(self) + 1

    @property
    def last_stamp(self) -> int:
        return self.stamp + len(self) - 1

    @property
    def size(self) -> int:
        """The size of all columns in bytes."""
        numbers = 2 * len(self.marks.nodes) + len(self.matched.nodes) + 3 * len(self)
        return 8 * numbers + int(self.payloads.starts[-1] - self.payloads.starts[0])

    @cached_property
    def pairs(self) -> npt.NDArray[np.uint8]:
        """All marks as bytes, 16 each, as in journals and frames."""
        found = np.empty((len(self.marks.nodes), 2), "<i8")
        found[:, 0], found[:, 1] = self.marks.nodes, self.marks.numbers
        return found.reshape(-1).view(np.uint8)

    @cached_property
    def times(self) -> dict[int, int]:
        """How many of these notifications match each node."""
        found = self.matched.distinct.tolist(), self.matched.times.tolist()
        return dict(zip(*found, strict=True))

    def matches(self, node: int) -> int:
        """How many of these notifications match a node."""
        return self.times.get(node, 0)

    def records(self) -> Iterator[Record]:
        """The notifications one by one, as records."""
        marks, matched = self.marks.starts.tolist(), self.matched.starts.tolist()
        nodes, numbers = tuple(self.marks.nodes.tolist()), tuple(self.marks.numbers.tolist())
        above, payloads = tuple(self.matched.nodes.tolist()), self.payloads.starts.tolist()
        for at in range(len(self)):
            first, last = marks[at], marks[at + 1]
            yield Record(
                self.serial + at,
                self.source,
                self.stamp + at,
                Marks(nodes[first:last], numbers[first:last]),
                tuple(sorted(above[matched[at] : matched[at + 1]])),
                bytes(self.payloads.data[payloads[at] : payloads[at + 1]]),
            )
