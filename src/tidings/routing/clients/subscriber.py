"""The subscriber of one interest: it delivers every matching notification once, and notices every
missing one.

    ASKING ──Answer──> JOINING ──Setup──> ON          after Refuse: ASKING again, and on at the node
                                                      that replaces the refused one; if there is
                                                      none, or in a life that lacks what was
                                                      received, the application is told of a break

A gap in the numbers of a node shows a loss at once. A loss without a gap shows at the next beat,
which says how many notifications there were; the rendezvous point then says which ones are missing.
The subscriber asks for missing notifications until they arrive or are reported as lost. The nearest
router that has a missing notification sends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from tidings.routing.clients.confirming import Confirming
from tidings.routing.clients.delivering import HandOut, Ordering
from tidings.routing.clients.items import Delivery, Lost
from tidings.routing.clients.joining import Joining, Phase
from tidings.routing.clients.node_stream import Stream
from tidings.routing.forwarding.neighbours import Name, Sent
from tidings.routing.protocol import DEFAULT_DIALECT, messages as m
from tidings.routing.protocol.digests import digest
from tidings.routing.protocol.lineage import Break, LineageState, LineageVerdict
from tidings.routing.protocol.times import Times

__all__ = ["Delivery", "Lost", "Phase", "Subscriber"]

DROPPED = "the subscription was dropped after an interruption"
UNHEARD = "nothing was heard from the rendezvous point"
LOST_GRANT = (
    "the rendezvous point has lost the life in which the grant was signed; ask for another grant"
)
UNGRANTED = (
    "the router refuses the node: the grant has ended, or the node no longer exists; ask for "
    "another grant"
)
WENT_BACK = "the rendezvous point has lost notifications that it sent before"


IDLE = (Phase.NEW, Phase.STOPPED, Phase.REFUSED)  # phases without a wanted node


class Subscriber:
    """The subscriber of one interest. Everything for the application goes to `inbox`."""

    def __init__(
        self,
        name: Name,
        router: Name,
        interest: bytes,
        times: Times | None = None,
        most: int = 1 << 62,
        dialect: str = DEFAULT_DIALECT,
        matched: Callable[[m.Notification], tuple[str, ...]] = lambda _: (),
        *,
        ordered: bool = False,
        fast: bool = False,
        drop_after: float | None = None,
        durable: str = "",
        only_drops: bool = False,
        granted: tuple[int, int] | None = None,
    ) -> None:
        """`most` is the size of the inbox. Notifications that arrive when the inbox is full are
        dropped, and requested again when there is room, so a slow application does not delay
        others. `matched` says which filters a notification matches. With `ordered`, notifications
        are delivered in the order of serials. With `fast`, missing notifications are neither
        noticed nor requested. After an interruption of `drop_after` seconds, the subscription ends.
        With a name as `durable`, the subscription is ordered, and begins after the last
        notification that was confirmed under that name; with `only_drops`, the subscriber only
        gives up that name. `granted` is a life and a node in that life; the router has a signed
        grant for the node."""
        self.name = name
        self.router = router
        self.interest = interest
        self.times = times or Times()
        self.confirming = Confirming(durable, only_drops=only_drops) if durable else None
        self._fast = fast and not durable
        self._drop_after = drop_after
        self._standing = LineageState(self.times)
        if granted is not None:  # if this life is lost, the number may belong to another node
            self._standing.life = granted[0]
        order = Ordering() if durable or (ordered and not fast) else None
        self._handout = HandOut(most, matched, order, self.confirming)
        self.inbox = self._handout.inbox
        self.stream = Stream(self.times, self._standing, self._handout)
        self._flows = False  # was `stream.flows()` true after the last message?
        self._joining = Joining(
            interest, dialect, self._standing, self.stream, self.confirming, fast=self._fast,
            granted=0 if granted is None else granted[1], patience=self.times.request,
        )  # fmt: skip
        self.presents = False  # is there no answer yet to the grant that was presented?
        self._resubscribed = float("-inf")

    @property
    def phase(self) -> Phase:
        return self._joining.phase

    @property
    def refusal(self) -> str:
        """Why the interest or the name is refused."""
        return self._joining.refusal

    @property
    def note(self) -> str:
        """What the rendezvous point says about the interest."""
        return self._joining.note

    @property
    def never(self) -> bool:
        """Whether the interest can never match."""
        return self._joining.never

    @property
    def node(self) -> int:
        """The node of the interest; 0 if it is not known yet."""
        return self.stream.node

    @property
    def complete(self) -> int:
        """The serial up to which nothing is missing."""
        return self.stream.complete

    @property
    def _now(self) -> float:
        return self.stream.now

    # -- for the application -------------------------------------------------------------------

    def propose(self, node: int) -> None:
        """Set the node that a preprocessor has found for the interest; 0 if it found none."""
        self._joining.proposed = node

    def start(self, now: float) -> list[Sent]:
        self.stream.now = now
        self._joining.ask()
        return self._drain_outgoing()

    def stop(self, now: float) -> list[Sent]:
        self.stream.now = now
        self._joining.leave()
        self._flows = False
        return self._drain_outgoing()

    def confirm(self, serial: int, now: float) -> list[Sent]:
        """Confirm everything up to a serial."""
        self.stream.now = now
        if self.confirming is not None:
            self.confirming.confirm(serial)
            self._say_confirmed()
        return self._drain_outgoing()

    def drop_name(self, now: float) -> list[Sent]:
        """Give up the name; `confirming.dropped` is set when this is on the disk."""
        self.stream.now = now
        if self.confirming is not None:
            self.confirming.drop()
            self._say_confirmed()
        return self._drain_outgoing()

    def refuse(self, reason: str) -> None:
        """End the subscription, because its grant is refused, or another subscriber has its
        name."""
        self.stream.end()
        self._joining.refuse(reason)

    def _say_confirmed(self) -> None:
        if self.confirming is not None and self.phase is Phase.ON:
            times = self.times
            found = self.confirming.next_message(self.epoch, self._now, times.retry, times.expire)
            self.stream.sent += [] if found is None else [found]

    def interrupt(self, reason: str, now: float) -> None:
        """Begin an interruption, which ends with the next beat."""
        if self.phase is Phase.ON:
            self._handout.interrupt(reason, now)

    def tracks(self, marks: Iterable[m.Mark]) -> bool:
        """Is the node of any of these marks known to be the node of this interest, or below it?"""
        return any(self.stream.knows(mark.node) for mark in marks)

    # -- messages and time ---------------------------------------------------------------------

    def receive(self, message: m.Message, now: float) -> list[Sent]:
        self.stream.now = now
        if (
            self._flows
            and type(message) is m.Notification
            and self._standing.accepts(message.epoch, now)
            and self.stream.take_next(message)
        ):
            return []
        if isinstance(message, m.Down) and self.phase not in (
            Phase.NEW,
            Phase.STOPPED,
            Phase.REFUSED,
        ):
            handler = self._HANDLERS.get(type(message))
            if isinstance(message, m.Lineage):
                self._judge(message)
            elif self._standing.accepts(message.epoch, now) and handler is not None:
                handler(self, message)
            if self.epoch and self.confirming is not None and self.confirming.must_drop:
                self._joining.ask_again()  # a Confirm needs a life, which is now known
            self._trace()
            self.stream.release()
        elif isinstance(message, m.Skipped):
            self.stream.doubt()
        self._flows = not self._fast and self.stream.flows()
        return self._drain_outgoing()

    def tick(self, now: float) -> list[Sent]:
        """Do the work that is due. Call this at least every `retry` seconds."""
        self.stream.now = now
        if self.phase not in IDLE:
            self._trace()
        if self.phase is Phase.ON:
            self._tick_on(now)
        elif self.phase is not Phase.NEW and now - self._joining.asked > self.times.retry:
            self._joining.ask_again()
        self._end_long_interruption()
        self._handout.tick(now)
        self._flows = not self._fast and self.stream.flows()
        return self._drain_outgoing()

    def _end_long_interruption(self) -> None:
        begun, most = self._handout.interrupted, self._drop_after
        if begun is not None and most is not None and self._now - begun > most:
            self.stream.end()
            self.inbox.append(Break(f"{DROPPED} of more than {most:g} seconds"))
            self._joining.leave()

    def _tick_on(self, now: float) -> None:
        if now - self._resubscribed >= self.times.resubscribe:
            self._resubscribed = now
            self._send(m.Resubscribe(self.epoch, digest((self.node,)), self.complete))
        heard, silent = self.stream.heard, self.times.silent
        if now - heard > 2 * silent:
            self.interrupt(UNHEARD, heard)
        if now - heard > silent and now - self._joining.asked > silent:
            self._joining.join()  # a restarted router knows nothing about this subscriber
        self.stream.tick()
        self._say_confirmed()

    @property
    def epoch(self) -> int:
        """The last known life of the rendezvous point."""
        return self._standing.life

    def _trace(self) -> None:
        if (question := self._standing.next_question(self._now)) is not None:
            self._send(question)

    def _judge(self, message: m.Lineage) -> None:
        if self._joining.waits_for_life(message):
            return
        verdict = self._standing.judge(message, self._now)
        if verdict is LineageVerdict.BROKEN and self._joining.is_granted:
            self.refuse(LOST_GRANT)
        elif verdict is LineageVerdict.BROKEN:
            self._restart(WENT_BACK)
        elif verdict is not LineageVerdict.NOTHING:
            self._go_on()

    def _go_on(self) -> None:
        """Continue in another life, which has everything that the subscriber received. Ask open
        questions again, because answers from the old life are ignored."""
        self._resubscribed = float("-inf")
        if self.confirming is not None:
            self.confirming.claim()
        self.stream.doubt()
        self._joining.ask_again()
        if self.phase is Phase.ON:
            self.stream.ask_again()

    def _on_joining(self, message: m.Answer | m.Setup | m.Resumption) -> None:
        self._joining.take(message)
        self._say_confirmed()  # the Confirm claims the name, if there is one

    def _on_confirmed(self, message: m.Confirmed) -> None:
        if self.confirming is not None:
            self.confirming.receive(message)
            if self.confirming.displaced:
                self._joining.leave()
                self.refuse(message.refusal)
            self._say_confirmed()

    def _on_refuse(self, message: m.Refuse) -> None:
        if self.phase in (Phase.JOINING, Phase.ON) and self.node in message.nodes:
            if not self._joining.is_granted:
                self._joining.ask_anew()
            elif not self.presents:  # otherwise, the refusal concerns an earlier subscription
                self.refuse(UNGRANTED)

    def _on_notification(self, message: m.Notification) -> None:
        if not self._joining.expects():
            return
        if self._handout.is_full():
            self.stream.doubt()
        elif message.serial and not self._fast:
            self.stream.take(message)
        elif self.phase is Phase.ON:
            mine = [mark for mark in message.marks if self.node in mark.label]
            if mine:  # the notification has no numbers, or its numbers do not matter
                self._handout.take_fast(self.epoch, message, mine)

    def _on_beat(self, message: m.Beat) -> None:
        if self.phase is not Phase.ON:
            self._joining.note_beat()
            return
        self.stream.heard = self._now
        self._handout.resume(self._now)
        self._standing.note_serial(message.serial)
        if message.subscribed != digest((self.node,)):
            self._send(m.Wanted(self.epoch, (self.node,)))
            return
        if self._fast:
            self.stream.settled = max(self.complete, message.serial)
        else:
            # a subscriber has one node, so the sum in the beat is the total of that node
            self.stream.compare(message.serial, message.sum, behind=message.behind)

    def _on_reply(self, message: m.Counted | m.Recovered | m.Settled) -> None:
        if self.phase is Phase.ON:
            self.stream.take_reply(message)
        elif isinstance(message, m.Counted):
            self._joining.take_counted(message)

    # -- sending -------------------------------------------------------------------------------

    def _restart(self, reason: str) -> None:
        if self._joining.can_break:
            self._joining.break_off(reason)
        self._joining.ask()

    def _send(self, message: m.Message) -> None:
        self.stream.sent.append(message)

    def _drain_outgoing(self) -> list[Sent]:
        sent, self.stream.sent = self.stream.sent, []
        return [(self.router, message) for message in sent]

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        m.Answer: _on_joining, m.Setup: _on_joining, m.Refuse: _on_refuse, m.Beat: _on_beat,
        m.Notification: _on_notification, m.Counted: _on_reply, m.Recovered: _on_reply,
        m.Settled: _on_reply, m.Resumption: _on_joining, m.Confirmed: _on_confirmed,
    }  # fmt: skip
