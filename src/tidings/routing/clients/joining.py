"""How a subscriber gets its node, and continues a named subscription.

    ASKING ──Answer──> JOINING ──Setup──> ON
                          │               ^
                          └─Setup, if there is a name──> Resume ──Resumption

The answer names the node, or says why the interest is refused. The Setup message confirms that the
router forwards the notifications of this node. For a named subscription, the resumption says how
far it was confirmed.

With a signed grant, the subscriber knows its node and need not ask for it:

    JOINING ──Setup──> Count ──Counted──> ON

The answer to the count says where the numbers of each node begin.

If the node no longer exists, the subscriber asks for a node again, and says which node it had:

    ON ──Refuse──> ASKING ──Answer with steps──> JOINING        a revision replaced the node
                          ──Answer without steps──> Break, JOINING
"""

from __future__ import annotations

from enum import Enum

from tidings.routing.clients.confirming import Confirming
from tidings.routing.clients.node_stream import Stream
from tidings.routing.protocol import DEFAULT_DIALECT, messages as m
from tidings.routing.protocol.lineage import Break, LineageState

NO_NODE = "the rendezvous point no longer had the filter"


class Phase(Enum):
    NEW = "new"  # not started yet
    ASKING = "asking"
    JOINING = "joining"
    ON = "on"
    REFUSED = "refused"
    STOPPED = "stopped"


