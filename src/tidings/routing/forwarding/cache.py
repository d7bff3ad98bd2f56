"""The latest notifications that passed a router, found by node and number."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TypeVar

from tidings.routing.protocol.messages import Notification, Range

Entry = TypeVar("Entry")
OVERHEAD = 200  # the cost of a notification in an answer, in bytes, besides its payload
OF_MARK = 250  # the cost of each mark, in bytes: marks are slow to read and to write


def cost_of(payload: int, marks: int) -> int:
    """The cost of a notification in an answer, in bytes."""
    return payload + OVERHEAD + OF_MARK * marks


class Cache:
    """A cache that is bounded in bytes and in notifications; the oldest are dropped first.

    Cost: one dictionary entry for each mark.
    """

    overhead = 250  # bytes counted for each notification and for each of its marks

    def __init__(self, most: int = 10_000, most_bytes: int = 64 << 20) -> None:
        self.most = most
        self.most_bytes = most_bytes
        self.bytes = 0
        self._order: deque[Notification] = deque()
        self._numbers: dict[int, dict[int, Notification]] = {}  # by node, then by number

    def __len__(self) -> int:
        return len(self._order)

    def clear(self) -> None:
        self.bytes = 0
        self._order.clear()
        self._numbers.clear()

    def put(self, notification: Notification) -> None:
        """Add a notification, unless it is cached already."""
        numbers = self._numbers
        if any(mark.number in numbers.get(mark.node, ()) for mark in notification.marks):
            return
        self._order.append(notification)
        self.bytes += self._size(notification)
        for mark in notification.marks:
            numbers.setdefault(mark.node, {})[mark.number] = notification
        while len(self._order) > self.most or self.bytes > self.most_bytes:
            oldest = self._order.popleft()
            self.bytes -= self._size(oldest)
            for mark in oldest.marks:
                del numbers[mark.node][mark.number]
                if not numbers[mark.node]:
                    del numbers[mark.node]

    def _size(self, notification: Notification) -> int:
        return len(notification.payload) + self.overhead * (1 + len(notification.marks))

    def find(
        self, ranges: Iterable[Range], most_bytes: int = 1 << 62
    ) -> tuple[list[Notification], list[Range]]:
        """The cached notifications in order of serials, and the numbers that are not cached.
        Notifications beyond `most_bytes` are in neither list."""
        places, rest = look_up(self._numbers, ranges)
        found: dict[int, Notification] = {}
        for one in places:
            if one.serial in found:
                continue
            most_bytes -= cost_of(len(one.payload), len(one.marks))
            if most_bytes < 0 and found:
                break
            found[one.serial] = one
        return [found[serial] for serial in sorted(found)], rest


def look_up(
    numbers: Mapping[int, Mapping[int, Entry]], ranges: Iterable[Range]
) -> tuple[list[Entry], list[Range]]:
    """The entries for the numbers in `ranges`, and the ranges of numbers without an entry."""
    found: list[Entry] = []
    rest: list[Range] = []
    for node, first, last in ranges:
        there = numbers.get(node, {})
        # other nodes choose the length of a range, so it can be huge
        if len(there) <= last - first:
            here = sorted(number for number in there if first <= number <= last)
        else:
            here = [number for number in range(first, last + 1) if number in there]
        for number in here:
            found.append(there[number])
            if number > first:
                rest.append(Range(node, first, number - 1))
            first = number + 1
        if first <= last:
            rest.append(Range(node, first, last))
    return found, rest
