"""The trackers of one subscriber: one for each meaning of its interest, old and present.

    serials      1 ........ 60 │ 61 ........ 90 │ 91 ...
    meaning      before the    │ the next one    │ the present one: `now`
                 first revision
    tracker      60 is missing │ complete        │

A revision of the channel gives an interest another node. After the serial of the revision, the
interest matches other notifications, and it may gain nodes at which its first number is not 1. So
each meaning has a tracker of its own, and the serial of a notification decides which meaning it
belongs to.

The totals at a revision say how many notifications of the previous meaning are missing. An earlier
meaning is dropped when all its missing notifications have arrived. If all its numbers are settled
although some notifications have not arrived, these are lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tidings.routing.clients.tracking.tracker import Tracker
from tidings.routing.protocol.messages import Mark, Range, Step


class EarlierMeaning(msgspec.Struct):
    """An earlier meaning: it applies to the serials above `after`, up to `upto`. `missing` is how
    many of its notifications are missing."""

    after: int
    upto: int
    tracker: Tracker
    missing: int

    def has(self, serial: int) -> bool:
        return self.after < serial <= self.upto


class Stages:
    """The trackers of one subscriber, one for each meaning of its interest. Without revisions,
    there is only one tracker."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.now = Tracker(counts or {})
        self._since = 0  # the serial after which the present meaning begins
        self._past: list[
            EarlierMeaning
        ] = []  # earlier meanings with missing notifications, in order

    def advance(self, step: Step, complete: int, missing: int) -> None:
        """Begin another meaning. In the present meaning, nothing is missing up to the serial
        `complete`, and `missing` notifications are missing after it. The counts in the step show
        the numbers of the missing notifications. A meaning without serials is left out. Such a
        meaning exists if a rendezvous point was killed during a revision, and began the revision
        again after its restart."""
        if step.serial > self._since and missing > 0:
            late = {node for node, serial in step.ended.items() if serial <= complete}
            self.now.learn({node: many for node, many in step.ends.items() if node not in late})
            self._past.append(EarlierMeaning(self._since, step.serial, self.now, missing))
        self.now, self._since = Tracker(step.begins), step.serial

    def arrive(self, serial: int) -> None:
        """Record that a notification has arrived for the first time."""
        for one in self._past:
            one.missing -= one.has(serial)

    def dismiss(self, marks: Iterable[Mark], serial: int) -> None:
        """Settle the marks of a notification in the meanings that it does not belong to: a number
        that is new to a meaning may have a serial before that meaning. If such a number were not
        settled, the subscriber would request it again and again, and never the other missing
        numbers."""
        ranges = [Range(mark.node, mark.number, mark.number) for mark in marks]
        for one in self._past:
            if not one.has(serial):
                one.tracker.give_up(ranges)
        if serial <= self._since:
            self.now.give_up(ranges)

    def close(self) -> int:
        """Drop the earlier meanings that miss no notifications, or whose missing notifications are
        lost; return how many are lost."""
        lost = 0
        for one in [*self._past]:
            if one.missing <= 0 or one.tracker.is_complete():
                self._past.remove(one)
                lost += max(0, one.missing)
        return lost

    def has_past(self) -> bool:
        """Are notifications of an earlier meaning missing?"""
        return bool(self._past)

    # -- one notification ----------------------------------------------------------------------

    def see(self, marks: Iterable[Mark], serial: int) -> bool:
        """Settle the marks of a notification; return True if it is new."""
        found = self._at(serial)
        return found is not None and found.see(marks)

    def see_next(self, marks: Iterable[Mark]) -> bool:
        """Settle the marks of a notification if each is the next at its node; otherwise do nothing.
        Call this only while nothing is missing."""
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
        """The tracker for a serial; None if the meaning of that serial was dropped."""
        if serial > self._since:
            return self.now
        return next((one.tracker for one in self._past if one.has(serial)), None)

    # -- all of them ---------------------------------------------------------------------------

    def knows(self, node: int) -> bool:
        """Is a node known to be one whose notifications the subscriber must get?"""
        return any(one.knows(node) for one in self._each())

    def learn(self, counts: Mapping[int, int]) -> None:
        """Record the counts of the nodes that belong to the present meaning of the interest."""
        self.now.learn(counts)

    def give_up(self, ranges: Iterable[Range]) -> None:
        """Settle numbers that are lost."""
        ranges = list(ranges)
        for tracker in self._each():
            tracker.give_up(ranges)

    def list_missing(self) -> list[Range]:
        """The numbers that exist but are not settled."""
        return [one for tracker in self._each() for one in tracker.list_missing()]

    def has_some(self, ranges: Iterable[Range]) -> bool:
        """These numbers were all missing: is any of them settled now?"""
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
