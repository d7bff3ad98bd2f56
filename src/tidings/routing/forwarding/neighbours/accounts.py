"""The work that was done for each owner, and the open requests of each owner. Work is charged to
owners, not to links.

link edge ─┬─ alice     her account          A question is charged to the owner that asks, and
           ├─ bob       his account          also to the router that it came from, which may spend
           └─ edge      its own questions    as much as many owners. So no owner can use up the
link carol ── carol     her account          share of others behind the same router, and a router
link dan   ── a token   one account for      that invents owners can't use up the shares of all
link eve   ─┘           all its guests       others.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tidings.routing.protocol.limits import Limits

MANY = 16  # all owners behind one router together may spend as much as this many single owners
MOST = 50_000  # the most accounts; an owner that owes nothing needs no account


class Account(msgspec.Struct):
    """The account of an owner, of a router, or of all owners behind a router."""

    spent: float = 0.0  # work that was done and is not yet paid off
    paid: float = 0.0  # when `spent` was last reduced
    questions: int = 0  # questions that were passed on and are not answered yet
    made: int = 0  # new nodes for which the owner asked and which nobody wants yet

    def settle(self, now: float, work: float) -> None:
        """Reduce `spent` by `work` for each second since the last call."""
        self.spent = max(0.0, self.spent - work * (now - self.paid))
        self.paid = now


class Payer(NamedTuple):
    """An account that pays for work or for open requests."""

    account: Account
    many: int = 1  # the payer may spend as much as this many owners together

    def most(self, of_one: int, of_all: int) -> int:
        """The limit for this payer, given the limits for one owner and for all owners together."""
        return of_one if self.many == 1 else max(of_one, of_all // 2)


class Accounts:
    """The accounts of owners. Cost: a scan of all accounts, at most once a second."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[str, Account] = {}
        self._closed = float("-inf")  # when settled accounts were last removed

    def __len__(self) -> int:
        return len(self._known)

    def of(self, owner: str, now: float) -> Account:
        """The account of an owner. If there are too many accounts, all further owners share one."""
        found = self._known.get(owner)
        if found is None:
            if len(self._known) >= MOST:
                self.close(now)
                owner = owner if len(self._known) < MOST else ""
            found = self._known.setdefault(owner, Account(paid=now))
        return found

    def close(self, now: float) -> None:
        """Remove accounts that owe nothing and have no open requests."""
        if now - self._closed < 1.0:
            return
        self._closed = now
        for owner, one in [*self._known.items()]:
            one.settle(now, self._limits.work)
            if not (one.spent or one.questions or one.made):
                del self._known[owner]
