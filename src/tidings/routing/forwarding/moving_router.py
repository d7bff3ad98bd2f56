"""A router that can move from one node above it to another, over a second link.

    home ───────┐  1  everything that is wanted is subscribed to over the second link too;
                ├──[router]    notifications from home count, those from the second link do not
    second ─────┘  2  a beat from the second link shows that it has all of this: the router moves
                   3  everything is unsubscribed at home, and the beats from home confirm that

The router moves back in the same way, with the roles of the links exchanged. If the second link
ends, the router moves home at once. The neighbours below are told that notifications may be missing
(`Skipped`). The neighbours hold back later notifications until the next beat, ask for missing ones,
and recognise duplicates by their numbers.

Publications always go to the home node, because it knows the publisher by its name. The router
tells both nodes above it up to which serial the neighbours below have received everything. So the
rendezvous point keeps all notifications that may be requested after a move, even after an unplanned
move.
"""

from __future__ import annotations

from tidings.routing.forwarding.cache import Cache
from tidings.routing.forwarding.neighbours import Name, Sent
from tidings.routing.forwarding.router import Router
from tidings.routing.forwarding.transitions import NodeState
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.digests import digest
from tidings.routing.protocol.limits import Limits
from tidings.routing.protocol.times import Times

NOTHING = digest(())


class MovingRouter(Router):
    """The router of an agent. `upstream` is the node above whose notifications count at present."""

    def __init__(
        self,
        name: str,
        upstream: Name,
        times: Times | None = None,
        cache: Cache | None = None,
        life: int = 1,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(name, upstream, times, cache, life, limits)
        self.home = upstream
        self.beside: Name | None = None
        """The other node above, if there are two links."""
        self.is_moving = False
        """Is the router about to move to the node `beside`?"""
        self._said = self._repeated = self._move_began = float("-inf")

    # -- moves ---------------------------------------------------------------------------------

    def move(self, other: Name, now: float) -> list[Sent]:
        """Begin to move: use another node above the router, to which there already is a link. If
        the move takes too long, it is given up. Until it is complete, notifications are still taken
        from the old node."""
        self.context.now = now
        if other != self.upstream:
            self.beside, self.is_moving, self._move_began = other, True, now
            self._greet_beside()
        elif self.is_moving:
            self._stay()
        return self.drain_outgoing()

    def end_link(self, other: Name, now: float) -> list[Sent]:
        """Record that a link has ended. If it was the link to the home node, it will be opened
        again, and `join_upstream` is called then. Any other link is forgotten; if it was in use,
        the router moves home at once."""
        self.context.now = now
        if other == self.upstream != self.home:
            self.upstream, self.beside, self.is_moving = self.home, None, False
            return self.join_upstream(now)
        if other == self.beside != self.home:
            self.beside, self.is_moving = None, False
        return self.drain_outgoing()

    def join_upstream(self, now: float) -> list[Sent]:
        """Start to use a new link to the home node."""
        if self.upstream == self.home:
            return super().join_upstream(now)
        self.context.now = now
        self._greet_beside()
        return self.drain_outgoing()

    def _stay(self) -> None:
        self.is_moving = False
        self._greet_beside()

    def _move(self) -> None:
        assert self.beside is not None
        self.upstream, self.beside, self.is_moving = self.beside, self.upstream, False
        self._greet_beside()
        for node in sorted(self._by_state[NodeState.PENDING]):  # the old request gets no answer
            self._ask(node)
        self.begin_again()

    # -- messages and time ---------------------------------------------------------------------

    def receive(self, sender: Name, message: m.Message, now: float) -> list[Sent]:
        if sender != self.beside:
            return super().receive(sender, message, now)
        self.context.now = now
        if isinstance(message, m.Down) and message.epoch == self.epoch:
            self._take_beside(message)
        return self.drain_outgoing()

    def tick(self, now: float) -> list[Sent]:
        sent = super().tick(now)
        if self.is_moving and now - self._move_began > 2 * self.times.silent:
            self._stay()
        elif self.beside is not None and now - self._repeated >= self.times.resubscribe:
            self._resubscribe_beside()
        return sent + self.drain_outgoing()

    def ask_above(self, message: m.Message) -> None:
        self.send(self.home if isinstance(message, m.Publish) else self.upstream, message)

    def _take_beside(self, message: m.Down) -> None:
        """Handle a message from the other node above. The message must belong to the present
        life."""
        if isinstance(message, m.Beat):
            if message.subscribed != self._find_wanted_beside():
                if self.context.now - self._said >= self.times.retry:
                    self._greet_beside()
            elif self.is_moving and message.serial >= self.serial and not message.behind:
                self._move()
        elif isinstance(message, m.Which):
            self._greet_beside()
        elif isinstance(
            message, m.Published | m.ANSWERS
        ):  # an answer to a question from before the move
            self.pass_down(message)

    def _greet_beside(self) -> None:
        """Send the other node above the list of nodes that this router wants from it: before a
        move, all wanted nodes; otherwise, none."""
        assert self.beside is not None
        self._said = self.context.now
        wanted = self.list_wanted() if self.is_moving else [m.Wanted(self.epoch, ())]
        for one in wanted:
            self.send(self.beside, one)
        self._resubscribe_beside()

    def _resubscribe_beside(self) -> None:
        self._repeated = self.context.now
        message = m.Resubscribe(self.epoch, self._find_wanted_beside(), self.serial_done())
        self.send(self.beside, message)

    def _find_wanted_beside(self) -> m.Digest:
        return self._mine.digest() if self.is_moving else NOTHING
