"""The stamps of publishers at a rendezvous point: which one comes next, and which were refused.

    known     the last stamp that was given to the journal
    solid     no stamp from this one on was refused, so one acknowledgment may cover all of them
    skipped   all stamps up to this one are settled, though the journal lacks some

A publisher says which of its stamps are settled. An unknown publisher is believed. For a known
publisher the claim is checked: otherwise an impostor could cause the next notifications of that
publisher to be dropped as duplicates.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

MOST_FIRST = 1 << 48  # the highest first stamp that is accepted from an unknown publisher


class Stamps:
    """The stamps of all publishers. The publishers that have been silent longest come first."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self.known = dict(known)
        self._solid: dict[str, int] = {}
        self._skipped: dict[str, int] = {}

    def next_stamp(self, who: str, first: int) -> int | None:
        """The next stamp of a publisher that claims that all stamps before `first` are settled;
        None if that can't be true."""
        first, known = max(first, 1), self.known.get(who)
        if known is None:
            return first if first <= MOST_FIRST else None
        if first > max(known, self._skipped.get(who, 0)) + 1:
            return None
        return max(known + 1, first)

    def advance(self, who: str, stamp: int, *, refused: bool) -> None:
        """Note that the journal has a stamp, of a notification or of a refusal."""
        if self.known.get(who) != stamp - 1:  # stamps before it were refused
            self._solid.pop(who, None)
        self.known[who] = stamp
        self._skipped.pop(who, None)
        if refused:
            self._solid[who] = stamp + 1
        else:
            self._solid.setdefault(who, stamp)

    def advance_many(self, who: str, first: int, last: int) -> None:
        """Note that the journal has the notifications from a publisher's next stamp to `last`."""
        self.known[who] = last
        self._skipped.pop(who, None)
        self._solid.setdefault(who, first)

    def skip(self, who: str, stamp: int, first: int) -> None:
        """Note that a stamp was refused and not journalled. The publisher may send it again, or
        continue with the next stamp. Nothing is stored for unknown publishers: they may continue
        anyway, and there can be any number of them while nothing can be written."""
        known, skipped = self.known.get(who), self._skipped.get(who, 0)
        if known is not None and stamp <= max(known, skipped, first - 1) + 1:
            self._skipped[who] = max(stamp, skipped)

    def take_back(self, who: str, stamp: int) -> None:
        """Take back a stamp that was given to the journal and did not reach the disk."""
        self.known[who] = min(self.known.get(who, 0), stamp - 1)
        self._solid.pop(who, None)

    def solid_since(self, who: str, stamp: int) -> int | None:
        """The first stamp since the last refusal; None if that stamp is higher than `stamp`."""
        found = self._solid.get(who)
        return None if found is None or found > stamp else found

    def hear(self, who: str) -> None:
        """Note that a publisher sent something, so that it is the last to be forgotten."""
        last = self.known.pop(who, None)
        if last is not None:
            self.known[who] = last

    def forget(self, many: int) -> list[str]:
        """Forget the publishers that have been silent longest; return their names."""
        names = list(islice(self.known, many))
        for table in (self.known, self._solid, self._skipped):
            for name in names:
                table.pop(name, None)
        return names
