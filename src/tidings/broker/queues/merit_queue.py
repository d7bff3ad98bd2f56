"""A queue in order of merit, in which items become more important while they wait.

    put ──> heap by merit + age, best first ──> take
              `── the worst in memory ──too many bytes──> spill, on the disk

All items age at the same rate, so the order of two items never changes: an item of merit m that
arrived at time t has the rank m - t / ageing. A newer item overtakes an older one only if the
difference in merit is greater than what the older item has gained by waiting. Each step takes time
logarithmic in the number of items.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeVar

import msgspec

from tidings.broker.queues.spill import Place, Spill

Item = TypeVar("Item")
Sender = TypeVar("Sender", bound=Hashable)


class Entry(msgspec.Struct, Generic[Sender, Item], gc=False):
    """An item that waits, in memory or on the disk. Neither senders nor items refer to entries, so
    there are no reference cycles."""

    sender: Sender
    size: int
    item: Item | None
    key: Hashable = None
    place: Place | None = None


class Unreadable(Exception):
    """An item can't be read from the disk; the item has been removed from the queue."""

    def __init__(self, sender: Any, key: Any, size: int, problem: Exception) -> None:
        super().__init__(str(problem))
        self.sender, self.key, self.size = sender, key, size


class MeritQueue(Generic[Sender, Item]):
    """Items of senders, best first. Together, the items in memory have at most `most_bytes`
    bytes."""

    def __init__(
        self,
        spill: Spill,
        encode: Callable[[Item], bytes],
        decode: Callable[[bytes], Item],
        *,
        most_bytes: int,
        ageing: float,
    ) -> None:
        """An item that has waited `ageing` seconds is as important as a new item whose merit is
        higher by 1."""
        self._spill = spill
        self._encode, self._decode = encode, decode
        self._most_bytes = most_bytes
        self._ageing = ageing
        self._entries: dict[int, Entry[Sender, Item]] = {}
        self._of_sender: dict[Sender, set[int]] = {}
        self._best: list[tuple[float, int]] = []  # rank (negated) and number of each item
        self._worst: list[tuple[float, int]] = []  # rank and number of the items in memory
        self._number = 0
        self._memory = self._spilled = 0
        self.size = 0
        """The total size of all items."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def spilled(self) -> int:
        """How many items are on the disk."""
        return self._spilled

    @property
    def memory(self) -> int:
        """The total size of the items in memory."""
        return self._memory

    def put(
        self, sender: Sender, item: Item, size: int, merit: float, now: float, key: Hashable = None
    ) -> None:
        """Add an item. `key` identifies the item, even if it can't be read back from the disk."""
        self._number += 1
        rank = merit - now / self._ageing
        self._entries[self._number] = Entry(sender, size, item, key)
        self._of_sender.setdefault(sender, set()).add(self._number)
        heappush(self._best, (-rank, self._number))
        heappush(self._worst, (rank, self._number))
        self.size += size
        self._memory += size
        while self._memory > self._most_bytes and self._worst:
            worst = heappop(self._worst)
            if not self._put_on_disk(worst[1]):
                heappush(self._worst, worst)  # the next call of `put` tries again
                break

    def take(self) -> tuple[Sender, Item]:
        """Remove and return the best item. Raises IndexError if there is none, and Unreadable if it
        can't be read from the disk."""
        while True:
            number = heappop(self._best)[1]
            entry = self._entries.get(number)
            if entry is None:
                continue  # the item was dropped together with its sender
            self._remove(number, entry)
            if entry.place is None:
                assert entry.item is not None
                return entry.sender, entry.item
            try:
                return entry.sender, self._decode(self._spill.take(entry.place))
            except (OSError, ValueError) as problem:  # errors of msgspec are ValueErrors
                raise Unreadable(entry.sender, entry.key, entry.size, problem) from problem

    def forget(self, sender: Sender) -> None:
        """Drop the items of a sender; the sender sends them again if it comes back."""
        for number in list(self._of_sender.get(sender, ())):
            entry = self._entries[number]
            self._remove(number, entry)
            if entry.place is not None:
                self._spill.drop(entry.place)

    def _put_on_disk(self, number: int) -> bool:
        """Move an item to the disk; return False if the disk is full. An item that can't be moved
        stays in memory, and counts in `memory`."""
        entry = self._entries.get(number)
        if entry is None or entry.place is not None or entry.item is None:
            return True
        try:
            entry.place = self._spill.put(self._encode(entry.item))
        except OSError:
            return False
        entry.item = None
        self._memory -= entry.size
        self._spilled += 1
        return True

    def _remove(self, number: int, entry: Entry[Sender, Item]) -> None:
        del self._entries[number]
        mine = self._of_sender[entry.sender]
        mine.discard(number)
        if not mine:
            del self._of_sender[entry.sender]
        self.size -= entry.size
        if entry.place is None:
            self._memory -= entry.size
        else:
            self._spilled -= 1
        if not self._entries:
            self._best.clear()
            self._worst.clear()
        elif len(self._worst) > 2 * (len(self._entries) - self._spilled) + 64:
            self._worst = [one for one in self._worst if self._is_in_memory(one[1])]
            heapify(self._worst)  # most entries were outdated
        if len(self._best) > 2 * len(self._entries) + 64:
            self._best = [one for one in self._best if one[1] in self._entries]
            heapify(self._best)

    def _is_in_memory(self, number: int) -> bool:
        entry = self._entries.get(number)
        return entry is not None and entry.place is None
