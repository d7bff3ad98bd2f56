"""How far an application has confirmed a named subscription, and how much of that is stored.

    handed out   1 2 3 4 5 6 7      each with its numbers at nodes
    confirmed    ──────┤            the application confirms everything up to a serial
    on the disk  ───┤               of the rendezvous point

The rendezvous point also hears which subscriber has the name: each message has the term of the
resumption. So a message is sent when the subscription begins, when the rendezvous point was started
again, and when there was none for a while although notifications were handed out. If another
subscriber has claimed the name since, the answer says so.

One message is in flight at a time. Each message contains everything that may not be on the disk
yet, so a lost message does no harm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tidings.routing.protocol import messages as m

Numbers = tuple[tuple[int, int], ...]  # nodes and numbers


class Confirming:
    """The confirmations of one named subscription."""

    def __init__(self, name: str, *, only_drops: bool = False) -> None:
        """With `only_drops`, the name is given up, whatever its filter is."""
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
        """Whether the rendezvous point has heard who has the name since the last `begin`."""
        self._term = 0
        self._claims = False  # must the name be claimed?
        self._is_quiet = True  # was nothing handed out since the last message?
        self._said = float("-inf")  # when the last message was sent
        self._handed: deque[tuple[int, int, Numbers]] = deque()  # serial, count, numbers
        self._serial = 0  # confirmed
        self._total = 0
        self._steps: deque[m.Step] = deque()  # revisions after the confirmed serial
        self._counts: dict[int, int] = {}  # counts that the rendezvous point may not have
        self._wants_drop = only_drops
        self._under_way: tuple[int, int, float] | None = None  # request, serial, when
        self._request = 1 << 40  # the next one; the other questions of a subscriber have lower ones

    @property
    def must_drop(self) -> bool:
        """Is the name to be given up, and was no message sent about it yet?"""
        return self.only_drops and self._wants_drop and self._under_way is None

    def begin(self, serial: int, total: int, term: int = 0) -> None:
        """Begin at the cursor that the rendezvous point sent."""
        self.begun = self._claims = True
        self._term, self.claimed = term, False
        self.stored = self._serial = serial
        self._total = total
        self._handed.clear()
        self._steps.clear()
        self._counts, self._under_way = {}, None

    def advance(self, steps: Iterable[m.Step]) -> None:
        """Note revisions of the channel. The total of a cursor after a revision is that of the new
        node."""
        self._steps += steps

    def claim(self) -> None:
        """Claim the name once more, because the rendezvous point may not know who has it."""
        self._claims = self.begun and not self.only_drops

    def pause(self) -> None:
        """Treat the cursor as unknown, and send no confirmations, until `begin` is called again."""
        self.begun, self._under_way = False, None

    def hand_out(self, serial: int, many: int, numbers: Iterable[tuple[int, int]] = ()) -> None:
        """Note that `many` notifications were handed out, or reported as lost."""
        self._handed.append((serial, many, tuple(numbers)))
        self._is_quiet = False

    def confirm(self, serial: int) -> None:
        while self._handed and self._handed[0][0] <= serial:
            upto, many, numbers = self._handed.popleft()
            while self._steps and self._steps[0].serial < upto:
                self._total = self._steps.popleft().total
            self._serial = max(self._serial, upto)
            self._total += many
            for node, number in numbers:
                self._counts[node] = max(number, self._counts.get(node, 0))

    def drop(self) -> None:
        self._wants_drop = True

    def next_message(
        self, epoch: int, now: float, retry: float, every: float = float("inf")
    ) -> m.Confirm | None:
        """The message to send now, if there is one. While notifications are handed out, there is
        one at least every `every` seconds."""
        late = self._under_way is None or now - self._under_way[2] > retry
        self._claims = self._claims or (not self._is_quiet and now - self._said >= every)
        news = self._wants_drop or self._claims or self._serial > self.stored
        if not (self.begun and late and news):
            return None
        request, self._request = self._request, self._request + 1
        self._under_way = request, self._serial, now
        self._said, self._is_quiet = now, True
        if self._wants_drop:
            return m.Confirm(epoch, request, self.name, drop=True, term=self._term)
        return m.Confirm(
            epoch, request, self.name, self._serial, self._total, dict(self._counts),
            term=self._term,
        )  # fmt: skip

    def receive(self, message: m.Confirmed) -> None:
        if self._under_way is None or message.request != self._under_way[0]:
            return
        _, serial, _ = self._under_way
        self._under_way, self._claims, self.claimed = None, False, True
        if message.refusal:
            self.refusal, self.displaced = message.refusal, message.displaced
        elif self._wants_drop:
            self._wants_drop, self.dropped, self.begun = False, True, False
        else:
            self.stored = max(self.stored, serial)
            if serial == self._serial:
                self._counts.clear()
