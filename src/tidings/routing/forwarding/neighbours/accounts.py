"""How much work was done for each owner, and what it still waits for. Owners pay, not links.

link edge ─┬─ alice     her account          A question is charged to the owner that asks, and
           ├─ bob       his account          also to the router that it came from, which may have
           └─ edge      its own questions    as much as many owners. So no owner uses up what
link carol ── carol     her account          others behind the same router may have, and no router
link dan   ── a token   one account for      that makes up owners uses up what all others may
link eve   ─┘           all its guests       have.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tidings.routing.protocol.limits import Limits

MANY = 16  # all owners behind one router may have as much as so many owners
MOST = 50_000  # accounts; an owner with nothing open needs none


class Account(msgspec.Struct):
    """The account of an owner, of a router, or of all owners behind a router."""

    spent: float = 0.0  # work that was done and is not paid off
    paid: float = 0.0  # when that was last computed
    questions: int = 0  # that were passed on and are not answered
    made: int = 0  # new nodes that it asked for and nobody wants yet

    def settle(self, now: float, work: float) -> None:
        """Pay off so much work for each second since the last time."""
        self.spent = max(0.0, self.spent - work * (now - self.paid))
        self.paid = now


class Payer(NamedTuple):
    """An account that pays for something."""

    account: Account
    many: int = 1  # owners that it may spend as much as

    def most(self, of_one: int, of_all: int) -> int:
        """The limit for this payer, from those for one owner and for all together."""
        return of_one if self.many == 1 else max(of_one, of_all // 2)


class Accounts:
    """The accounts of owners. Cost: now and then one look at all of them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[str, Account] = {}
        self._closed = float("-inf")  # when settled accounts were last removed

    def __len__(self) -> int:
        return len(self._known)

    def of(self, owner: str, now: float) -> Account:
        """The account of an owner. If there are too many, all further owners share one."""
        found = self._known.get(owner)
        if found is None:
            if len(self._known) >= MOST:
                self.close(now)
                owner = owner if len(self._known) < MOST else ""
            found = self._known.setdefault(owner, Account(paid=now))
        return found

    def close(self, now: float) -> None:
        """Remove accounts with nothing to pay and nothing open."""
        if now - self._closed < 1.0:
            return
        self._closed = now
        for owner, one in [*self._known.items()]:
            one.settle(now, self._limits.work)
            if not (one.spent or one.questions or one.made):
                del self._known[owner]
