"""Which notifications have come and which are missing, by their numbers at each node.

    node 7    settled up to 40, and 43            44 is known to exist: 41, 42 and 44 are missing

A subscriber begins with the counts of all nodes below its own. A node that it has never heard of is
new, and counts from 1. Either all marks of a notification are settled or none are, except marks
that a router on the way did not recognise as this subscriber's. So a notification with a settled
mark has come before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidings.routing.protocol.messages import Mark, Range


class Tracker:
    """The numbers that one subscriber must get. All dictionaries have nodes as keys."""

    def __init__(self, counts: Mapping[int, int]) -> None:
        self._upto = dict(counts)  # all numbers up to this one are settled
        self._beyond: dict[int, set[int]] = {}  # settled numbers after a gap
        self._known: dict[int, int] = {}  # the highest existing number, if it is not settled
        self._top: dict[int, int] = {}  # the highest number in `_beyond`

    def see(self, marks: Iterable[Mark]) -> bool:
        """Settle the marks of a notification; True if it is new."""
        new = True
        for mark in marks:
            if self._is_settled(mark.node, mark.number):
                new = False
            else:
                self._settle(mark.node, mark.number)
        return new

    def knows(self, node: int) -> bool:
        """Is a node known to be one of those whose notifications must come?"""
        return node in self._upto or node in self._beyond or node in self._known

    def has_any(self, marks: Iterable[Mark]) -> bool:
        """Has any of the marks come before?"""
        return any(self._is_settled(mark.node, mark.number) for mark in marks)

    def select_missing(self, marks: Iterable[Mark]) -> tuple[Mark, ...]:
        """The marks that are known to be missing."""
        return tuple(
            mark
            for mark in marks
            if mark.number <= self._highest(mark.node)
            and not self._is_settled(mark.node, mark.number)
        )

    def learn(self, counts: Mapping[int, int]) -> None:
        """Note how far nodes have counted."""
        for node, count in counts.items():
            if count > self._highest(node):
                self._known[node] = count

    def give_up(self, ranges: Iterable[Range]) -> int:
        """Settle numbers that are lost; return how many were not settled before."""
        lost = 0
        for node, first, last in ranges:
            for number in range(first, min(last, self._highest(node)) + 1):
                if not self._is_settled(node, number):
                    self._settle(node, number)
                    lost += 1
        return lost

    def list_missing(self) -> list[Range]:
        """The numbers that exist but have not arrived."""
        return [gap for node in sorted({*self._beyond, *self._known}) for gap in self._gaps(node)]

    def is_complete(self) -> bool:
        """Is nothing known to be missing?"""
        return not self._beyond and not self._known

    def _gaps(self, node: int) -> Iterator[Range]:
        first = self._upto.get(node, 0) + 1
        for number in sorted(self._beyond.get(node, ())):
            if number > first:
                yield Range(node, first, number - 1)
            first = number + 1
        if first <= self._known.get(node, 0):
            yield Range(node, first, self._known[node])

    def _highest(self, node: int) -> int:
        return max(self._upto.get(node, 0), self._known.get(node, 0), self._top.get(node, 0))

    def _is_settled(self, node: int, number: int) -> bool:
        return number <= self._upto.get(node, 0) or number in self._beyond.get(node, ())

    def _settle(self, node: int, number: int) -> None:
        upto = self._upto.get(node, 0)
        if number == upto + 1:
            beyond = self._beyond.get(node, set())
            upto = number
            while upto + 1 in beyond:
                upto += 1
                beyond.remove(upto)
            if not beyond:
                self._beyond.pop(node, None)
                self._top.pop(node, None)
            self._upto[node] = upto
        else:
            self._beyond.setdefault(node, set()).add(number)
            self._top[node] = max(self._top.get(node, 0), number)
        if self._known.get(node, 0) <= upto:
            self._known.pop(node, None)
