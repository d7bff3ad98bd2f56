"""Charges neighbours for their questions, and decides who has asked too much; see accounts.py."""

from __future__ import annotations

from tidings.routing.forwarding.neighbours.accounts import MANY, Accounts, Payer
from tidings.routing.forwarding.neighbours.context import Context, Name


class Charges:
    """The accounts of owners and neighbours at one state machine."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.accounts = Accounts(context.limits)

    def payers(self, name: Name, owner: str = "") -> tuple[Payer, ...]:
        """The accounts that pay for a question. A router may ask on behalf of an owner."""
        context = self._context
        mine = context.owner_of(name)
        if mine:
            return (Payer(self.accounts.of(mine, context.now)),)
        known = context.neighbours[name]
        if owner:
            return Payer(self.accounts.of(owner, context.now)), Payer(known.behind, MANY)
        return (Payer(known.own),)

    def may_ask(self, name: Name, owner: str = "") -> bool:
        """Should a neighbour be answered? A neighbour is not answered if it has not read its
        earlier answers, or has received too many answers lately."""
        context = self._context
        limits = context.limits
        for account, many in self.payers(name, owner):
            account.settle(context.now, limits.work * many)
            if account.spent > limits.burst * many:
                context.beyond["work"] += 1
                return False
        if context.queued_bytes(name) > limits.unread_bytes:
            context.beyond["unread_bytes"] += 1
            return False
        return True

    def charge(self, name: Name, work: int, owner: str = "") -> None:
        """Charge a neighbour, or an owner behind it, for work that was done for it."""
        if name in self._context.neighbours:
            for account, _ in self.payers(name, owner):
                account.spent += work
