"""The slot of each node: a small dense number, the index of the node in all arrays of a graph.

    number 71    pages[71 >> 5] ──> [ . . . . . . . 9 . . . ]    slot 9: numbers[9] = 71
                                     71 & 31 is 7

Nodes are numbered in sequence, so pages are nearly full, and a node takes about 10 bytes here. A
node that is alone on its page takes about 300 bytes. The slots of removed nodes are reused.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

BITS = 5  # a page has 2**BITS entries
LAST = (1 << BITS) - 1
_EMPTY_PAGE = bytes(4 << BITS)
_NOBODY = (1 << 64) - 1  # marks a free slot; numbers of nodes have only 63 bits


class Slots:
    """Slots by number, and numbers by slot. Slot 0 means "none"."""

    def __init__(self) -> None:
        self.pages: dict[int, array[int]] = {}
        self.numbers = array("Q", [_NOBODY])
        self._free = array("I")

    def __len__(self) -> int:
        return len(self.numbers) - 1 - len(self._free)

    def __iter__(self) -> Iterator[int]:
        return (number for number in self.numbers if number != _NOBODY)

    def find(self, number: int) -> int:
        """The slot of a node, or 0."""
        page = self.pages.get(number >> BITS)
        return 0 if page is None else page[number & LAST]

    def add(self, number: int) -> int:
        """Give a new node a slot: a free slot, or the next new one."""
        if self._free:
            slot = self._free.pop()
            self.numbers[slot] = number
        else:
            slot = len(self.numbers)
            self.numbers.append(number)
        page = self.pages.get(number >> BITS)
        if page is None:
            page = self.pages[number >> BITS] = array("I", _EMPTY_PAGE)
        page[number & LAST] = slot
        return slot

    def fill(self, numbers: Any) -> None:
        """Replace all slots: the given numbers, which are distinct, get slots starting at 1."""
        import numpy as np

        keys, which = np.unique(numbers >> BITS, return_inverse=True)
        pages = np.zeros((len(keys), 1 << BITS), np.uint32)
        pages[which, numbers & LAST] = np.arange(1, len(numbers) + 1)
        each = zip(keys.tolist(), pages, strict=True)
        self.pages.clear()
        self.pages.update((key, array("I", page.tobytes())) for key, page in each)
        self.numbers = array("Q", [_NOBODY])
        self.numbers.frombytes(numbers.astype(np.uint64).tobytes())
        self._free = array("I")

    def remove(self, number: int) -> None:
        """Free the slot of a node."""
        page = self.pages[number >> BITS]
        slot, page[number & LAST] = page[number & LAST], 0
        if not any(page):
            del self.pages[number >> BITS]
        self.numbers[slot] = _NOBODY
        self._free.append(slot)
