"""A list of slots for each slot, all in one array.

    counts   0    1    3              no list, a list of one, a list of three
    firsts   .    7    4 ──┐
    pool     . . . .      [5 2 9 .]   a block with room for four
                           8 1 3 .    paired: the second values follow the first ones

Most lists have at most one value, which is stored in place of a block. Blocks have room for a power
of two of values, and are at least a quarter full. A block that a list has left is used again, whole
or in halves. Adding and removing take a constant time on average.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

_ZERO = array("I", [0])


class SlotLists:
    """Lists in no particular order. In `paired` lists each value has a second one."""

    def __init__(self, *, paired: bool = False) -> None:
        self.counts = array("I")
        self.firsts = array("I")  # the value of a list of one, or where the block begins
        self.pool = array("I", _ZERO)  # the first place is never used: 0 means "no block"
        self._seconds = array("I") if paired else None  # the same for second values
        self._rooms = array("B")  # the block has room for two to the power of this
        self._free = array("I")  # by the same power: the first free block, which names the next one

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
        """Where a value is in a list. Cost: the length of the list."""
        count, first = self.counts[owner], self.firsts[owner]
        if count == 1 and first == value:
            return 0
        return self.pool.index(value, first, first + count) - first

    def second(self, owner: int, at: int) -> int:
        """The second value at a place of a paired list."""
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
        """Add a value at the end of a list; return its place."""
        count = self.counts[owner]
        if not count:
            self.firsts[owner] = value
            if self._seconds is not None:
                self._seconds[owner] = second
        else:
            if count == 1:
                self._begin_block(owner)
            elif count == 1 << self._rooms[owner]:
                self._move(owner, self._rooms[owner] + 1)
            first = self.firsts[owner]
            self.pool[first + count] = value
            if self._seconds is not None:
                self.pool[first + (1 << self._rooms[owner]) + count] = second
        self.counts[owner] = count + 1
        return count

    def remove_at(self, owner: int, at: int) -> int:
        """Remove the value at a place. The last value takes the place; 0 if it was the last."""
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
            self._move(owner, room - 1)
        return moved

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
        """Take the first value of a list out of its block."""
        block, room = self.firsts[owner], self._rooms[owner]
        self.firsts[owner] = self.pool[block]
        if self._seconds is not None:
            self._seconds[owner] = self.pool[block + (1 << room)]
        self._rooms[owner] = 0
        self._give(block, room)

    def _move(self, owner: int, room: int) -> None:
        """Move a list to a block with another room."""
        old, before, count = self.firsts[owner], self._rooms[owner], self.counts[owner]
        new, pool = self._take(room), self.pool
        pool[new : new + count] = pool[old : old + count]
        if self._seconds is not None:
            to, there = new + (1 << room), old + (1 << before)
            pool[to : to + count] = pool[there : there + count]
        self.firsts[owner] = new
        self._rooms[owner] = room
        self._give(old, before)

    def _take(self, room: int) -> int:
        """A block: a free one, a part of a larger free one, or a new one."""
        pool, free = self.pool, self._free
        while len(free) <= room:
            free.append(0)
        size = 1 << room if self._seconds is None else 2 << room
        for larger in range(room, len(free)):
            block = free[larger]
            if block:
                free[larger] = pool[block]
                for half in range(larger - 1, room - 1, -1):
                    self._give(block + (size << (half - room)), half)
                return block
        block = len(pool)
        pool.extend(_ZERO * size)
        return block

    def _give(self, block: int, room: int) -> None:
        self.pool[block] = self._free[room]
        self._free[room] = block
