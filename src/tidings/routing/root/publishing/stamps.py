"""The stamps of publishers at a rendezvous point: which one comes next, and which were refused.

    known     the last stamp that was given to the journal
    solid     no stamp from this one on was refused, so one acknowledgment may cover all of them
    skipped   all stamps up to this one are settled, though the journal lacks some

A publisher says which of its stamps are settled. An unknown publisher is believed. For a known
publisher, the claim is checked: otherwise an impostor could cause the next notifications of that
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

    def expect(self, who: str, first: int, stamp: int) -> int | None:
        """The stamp that is expected from a publisher that sends `stamp`; see `next_stamp`."""
        return self.next_stamp(who, first)

    def next_stamp(self, who: str, first: int) -> int | None:
        """The next stamp of a publisher that claims that all stamps before `first` are settled;
        None if the claim can't be true."""
        first, known = max(first, 1), self.known.get(who)
        if known is None:
            return first if first <= MOST_FIRST else None
        if first > max(known, self._skipped.get(who, 0)) + 1:
            return None
        return max(known + 1, first)

    def advance(self, who: str, stamp: int, *, refused: bool) -> None:
        """Note that the journal has a stamp, with a notification or with a refusal."""
        if self.known.get(who) != stamp - 1:  # some stamps before it were refused
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
        continue with the next stamp. Nothing is stored for unknown publishers, because they may
        continue anyway, and there is no limit to their number while writing fails."""
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

    def continue_from(self, earlier: Stamps) -> None:
        """Take over the stamps of an earlier state machine of this process; all of them are on the
        disk."""

    def hear(self, who: str) -> None:
        """Note that a publisher sent a message, so that it is the last to be forgotten."""
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


MOST_OPEN = 1 << 16  # stamps of one publisher that are remembered one by one


class UnorderedStamps(Stamps):
    """The stamps of a channel that does not keep the order of publishers. Each stamp is accepted
    once, in any order.

    For each publisher, this class remembers one range of accepted stamps, and further accepted
    stamps one by one. A publisher says that all stamps before its `first` are settled. Then the
    range is moved, if necessary, to the accepted stamps just before `first`, so that late copies of
    these are recognised; other stamps before `first` are forgotten. A stamp never counts as
    accepted only because somebody says so, so an impostor can cause repetitions, but no losses.
    After a restart of the process, nothing is remembered: publications that the publisher still
    repeats may be stored twice, under two serials, and subscribers drop the second copy by its
    stamp.
    """

    def __init__(self) -> None:
        super().__init__({})
        self._ranges: dict[str, tuple[int, int]] = {}  # the first stamp, and the one after the last
        self._done: dict[str, set[int]] = {}  # accepted stamps outside the range
        self._first: dict[str, int] = {}  # the highest claim
        self._refused: dict[str, set[int]] = {}

    def expect(self, who: str, first: int, stamp: int) -> int | None:
        if not 1 <= first <= MOST_FIRST or stamp < 1:
            return None
        self._settle(who, first)
        is_done = stamp < first or self._has(who, stamp)
        return stamp + 1 if is_done else stamp

    def _has(self, who: str, stamp: int) -> bool:
        low, high = self._ranges.get(who, (0, 0))
        return low <= stamp < high or stamp in self._done.get(who, ())

    def _settle(self, who: str, first: int) -> None:
        done = self._done.get(who)
        if done and len(done) > MOST_OPEN:  # no honest publisher has so many in flight
            first = max(first, sorted(done)[len(done) // 2])
        if first - self._first.get(who, 1) <= len(done or ()) // 4 or who not in self.known:
            return  # keeping some settled stamps does no harm, and removing them takes long
        self._first[who] = first
        low, high = self._ranges.get(who, (0, 0))
        if first < low and high - low <= MOST_OPEN:  # the range begins after the settled stamps
            self._done.setdefault(who, set()).update(range(low, high))
            high = 0
        if first > high:  # the range does not reach the last settled stamp
            self._grow(who, first, first)
        for table in (self._done, self._refused):
            if table.get(who):
                table[who] = {one for one in table[who] if one >= first}

    def _grow(self, who: str, low: int, high: int) -> None:
        """Extend a range by the accepted stamps next to it."""
        done = self._done.get(who, set())
        while high in done:
            done.discard(high)
            high += 1
        while low - 1 in done:
            low -= 1
            done.discard(low)
        self._ranges[who] = low, high

    def _note(self, who: str, stamp: int) -> None:
        low, high = self._ranges.get(who) or (stamp, stamp)
        if stamp == high:
            self._grow(who, low, high + 1)
        elif stamp == low - 1:
            self._grow(who, stamp, high)
        elif not low <= stamp < high:
            self._done.setdefault(who, set()).add(stamp)

    def advance(self, who: str, stamp: int, *, refused: bool) -> None:
        self.known[who] = max(stamp, self.known.get(who, 0))
        self._note(who, stamp)
        if refused:
            self._refused.setdefault(who, set()).add(stamp)

    def advance_many(self, who: str, first: int, last: int) -> None:
        self.known[who] = max(last, self.known.get(who, 0))
        for stamp in range(first, last + 1):
            self._note(who, stamp)

    def skip(self, who: str, stamp: int, first: int) -> None:
        """Do nothing, because the publisher may send the stamp again."""

    def take_back(self, who: str, stamp: int) -> None:
        low, high = self._ranges.get(who, (0, 0))
        if low <= stamp < high:
            self._ranges[who] = low, stamp
            self._done.setdefault(who, set()).update(range(stamp + 1, high))
        self._done.get(who, set()).discard(stamp)
        self._refused.get(who, set()).discard(stamp)

    def solid_since(self, who: str, stamp: int) -> int | None:
        """The stamp itself, because an acknowledgment covers no earlier stamp; None if it was
        refused."""
        return None if stamp in self._refused.get(who, ()) else stamp

    def forget(self, many: int) -> list[str]:
        names = super().forget(many)
        for name in names:
            for table in (self._ranges, self._done, self._first, self._refused):
                table.pop(name, None)
        return names

    def continue_from(self, earlier: Stamps) -> None:
        if isinstance(earlier, UnorderedStamps):
            self.known, self._ranges, self._done = earlier.known, earlier._ranges, earlier._done
            self._first, self._refused = earlier._first, earlier._refused
