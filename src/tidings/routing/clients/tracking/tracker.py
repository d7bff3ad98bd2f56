"""Which notifications have arrived and which are missing, by their numbers at each node.

    node 7    settled up to 40, and 43            44 is known to exist: 41, 42 and 44 are missing

A number is *settled* if its notification has arrived or is lost. A subscriber begins with the
counts of its node and of all nodes below it. A node that is not among these nodes is new, and its
first number is 1. The marks of a notification are settled together, except marks that were left out
by a router on the way, because the router did not know that they concern this subscriber. So a
notification with a settled mark is a duplicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidings.routing.protocol.messages import Mark, Range


def cut_ranges(ranges: Iterable[Range], most: int) -> list[Range]:
    """The first `most` numbers of some ranges."""
    found: list[Range] = []
    for node, first, last in ranges:
        if most <= 0:
            break
        found.append(Range(node, first, min(last, first + most - 1)))
        most -= found[-1].last - first + 1
    return found


class Tracker:
    """The numbers that one subscriber must get. All dictionaries have nodes as keys."""

    def __init__(self, counts: Mapping[int, int]) -> None:
        self._upto = dict(counts)  # all numbers up to this one are settled
        self._beyond: dict[int, set[int]] = {}  # settled numbers after a gap
        self._known: dict[int, int] = {}  # the highest existing number, if it is not settled
        self._top: dict[int, int] = {}  # the highest number in `_beyond`

    def see(self, marks: Iterable[Mark]) -> bool:
        """Settle the marks of a notification; return True if it is new."""
        new = True
        for mark in marks:
            if self._is_settled(mark.node, mark.number):
                new = False
            else:
                self._settle(mark.node, mark.number)
        return new

    def see_next(self, marks: Iterable[Mark]) -> bool:
        """Settle the marks of a notification if each is the next at its node; otherwise do nothing.
        Call this only while nothing is missing."""
        upto = self._upto
        for node, number, _ in marks:
            if number != upto.get(node, 0) + 1:
                return False
        for node, number, _ in marks:
            upto[node] = number
        return True

    def knows(self, node: int) -> bool:
        """Is a node known to be one whose notifications this subscriber must get?"""
        return node in self._upto or node in self._beyond or node in self._known

    def has_any(self, marks: Iterable[Mark]) -> bool:
        """Is any of the marks settled?"""
        return any(self._is_settled(mark.node, mark.number) for mark in marks)

    def select_missing(self, marks: Iterable[Mark]) -> tuple[Mark, ...]:
        """The marks that are known to be missing."""
        return tuple(mark for mark in marks if self.is_missing(mark.node, mark.number))

    def learn(self, counts: Mapping[int, int]) -> None:
        """Note the counts of nodes: all numbers up to a count exist."""
        for node, count in counts.items():
            if count > self._highest(node):
                self._known[node] = count

    def give_up(self, ranges: Iterable[Range]) -> None:
        """Settle numbers that are lost."""
        for node, first, last in ranges:
            for number in range(first, min(last, self._highest(node)) + 1):
                if not self._is_settled(node, number):
                    self._settle(node, number)

    def list_missing(self) -> list[Range]:
        """The numbers that exist but are not settled."""
        return [gap for node in sorted(self.incomplete()) for gap in self._gaps(node)]

    def is_missing(self, node: int, number: int) -> bool:
        """Is a number known to exist, and not settled?"""
        return number <= self._highest(node) and not self._is_settled(node, number)

    def has_all(self, mark: Mark) -> bool:
        """Are the number of a mark and all numbers before it settled?"""
        return mark.number <= self._upto.get(mark.node, 0)

    def incomplete(self) -> set[int]:
        """The nodes at which numbers are missing."""
        return {*self._beyond, *self._known}

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
