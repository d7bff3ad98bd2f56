"""The lives of a rendezvous point, and whether it still has everything that it sent.

    lineage   A from 1      B from 61      C from 80 (now)        the serials, and the life to
              1 ......... 60 61 ....... 79 80 ...                 which each of them belongs

Each start of a rendezvous point is a *life*, identified by a random number. Before a rendezvous
point serves clients, it writes the life and its first serial to the journal. The list of lives is
the lineage. A journal that was restored from a backup lacks everything that was written after the
backup. The next lineage shows the loss: a subscriber that saw serial 70 in life A learns that A
ends at serial 60.

    held      the life is in the lineage, and the serial is before the next life: continue
    broken    otherwise, the rendezvous point has lost something that it sent: start over

The lowest bit of a life's number says whether the life begins with a revision of the channel (see
`mark_revised`).

A state machine that learns of another life asks the node above for the lineage and checks it,
because claims of other neighbours could be forged. A router passes a lineage on only after
accepting it. The numbers of lives are random: they have no order, and do not come from a clock.

Late messages from an abandoned life do not make it current again: a node above that only lags
behind will soon catch up. But a root can return to an abandoned life, when its virtual machine is
restored from a snapshot. So if the node above stays in an abandoned life for long, that life is
accepted again, always as a break. For the same reason, it is safe to forget the oldest abandoned
lives when there are many: a return to one of them is also a break.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from tidings.routing.protocol import messages as m
from tidings.routing.protocol.times import Times

MOST_LIVES = m.MOST_LIVES
MOST_LEFT = 256  # abandoned lives that are remembered, so that late messages do not revive them
FOREVER = 1 << 63  # larger than every serial
_BLOCK = 24  # a block is 1 << 24 node numbers, and each life starts a new block
# A life skips at most this many blocks, so the numbers last for about 250,000 starts.
_SKIPPED = 1 << 22


class StampRange(msgspec.Struct, frozen=True, order=True):
    """A range of a publisher's stamps, both ends included."""

    first: int
    last: int


class Break(msgspec.Struct, frozen=True):
    """The rendezvous point has lost data that it sent or acknowledged. A subscriber can't know what
    it missed. A publisher gets the `stamps` of its acknowledged notifications that are lost."""

    reason: str
    stamps: tuple[StampRange, ...] = ()


class Lineage:
    """Lives in chronological order; the last one is the current life. Only the last MOST_LIVES
    lives are kept; `holds` is false for older lives."""

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
        """Whether the rendezvous point still has everything that was seen in a life up to a
        serial."""
        return serial < self.end(life)

    def is_revised_since(self, life: int) -> bool:
        """Whether the meaning of nodes may have changed since an earlier life."""
        lives = [one.life for one in self.lives]
        return life in lives and any(is_revised(one) for one in lives[lives.index(life) + 1 :])

    def first_node(self, last: int) -> int:
        """The number after which the current life numbers new nodes; `last` is the highest number
        so far. After a journal has gone back in time, no number may be reused for another filter,
        not even a number that no notification has used. So every life skips a random number of
        blocks, except the first life of a new journal. Numbers still increase."""
        if len(self.lives) < 2 and not last:
            return 0
        return (last >> _BLOCK) + 1 + self.lives[-1].life % _SKIPPED << _BLOCK


def mark_revised(life: int, *, revised: bool) -> int:
    """The number of a life; its lowest bit says whether the life begins with a revision. If so,
    routers start over, because a revision can change which nodes cover each other."""
    return life | 1 if revised else max(life & ~1, 2)


def is_revised(life: int) -> bool:
    """Does this life begin with a revision? For some lives of older releases, the result is also
    true although there was no revision."""
    return bool(life & 1)


def is_lineage(lives: Sequence[m.Life]) -> bool:
    """Whether all lives are distinct and their first serials do not decrease."""
    firsts = [one.first for one in lives]
    distinct = {one.life for one in lives} - {0}
    return bool(lives) and len(distinct) == len(lives) and firsts == sorted(firsts)


class LineageVerdict(Enum):
    """What a lineage means for the state machine that asked for it."""

    NOTHING = "nothing new, or not credible"
    BEGUN = "the first known life"
    HELD = "another life, in which everything continues"
    BROKEN = "another life, in which everything starts over"


class LineageState:
    """The life that a state machine is in, and the highest serial that it has seen in this life."""

    def __init__(self, times: Times, request: int = 0, *, hands_on: bool = False) -> None:
        """`request` is the number of the last question that was asked. A state machine that passes
        lineages on (`hands_on`) also asks for a lineage in its first life."""
        self.life = 0
        self.serial = 0
        self.lineage = Lineage()
        self._patience = times.silent
        self._retry = times.retry
        self._hands_on = hands_on
        self._request = request
        self._asked = float("-inf")
        self._is_curious = False  # whether the lineage must be asked for
        self._left: dict[int, None] = {}
        self._behind: float | None = None  # when the node above was first seen in an abandoned life

    def accepts(self, life: int, now: float) -> bool:
        """Whether a message from a life should be processed. The first life is accepted without
        question, because there is no earlier life to compare it with."""
        if life == self.life:
            self._behind = None
            return True
        if not self.life:
            self.life = life
            self._is_curious = self._hands_on
            self._asked = float("-inf")  # a question before the first life was not answered
            return True
        if life and self._may_take_up(life, now):
            self._is_curious = True
        return False

    def note_serial(self, serial: int) -> None:
        """Record that a serial was seen."""
        self.serial = max(self.serial, serial)

    def next_question(self, now: float, *, anyway: bool = False) -> m.Trace | None:
        """The next question for the node above, or None if no question is due. With `anyway`, a
        question is always due, because the node above may have changed."""
        if not anyway and not (self._is_curious and now - self._asked >= self._retry):
            return None
        self._asked = now
        self._request += 1
        return m.Trace(self._request)

    def judge(self, answer: m.Lineage, now: float) -> LineageVerdict:
        """Decide what the lineage in an answer means, and accept its current life if the lineage is
        credible. Answers to older questions are ignored, because they may be very late."""
        life, before = answer.epoch, self.life
        if answer.request != self._request or not is_lineage(answer.lives):
            return LineageVerdict.NOTHING
        if answer.lives[-1].life != life:
            return LineageVerdict.NOTHING
        lineage = Lineage(answer.lives)
        if life == before:
            self.lineage, self._is_curious = lineage, False
            return LineageVerdict.NOTHING
        if before and not self._may_take_up(life, now):
            return LineageVerdict.NOTHING
        held = lineage.holds(before, self.serial)
        self._leave(before)
        self._left.pop(life, None)
        self.life, self.lineage = life, lineage
        self._is_curious, self._asked, self._behind = False, float("-inf"), None
        if not before:
            return LineageVerdict.BEGUN
        self.serial = self.serial if held else 0
        return LineageVerdict.HELD if held else LineageVerdict.BROKEN

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
