"""The notifications that passed a router last, found by the numbers that they have at nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tidings.routing.messages import Mark, Notification, Range


class Cache:
    """Bounded in bytes of payloads and in notifications; the oldest goes first.

    Cost: an entry of a dictionary for each mark.
    """

    def __init__(self, most: int = 10_000, most_bytes: int = 64 << 20) -> None:
        self.most = most
        self.most_bytes = most_bytes
        self.bytes = 0
        self._order: deque[Notification] = deque()
        self._by_mark: dict[tuple[int, int], Notification] = {}

    def __len__(self) -> int:
        return len(self._order)

    def clear(self) -> None:
        self.bytes = 0
        self._order.clear()
        self._by_mark.clear()

    def put(self, notification: Notification) -> None:
        """Keep one; what is here already stays as it is."""
        if self.most <= 0 or any(key(mark) in self._by_mark for mark in notification.marks):
            return
        self._order.append(notification)
        self.bytes += len(notification.payload)
        for mark in notification.marks:
            self._by_mark[key(mark)] = notification
        while len(self._order) > self.most or self.bytes > self.most_bytes:
            oldest = self._order.popleft()
            self.bytes -= len(oldest.payload)
            for mark in oldest.marks:
                del self._by_mark[key(mark)]

    def find(self, ranges: Iterable[Range]) -> tuple[list[Notification], list[Range]]:
        """Those that are here, by their serials, and the numbers of those that are not."""
        found: dict[int, Notification] = {}
        rest: list[Range] = []
        for node, first, last in ranges:
            for number in range(first, last + 1):
                notification = self._by_mark.get((node, number))
                if notification is not None:
                    found[notification.serial] = notification
                elif rest and rest[-1].node == node and rest[-1].last == number - 1:
                    rest[-1] = Range(node, rest[-1].first, number)
                else:
                    rest.append(Range(node, number, number))
        return [found[serial] for serial in sorted(found)], rest


def key(mark: Mark) -> tuple[int, int]:
    return mark.node, mark.number
