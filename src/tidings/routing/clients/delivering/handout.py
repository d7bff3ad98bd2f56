"""Hands notifications to the application: each of them once, whole, and in order if requested.

    arrived ──> held back, if ordered ──> pieces put together ──> inbox ──> application

`inbox` holds at most `most` items. Notifications that do not fit are dropped and requested again
later, so nobody waits for an application that does not read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from tidings.routing.clients.confirming import Confirming
from tidings.routing.clients.delivering.ordering import Held, Ordering
from tidings.routing.clients.delivering.pieces import Pieces
from tidings.routing.clients.items import Delivery, Interrupted, Item, Lost, Resumed
from tidings.routing.clients.publisher import without_incarnation
from tidings.routing.clients.tracking import Stages
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.bodies import unwrap

RECENT = 4096  # the latest notifications, to find duplicates: more than a publisher has in flight


class HandOut:
    """The items for one application, and the notifications that are held back from it."""

    def __init__(
        self,
        most: int,
        matched: Callable[[m.Notification], tuple[str, ...]],
        order: Ordering | None,
        confirming: Confirming | None,
    ) -> None:
        self.inbox: deque[Item] = deque()
        self.most = most
        self.order = order
        self.interrupted: float | None = None
        """When the interruption began; None if there is none."""
        self._confirming = confirming
        self._matched = matched
        self._pieces = Pieces()
        self._recent: dict[tuple[str, int], None] = {}  # kept across breaks

    # -- room ----------------------------------------------------------------------------------

    def has_room(self) -> bool:
        """Is there room in the inbox?"""
        return len(self.inbox) < self.most

    def room(self) -> int:
        """How many more notifications fit, besides those that are held back; negative if there are
        already too many."""
        return self.most - len(self.inbox) - (0 if self.order is None else len(self.order))

    def is_full(self) -> bool:
        """Is there no room for notifications that were not requested? Requested notifications are
        accepted as long as the inbox has room, because they precede those that are held back."""
        return self.room() <= 0

    # -- notifications -------------------------------------------------------------------------

    def take(
        self,
        epoch: int,
        message: m.Notification,
        marks: Iterable[m.Mark],
        tracker: Stages,
        now: float,
    ) -> None:
        """Hand out a notification, or hold it back until its turn. Its marks are settled."""
        matched, order = self._matched(message), self.order
        if order is None:
            self._add(epoch, message, matched)
        elif message.serial < order.last:
            self.tell_lost(1)  # a later notification was already handed out
        else:
            order.reach(marks, message.serial, tracker)
            order.hold(Held(message.serial, message, matched), now)

    def take_next(self, epoch: int, message: m.Notification, tracker: Stages) -> None:
        """Hand out a notification at once, because none before it is missing or held back."""
        if self.order is not None:
            self.order.pass_by(message.serial)
            self._note(message, tracker)
        self._add(epoch, message, self._matched(message))

    def take_fast(self, epoch: int, message: m.Notification) -> None:
        """Hand out a notification whose numbers do not matter."""
        self._add(epoch, message, self._matched(message))

    def release(self, epoch: int, upto: int | None, tracker: Stages) -> None:
        """Hand out the notifications that are held back, up to a serial or all of them."""
        order = self.order
        if order is None:
            return
        for one in order.release(upto):
            order.last = one.serial
            self._note(one.message, tracker)
            self._add(epoch, one.message, one.matched)

    def _note(self, message: m.Notification, tracker: Stages) -> None:
        """Record the marks of a notification that is handed out, so that they can be confirmed."""
        if self._confirming is not None:
            marks = [mark[:2] for mark in message.marks if tracker.knows(mark.node)]
            self._confirming.hand_out(message.serial, 1, marks)

    def tell_lost(self, count: int) -> None:
        self.inbox.append(Lost(count))
        if self._confirming is not None and self.order is not None:
            self._confirming.hand_out(self.order.last, count)

    def interrupt(self, reason: str, since: float) -> None:
        if self.interrupted is None:
            self.interrupted = since
            self.inbox.append(Interrupted(reason))

    def resume(self, now: float) -> None:
        if self.interrupted is not None:
            self.inbox.append(Resumed(now - self.interrupted))
            self.interrupted = None

    def begin_anew(self) -> None:
        """Start over: serials may begin again at smaller numbers, and missing pieces will not
        arrive."""
        if self.order is not None:
            self.order.begin_anew()
        self._pieces.clear()

    def _add(self, epoch: int, message: m.Notification, matched: tuple[str, ...]) -> None:
        stamp, serial = message.stamp, message.serial
        identity = without_incarnation(message.publisher), stamp
        recent = self._recent
        if stamp and identity in recent:
            return  # a duplicate, after the journal went back in time
        recent[identity] = None
        if len(recent) > RECENT:
            del recent[next(iter(recent))]
        about, payload = unwrap(message.payload)
        if about.piece is not None:
            whole = self._pieces.add(identity[0], stamp, about.piece, payload)
            if whole is None:
                return
            payload = whole
        time = about.time / 1e6 if about.time else None
        self.inbox.append(
            Delivery(epoch, serial, payload, matched, about.subject, time, about.content)
        )
