"""Questions that were passed on towards the root and are not answered yet, and who asked them.

    neighbour ──Ask 7──> here ──Ask 1041──> above        1041: the neighbour, its number 7, who pays
    neighbour <─Answer 7── here <─Answer 1041── above

An answer goes back under the number that the neighbour gave its question.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidings.routing.forwarding.neighbours.accounts import Payer
from tidings.routing.forwarding.neighbours.context import Context, Name
from tidings.routing.forwarding.neighbours.node_charges import Charges
from tidings.routing.forwarding.neighbours.rights import Rights
from tidings.routing.protocol import messages as m


class Request(msgspec.Struct, frozen=True):
    """A question that was passed on."""

    neighbour: Name
    number: int  # the number that the neighbour gave the question
    expires: float
    payers: tuple[Payer, ...]
    within: m.Within = ()  # the limits of the neighbour when it asked


class Questions:
    """The open questions, by the number under which they were passed on."""

    def __init__(self, context: Context, charges: Charges, rights: Rights, first: int) -> None:
        self._context = context
        self._charges = charges
        self._rights = rights
        self._next = first
        self.open: dict[int, Request] = {}

    def add(self, sender: Name, number: int, work: int = 1, owner: str = "") -> int | None:
        """Add a question; return the number under which to pass it on, or None if too many
        questions are open."""
        payers, limits = self._charges.payers(sender, owner), self._context.limits
        if len(self.open) >= limits.all_questions or any(
            one.account.questions >= one.most(limits.questions, limits.all_questions)
            for one in payers
        ):
            self._context.beyond["questions"] += 1
            return None
        mine = self._next
        self._next += 1
        expires = self._context.now + self._context.times.request
        within = self._context.within_of(sender)
        self.open[mine] = Request(sender, number, expires, payers, within)
        for account, _ in payers:
            account.questions += 1
            account.spent += work
        return mine

    def pass_down(self, message: m.ANSWERS) -> bool:
        """Pass an answer on to the neighbour that asked; return False if nobody waits for it."""
        request = self.open.get(message.request)
        if request is None:
            return False
        if not isinstance(message, m.Recovered):  # after a Recovered message, more messages follow
            self._close([message.request])
            for account, _ in request.payers:
                account.spent += _entries(message)
        if isinstance(message, m.Answer) and message.node:
            self._rights.grant(request.neighbour, message.node, request.within)
        answer = msgspec.structs.replace(message, request=request.number)
        self._context.send(request.neighbour, answer)
        return True

    def expire(self) -> None:
        """Forget the questions that nobody answered in time."""
        now = self._context.now
        self._close([number for number, one in self.open.items() if one.expires < now])

    def clear(self) -> None:
        self._close([*self.open])

    def _close(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            for account, _ in self.open.pop(number).payers:
                account.questions -= 1


def _entries(message: m.ANSWERS) -> int:
    if isinstance(message, m.Settled):
        return len(message.lost)
    return len(message.counts) if isinstance(message, m.Answer | m.Counted | m.Resumption) else 1
