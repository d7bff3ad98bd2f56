"""One interest of an application: it receives every matching notification once, and notices every
missing one.

    ASKING ──Answer──> JOINING ──Setup──> ON          after Refuse, or a life that does not hold
                                                      what was heard: ASKING again, and the
                                                      application is told that there was a break

A gap in the numbers of a node shows a loss at once. Otherwise the next beat shows it, because it
says how many notifications there were; then the rendezvous point says which. The subscriber asks
for missing notifications until they come or are lost. The nearest router that has them answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, ClassVar

from tidings.routing.clients.confirming import Confirming
from tidings.routing.clients.items import Delivery, Interrupted, Item, Lost, Resumed, Told
from tidings.routing.clients.ordering import Held, Ordering
from tidings.routing.clients.pieces import Pieces
from tidings.routing.clients.publisher import without_incarnation
from tidings.routing.clients.tracker import Tracker
from tidings.routing.forwarding.neighbours import Name, Sent
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.bodies import unwrap
from tidings.routing.protocol.digests import digest
from tidings.routing.protocol.lineage import Break, Standing, Verdict
from tidings.routing.protocol.times import Times

__all__ = ["Delivery", "Lost", "Phase", "Subscriber", "Told"]

MOST_RANGES = 256  # ranges that are asked for at once
MOST_NUMBERS = 2000  # numbers in these ranges
DROPPED = "the subscription was dropped after an interruption"
UNHEARD = "the rendezvous point is not heard"
WENT_BACK = "the rendezvous point has lost notifications that it sent before"
RECENT = 4096  # remembered notifications: more than a publisher can have unacknowledged


class Phase(Enum):
    ASKING = "asking"
    JOINING = "joining"
    ON = "on"
    REFUSED = "refused"
    STOPPED = "stopped"


class Subscriber:
    """The subscriber of one interest. Everything for the application goes to `inbox`."""

    def __init__(
        self,
        name: Name,
        router: Name,
        interest: bytes,
        times: Times | None = None,
        most: int = 1 << 62,
        dialect: str = "sql",
        matched: Callable[[m.Notification], tuple[str, ...]] = lambda _: (),
        *,
        ordered: bool = False,
        fast: bool = False,
        drop_after: float | None = None,
        durable: str = "",
    ) -> None:
        """`most` is the size of the inbox. Notifications that come when it is full are dropped, and
        asked for later when there is room: nobody waits for an application that does not read.
        `matched` says which filters a notification matches. `ordered`: in the order of serials.
        `fast`: what is missing is neither noticed nor asked for. After an interruption of
        `drop_after` seconds, the subscription ends. A name makes it `durable`: it begins where the
        last that used the name has confirmed, and is ordered."""
        self.name = name
        self.most = most
        self.router = router
        self.interest = interest
        self.dialect = dialect
        self.times = times or Times()
        self.phase = Phase.STOPPED
        self.inbox: deque[Item] = deque()
        self.refusal = ""
        self.note, self.never = "", False  # what the rendezvous point says about the interest
        self._standing = Standing(self.times)
        self.node = 0
        self.begun = 0  # the serial after which notifications are due
        self.complete = 0  # the serial up to which nothing is missing
        self._tracker = Tracker({})
        self._total = 0  # of the node, up to `complete`
        self._came: list[int] = []  # the serials after `complete` that have come
        self._pieces = Pieces()
        self._fast = fast and not durable
        self._order = Ordering() if durable or (ordered and not fast) else None
        self.confirming = Confirming(durable) if durable else None
        self._drop_after = drop_after
        self._recent: dict[tuple[str, int], None] = {}  # the latest notifications, across breaks
        self._request = 0
        self._numbered = 1 << 40  # the next request of a confirmation
        self._counting: float | None = None  # when the open question was asked
        self._recovering: float | None = None
        self._asked_for: list[m.Range] = []
        self._gave_up = False  # whether numbers were lost since `complete`
        self._asked = self._heard = self._resubscribed = float("-inf")
        self._matched = matched
        self._interrupted: float | None = None  # since when nothing is heard
        self._now = 0.0
        self._out: list[Sent] = []

    # -- for the application -------------------------------------------------------------------

    def start(self, now: float) -> list[Sent]:
        self._now = now
        self._ask()
        return self._drain_outgoing()

    def stop(self, now: float) -> list[Sent]:
        self._now = now
        if self.phase in (Phase.JOINING, Phase.ON):
            self._send(m.Unsubscribe(self.epoch, (self.node,)))
        self.phase = Phase.STOPPED
        return self._drain_outgoing()

    def confirm(self, serial: int, now: float) -> list[Sent]:
        """Confirm everything up to a serial."""
        self._now = now
        if self.confirming is not None:
            self.confirming.confirm(serial)
            self._say_confirmed()
        return self._drain_outgoing()

    def drop_name(self, now: float) -> list[Sent]:
        """Give the name up; `confirming.dropped` tells when that is on the disk."""
        self._now = now
        if self.confirming is not None:
            self.confirming.drop()
            self._say_confirmed()
        return self._drain_outgoing()

    def _say_confirmed(self) -> None:
        if self.confirming is not None and self.phase is Phase.ON:
            again = self.times.retry
            message = self.confirming.next_message(self.epoch, self._numbered, self._now, again)
            if message is not None:
                self._numbered += 1
                self._send(message)

    def interrupt(self, reason: str, now: float) -> None:
        """Note that nothing is heard any more; the next beat shows that this is over."""
        if self.phase is Phase.ON and self._interrupted is None:
            self._interrupted = now
            self.inbox.append(Interrupted(reason))

    def _resume(self) -> None:
        if self._interrupted is not None:
            self.inbox.append(Resumed(self._now - self._interrupted))
            self._interrupted = None

    def tracks(self, marks: Iterable[m.Mark]) -> bool:
        """Is any of these marks known to be at or below the node of this interest?"""
        return any(self._tracker.knows(mark.node) for mark in marks)

    # -- messages and time ---------------------------------------------------------------------

    def receive(self, message: m.Message, now: float) -> list[Sent]:
        self._now = now
        if isinstance(message, m.Down) and self.phase not in (Phase.STOPPED, Phase.REFUSED):
            handler = self._HANDLERS.get(type(message))
            if isinstance(message, m.Lineage):
                self._judge(message)
            elif self._standing.accepts(message.epoch, now) and handler is not None:
                handler(self, message)
            self._trace()
            self._release()
        elif isinstance(message, m.Skipped):
            self._doubt()
        return self._drain_outgoing()

    def tick(self, now: float) -> list[Sent]:
        """Do what is due. To be called at least once per `retry`."""
        self._now = now
        if self.phase not in (Phase.STOPPED, Phase.REFUSED):
            self._trace()
        late = now - self._asked > self.times.retry
        if self.phase is Phase.ASKING and late:
            self._ask()
        elif self.phase is Phase.JOINING and late:
            self._join()
        elif self.phase is Phase.ON:
            self._tick_on(now)
        self._end_long_interruption()
        return self._drain_outgoing()

    def _end_long_interruption(self) -> None:
        begun, most = self._interrupted, self._drop_after
        if begun is not None and most is not None and self._now - begun > most:
            self._release(all_=True)
            self.inbox.append(Break(f"{DROPPED} of more than {most:g} seconds"))
            self._send(m.Unsubscribe(self.epoch, (self.node,)))
            self.phase = Phase.STOPPED

    def _tick_on(self, now: float) -> None:
        if now - self._resubscribed >= self.times.resubscribe:
            self._resubscribed = now
            self._send(m.Resubscribe(self.epoch, digest((self.node,)), self.complete))
        if now - self._heard > 2 * self.times.silent:
            self.interrupt(UNHEARD, self._heard)
        if now - self._heard > self.times.silent and now - self._asked > self.times.silent:
            self._join()  # a restarted router knows nothing about this subscriber
        if self._counting is not None and now - self._counting > self.times.retry:
            self._count()
        room = len(self.inbox) < self.most
        if room and self._recovering is not None and now - self._recovering > self.times.retry:
            self._recover()
        self._give_up_gap()
        self._say_confirmed()

    @property
    def epoch(self) -> int:
        """The life of the rendezvous point, as far as it is known here."""
        return self._standing.life

    def _trace(self) -> None:
        question = self._standing.next_question(self._now)
        if question is not None:
            self._send(question)

    def _judge(self, message: m.Lineage) -> None:
        verdict = self._standing.judge(message, self._now)
        if verdict is Verdict.BROKEN:
            self._restart(WENT_BACK)
        elif verdict is not Verdict.NOTHING:
            self._go_on()

    def _go_on(self) -> None:
        """Continue in another life, which has everything that was heard. Ask open questions again,
        because answers of the old life are ignored."""
        self._resubscribed = float("-inf")
        self._doubt()
        if self.phase is Phase.ASKING:
            self._ask()
        elif self.phase is Phase.JOINING:
            self._join()
        elif self._recovering is not None:
            self._recover()
        elif self._counting is not None:
            self._count()

    def _on_answer(self, message: m.Answer) -> None:
        if self.phase is not Phase.ASKING or message.request != self._request:
            return
        self._standing.note_serial(message.serial)
        if message.refusal:
            self.phase, self.refusal = Phase.REFUSED, message.refusal
            return
        self.phase = Phase.JOINING
        self.note, self.never = message.note, message.never
        self.node = message.node
        self.begun = self.complete = message.serial
        self._tracker = Tracker(message.counts)
        self._total, self._came = message.total, []
        self._join()

    def _on_setup(self, message: m.Setup) -> None:
        if self.phase is Phase.JOINING and message.node == self.node:
            self._standing.note_serial(message.serial)
            if self.confirming is not None and not self.confirming.begun:
                self._resume_name()
                return
            self.phase = Phase.ON
            self._heard = self._now
            if self._fast:
                return
            self._count()  # before this, routers on the way may have sent it nothing
        elif self.phase is Phase.ON and message.node == self.node:
            self._doubt()  # the router had forgotten it

    def _resume_name(self) -> None:
        """Ask how far the name was confirmed. Until that is known, what comes is ignored."""
        assert self.confirming is not None
        self._asked = self._now
        self._request += 1
        name, node = self.confirming.name, self.node
        # the same words in another dialect are another filter
        words = b"" if self.dialect == "sql" else self.dialect.encode() + b": "
        message = m.Resume(self.epoch, self._request, name, node, words + self.interest)
        self._send(message)

    def _on_resumption(self, message: m.Resumption) -> None:
        if self.phase is not Phase.JOINING or message.request != self._request:
            return
        if message.refusal:
            self.phase, self.refusal = Phase.REFUSED, message.refusal
            return
        assert self.confirming is not None
        if message.note:
            self.inbox.append(Break(message.note))
        self.confirming.begin(message.serial, message.total)
        self.begun = self.complete = message.serial
        self._tracker = Tracker(message.counts)
        self._total, self._came = message.total, []
        self.phase = Phase.ON
        self._heard = self._now
        self._count()

    def _on_confirmed(self, message: m.Confirmed) -> None:
        if self.confirming is not None:
            self.confirming.receive(message)
            self._say_confirmed()

    def _on_refuse(self, message: m.Refuse) -> None:
        if self.phase in (Phase.JOINING, Phase.ON) and self.node in message.nodes:
            self._restart("the rendezvous point no longer had the filter")

    def _on_notification(self, message: m.Notification) -> None:
        if self.phase not in (Phase.JOINING, Phase.ON):
            return
        if self.confirming is not None and not self.confirming.begun:
            return
        # a router may pass on marks that do not concern this subscriber
        mine = [mark for mark in message.marks if self.node in mark.label]
        if self._waiting() >= self.most:
            self._doubt()
            return
        if not message.serial or self._fast:  # without numbers, or they do not matter
            self._pass_on_fast(message, mine)
            return
        self._standing.note_serial(message.serial)
        if mine and self._tracker.see(mine):
            self._deliver(message)
        if not self._tracker.is_complete() and self._recovering is None:
            self._recover()

    def _pass_on_fast(self, message: m.Notification, mine: list[m.Mark]) -> None:
        if mine and self.phase is Phase.ON:
            self._hand_out(Held(message.serial, message, self._matched(message)))

    def _on_beat(self, message: m.Beat) -> None:
        if self.phase is not Phase.ON:
            return
        self._heard = self._now
        self._resume()
        self._standing.note_serial(message.serial)
        if message.subscribed != digest((self.node,)):
            self._send(m.Wanted(self.epoch, (self.node,)))
            return
        if self._fast:
            self.complete = max(self.complete, message.serial)
            return
        if self._counting is not None or self._recovering is not None:
            return
        if len(self.inbox) >= self.most:
            return
        came = sum(serial <= message.serial for serial in self._came)
        new = message.sum - self._total  # the sum of one node is its total
        if new > came:
            self._count()
        elif new == came and message.serial > self.complete:
            self._complete_up_to(message.serial, message.sum)

    def _on_counted(self, message: m.Counted) -> None:
        if message.request != self._request or message.node != self.node:
            return
        self._counting = None
        self._note_progress()
        self._standing.note_serial(message.serial)
        self._tracker.learn(message.counts)
        if not self._tracker.is_complete():
            self._recover()
        elif message.serial >= self.complete:
            came = sum(serial <= message.serial for serial in self._came)
            lost = message.total - self._total - came
            if lost > 0 and not self._gave_up:  # at nodes that even the root has forgotten
                self._tell_lost(lost)
            self._complete_up_to(message.serial, message.total)

    def _complete_up_to(self, serial: int, total: int) -> None:
        self._gave_up = False
        self.complete, self._total = serial, total
        if self._order is not None:
            self._order.settle(serial)
        self._came = [one for one in self._came if one > serial]

    def _on_recovered(self, message: m.Recovered) -> None:
        if self._recovering is not None and message.request == self._request:
            self._recovering = self._now  # the rest is on its way
        for notification in message.notifications:
            if len(self.inbox) >= self.most:
                return
            self._standing.note_serial(notification.serial)
            missing = self._tracker.select_missing(notification.marks)
            if missing and not self._tracker.has_any(notification.marks):
                self._note_progress()
                self._deliver(notification)
            self._tracker.see(missing)

    def _on_settled(self, message: m.Settled) -> None:
        if self._recovering is None or message.request != self._request:
            return
        self._recovering = None
        lost = self._tracker.give_up(message.lost)
        if lost:
            self._gave_up = True
            self._tell_lost(lost)
        if self._tracker.is_complete():
            self._count()  # to find out whether anything else is missing
        elif self._to_recover() != self._asked_for:
            self._recover()  # the next part
        else:
            self._recovering = self._now  # the rest is on its way, or is asked for again

    # -- sending and delivering ----------------------------------------------------------------

    def _deliver(self, message: m.Notification) -> None:
        """Hand a notification out, in its turn."""
        self._came.append(message.serial)
        held = Held(message.serial, message, self._matched(message))
        if self._order is None:
            self._hand_out(held)
        elif message.serial < self._order.last:
            self._tell_lost(1)  # those after it are handed out
        else:
            self._order.hold(held, self._now)

    def _hand_out(self, held: Held) -> None:
        message = held.message
        identity = without_incarnation(message.publisher), message.stamp
        if message.stamp and identity in self._recent:
            return  # a duplicate, after the journal went back in time
        self._recent[identity] = None
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]
        about, payload = unwrap(message.payload)
        if about.piece is not None:
            whole = self._pieces.add(identity[0], message.stamp, about.piece, payload)
            if whole is None:
                return
            payload = whole
        time = about.time / 1e6 if about.time else None
        self.inbox.append(
            Delivery(
                self.epoch, message.serial, payload, held.matched, about.subject, time,
                about.content,
            )
        )  # fmt: skip

    # -- order ---------------------------------------------------------------------------------

    def _waiting(self) -> int:
        """Notifications that the application has not read."""
        return len(self.inbox) + (0 if self._order is None else len(self._order))

    def _doubt(self) -> None:
        if self._order is not None:
            self._order.doubt()

    def _note_progress(self) -> None:
        if self._order is not None:
            self._order.since = self._now

    def _release(self, *, all_: bool = False) -> None:
        """Hand out what need not be held back any more: everything up to the serial up to which
        nothing is missing, and the rest unless something is missing or may be."""
        order = self._order
        if order is None or not order:
            return
        held_back = (
            self.phase is not Phase.ON
            or self._counting is not None
            or self._recovering is not None
            or order.in_doubt
            or not self._tracker.is_complete()
        )
        for one in order.release(self.complete if held_back and not all_ else None):
            order.last = one.serial
            if self.confirming is not None:
                marks = [mark[:2] for mark in one.message.marks if self._tracker.knows(mark.node)]
                self.confirming.hand_out(one.serial, 1, marks)
            self._hand_out(one)

    def _tell_lost(self, count: int) -> None:
        self.inbox.append(Lost(count))
        if self.confirming is not None and self._order is not None:
            self.confirming.hand_out(self._order.last, count)

    def _give_up_gap(self) -> None:
        """Hand out what was held back for too long, and give up on what it waited for."""
        order = self._order
        heard = self._now - self._heard <= 2 * self.times.beat
        if not order or not heard or self._now - order.since <= self.times.gap:
            return
        lost = self._tracker.give_up(self._tracker.list_missing())
        if lost:
            self._gave_up, self._recovering = True, None
            self._tell_lost(lost)
            self._count()
        self._release(all_=True)

    def _restart(self, reason: str) -> None:
        self._release(all_=True)
        if self._order is not None:
            self._order.begin_anew()
        if self.confirming is not None:
            self.confirming.pause()
        self._resume()
        if self.phase is not Phase.ASKING:  # otherwise it was told, or expects nothing yet
            self.inbox.append(Break(reason))
        self._pieces.clear()
        self._counting = self._recovering = None
        self._ask()

    def _ask(self) -> None:
        self.phase = Phase.ASKING
        self._asked = self._now
        self._request += 1
        self._send(m.Ask(self._request, self.interest, dialect=self.dialect))

    def _join(self) -> None:
        self._asked = self._now
        self._send(m.Subscribe(self.epoch, (self.node,)))

    def _count(self) -> None:
        self._counting = self._now
        self._request += 1
        self._send(m.Count(self.epoch, self._request, self.node, self.complete))

    def _recover(self) -> None:
        self._recovering = self._now
        self._counting = None
        self._asked_for = self._to_recover()
        if not self._asked_for:
            self._recovering = None
            self._count()
            return
        self._request += 1
        self._send(m.Recover(self.epoch, self._request, tuple(self._asked_for)))

    def _to_recover(self) -> list[m.Range]:
        """The ranges to ask for next: only some of them, so that nobody is busy for long."""
        found: list[m.Range] = []
        room = MOST_NUMBERS
        for node, first, last in self._tracker.list_missing()[:MOST_RANGES]:
            found.append(m.Range(node, first, min(last, first + room - 1)))
            room -= found[-1].last - first + 1
            if not room:
                break
        return found

    def _send(self, message: m.Message) -> None:
        self._out.append((self.router, message))

    def _drain_outgoing(self) -> list[Sent]:
        out, self._out = self._out, []
        return out

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        m.Answer: _on_answer, m.Setup: _on_setup, m.Refuse: _on_refuse, m.Beat: _on_beat,
        m.Notification: _on_notification, m.Counted: _on_counted, m.Recovered: _on_recovered,
        m.Settled: _on_settled, m.Resumption: _on_resumption, m.Confirmed: _on_confirmed,
    }  # fmt: skip
