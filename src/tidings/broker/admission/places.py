"""The places of a node, and who may have which: no token takes those of all others.

    0     guests, of each token a share        no guests      only routers     neighbours
    ├────────────────────────────────────────┬──────────────┬────────────────┤

Guests come in while they leave the reserved places free, agents with a name of their own while they
leave those of routers free, routers while there is any. Where nobody is guarded nobody is told
apart, and all share all.
"""

from __future__ import annotations

from collections import Counter

from tidings.broker.admission.permissions import Permissions
from tidings.routing.protocol import Limits


class Places:
    """Who is here, counted: to come, to leave and to be refused cost the same for any number."""

    def __init__(self, limits: Limits) -> None:
        most = limits.neighbours
        reserved_routers = most * limits.router_percent // 100
        reserved_bound = most * limits.bound_percent // 100
        self.most_of_token = max(1, most * limits.guest_percent // 100)
        self.most_agents = max(1, most - reserved_routers)
        self.most_guests = max(1, self.most_agents - reserved_bound)
        self._guests: Counter[bytes] = Counter()  # by the digests of their tokens
        self._all_guests = self._agents = 0

    def take(self, one: Permissions) -> None:
        """Somebody comes in."""
        self._count(one, 1)

    def leave(self, one: Permissions) -> None:
        """Somebody is gone."""
        self._count(one, -1)
        if self._guests.get(one.key) == 0:
            del self._guests[one.key]

    def refusal(self, one: Permissions) -> str:
        """Why there is no place; empty if there is, as far as this one's kind is concerned."""
        if not one.bound:
            if self._guests[one.key] >= self.most_of_token:
                return (
                    f"there are {self._guests[one.key]:,} guests with this token, "
                    f"expected at most {self.most_of_token:,}"
                )
            if self._all_guests >= self.most_guests:
                return (
                    f"there are {self._all_guests:,} guests, expected at most "
                    f"{self.most_guests:,}: the other places are for names of their own"
                )
        if not one.routes and self._agents >= self.most_agents:
            return (
                f"there are {self._agents:,} agents, expected at most {self.most_agents:,}: "
                "the other places are for routers"
            )
        return ""

    def _count(self, one: Permissions, by: int) -> None:
        if not one.bound:
            self._guests[one.key] += by
            self._all_guests += by
        if not one.routes:
            self._agents += by
