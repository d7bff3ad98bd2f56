"""How far an application has confirmed a named subscription, and which of its confirmations the
rendezvous point has stored.

    handed out   1 2 3 4 5 6 7      each with its numbers at nodes
    confirmed    ──────┤            the application confirms everything up to a serial
    on the disk  ───┤               of the rendezvous point

A payload that arrives in pieces is handed out with its last piece, and confirmed with the serial of
that piece. Until then, the cursor stays before the first piece, and the message also lists what is
confirmed after the cursor:

    handed out   1 2 3 4 5 6 7      3 and 7 are the pieces of a payload, 5 is confirmed:
    confirmed    ───┤ . ──┤         serial = 2, upto = 5, gaps = 3

The messages also tell the rendezvous point which subscriber has the name: each message has the term
of the resumption. So a message is sent when the subscription begins, when the rendezvous point was
restarted, and when notifications were handed out but no message was sent for a while. If another
subscriber has claimed the name since, the answer says so.

At most one message is in flight. Each message contains all confirmations that may not be on the
disk yet, so a lost message does no harm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

import msgspec

from tidings.routing.protocol import messages as m

NEVER = 1 << 63  # the value of `due` for a piece that can't be confirmed yet


class HandedGroup(msgspec.Struct):
    """A group of notifications that were handed out or lost: the serial of the last one, how many
    there are, the highest number at each node, and the serial with which the group is confirmed
    (`due`)."""

    serial: int
    many: int
    numbers: dict[int, int]
    due: int


class Confirming:
    """The confirmations of one named subscription."""

    def __init__(self, name: str, *, only_drops: bool = False) -> None:
        """With `only_drops`, the subscriber only gives up the name; the filter does not matter."""
        self.name = name
        self.only_drops = only_drops
        self.begun = only_drops  # is the cursor known?
        self.stored = 0
        """The serial up to which the rendezvous point has stored the confirmation."""
        self.refusal = ""
        self.dropped = False
        """Whether the rendezvous point has dropped the name."""
        self.displaced = False
        """Whether another subscriber has claimed the name."""
        self.claimed = False
        """Whether the rendezvous point has been told since the last `begin` who has the name."""
        self._term = 0
        self._claims = False  # must the name be claimed?
        self._is_quiet = True  # was nothing handed out since the last message?
        self._said = float("-inf")  # when the last message was sent
        self._handed: deque[HandedGroup] = deque()  # after `_upto`
        self._between: deque[HandedGroup] = deque()  # handed out after the cursor, up to `_upto`
        self._open: dict[int, HandedGroup] = {}  # by serial: pieces of unfinished payloads
        self._upto = 0  # the serial up to which the application has confirmed
        self._known: tuple[int, frozenset[int]] = 0, frozenset()  # `upto` and `gaps` at the start
        self._serial = 0  # the serial of the cursor
        self._stored_serial = 0  # the cursor's serial that the rendezvous point has stored
        self._total = 0
        self._steps: deque[m.Step] = deque()  # revisions after the confirmed serial
        self._counts: dict[int, int] = {}  # counts that the rendezvous point may lack
        self._wants_drop = only_drops
        self._under_way: tuple[int, int, int, float] | None = None  # request, serial, upto, time
        self._request = 1 << 40  # number of the next request; other questions have lower numbers

    @property
    def must_drop(self) -> bool:
        """Must the name be given up, and is no message about this in flight?"""
        return self.only_drops and self._wants_drop and self._under_way is None

    def begin(
        self, serial: int, total: int, term: int = 0, upto: int = 0, gaps: Iterable[int] = ()
    ) -> None:
        """Begin at the cursor that the rendezvous point sent."""
        self.begun = self._claims = True
        self._term, self.claimed = term, False
        self._serial = self._stored_serial = serial
        self.stored = self._upto = max(serial, upto)
        self._known = self._upto, frozenset(gaps)
        self._total = total
        self._handed.clear()
        self._between.clear()
        self._open.clear()
        self._steps.clear()
        self._counts, self._under_way = {}, None

    def advance(self, steps: Iterable[m.Step]) -> None:
        """Note revisions of the channel. After a revision, the total of the cursor is that of the
        new node."""
        self._steps += steps

    def claim(self) -> None:
        """Claim the name once more, because the rendezvous point may not know who has it."""
        self._claims = self.begun and not self.only_drops

    def pause(self) -> None:
        """Treat the cursor as unknown, and send no confirmations, until `begin` is called again."""
        self.begun, self._under_way = False, None

    def has(self, serial: int) -> bool:
        """Was a serial confirmed before the start?"""
        upto, gaps = self._known
        return 0 < serial <= upto and serial not in gaps

    def hand_out(
        self,
        serial: int,
        many: int,
        numbers: Iterable[tuple[int, int]] = (),
        *,
        is_open: bool = False,
    ) -> None:
        """Record that `many` notifications were handed out, or reported as lost. If `is_open`, the
        notification is a piece, which is confirmed only after `settle`."""
        one = HandedGroup(serial, many, dict(numbers), NEVER if is_open else serial)
        if is_open:
            self._open[serial] = one
        self._handed.append(one)
        self._is_quiet = False
        if serial <= self._known[0]:  # the application need not confirm this one again
            self._gather()

    def settle(self, serials: Iterable[int], due: int) -> None:
        """Confirm pieces together with the serial `due`."""
        for serial in serials:
            if (one := self._open.pop(serial, None)) is not None:
                one.due = max(serial, due)

    def confirm(self, serial: int) -> None:
        """Confirm all notifications that were handed out, up to a serial."""
        for one in self._handed:
            if one.serial > serial:
                break
            self._upto = max(self._upto, one.serial)
        self._gather()

    def _gather(self) -> None:
        """Move the cursor past everything that is confirmed. The entries that are confirmed after
        an open piece are merged, because a payload may stay unfinished for long."""
        between, upto = self._between, self._upto
        while self._handed and self._handed[0].serial <= upto:
            one = self._handed.popleft()
            last = between[-1] if between else None
            if last is None or max(last.due, one.due) > upto or self._is_revised(last, one):
                between.append(one)
            else:
                last.serial, last.due = one.serial, max(last.due, one.due)
                last.many += one.many
                _raise_to(last.numbers, one.numbers)
        while between and between[0].due <= upto:
            one = between.popleft()
            while self._steps and self._steps[0].serial < one.serial:
                self._total = self._steps.popleft().total
            self._serial = max(self._serial, one.serial)
            self._total += one.many
            _raise_to(self._counts, one.numbers)

    def _is_revised(self, before: HandedGroup, after: HandedGroup) -> bool:
        """Was the channel revised between two notifications?"""
        return any(before.serial <= step.serial < after.serial for step in self._steps)

    def drop(self) -> None:
        self._wants_drop = True

    def next_message(
        self, epoch: int, now: float, retry: float, every: float = float("inf")
    ) -> m.Confirm | None:
        """The message to send now, or None. While notifications are handed out, a message is due at
        least every `every` seconds."""
        late = self._under_way is None or now - self._under_way[-1] > retry
        self._claims = self._claims or (not self._is_quiet and now - self._said >= every)
        moved = self._upto > self.stored or self._serial > self._stored_serial
        news = self._wants_drop or self._claims or moved
        if not (self.begun and late and news):
            return None
        request, self._request = self._request, self._request + 1
        self._under_way = request, self._serial, self._upto, now
        self._said, self._is_quiet = now, True
        if self._wants_drop:
            return m.Confirm(epoch, request, self.name, drop=True, term=self._term)
        gaps = tuple(one.serial for one in self._between if one.due > self._upto)
        return m.Confirm(
            epoch, request, self.name, self._serial, self._total, dict(self._counts),
            term=self._term, upto=self._upto, gaps=gaps,
        )  # fmt: skip

    def receive(self, message: m.Confirmed) -> None:
        if self._under_way is None or message.request != self._under_way[0]:
            return
        _, serial, upto, _ = self._under_way
        self._under_way, self._claims, self.claimed = None, False, True
        if message.refusal:
            self.refusal, self.displaced = message.refusal, message.displaced
        elif self._wants_drop:
            self._wants_drop, self.dropped, self.begun = False, True, False
        else:
            self.stored = max(self.stored, upto)
            self._stored_serial = max(self._stored_serial, serial)
            if serial == self._serial:
                self._counts.clear()


def _raise_to(counts: dict[int, int], numbers: Mapping[int, int]) -> None:
    for node, number in numbers.items():
        counts[node] = max(number, counts.get(node, 0))
