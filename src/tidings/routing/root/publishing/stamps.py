"""The stamps of publishers at a rendezvous point: which one comes next, and which were refused.

    known     the last stamp that was given to the journal
    solid     no stamp from this one on was refused, so one acknowledgment may cover all of them
    skipped   all stamps up to this one are settled, though the journal lacks some

A publisher says which of its stamps are settled. An unknown publisher is believed. For a known
publisher, the claim is checked: otherwise, an impostor could make the root drop the next
notifications of that publisher as duplicates.
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
        """Record that the journal has a stamp, with a notification or with a refusal."""
        if self.known.get(who) != stamp - 1:  # stamps just before this one were refused
            self._solid.pop(who, None)
        self.known[who] = stamp
        self._skipped.pop(who, None)
        if refused:
            self._solid[who] = stamp + 1
        else:
            self._solid.setdefault(who, stamp)

    def advance_many(self, who: str, first: int, last: int) -> None:
        """Record that the journal has the notifications from a publisher's next stamp to `last`."""
        self.known[who] = last
        self._skipped.pop(who, None)
        self._solid.setdefault(who, first)

    def skip(self, who: str, stamp: int, first: int) -> None:
        """Record that a stamp was refused and not journalled. The publisher may send this stamp
        again, or continue with the next one. For an unknown publisher, nothing is stored: the
        publisher may continue anyway, and there is no limit to the number of such publishers while
        writing fails."""
        known, skipped = self.known.get(who), self._skipped.get(who, 0)
        if known is not None and stamp <= max(known, skipped, first - 1) + 1:
            self._skipped[who] = max(stamp, skipped)

    def take_back(self, who: str, stamp: int) -> None:
        """Take back a stamp that was given to the journal and did not reach the disk."""
        self.known[who] = min(self.known.get(who, 0), stamp - 1)
        self._solid.pop(who, None)

    def solid_since(self, who: str, stamp: int) -> int | None:
        """The first stamp after the last refusal; None if it is higher than `stamp`."""
        found = self._solid.get(who)
        return None if found is None or found > stamp else found

    def continue_from(self, earlier: Stamps) -> None:
        """Take over the stamps of a previous state machine in this process; all of these stamps are
        on the disk."""

    def hear(self, who: str) -> None:
        """Record a message of a publisher, so that this publisher is the last to be forgotten."""
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


MOST_OPEN = 1 << 17  # gaps that are remembered; twice what an honest publisher has in flight


class _Accepted:
    """The accepted stamps of one publisher: all from `low` up to `high` that are not in `gaps`.

        accepted   . . 3 4 5 . 7 8 . .
                       low    gap   high

    Publications that wait in the queue are gaps, even if later ones overtake them for minutes. So
    there are as many gaps as publications in flight, however many stamps lie between them. Stamps
    outside the range count as not accepted.
    """

    def __init__(self, stamp: int) -> None:
        self.low, self.high = stamp, stamp + 1
        self.gaps: set[int] = set()
        self.settled = 0  # the highest claim for which gaps were removed

    def __contains__(self, stamp: int) -> bool:
        return self.low <= stamp < self.high and stamp not in self.gaps

    def add(self, stamp: int) -> None:
        if self.low <= stamp < self.high:
            self.gaps.discard(stamp)
        elif 0 <= stamp - self.high <= MOST_OPEN:
            self.gaps.update(range(self.high, stamp))
            self.high = stamp + 1
        elif 0 < self.low - stamp <= MOST_OPEN:
            self.gaps.update(range(stamp + 1, self.low))
            self.low = stamp
        else:  # no honest publisher has so many in flight; the last message is believed
            self.low, self.high, self.settled = stamp, stamp + 1, 0
            self.gaps.clear()
        if len(self.gaps) > MOST_OPEN:
            self._begin_after(sorted(self.gaps)[len(self.gaps) // 2])

    def remove(self, stamp: int) -> None:
        if stamp in self:
            self.gaps.add(stamp)

    def settle(self, first: int) -> None:
        """Forget the gaps before `first`: their stamps never come, unless somebody else claims that
        they are settled. So they must still count as not accepted, and the range begins after
        them."""
        if first - self.settled <= len(self.gaps) // 4:
            return  # keeping some settled gaps does no harm, and removing them takes long
        self.settled = first
        if past := [one for one in self.gaps if one < first]:
            self._begin_after(max(past))

    def _begin_after(self, gap: int) -> None:
        self.low = gap + 1
        self.gaps = {one for one in self.gaps if one > gap}


class UnorderedStamps(Stamps):
    """The stamps of a channel that does not keep the order of publishers. Each stamp is accepted
    once, in any order.

    For each publisher, this class remembers a range of stamps, and the gaps in it. A publisher says
    that all stamps before its `first` are settled. Then the range begins after the last gap before
    `first`, so that late copies of the stamps after this gap are recognised. A stamp never counts
    as accepted only because a message claims it, so an impostor can cause repetitions, but no
    losses. After a restart of the process, nothing is remembered: publications that the publisher
    still repeats may be stored twice, under two serials, and subscribers drop the second copy by
    its stamp.
    """

    def __init__(self) -> None:
        super().__init__({})
        self._accepted: dict[str, _Accepted] = {}
        self._refused: dict[str, set[int]] = {}

    def expect(self, who: str, first: int, stamp: int) -> int | None:
        if not 1 <= first <= MOST_FIRST or stamp < 1:
            return None
        accepted = self._accepted.get(who)
        if accepted is not None:
            self._settle(who, accepted, first)
        is_done = stamp < first or (accepted is not None and stamp in accepted)
        return stamp + 1 if is_done else stamp

    def _settle(self, who: str, accepted: _Accepted, first: int) -> None:
        before = accepted.settled
        accepted.settle(first)
        if accepted.settled != before and (refused := self._refused.get(who)):
            self._refused[who] = {one for one in refused if one >= first}

    def _note(self, who: str, stamp: int) -> None:
        accepted = self._accepted.get(who)
        if accepted is None:
            self._accepted[who] = _Accepted(stamp)
        else:
            accepted.add(stamp)

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
        """Do nothing: the publisher may send this stamp again."""

    def take_back(self, who: str, stamp: int) -> None:
        if accepted := self._accepted.get(who):
            accepted.remove(stamp)
        self._refused.get(who, set()).discard(stamp)

    def solid_since(self, who: str, stamp: int) -> int | None:
        """`stamp`, because here an acknowledgment covers no other stamp; None if it was
        refused."""
        return None if stamp in self._refused.get(who, ()) else stamp

    def forget(self, many: int) -> list[str]:
        names = super().forget(many)
        for name in names:
            self._accepted.pop(name, None)
            self._refused.pop(name, None)
        return names

    def continue_from(self, earlier: Stamps) -> None:
        if isinstance(earlier, UnorderedStamps):
            self.known = earlier.known
            self._accepted, self._refused = earlier._accepted, earlier._refused
