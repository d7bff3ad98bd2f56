"""Where the notifications of a segment are, by the numbers that they have at nodes.

    chunks   [ 100,000 marks ][ 30,000 ][ 4,000 ]      each sorted by (node, number)

Marks come in the order in which they were given, some with each group. A group is a chunk; a chunk
that is not much larger than the one behind it is merged with it. So there are few, and a mark is
sorted some times in all, by a thread that writes.

Cost: 32 bytes for a mark; a look-up is two binary searches in each chunk. The chunks are one tuple
that is replaced as a whole, so a look-up needs no lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


class Chunk(NamedTuple):
    """Marks in order: node and number of each, and start and end of its record."""

    nodes: Numbers
    numbers: Numbers
    starts: Numbers
    ends: Numbers


class MarkIndex:
    """The marks of one segment."""

    def __init__(self, chunks: tuple[Chunk, ...] = ()) -> None:
        self._chunks = chunks

    def __len__(self) -> int:
        return sum(len(chunk.nodes) for chunk in self._chunks)

    def add(self, nodes: Numbers, numbers: Numbers, starts: Numbers, ends: Numbers) -> None:
        """Add marks in any order."""
        if not len(nodes):
            return
        chunks = [*self._chunks, _sorted(Chunk(nodes, numbers, starts, ends))]
        while len(chunks) > 1 and len(chunks[-2].nodes) < 2 * len(chunks[-1].nodes):
            last = [chunks.pop(), chunks.pop()]
            columns = (np.concatenate(column) for column in zip(*last, strict=True))
            chunks.append(_sorted(Chunk(*columns)))
        self._chunks = tuple(chunks)

    def joined(self, other: MarkIndex) -> MarkIndex:
        """The marks of both."""
        return MarkIndex(self._chunks + other._chunks)

    def find(self, node: int, first: int, last: int) -> list[tuple[int, int, int]]:
        """The numbers of a node that are here, of a range, each with its record."""
        found: list[tuple[int, int, int]] = []
        for nodes, numbers, starts, ends in self._chunks:
            low, high = _bounds(nodes, 0, len(nodes), node, node)
            low, high = _bounds(numbers, low, high, first, last)
            if low < high:
                found += zip(numbers[low:high].tolist(), starts[low:high].tolist(),
                             ends[low:high].tolist(), strict=True)  # fmt: skip
        return sorted(found)


def _sorted(chunk: Chunk) -> Chunk:
    order = np.lexsort((chunk.numbers, chunk.nodes))
    return Chunk(*(column[order] for column in chunk))


def _bounds(column: Numbers, low: int, high: int, first: int, last: int) -> Sequence[int]:
    part = column[low:high]
    return (
        low + int(np.searchsorted(part, first, "left")),
        low + int(np.searchsorted(part, last, "right")),
    )
