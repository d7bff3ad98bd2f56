"""What was done for whom, and what is under way: by owner, not by link.

link edge ─┬─ alice     her account          A question is paid for by the owner that asks, and
           ├─ bob       his account          beside it by the router that it came from, which
           └─ edge      what it says itself  may have as much as many owners: so nobody behind
link carol ── carol     her account          a router uses up what others there may have, and
link dan   ── a token   one account of       no router that makes up owners uses up what all
link eve   ─┘           all guests with it   others may have.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tidings.routing.protocol.limits import Limits

MANY = 16  # owners, as much as which all behind a router may have
MOST = 50_000  # accounts that are kept; whoever has nothing under way needs none


class Account(msgspec.Struct):
    """Of an owner, of a router, or of all behind a router."""

    spent: float = 0.0  # the work that was done, and not made up for
    paid: float = 0.0  # when that was last looked at
    questions: int = 0  # that were passed on
    made: int = 0  # nodes that were asked for, and nobody wants yet

    def settle(self, now: float, work: float) -> None:
        """So much work each second is made up for."""
        self.spent = max(0.0, self.spent - work * (now - self.paid))
        self.paid = now


class Payer(NamedTuple):
    """An account that pays for something."""

    account: Account
    many: int = 1  # owners that it stands for

    def most(self, of_one: int, of_all: int) -> int:
        """Of what each owner may have so much, and all of them together."""
        return of_one if self.many == 1 else max(of_one, of_all // 2)


class Accounts:
    """Those of owners. Cost: now and then a look at all of them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[str, Account] = {}
        self._closed = float("-inf")  # when those were last forgotten that are settled

    def __len__(self) -> int:
        return len(self._known)

    def of(self, owner: str, now: float) -> Account:
        """The account of an owner; where there are too many, one of all for whom there is no
        room."""
        found = self._known.get(owner)
        if found is None:
            if len(self._known) >= MOST:
                self.close(now)
                owner = owner if len(self._known) < MOST else ""
            found = self._known.setdefault(owner, Account(paid=now))
        return found

    def close(self, now: float) -> None:
        """Forget those with nothing left to pay and nothing under way."""
        if now - self._closed < 1.0:
            return
        self._closed = now
        for owner, one in [*self._known.items()]:
            one.settle(now, self._limits.work)
            if not (one.spent or one.questions or one.made):
                del self._known[owner]
