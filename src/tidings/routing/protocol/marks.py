"""The marks of a newly numbered notification, as two columns.

Stored individually, each mark would need a tuple for itself and another for its label. A
notification can have hundreds of marks, and no code needs single marks: they are counted, packed
and written as columns.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import overload

from tidings.routing.protocol.messages import Label, Mark


class Marks(Sequence[Mark]):
    """Marks whose labels are their own nodes. Cost: two tuples, and 16 bytes per packed mark."""

    __slots__ = ("_packed", "nodes", "numbers")

    def __init__(self, nodes: Label, numbers: tuple[int, ...]) -> None:
        self.nodes = nodes
        self.numbers = numbers
        self._packed = b""

    @property
    def packed(self) -> bytes:
        """The marks as bytes, computed once and used twice: in the journal and in the frame."""
        if not self._packed:
            pairs = chain.from_iterable(zip(self.nodes, self.numbers, strict=True))
            self._packed = struct.pack(f"<{2 * len(self.nodes)}Q", *pairs)
        return self._packed

    def __len__(self) -> int:
        return len(self.nodes)

    @overload
    def __getitem__(self, at: int) -> Mark: ...
    @overload
    def __getitem__(self, at: slice) -> Marks: ...
    def __getitem__(self, at: int | slice) -> Mark | Marks:
        if isinstance(at, slice):
            return Marks(self.nodes[at], self.numbers[at])
        return Mark(self.nodes[at], self.numbers[at], (self.nodes[at],))

    def __iter__(self) -> Iterator[Mark]:
        return (Mark(*pair, pair[:1]) for pair in zip(self.nodes, self.numbers, strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


def columns(marks: Sequence[Mark]) -> tuple[Label, tuple[int, ...]]:
    """The nodes and the numbers of marks."""
    if isinstance(marks, Marks):
        return marks.nodes, marks.numbers
    if not marks:
        return (), ()
    nodes, numbers, _ = zip(*marks, strict=True)
    return nodes, numbers


def pack_marks(marks: Sequence[Mark]) -> bytes:
    """The node and the number of each mark in the format of frames and journals: 16 bytes each."""
    if isinstance(marks, Marks):
        return marks.packed
    numbers = [n for node, number, _ in marks for n in (node, number)]
    return struct.pack(f"<{len(numbers)}Q", *numbers)
