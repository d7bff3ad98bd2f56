"""The notifications of one node, as they reach a subscriber. The stream notices missing
notifications, and requests them until they arrive or are lost.

    complete ──gap, or too few at a beat──> counting ──Counted──> recovering ──Settled──┐
       ^                                       ^                                        │
       └── nothing is missing ─────────────────┴────────────────────────────────────────┘

The counts say how many notifications each node has received. Late answers to earlier questions are
also used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidings.routing.clients.delivering import HandOut
from tidings.routing.clients.questions import Questions
from tidings.routing.clients.tracking import Stages, cut_ranges
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.lineage import LineageState
from tidings.routing.protocol.times import Times

MOST_RANGES = 256  # ranges in one request
MOST_NUMBERS = 2000  # numbers in the ranges of one request
LEAST_NUMBERS = 64  # numbers in one request if the inbox is nearly full


class Stream:
    """The notifications that reached one subscriber, and the questions about missing ones. `sent`
    holds the messages for the router."""

    def __init__(self, times: Times, standing: LineageState, handout: HandOut) -> None:
        self._times = times
        self._standing = standing
        self.handout = handout
        self.order = handout.order
        self.now = 0.0
        self.sent: list[m.Message] = []
        self.heard = float("-inf")  # when the last beat arrived
        self.is_on = False  # whether the router forwards notifications
        self.node = 0
        self.begun = 0  # notifications after this serial must arrive
        self.settled = 0  # up to this serial, no notification of the present node is missing
        self._floor = 0  # up to this serial, no notification of an earlier node is missing
        self._tracker = Stages()
        self._total = 0  # the total of the node, up to `settled`
        # The serials after `_floor` that have arrived. A notification may arrive again, with a mark
        # that it did not have before. The notification must count only once, or it would hide a
        # missing one.
        self._came: set[int] = set()
        self.questions = Questions(times)

    # -- for the subscriber --------------------------------------------------------------------

    def begin(self, node: int, serial: int, total: int, counts: Mapping[int, int]) -> None:
        """Expect the notifications after a serial."""
        self.node = node
        self.begun = self.settled = self._floor = serial
        self._tracker = Stages(counts)
        self._total, self._came = total, set()

    @property
    def complete(self) -> int:
        """The serial up to which nothing is missing."""
        return self._floor if self._tracker.has_past() else self.settled

    def advance(self, node: int, steps: Iterable[m.Step]) -> None:
        """Continue at the node that replaces the present one after some revisions. The missing
        notifications of the earlier nodes are still expected."""
        self.node = node
        for step in steps:
            missing = step.closing - self._total - self._count_since_settled(step.serial)
            self._tracker.advance(step, self.complete, missing)
            self.settled, self._total = step.serial, step.total

    def pause(self) -> None:
        """Stop expecting notifications and answers, because the node no longer exists."""
        self.is_on = False
        self.questions.close()

    def end(self) -> None:
        """Hand out all notifications that are held back, because no more will arrive."""
        self.release(all_=True)
        self.is_on = False
        self.questions.close()

    def flows(self) -> bool:
        """Is the router forwarding, and is nothing missing, in doubt, held back or requested?"""
        return (
            self.is_on
            and not self.questions.is_open()
            and self._tracker.is_complete()
            and (self.order is None or not (self.order or self.order.in_doubt))
        )

    def doubt(self) -> None:
        if self.order is not None:
            self.order.doubt()

    def knows(self, node: int) -> bool:
        """Is a node known to be the subscriber's node, or below it?"""
        return self._tracker.knows(node)

    # -- messages ------------------------------------------------------------------------------

    def take_next(self, message: m.Notification) -> bool:
        """Hand out a notification at once if it is the next one at its nodes and there is room;
        otherwise change nothing, and return False. Call this only while `flows()` is true."""
        node, handout = self.node, self.handout
        serial = message.serial
        mine = [mark for mark in message.marks if node in mark.label]
        if (
            serial <= (self.begun if self.order is None else max(self.begun, self.order.last))
            or len(handout.inbox) >= handout.most
            or not mine
            or not self._tracker.see_next(mine)
        ):
            return False
        self._standing.note_serial(serial)
        self._came.add(serial)
        handout.take_next(self._standing.life, message, mine, self._tracker)
        return True

    def take(self, message: m.Notification) -> None:
        # a router may pass on marks that do not concern this subscriber
        mine = [mark for mark in message.marks if self.node in mark.label]
        self._standing.note_serial(message.serial)
        if mine and self._tracker.see(mine, message.serial):
            self._deliver(message, mine, is_requested=False)
        self._close_past()
        # if ordered, first get the counts: they show what else is missing before the gap
        asking = self.questions
        is_asking = asking.is_open() if self.order is not None else asking.recovering is not None
        if not is_asking and not self._tracker.is_complete():
            self._recover()

    def compare(self, serial: int, total: int, *, behind: bool) -> None:
        """Compare the notifications that arrived with their total up to a serial. If all of them
        arrived, an open request for the counts, whose answer may be slow, is settled too. While
        nodes on the way are `behind`, notifications may be missing after this serial."""
        questions = self.questions
        if self.order is not None and not behind:
            self.order.hear(serial, self.complete)
        if questions.recovering is not None or not self.handout.has_room():
            return
        came = self._count_since_settled(serial)
        new = total - self._total
        if new > came and questions.counting is None:
            self.count()
        elif new == came and serial > self.settled and self._tracker.is_complete():
            self._end_count()
            self._complete_up_to(serial, total)

    def take_reply(self, message: m.Counted | m.Recovered | m.Settled) -> None:
        if not isinstance(message, m.Recovered):
            self.questions.end(message.request, self.now)
        if isinstance(message, m.Counted):
            self._take_counted(message)
        elif isinstance(message, m.Recovered):
            self._take_recovered(message)
        else:
            self._take_settled(message)

    def _take_counted(self, message: m.Counted) -> None:
        # a late answer to an earlier question also helps: it says to which serial its counts belong
        if message.node != self.node or message.serial < self.settled:
            return
        self._end_count()
        self._standing.note_serial(message.serial)
        self._tracker.learn(message.counts)
        if self.order is not None:
            self.order.counted = max(self.order.counted, message.serial)
        is_complete = self._tracker.is_complete()
        if is_complete:
            came = self._count_since_settled(message.serial)
            lost = message.total - self._total - came
            if lost > 0:  # these notifications were given up, or the root has forgotten their nodes
                self.handout.tell_lost(lost)
            self._complete_up_to(message.serial, message.total)
        self.release()  # make room before the next request
        if not is_complete and self.questions.recovering is None:
            self._recover()

    def _count_since_settled(self, serial: int) -> int:
        """How many notifications of the present node arrived after `settled`, up to a serial."""
        return sum(self.settled < one <= serial for one in self._came)

    def _end_count(self) -> None:
        if self.questions.end_counting():
            self._note_progress()

    def _complete_up_to(self, serial: int, total: int) -> None:
        self.settled, self._floor, self._total = serial, serial, total
        if self.order is not None:
            self.order.settle(serial)
        self._came = {one for one in self._came if one > serial}

    def _take_recovered(self, message: m.Recovered) -> None:
        self.questions.note_part(self.now)
        for notification in message.notifications:
            if self.handout.room() <= 0:
                self.release()  # make room in the inbox if possible
            if not self.handout.has_room():
                self.questions.note_no_room()
                return
            self._standing.note_serial(notification.serial)
            marks, serial = notification.marks, notification.serial
            missing = self._tracker.select_missing(marks, serial)
            is_new = missing and not self._tracker.has_any(marks, serial)
            self._tracker.see(missing, serial)
            self._tracker.dismiss(marks, serial)
            if is_new:
                self._note_progress()
                self._deliver(notification, missing, is_requested=True)
        self._close_past()

    def _take_settled(self, message: m.Settled) -> None:
        self._give_up(message.lost)  # late answers to earlier questions also count
        questions = self.questions
        is_late = message.request != questions.request
        if questions.recovering is None or (is_late and not self._has_asked_for()):
            return
        questions.end_recovering()
        if self._tracker.is_complete():
            self.count()  # other notifications may be missing too
        elif self._has_asked_for():
            if self.order is not None and self.order.needs_count(self._tracker):
                self.count()  # otherwise everything is held back until the last part arrives
            else:
                self._recover()  # the next part
        else:
            questions.note_vain(self.now)

    # -- handing out ---------------------------------------------------------------------------

    def _deliver(
        self,
        message: m.Notification,
        mine: list[m.Mark] | tuple[m.Mark, ...],
        *,
        is_requested: bool,
    ) -> None:
        if message.serial <= self._floor or message.serial in self._came:
            return  # the notification arrived before, without this mark
        self._came.add(message.serial)
        self._tracker.arrive(message.serial)
        self.handout.take(
            self._standing.life, message, mine, self._tracker, self.now, is_requested=is_requested
        )

    def release(self, *, all_: bool = False) -> None:
        """Hand out the notifications that need not be held back any more: those before any missing
        notification, or all of them if nothing is missing or in doubt."""
        order = self.order
        if order is None or not order:
            return
        held_back = (
            not self.is_on
            or self.questions.is_open()
            or order.in_doubt
            or not self._tracker.is_complete()
        )
        upto = None
        if held_back and not all_:
            upto = max(self.complete, order.frontier(self._tracker))
        self.handout.release(self._standing.life, upto, self._tracker)

    # -- questions -----------------------------------------------------------------------------

    def tick(self) -> None:
        """Repeat questions whose answers are overdue, and give up notifications that hold others
        back for too long."""
        questions = self.questions
        if questions.is_due(questions.counting, self.now):
            self.count()
        if self.handout.has_room() and questions.is_due(questions.recovering, self.now):
            self._recover()
        self._give_up_gap()

    def ask_again(self) -> None:
        """Repeat the open question in a new life."""
        if self.questions.recovering is not None:
            self._recover()
        elif self.questions.counting is not None:
            self.count()

    def _give_up_gap(self) -> None:
        """Give up missing notifications that have held back others for too long, if the missing
        ones were requested several times and no answer contained them. Do not give them up while
        the last question is unanswered, because some node may still have them, nor if there was no
        room for an answer."""
        order = self.order
        if not order:
            return
        if self.now - self.heard > 2 * self._times.beat or not self.handout.has_room():
            self._note_progress()  # no node can answer, or there is no room for the answer
        elif self.now - order.since > self._times.gap:
            if self.questions.is_in_vain:
                self.questions.recovering = None
                self._give_up(self.questions.asked_for)
                self._note_progress()
                self._recover()  # ask for the other missing numbers
            elif not self.questions.is_open():
                self.count()  # find out whether anything is missing

    def _give_up(self, ranges: Iterable[m.Range]) -> None:
        """Stop waiting for numbers. These numbers do not show how many notifications are lost,
        because a notification may have several numbers, or may have arrived without a number. The
        next answer to a count shows how many are lost."""
        self._tracker.give_up(ranges)
        self._close_past()

    def _close_past(self) -> None:
        lost = self._tracker.close()
        if lost:
            self.handout.tell_lost(lost)

    def _note_progress(self) -> None:
        self.questions.note_progress()
        if self.order is not None:
            self.order.since = self.now

    def count(self) -> None:
        """Ask for the counts of the nodes."""
        request = self.questions.count(self.now)
        self.sent.append(m.Count(self._standing.life, request, self.node, self.settled))

    def _recover(self) -> None:
        ranges = self._to_recover()
        if ranges:
            request = self.questions.recover(ranges, self.now)
            self.sent.append(m.Recover(self._standing.life, request, tuple(ranges)))
        else:
            self.questions.recovering = None
            self.count()

    def _to_recover(self) -> list[m.Range]:
        """The ranges to request next: only some of them, so that no node is busy for long."""
        missing, room = (
            self._tracker.list_missing(),
            self.questions.limit(MOST_NUMBERS, LEAST_NUMBERS),
        )
        order = self.order
        if order is not None:
            room = max(LEAST_NUMBERS, min(room, self.handout.most - len(self.handout.inbox)))
            missing = order.choose(missing, room, self.complete, self._standing.serial)
        return cut_ranges(missing[:MOST_RANGES], room)

    def _has_asked_for(self) -> bool:
        """Have any of the last requested notifications arrived?"""
        return self._tracker.has_some(self.questions.asked_for)
