"""The stamps of publishers at a rendezvous point: which one comes next, and which were refused.

    known     the last stamp that is in the journal's hands
    solid     none since this one was refused: an acknowledgment may speak of all from here on
    skipped   all up to this one are done with, though the journal has no word of some

A publisher says which of its stamps are done with. One of which nothing is known is believed. One
that is known is not: it could be somebody else, who would have its next publications taken for some
that were said before.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

MOST_FIRST = 1 << 48  # stamps that an unknown publisher can be believed to have done with


class Stamps:
    """Of all publishers, those that were silent for the longest time in front."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self.known = dict(known)
        self._solid: dict[str, int] = {}
        self._skipped: dict[str, int] = {}

    def next_stamp(self, who: str, first: int) -> int | None:
        """The stamp that comes next of one that has done with all before `first`; None where that
        can't be: what it lacks is to be said to it, or it makes no sense."""
        first, known = max(first, 1), self.known.get(who)
        if known is None:
            return first if first <= MOST_FIRST else None
        if first > max(known, self._skipped.get(who, 0)) + 1:
            return None
        return max(known + 1, first)

    def advance(self, who: str, stamp: int, *, refused: bool) -> None:
        """One is in the journal's hands, as a notification or as refused for good."""
        if self.known.get(who) != stamp - 1:  # some before it were refused
            self._solid.pop(who, None)
        self.known[who] = stamp
        self._skipped.pop(who, None)
        if refused:
            self._solid[who] = stamp + 1
        else:
            self._solid.setdefault(who, stamp)

    def skip(self, who: str, stamp: int, first: int) -> None:
        """One was refused without a word in the journal: said again it is looked at again, and its
        publisher may go on with the next. One that is not known may anyway: nothing is kept of it,
        for there may be any number of them while nothing can be written."""
        known, skipped = self.known.get(who), self._skipped.get(who, 0)
        if known is not None and stamp <= max(known, skipped, first - 1) + 1:
            self._skipped[who] = max(stamp, skipped)

    def take_back(self, who: str, stamp: int) -> None:
        """One was in the journal's hands, and did not get onto the disk."""
        self.known[who] = min(self.known.get(who, 0), stamp - 1)
        self._solid.pop(who, None)

    def solid_since(self, who: str, stamp: int) -> int | None:
        """Since when none was refused, where that is before a stamp."""
        found = self._solid.get(who)
        return None if found is None or found > stamp else found

    def hear(self, who: str) -> None:
        """A publisher is not silent."""
        last = self.known.pop(who, None)
        if last is not None:
            self.known[who] = last

    def forget(self, many: int) -> list[str]:
        """Forget those that were silent for the longest time; who they were."""
        names = list(islice(self.known, many))
        for table in (self.known, self._solid, self._skipped):
            for name in names:
                table.pop(name, None)
        return names
