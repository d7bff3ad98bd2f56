"""What an application has confirmed of a named subscription, and what the rendezvous point knows.

    handed out   1 2 3 4 5 6 7      each with its numbers at nodes
    confirmed    ──────┤            said by the application, cumulatively
    on the disk  ───┤               of the rendezvous point

One message is under way at a time. It says everything since what is known to be on the disk, so it
does not matter if one is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tidings.routing.protocol import messages as m

Numbers = tuple[tuple[int, int], ...]  # nodes and numbers


class Confirming:
    """The confirmations of one named subscription."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun = False  # is the cursor known?
        self.stored = 0
        """The serial up to which the rendezvous point knows of it."""
        self.refusal = ""
        self.dropped = False
        """Was the name dropped, as the rendezvous point says?"""
        self._handed: deque[tuple[int, int, Numbers]] = deque()  # serial, how many, numbers
        self._serial = 0  # confirmed
        self._total = 0
        self._counts: dict[int, int] = {}  # that the rendezvous point may not know
        self._wants_drop = False
        self._under_way: tuple[int, int, float] | None = None  # request, serial, when

    def begin(self, serial: int, total: int) -> None:
        """Begin at the cursor that the rendezvous point has."""
        self.begun = True
        self.stored = self._serial = serial
        self._total = total
        self._handed.clear()
        self._counts, self._under_way = {}, None

    def pause(self) -> None:
        """Nothing is known of the cursor until it is asked for again."""
        self.begun, self._under_way = False, None

    def hand_out(self, serial: int, many: int, numbers: Iterable[tuple[int, int]] = ()) -> None:
        """Note that so many notifications were handed out, or reported as lost."""
        self._handed.append((serial, many, tuple(numbers)))

    def confirm(self, serial: int) -> None:
        while self._handed and self._handed[0][0] <= serial:
            upto, many, numbers = self._handed.popleft()
            self._serial = max(self._serial, upto)
            self._total += many
            for node, number in numbers:
                self._counts[node] = max(number, self._counts.get(node, 0))

    def drop(self) -> None:
        self._wants_drop = True

    def next_message(self, epoch: int, request: int, now: float, retry: float) -> m.Confirm | None:
        """The message to send now, if there is one."""
        late = self._under_way is None or now - self._under_way[2] > retry
        news = self._wants_drop or self._serial > self.stored
        if not (self.begun and late and news):
            return None
        self._under_way = request, self._serial, now
        if self._wants_drop:
            return m.Confirm(epoch, request, self.name, drop=True)
        return m.Confirm(epoch, request, self.name, self._serial, self._total, dict(self._counts))

    def receive(self, message: m.Confirmed) -> None:
        if self._under_way is None or message.request != self._under_way[0]:
            return
        _, serial, _ = self._under_way
        self._under_way = None
        if message.refusal:
            self.refusal = message.refusal
        elif self._wants_drop:
            self._wants_drop, self.dropped, self.begun = False, True, False
        else:
            self.stored = max(self.stored, serial)
            if serial == self._serial:
                self._counts.clear()
