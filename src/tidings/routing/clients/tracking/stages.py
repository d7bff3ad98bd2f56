"""The trackers of one subscriber: one for each meaning that its interest has had.

    serials      1 ........ 60 │ 61 ........ 90 │ 91 ...
    meaning      before the    │ the next one    │ the present one: `now`
                 first revision
    tracker      60 is missing │ complete        │

A revision of the channel gives an interest another node. From its serial on, other notifications
are due, and the numbers of nodes that the interest has gained begin with later ones than 1. So each
meaning has a tracker of its own, and the serial of a notification decides which one it belongs to.
A past tracker is dropped once nothing of it is missing: nothing more can become due then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tidings.routing.clients.tracking.tracker import Tracker
from tidings.routing.protocol.messages import Mark, Range, Step


class Past(NamedTuple):
    """An earlier meaning: its serials, after the first and up to the last."""

    after: int
    upto: int
    tracker: Tracker


class Stages:
    """See the top of the module. Without revisions, this is one tracker."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.now = Tracker(counts or {})
        self._since = 0  # the serial after which the present meaning holds
        self._past: list[Past] = []  # those of which something is missing, in order

    def advance(self, step: Step, complete: int) -> None:
        """Begin another meaning; nothing is missing up to the serial `complete`. The counts at the
        end of the present meaning show what is missing after it. A meaning without serials is left
        out: a rendezvous point that was killed during a revision begins the revision again."""
        if step.serial > self._since:
            late = {node for node, serial in step.ended.items() if serial <= complete}
            self.now.learn({node: many for node, many in step.ends.items() if node not in late})
            if not self.now.is_complete():
                self._past.append(Past(self._since, step.serial, self.now))
        self.now, self._since = Tracker(step.begins), step.serial

    def has_past(self) -> bool:
        """Is anything of an earlier meaning missing?"""
        return bool(self._past)

    # -- one notification ----------------------------------------------------------------------

    def see(self, marks: Iterable[Mark], serial: int) -> bool:
        """Settle the marks of a notification; True if it is new."""
        found = self._at(serial)
        is_new = found is not None and found.see(marks)
        self._drop_complete()
        return is_new

    def see_next(self, marks: Iterable[Mark]) -> bool:
        """Settle the marks of a notification if each is the next at its node; otherwise nothing.
        Only while nothing is missing."""
        return self.now.see_next(marks)

    def has_any(self, marks: Iterable[Mark], serial: int) -> bool:
        """Is any of the marks settled?"""
        found = self._at(serial)
        return found is not None and found.has_any(marks)

    def select_missing(self, marks: Iterable[Mark], serial: int) -> tuple[Mark, ...]:
        """The marks that are known to be missing."""
        found = self._at(serial)
        return () if found is None else found.select_missing(marks)

    def has_all(self, mark: Mark, serial: int) -> bool:
        """Are the number of a mark and all numbers before it settled?"""
        found = self._at(serial)
        before = (one.tracker for one in self._past if one.upto < serial)
        return (
            found is not None
            and found.has_all(mark)
            and not any(mark.node in one.incomplete() for one in before)
        )

    def _at(self, serial: int) -> Tracker | None:
        """The tracker of a serial; None if nothing of its meaning is missing any more."""
        if serial > self._since:
            return self.now
        return next((one.tracker for one in self._past if one.after < serial <= one.upto), None)

    # -- all of them ---------------------------------------------------------------------------

    def knows(self, node: int) -> bool:
        """Is a node known to be one whose notifications this subscriber must get?"""
        return any(one.knows(node) for one in self._each())

    def learn(self, counts: Mapping[int, int]) -> None:
        """Note the counts of nodes, by the present meaning."""
        self.now.learn(counts)

    def give_up(self, ranges: Iterable[Range]) -> int:
        """Settle numbers that are lost; return how many of them belong to earlier meanings. Totals
        show how many notifications of the present one are lost."""
        ranges = list(ranges)
        lost = sum(
            one.tracker.is_missing(node, number)
            for one in self._past
            for node, first, last in ranges
            for number in range(first, last + 1)
        )
        for tracker in self._each():
            tracker.give_up(ranges)
        self._drop_complete()
        return lost

    def list_missing(self) -> list[Range]:
        """The numbers that exist but are not settled."""
        return [one for tracker in self._each() for one in tracker.list_missing()]

    def has_some(self, ranges: Iterable[Range]) -> bool:
        """Is any of these numbers, which were missing, settled?"""
        return any(
            not any(one.is_missing(node, number) for one in self._each())
            for node, first, last in ranges
            for number in range(first, last + 1)
        )

    def incomplete(self) -> set[int]:
        """The nodes at which numbers are missing."""
        return set[int]().union(*(one.incomplete() for one in self._each()))

    def is_complete(self) -> bool:
        """Is nothing known to be missing?"""
        return not self._past and self.now.is_complete()

    def _each(self) -> Iterator[Tracker]:
        for one in self._past:
            yield one.tracker
        yield self.now

    def _drop_complete(self) -> None:
        if self._past:
            self._past = [one for one in self._past if not one.tracker.is_complete()]