class Joining:
    """The phase of one subscriber, and what the rendezvous point says about its interest."""

    def __init__(
        self,
        interest: bytes,
        dialect: str,
        standing: LineageState,
        stream: Stream,
        confirming: Confirming | None,
        *,
        fast: bool,
        granted: int = 0,
        patience: float = 0.0,
    ) -> None:
        """`granted` is a node for which there is a signed grant. For up to `patience` seconds, the
        subscriber accepts that the router does not know the life in which the grant was signed."""
        self._interest = interest
        self._dialect = dialect
        self._standing = standing
        self._stream = stream
        self._confirming = confirming
        self._fast = fast
        self._granted = granted
        self._counted = not granted  # is it known where the numbers begin?
        self._lacking = float("inf")  # when a router was first found to lack the life of the grant
        self._patience = patience
        self.proposed = 0
        """The node that a preprocessor has named for the interest; 0 for none."""
        self._was = 0  # the node that was refused, if the subscription may continue at another
        self._is_told = False  # was a break reported since the last resumption?
        self.phase = Phase.NEW
        self.refusal = ""
        self.note, self.never = "", False
        self.asked = float("-inf")
        """When the node, its setup or the resumption was last requested."""

    def ask(self) -> None:
        """Ask for the node of the interest, unless a grant names the node. If the subscriber only
        gives up its name, send the request for that instead."""
        if self._confirming is not None and self._confirming.only_drops:
            self.phase, self.asked = Phase.ASKING, self._stream.now
            self._give_up_name(self._confirming)
            return
        if self._granted:
            self.phase, self._counted = Phase.JOINING, False
            self._stream.node = self._granted
            self.join()
            return
        self.phase = Phase.ASKING
        self.asked = self._stream.now
        request = self._stream.questions.number()
        self._stream.sent.append(m.Ask(request, self._interest, dialect=self._dialect,
                                       was=self._was, node=self.proposed))  # fmt: skip

    def ask_anew(self) -> None:
        """Ask again, because the node no longer exists. If a revision replaced the node, the
        answer says so, and the subscription continues."""
        self._was = self._stream.node
        self._stream.pause()
        self.ask()

    @property
    def can_break(self) -> bool:
        """Does the subscriber have a subscription, or did it have one until its node was
        refused?"""
        return bool(self._was) or self.phase is not Phase.ASKING

    def break_off(self, reason: str) -> None:
        """Tell the application that it must start over."""
        stream, handout = self._stream, self._stream.handout
        stream.end()
        handout.begin_anew()
        if self._confirming is not None:
            self._confirming.pause()
        handout.resume(stream.now)
        handout.inbox.append(Break(reason))
        self._was, self._is_told = 0, True

    def _give_up_name(self, confirming: Confirming) -> None:
        life, now = self._standing.life, self._stream.now
        found: m.Message | None
        if life:
            found = confirming.next_message(life, now, -1.0)
        else:  # a Confirm needs a life, and none is known yet
            found = self._standing.next_question(now, anyway=True)
        self._stream.sent += [] if found is None else [found]

    def join(self) -> None:
        """Subscribe to the node."""
        self.asked = self._stream.now
        self._stream.sent.append(m.Subscribe(self._standing.life, (self._stream.node,)))

    def waits_for_life(self, message: m.Lineage) -> bool:
        """Must this lineage be ignored, because it lacks the life of the grant? The router may not
        know this life yet, although the preprocessor does, or the lineage may be an old one. After
        a lineage with this life was accepted, later lineages are checked as usual."""
        life, known = self._standing.life, self._standing.lineage.lives
        if not self._granted or known or life in (one.life for one in message.lives):
            return False
        self._lacking = min(self._lacking, self._stream.now)
        return self._stream.now - self._lacking < self._patience

    def note_beat(self) -> None:
        """Join again with the grant, because the router may not have known the life of the grant
        before."""
        if self._granted and self.phase is Phase.JOINING and not self._counted:
            self.join()

    def leave(self) -> None:
        """Unsubscribe, and accept no more notifications."""
        if self.phase in (Phase.JOINING, Phase.ON):
            self._stream.sent.append(m.Unsubscribe(self._standing.life, (self._stream.node,)))
        self.phase = Phase.STOPPED
        self._stream.is_on = False

    def ask_again(self) -> None:
        """Repeat the request that is not answered yet."""
        if self.phase is Phase.ASKING:
            self.ask()
        elif self.phase is Phase.JOINING:
            self.join()

    def expects(self) -> bool:
        """Are notifications accepted? A named subscription accepts no notifications before its
        resumption."""
        is_named = self._confirming is None or self._confirming.begun
        return self._counted and is_named and self.phase in (Phase.JOINING, Phase.ON)

    def refuse(self, reason: str) -> None:
        """End the subscription, because it can't begin, or can't continue."""
        self.phase, self.refusal = Phase.REFUSED, reason
        self._stream.is_on = False

    @property
    def is_granted(self) -> bool:
        """Does the subscriber have a signed grant?"""
        return bool(self._granted)

    def take_counted(self, message: m.Counted) -> None:
        """Learn where the numbers begin."""
        if self.phase is Phase.JOINING and not self._counted and message.node == self._granted:
            self._counted = True
            self._lacking = float("inf")  # the router knows the life
            self._standing.note_serial(message.serial)
            self._stream.begin(message.node, message.serial, message.total, message.counts)
            self._go_on()

    def take(self, message: m.Answer | m.Setup | m.Resumption) -> None:
        if isinstance(message, m.Answer):
            self._take_answer(message)
        elif isinstance(message, m.Setup):
            self._take_setup(message)
        else:
            self._take_resumption(message)

    def _take_answer(self, message: m.Answer) -> None:
        if self.phase is not Phase.ASKING or message.request != self._stream.questions.request:
            return
        self._standing.note_serial(message.serial)
        was, goes_on = self._was, message.node == self._was or bool(message.steps)
        if was and not goes_on:
            self.break_off(NO_NODE)
        self._was = 0
        if message.refusal:
            self.phase, self.refusal = Phase.REFUSED, message.refusal
            return
        self.phase = Phase.JOINING
        self.note, self.never = message.note, message.never
        if was and goes_on:
            self._advance(message.node, message.steps)
        else:
            self._stream.begin(message.node, message.serial, message.total, message.counts)
        self.join()

    def _advance(self, node: int, steps: m.Steps) -> None:
        self._stream.advance(node, steps)
        if self._confirming is not None:
            self._confirming.advance(steps)

    def _take_setup(self, message: m.Setup) -> None:
        if message.node != self._stream.node:
            return
        if self.phase is Phase.JOINING:
            self._standing.note_serial(message.serial)
            if self._counted:
                self._go_on()
            else:
                self.asked = self._stream.now
                request = self._stream.questions.number()
                count = m.Count(self._standing.life, request, message.node)
                self._stream.sent.append(count)
        elif self.phase is Phase.ON:
            self._stream.doubt()  # the router had forgotten the subscription

    def _go_on(self) -> None:
        if self._confirming is not None and not self._confirming.begun:
            self._resume_name(self._confirming.name)
        else:
            self._go_live()

    def _go_live(self) -> None:
        self.phase = Phase.ON
        self._stream.is_on = True
        self._stream.heard = self._stream.now
        if not self._fast:
            self._stream.count()  # earlier notifications may not have been forwarded

    def _resume_name(self, name: str) -> None:
        """Ask how far the name was confirmed."""
        self.asked = self._stream.now
        request = self._stream.questions.number()
        # the same text in another dialect is another filter
        words = b"" if self._dialect == DEFAULT_DIALECT else self._dialect.encode() + b": "
        life, node = self._standing.life, self._stream.node
        self._stream.sent.append(m.Resume(life, request, name, node, words + self._interest))

    def _take_resumption(self, message: m.Resumption) -> None:
        if self.phase is not Phase.JOINING or message.request != self._stream.questions.request:
            return
        if message.refusal:
            self.phase, self.refusal = Phase.REFUSED, message.refusal
            return
        assert self._confirming is not None
        stream = self._stream
        if message.note and not self._is_told:
            stream.handout.inbox.append(Break(message.note))
        self._is_told = False
        self._confirming.begin(
            message.serial, message.total, message.term, message.upto, message.gaps
        )
        stream.begin(stream.node, message.serial, message.total, message.counts)
        self._advance(stream.node, message.steps)
        self._go_live()
