"""Many numbered notifications as columns: what becomes of a slice of a part that was handed over,
and of a run of publications.

    serials, stamps    rise by one from the first
    mark_starts        0     2  3        the marks of notification i: nodes[s : e], numbers[s : e]
    nodes, numbers     5  9  5
    matched_starts     0        3  5     all nodes that it matches
    matched            1  5  9  1  5
    payload_starts, payloads

As objects, 16,000 notifications of a part would take longer to make than everything else that is
done with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.routing.protocol.marks import Marks
from tidings.routing.root.records.record import Record

Numbers = npt.NDArray[np.int64]
_JUMP = 1 << 32


class Progress(msgspec.Struct, frozen=True, array_like=True):
    """How far a source has handed over: up to this part, and of it so many notifications."""

    batch: int
    part: int
    done: int  # notifications of the part that were taken
    whole: bool  # all of them
    last: bool  # the part is the last of its batch
    stamp: int  # of the last notification

    def anew(self) -> Progress:
        """After the journal lost data: the source may begin with any batch, and none of its stamps
        comes again, not even one that was lost."""
        return Progress(-1, 0, 0, whole=True, last=True, stamp=self.stamp + _JUMP)


class MarkColumns(NamedTuple):
    """The marks of notifications, and what they come to at each of their nodes."""

    starts: Numbers
    nodes: Numbers
    numbers: Numbers
    distinct: Numbers  # the nodes, once each
    which: Numbers  # for each mark, the position of its node among these
    last: Numbers  # for each of these, the last number,
    rows: Numbers  # and the position of its notification


class MatchColumns(NamedTuple):
    """The nodes that notifications match, and how many of them match each."""

    starts: Numbers
    nodes: Numbers
    distinct: Numbers
    times: Numbers


class PayloadColumns(NamedTuple):
    starts: Numbers  # offsets in `data`, which may have other bytes before and after them
    data: bytes


class Block:
    """See the top of the module. Nothing in it changes."""

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
        """`progress` is that of the source after these notifications, `serial` that of the first
        one. If a publisher sent them, there is no progress, and `stamp` is that of the first."""
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
        """The first notification's."""
        return self._stamp if self.progress is None else self.progress.stamp - len(self) + 1

    @property
    def last_stamp(self) -> int:
        return self.stamp + len(self) - 1

    @property
    def size(self) -> int:
        """Bytes of everything."""
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
        """The notifications one by one, as the journal would have them."""
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
