"""Finds the notifications of a segment by their numbers at nodes.

    chunks   [ 100,000 marks ][ 30,000 ][ 4,000 ]      each sorted by (node, number)
    recent   [ 256 ][ 8 ][ 8 ]                         unsorted, one per group

Publishers wait until their group is written. So the marks of a new group are only appended, and
from time to time the recent marks become a chunk. When the last `FANOUT` chunks have about the same
size, they are merged. So there are few chunks, and the writing thread sorts each mark only a few
times.

Cost: 32 bytes per mark. A lookup takes two binary searches in each chunk, and the first lookup
after a group sorts the recent marks. Chunks and recent marks are one tuple that is replaced as a
whole, so a lookup needs no lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import takewhile
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

FANOUT = 4
MOST_RECENT = 64  # at most this many groups have recent marks
RECENT_BYTES = 256 << 10  # recent marks take at most this many bytes

Numbers = npt.NDArray[np.int64]


class Chunk(NamedTuple):
    """Sorted marks: the node and number of each, and the start and end of its record."""

    nodes: Numbers
    numbers: Numbers
    starts: Numbers
    ends: Numbers


class SpanColumn(IntEnum):
    """The columns of an array of spans: the fields of `RecordSpan`."""

    START = 0
    END = 1
    MARKS = 2


class RecordSpan(NamedTuple):
    """The position of a record, and its number of marks."""

    start: int
    end: int
    marks: int


Spans = Sequence[RecordSpan] | Numbers  # an array has a row for each span


class Recent(NamedTuple):
    """The marks of a group as its records encode them, 16 bytes each."""

    marks: bytes
    spans: Spans


class MarkIndex:
    """The marks of one segment."""

    def __init__(self, chunks: tuple[Chunk, ...] = (), recent: tuple[Recent, ...] = ()) -> None:
        self._parts = chunks, recent
        self._sorted: tuple[tuple[Recent, ...], Chunk] | None = None  # a cache for `find`

    def __len__(self) -> int:
        chunks, recent = self._parts
        return sum(len(one.nodes) for one in chunks) + sum(len(one.marks) for one in recent) // 16

    def add(self, marks: bytes, spans: Spans) -> None:
        """Add the marks of a group; a group may have no marks."""
        if not marks:
            return
        chunks, recent = self._parts
        recent = (*recent, Recent(marks, spans))
        if len(recent) >= MOST_RECENT or sum(len(one.marks) for one in recent) >= RECENT_BYTES:
            chunks, recent = _merge_alike([*chunks, _chunk_of(recent)]), ()
        self._parts = chunks, recent

    def join(self, other: MarkIndex) -> MarkIndex:
        """An index with the marks of both indexes."""
        mine, others = self._parts, other._parts
        return MarkIndex(mine[0] + others[0], mine[1] + others[1])

    def find(self, node: int, first: int, last: int) -> list[tuple[int, int, int]]:
        """The numbers of `node` from `first` to `last` that occur in this segment, each with the
        start and end of its record."""
        found: list[tuple[int, int, int]] = []
        chunks, recent = self._parts
        if recent:
            if self._sorted is None or self._sorted[0] is not recent:
                self._sorted = recent, _chunk_of(recent)
            chunks = (*chunks, self._sorted[1])
        for nodes, numbers, starts, ends in chunks:
            low, high = _bounds(nodes, 0, len(nodes), node, node)
            low, high = _bounds(numbers, low, high, first, last)
            if low < high:
                found += zip(numbers[low:high].tolist(), starts[low:high].tolist(),
                             ends[low:high].tolist(), strict=True)  # fmt: skip
        return sorted(found)


def _chunk_of(recent: Sequence[Recent]) -> Chunk:
    pairs = np.frombuffer(b"".join(one.marks for one in recent), "<i8").reshape(-1, 2)
    spans = np.concatenate([np.asarray(one.spans, np.int64) for one in recent])
    starts, ends, counts = spans.T
    return _sort(
        Chunk(pairs[:, 0], pairs[:, 1], np.repeat(starts, counts), np.repeat(ends, counts))
    )


def _merge_alike(chunks: list[Chunk]) -> tuple[Chunk, ...]:
    """Merge chunks at the end while at least `FANOUT` of them have about the same size."""
    while (alike := _count_alike(chunks)) >= FANOUT:
        columns = (np.concatenate(column) for column in zip(*chunks[-alike:], strict=True))
        chunks[-alike:] = [_sort(Chunk(*columns), "stable")]
    return tuple(chunks)


def _count_alike(chunks: Sequence[Chunk]) -> int:
    """How many chunks at the end are less than `FANOUT` times as large as the last one."""
    most = FANOUT * len(chunks[-1].nodes)
    return sum(1 for _ in takewhile(lambda one: len(one.nodes) < most, reversed(chunks)))


def _sort(chunk: Chunk, kind: Literal["stable"] | None = None) -> Chunk:
    """A chunk in the order of nodes and numbers. No two marks are equal, so any sort gives the same
    result. The default sort is five times faster on new marks; a stable sort is faster on sorted
    pieces."""
    nodes, numbers = chunk.nodes, chunk.numbers
    least, shift = nodes.min(), int(numbers.max()).bit_length()
    # a faster sort, if a node and a number fit into one 64-bit integer
    if int(nodes.max() - least).bit_length() + shift < 64:
        order = np.argsort((nodes - least << shift) + numbers, kind=kind)
    else:
        order = np.lexsort((numbers, nodes))
    return Chunk(*(column[order] for column in chunk))


def _bounds(column: Numbers, low: int, high: int, first: int, last: int) -> Sequence[int]:
    part = column[low:high]
    return (
        low + int(np.searchsorted(part, first, "left")),
        low + int(np.searchsorted(part, last, "right")),
    )
