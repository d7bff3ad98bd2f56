"""Hands notifications to the application: each only once, whole, and in order if requested.

    arrived ──> held back, if ordered ──> pieces put together ──> inbox ──> application

`inbox` holds at most `most` items. Notifications that do not fit are dropped and requested again
later, so a slow application does not delay others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from tidings.routing.clients.confirming import Confirming
from tidings.routing.clients.delivering.ordering import HeldNotification, Ordering
from tidings.routing.clients.delivering.pieces import Pieces
from tidings.routing.clients.items import Delivery, Interrupted, Item, Lost, Resumed
from tidings.routing.clients.publisher import without_incarnation
from tidings.routing.clients.tracking import Stages
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.contents.bodies import About, unwrap
from tidings.routing.protocol.contents.relation_reasons import Related, find_related

RECENT = 4096  # notifications remembered to find duplicates: more than a publisher has in flight


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
        self._pieces = Pieces(ordered=order is not None)
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
        """Must notifications that were not requested be dropped? Requested notifications are
        accepted as long as the inbox has room, because they come before the notifications that are
        held back."""
        return self.room() <= 0

    # -- notifications -------------------------------------------------------------------------

    def take(
        self,
        epoch: int,
        message: m.Notification,
        marks: Sequence[m.Mark],
        tracker: Stages,
        now: float,
        *,
        is_requested: bool,
    ) -> None:
        """Hand out a notification, or hold it back until its turn. The marks of the notification
        must already be settled."""
        matched, order = self._matched(message), self.order
        related = find_related(message, tuple(mark.node for mark in marks))
        if order is None:
            self._add(epoch, message, matched, related=related)
        elif message.serial < order.last:
            self._tell_late(message.serial)
        else:
            order.reach(marks, message.serial, tracker)
            held = HeldNotification(message.serial, message, matched, related)
            order.hold(held, now, is_requested=is_requested)

    def take_next(
        self, epoch: int, message: m.Notification, marks: Sequence[m.Mark], tracker: Stages
    ) -> None:
        """Hand out a notification at once, because none before it is missing or held back."""
        if self.order is not None:
            self.order.pass_by(message.serial)
        related = find_related(message, tuple(mark.node for mark in marks))
        self._add(epoch, message, self._matched(message), tracker, related=related)

    def take_fast(self, epoch: int, message: m.Notification, marks: Sequence[m.Mark]) -> None:
        """Hand out a notification that has no numbers, or whose numbers the subscriber ignores."""
        related = find_related(message, tuple(mark.node for mark in marks))
        self._add(epoch, message, self._matched(message), related=related)

    def release(self, epoch: int, upto: int | None, tracker: Stages) -> None:
        """Hand out the notifications that are held back: those up to a serial, or all of them."""
        order = self.order
        if order is None:
            return
        for one in order.release(upto):
            order.last = one.serial
            self._add(epoch, one.message, one.matched, tracker, related=one.related)

    def tell_lost(self, count: int) -> None:
        self.inbox.append(Lost(count))
        if self._confirming is not None and self.order is not None:
            self._confirming.hand_out(self.order.last, count)

    def _tell_late(self, serial: int) -> None:
        """Count a notification as lost, because a later one was already handed out."""
        if self._confirming is not None and self._confirming.has(serial):
            self._confirming.hand_out(serial, 1)  # the notification was confirmed before the start
        else:
            self.tell_lost(1)

    def tick(self, now: float) -> None:
        """Give up payloads that stay unfinished for too long."""
        if self._pieces:
            self._pieces.tick(now)
            self._settle_dropped()

    def interrupt(self, reason: str, since: float) -> None:
        if self.interrupted is None:
            self.interrupted = since
            self.inbox.append(Interrupted(reason))

    def resume(self, now: float) -> None:
        if self.interrupted is not None:
            self.inbox.append(Resumed(now - self.interrupted))
            self.interrupted = None

    def begin_anew(self) -> None:
        """Start over, because the next serials may be smaller. Pieces that have arrived are
        dropped, because the missing pieces of their payload will not arrive, unless all its pieces
        come again."""
        if self.order is not None:
            self.order.begin_anew()
        for identity in self._pieces.stamps():
            self._recent.pop(identity, None)
        self._pieces.clear()

    def _add(
        self,
        epoch: int,
        message: m.Notification,
        matched: tuple[str, ...],
        tracker: Stages | None = None,
        *,
        related: Related | None,
    ) -> None:
        """Put a notification into the inbox. The marks are recorded for confirmation only if a
        tracker is given."""
        about, payload = unwrap(message.payload)
        serial, confirming = message.serial, self._confirming
        if confirming is not None and tracker is not None:
            is_open = about.piece is not None and not confirming.has(serial)
            marks = [mark[:2] for mark in message.marks if tracker.knows(mark.node)]
            confirming.hand_out(serial, 1, marks, is_open=is_open)
            if confirming.has(serial):
                return  # an earlier agent of this name has confirmed the notification
        stamp = message.stamp
        identity = without_incarnation(message.publisher), stamp
        recent = self._recent
        if stamp and identity in recent:  # a duplicate, after the journal went back in time
            self._settle((serial,), serial)
            return
        recent[identity] = None
        if len(recent) > RECENT:
            del recent[next(iter(recent))]
        if about.piece is not None or (stamp and self._pieces):
            whole = self._complete_payload(identity[0], message, about, payload)
            if whole is None:
                return
            payload = whole
        time = about.time / 1e6 if about.time else None
        types = about.types
        content = about.content if types is None else payload
        self.inbox.append(
            Delivery(epoch, serial, payload, matched, about.subject, time, content, types, related)
        )

    def _complete_payload(
        self, publisher: str, message: m.Notification, about: About, payload: bytes
    ) -> bytes | None:
        """The payload of a notification. For a piece: the whole payload if this was the last
        missing piece, otherwise None."""
        found: bytes | None = payload
        piece = about.piece
        self._pieces.pass_by(publisher, message.stamp, piece)
        if piece is not None:
            whole = self._pieces.add(
                publisher, message.stamp, message.serial, piece, payload, scattered=about.scattered
            )
            found, serials = whole or (None, [])
            self._settle(serials, message.serial)
        self._settle_dropped()
        return found

    def _settle_dropped(self) -> None:
        """Report the payloads that were dropped, unless the loss was already reported."""
        for serials, is_news in self._pieces.dropped:
            if is_news:
                self.inbox.append(Lost(1))  # the pieces themselves count as handed out
            self._settle(serials, 0 if self.order is None else self.order.last)
        self._pieces.dropped.clear()

    def _settle(self, serials: Iterable[int], due: int) -> None:
        """Let pieces be confirmed together with the serial `due`."""
        if self._confirming is not None:
            self._confirming.settle(serials, due)
