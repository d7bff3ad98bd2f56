"""The lives of a rendezvous point, and whether it still has what somebody heard from it.

    lineage   A from 1      B from 61      C from 80 (now)        the serials that it gave, and the
              1 ......... 60 61 ....... 79 80 ...                 lives that they belong to

Each start of a rendezvous point is a life, a random number. Before it serves anybody, it writes
down the life and its first serial; the list of these is its lineage. A journal that was restored
from a backup knows nothing of what came after the backup, so the next lineage shows what is gone:
who heard of serial 70 in life A sees that A ends at 60.

    held      the life is in the lineage, and the serial is before the next life: all goes on
    broken    otherwise: the point does not have what was heard, and everything begins anew

A machine that hears of another life asks the node above for the lineage, and judges for itself,
because claims of others about what they heard could be forged. Routers pass a lineage on once they
have accepted it. Lives are not ordered, and do not come from a clock.

Late messages of a life that was left do not bring it back: a node above that is only behind will
catch up in a moment. If it stays in that life for long, as a machine does that was restored with
its memory, the life is accepted again, and always as a break. So it does no harm to forget old
lives that were left, when there are many.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from tidings.routing.protocol import messages as m
from tidings.routing.protocol.times import Times

MOST_LIVES = m.MOST_LIVES
MOST_LEFT = 256  # lives that were left, and are not accepted again
FOREVER = 1 << 63  # beyond every serial
_BLOCK = 24  # bits: node numbers are in blocks of 1 << 24, and each life starts a new block
_SKIPPED = 1 << 22  # blocks that a life skips at most: enough for 250,000 starts


class Span(msgspec.Struct, frozen=True, order=True):
    """Stamps of a publisher, both ends included."""

    first: int
    last: int


class Break(msgspec.Struct, frozen=True):
    """The rendezvous point no longer has what it told before. A subscriber does not know what it
    missed; of a publisher's notifications, `stamps` were acknowledged and are gone."""

    reason: str
    stamps: tuple[Span, ...] = ()


class Lineage:
    """Lives in their order; the last one is running. Only the last MOST_LIVES are kept: older ones
    count as not held."""

    def __init__(self, lives: Sequence[m.Life] = ()) -> None:
        self.lives = tuple(lives[-MOST_LIVES:])
        firsts = [*(one.first for one in self.lives[1:]), FOREVER]
        self._ends = dict(zip((one.life for one in self.lives), firsts, strict=False))

    def __contains__(self, life: int) -> bool:
        return life in self._ends

    def end(self, life: int) -> int:
        """The first serial after a life; 0 for an unknown life."""
        return self._ends.get(life, 0)

    def holds(self, life: int, serial: int) -> bool:
        """Does the point have what somebody heard in a life, up to a serial?"""
        return serial < self.end(life)

    def first_node(self, last: int) -> int:
        """The number after which this life numbers its nodes; `last` is the highest number so far.
        After a journal has gone back, no number may mean another filter, even to those who heard of
        no notification since. So each life but the first skips a random number of blocks, and so
        does the first after a loss. Numbers still rise."""
        if len(self.lives) < 2 and not last:
            return 0
        return (last >> _BLOCK) + 1 + self.lives[-1].life % _SKIPPED << _BLOCK


def is_lineage(lives: Sequence[m.Life]) -> bool:
    """Are all lives different, with rising first serials?"""
    firsts = [one.first for one in lives]
    distinct = {one.life for one in lives} - {0}
    return bool(lives) and len(distinct) == len(lives) and firsts == sorted(firsts)


class Verdict(Enum):
    """What a lineage means for the machine that asked for it."""

    NOTHING = "no news, or not to be believed"
    BEGUN = "the first life that we know of"
    HELD = "another life, in which everything goes on"
    BROKEN = "another life, in which everything begins anew"


class Standing:
    """The life that a machine is in, and the serial up to which it heard of it."""

    def __init__(self, times: Times, request: int = 0, *, hands_on: bool = False) -> None:
        """`request` is the number of the last question that was ever asked. A machine that passes
        lineages on asks for one in its first life too."""
        self.life = 0
        self.serial = 0
        self.lineage = Lineage()
        self._patience = times.silent
        self._retry = times.retry
        self._hands_on = hands_on
        self._request = request
        self._asked = float("-inf")
        self._is_curious = False  # is the lineage to be asked for?
        self._left: dict[int, None] = {}
        self._behind: float | None = None  # since when the node above is in a life that was left

    def accepts(self, life: int, now: float) -> bool:
        """Is a message of a life to be processed? The first life always is: there is nothing to
        judge yet."""
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
        """Something was heard that covers all up to a serial."""
        self.serial = max(self.serial, serial)

    def next_question(self, now: float, *, anyway: bool = False) -> m.Trace | None:
        """What to ask the node above now; `anyway` if it may be another node than before."""
        if not anyway and not (self._is_curious and now - self._asked >= self._retry):
            return None
        self._asked = now
        self._request += 1
        return m.Trace(self._request)

    def judge(self, answer: m.Lineage, now: float) -> Verdict:
        """Accept the life of an answer, if that is right. Answers to older questions are ignored:
        they may be very late."""
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
