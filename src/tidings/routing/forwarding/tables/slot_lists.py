"""For each slot, a list of other slots; one array holds all the lists.

    counts   0    1    3              no list, a list of one, a list of three
    firsts   .    7    4 ──┐
    pool     . . . .      [5 2 9 .]   a block with room for four
                           8 1 3 .    if paired, the second values follow the first

Most lists have at most one value, which is stored in `firsts` and needs no block. The room of a
block is a power of two, and a block is more than a quarter full. A free block is reused, whole or
split into halves. Adding or removing a value takes constant time on average.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

_ZERO = array("I", [0])


def as_array(code: str, values: Any) -> array[int]:
    """Convert a numpy array to an `array` with this type code."""
    found = array(code)
    found.frombytes(values.astype(code, copy=False).tobytes())
    return found


class SlotLists:
    """Lists whose values are in no particular order. If `paired`, each value has a second value."""

    def __init__(self, *, paired: bool = False) -> None:
        self.counts = array("I")
        self.firsts = array("I")  # the only value of a list, or where its block begins
        self.pool = array("I", _ZERO)  # index 0 is never used: 0 means "no block"
        self._seconds = array("I") if paired else None  # the second value in lists with one value
        self._rooms = array("B")  # the base-2 logarithm of the room of the block
        self._free = array("I")  # the first free block, by this logarithm; each points to the next
        self._spare = 0  # free blocks

    def add_owner(self) -> None:
        """Add an empty list, for the next slot."""
        self.counts.append(0)
        self.firsts.append(0)
        self._rooms.append(0)
        if self._seconds is not None:
            self._seconds.append(0)

    def values(self, owner: int) -> Sequence[int]:
        """A copy of a list, without second values."""
        count = self.counts[owner]
        first = self.firsts[owner]
        if count > 1:
            return self.pool[first : first + count]
        return (first,) if count else ()

    def value(self, owner: int, at: int) -> int:
        first = self.firsts[owner]
        return first if self.counts[owner] == 1 else self.pool[first + at]

    def find(self, owner: int, value: int) -> int:
        """The position of a value in a list. Cost: a search through the list."""
        count, first = self.counts[owner], self.firsts[owner]
        if count == 1 and first == value:
            return 0
        return self.pool.index(value, first, first + count) - first

    def second(self, owner: int, at: int) -> int:
        """The second value at a position of a paired list."""
        assert self._seconds is not None
        if self.counts[owner] == 1:
            return self._seconds[owner]
        return self.pool[self.firsts[owner] + (1 << self._rooms[owner]) + at]

    def put(self, owner: int, at: int, value: int) -> None:
        if self.counts[owner] == 1:
            self.firsts[owner] = value
        else:
            self.pool[self.firsts[owner] + at] = value

    def put_second(self, owner: int, at: int, value: int) -> None:
        assert self._seconds is not None
        if self.counts[owner] == 1:
            self._seconds[owner] = value
        else:
            self.pool[self.firsts[owner] + (1 << self._rooms[owner]) + at] = value

    def append(self, owner: int, value: int, second: int = 0) -> int:
        """Add a value at the end of a list; return its position."""
        count, seconds = self.counts[owner], self._seconds
        self.counts[owner] = count + 1
        if not count:
            self.firsts[owner] = value
            if seconds is not None:
                seconds[owner] = second
            return 0
        room = self._rooms[owner]
        if count == 1:
            self._begin_block(owner)
            room = 1
        elif count == 1 << room:
            room += 1
            self._move(owner, room, count)
        first = self.firsts[owner]
        self.pool[first + count] = value
        if seconds is not None:
            self.pool[first + (1 << room) + count] = second
        return count

    def remove_at(self, owner: int, at: int) -> int:
        """Remove the value at a position, and move the last value there; return the moved value, or
        0 if no value was moved."""
        last = self.counts[owner] - 1
        moved = 0
        if at != last:
            moved = self.value(owner, last)
            self.put(owner, at, moved)
            if self._seconds is not None:
                self.put_second(owner, at, self.second(owner, last))
        if last == 1:
            self._end_block(owner)
        self.counts[owner] = last
        room = self._rooms[owner]
        if last > 1 and last << 2 <= 1 << room:
            self._move(owner, room - 1, last)
        return moved

    def fill(self, owners: Any, values: Any, seconds: Any, count: int) -> None:
        """Replace all lists with lists for the slots from 1 to `count`. The numpy arrays have the
        owner, the value and the second value of each entry; `owners` is in ascending order."""
        import numpy as np

        counts = np.bincount(owners, minlength=count + 1)
        starts = np.cumsum(counts) - counts
        rooms = np.ceil(np.log2(np.maximum(counts, 1))).astype(np.uint8)
        room = np.int64(1) << rooms
        sizes = np.where(counts > 1, room if self._seconds is None else 2 * room, 0)
        blocks = 1 + np.cumsum(sizes) - sizes
        is_alone = counts[owners] == 1
        firsts = np.where(counts > 1, blocks, 0)
        firsts[owners[is_alone]] = values[is_alone]
        pool = np.zeros(1 + int(sizes.sum()), np.uint32)
        many = owners[~is_alone]
        places = blocks[many] + np.flatnonzero(~is_alone) - starts[many]
        pool[places] = values[~is_alone]
        if self._seconds is not None:
            pool[places + room[many]] = seconds[~is_alone]
            alone = np.zeros(count + 1, np.uint32)
            alone[owners[is_alone]] = seconds[is_alone]
            self._seconds = as_array("I", alone)
        self.counts, self.firsts = as_array("I", counts), as_array("I", firsts)
        self.pool, self._rooms = as_array("I", pool), as_array("B", rooms)
        self._free, self._spare = array("I"), 0

    # -- blocks --------------------------------------------------------------------------------

    def _begin_block(self, owner: int) -> None:
        """Move the only value of a list into a block."""
        block = self._take(1)
        self.pool[block] = self.firsts[owner]
        if self._seconds is not None:
            self.pool[block + 2] = self._seconds[owner]
        self.firsts[owner] = block
        self._rooms[owner] = 1

    def _end_block(self, owner: int) -> None:
        """Move the first value of a list out of its block, and free the block."""
        block, room = self.firsts[owner], self._rooms[owner]
        self.firsts[owner] = self.pool[block]
        if self._seconds is not None:
            self._seconds[owner] = self.pool[block + (1 << room)]
        self._rooms[owner] = 0
        self._give(block, room)

    def _move(self, owner: int, room: int, count: int) -> None:
        """Move a list of `count` values to a block of another size."""
        old, before = self.firsts[owner], self._rooms[owner]
        new, pool = self._take(room), self.pool
        pool[new : new + count] = pool[old : old + count]
        if self._seconds is not None:
            to, there = new + (1 << room), old + (1 << before)
            pool[to : to + count] = pool[there : there + count]
        self.firsts[owner] = new
        self._rooms[owner] = room
        self._give(old, before)

    def _take(self, room: int) -> int:
        """Take a block: a free block, a part of a larger free block, or a new block."""
        pool, free = self.pool, self._free
        size = 1 << room if self._seconds is None else 2 << room
        for larger in range(room, len(free)) if self._spare else ():
            block = free[larger]
            if block:
                free[larger] = pool[block]
                self._spare -= 1
                for half in range(larger - 1, room - 1, -1):
                    self._give(block + (size << (half - room)), half)
                return block
        block = len(pool)
        pool.extend(_ZERO * size)
        return block

    def _give(self, block: int, room: int) -> None:
        free = self._free
        while len(free) <= room:
            free.append(0)
        self.pool[block] = free[room]
        free[room] = block
        self._spare += 1
