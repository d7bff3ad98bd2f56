"""The marks of a notification that was just numbered, as two columns.

A mark is an object, and its label another one. Of a notification with hundreds of marks nobody
looks at single ones: they are counted, packed and written as columns.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import overload

from tidings.routing.protocol.messages import Label, Mark


class Marks(Sequence[Mark]):
    """Marks whose labels are their nodes. Cost: two tuples, and 16 bytes a mark once packed."""

    __slots__ = ("_packed", "nodes", "numbers")

    def __init__(self, nodes: Label, numbers: tuple[int, ...]) -> None:
        self.nodes = nodes
        self.numbers = numbers
        self._packed = b""

    @property
    def packed(self) -> bytes:
        """Computed once: a notification is written to the journal and sent."""
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
    """The node and the number of each mark, as frames and journals have them: 16 bytes a mark."""
    if isinstance(marks, Marks):
        return marks.packed
    numbers = [n for node, number, _ in marks for n in (node, number)]
    return struct.pack(f"<{len(numbers)}Q", *numbers)
