"""The lives of a rendezvous point, and whether it still has what somebody heard from it.

    lineage   A from 1      B from 61      C from 80 (now)        numbers that it gave, and to which
              1 ......... 60 61 ....... 79 80 ...                 life of it they belong

Each start of a rendezvous point is a life, a number drawn at random. Before it serves, it writes
down the life and the first serial of it; the list is its lineage. A journal that was put back from
a backup has no word of what came after it, so the lineage of the next start shows what is gone: who
heard of (A, 70) is told of A up to 60.

    held      the life is in the lineage, and the serial is before the next one: all goes on
    broken    otherwise: what was heard is not what the point has, and everything begins anew

Whoever hears of another life asks the one above for the lineage, and judges itself: what others
claim to have heard could be forged, a judgement of one's own can't. Routers hand the lineage on
once they have taken it up. No life is larger or smaller than another, and none is from a clock.

A life that was left is not taken up again because of messages that were under way: one above that
is only behind will be where we are in a moment. If it keeps to that life for long, as a machine
does that was put back with its memory, it is taken up, and always as a break. So it does no harm
that lives that were left are forgotten when there are many.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from tidings.routing.protocol import messages as m
from tidings.routing.protocol.times import Times

MOST_LIVES = m.MOST_LIVES
MOST_LEFT = 256  # lives that are remembered for not being taken up again
FOREVER = 1 << 63  # beyond every serial
_BLOCK = 24  # bits that number the nodes of one life,
_SKIPPED = 1 << 22  # and lives that are skipped at most: enough for 250,000 starts


class Span(msgspec.Struct, frozen=True, order=True):
    """Stamps of a publisher, both ends included."""

    first: int
    last: int


class Break(msgspec.Struct, frozen=True):
    """The rendezvous point does not have what it had told: for a subscriber, what came between is
    unknown; for a publisher, `stamps` were acknowledged and are gone."""

    reason: str
    stamps: tuple[Span, ...] = ()


class Lineage:
    """Lives in their order, the last of which is now. Only so many are kept: one that is older
    counts as not held."""

    def __init__(self, lives: Sequence[m.Life] = ()) -> None:
        self.lives = tuple(lives[-MOST_LIVES:])
        firsts = [*(one.first for one in self.lives[1:]), FOREVER]
        self._ends = dict(zip((one.life for one in self.lives), firsts, strict=False))

    def __contains__(self, life: int) -> bool:
        return life in self._ends

    def end(self, life: int) -> int:
        """The first serial that is not, or not any more, of a life; 0 where nothing is."""
        return self._ends.get(life, 0)

    def holds(self, life: int, serial: int) -> bool:
        """Does the point have what somebody heard in a life up to a serial?"""
        return serial < self.end(life)

    def first_node(self, last: int) -> int:
        """After which number nodes are numbered from now on, where the last one had a number. No
        number may mean another filter after a journal has gone back, also to those who heard of no
        notification since; so each life but the first skips some, at random, and so does the first
        after a loss. Numbers still rise."""
        if len(self.lives) < 2 and not last:
            return 0
        return (last >> _BLOCK) + 1 + self.lives[-1].life % _SKIPPED << _BLOCK


def is_lineage(lives: Sequence[m.Life]) -> bool:
    """Do the lives make sense: are they different ones, each with serials behind those before?"""
    firsts = [one.first for one in lives]
    distinct = {one.life for one in lives} - {0}
    return bool(lives) and len(distinct) == len(lives) and firsts == sorted(firsts)


class Verdict(Enum):
    """What an answer about the lineage means for whoever asked."""

    NOTHING = "it is where we are, or not to be believed"
    BEGUN = "the first life of which we know"
    HELD = "another life, in which everything goes on"
    BROKEN = "another life, in which everything begins anew"


class Standing:
    """In which life somebody is, and up to which serial it heard of it."""

    def __init__(self, times: Times, request: int = 0, *, hands_on: bool = False) -> None:
        """`request` is the number of the last question that was ever asked. Who hands lineages on
        asks for that of its first life too."""
        self.life = 0
        self.serial = 0
        self.lineage = Lineage()
        self._patience = times.silent
        self._retry = times.retry
        self._hands_on = hands_on
        self._request = request
        self._asked = float("-inf")
        self._is_curious = False  # is there something to ask?
        self._left: dict[int, None] = {}
        self._behind: float | None = None  # since when the one above speaks of a life that was left

    def accepts(self, life: int, now: float) -> bool:
        """Is a message of a life to be taken? The first life of all is: there is nothing to judge
        yet."""
        if life == self.life:
            self._behind = None
            return True
        if not self.life:
            self.life = life
            self._is_curious = self._hands_on
            return True
        if life and self._may_take_up(life, now):
            self._is_curious = True
        return False

    def note_serial(self, serial: int) -> None:
        """Something was heard that is known up to a serial."""
        self.serial = max(self.serial, serial)

    def next_question(self, now: float, *, anyway: bool = False) -> m.Trace | None:
        """What to ask the one above now; `anyway` where it may be another one than before."""
        if not anyway and not (self._is_curious and now - self._asked >= self._retry):
            return None
        self._asked = now
        self._request += 1
        return m.Trace(self._request)

    def judge(self, answer: m.Lineage, now: float) -> Verdict:
        """Take up the life of an answer, where that is right. Answers to older questions are not
        believed: they may have been under way for long."""
        life, before = answer.epoch, self.life
        if answer.request != self._request or not is_lineage(answer.lives):
            return Verdict.NOTHING
        if answer.lives[-1].life != life:
            return Verdict.NOTHING
        lineage = Lineage(answer.lives)
        if life == before:
            self.lineage, self._is_curious = lineage, False
            return Verdict.NOTHING
        if before and not self._may_take_up(life, now):
            return Verdict.NOTHING
        held = lineage.holds(before, self.serial)
        self._leave(before)
        self._left.pop(life, None)
        self.life, self.lineage = life, lineage
        self._is_curious, self._asked, self._behind = False, float("-inf"), None
        if not before:
            return Verdict.BEGUN
        self.serial = self.serial if held else 0
        return Verdict.HELD if held else Verdict.BROKEN

    def _may_take_up(self, life: int, now: float) -> bool:
        if life not in self._left and life not in self.lineage:
            return True
        self._behind = now if self._behind is None else self._behind
        return now - self._behind >= self._patience

    def _leave(self, life: int) -> None:
        if life:
            self._left[life] = None
            if len(self._left) > MOST_LEFT:
                del self._left[next(iter(self._left))]
