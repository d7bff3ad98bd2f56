"""Limits how many neighbours a node has: the limit is lowest for guests, and highest for routers.
The guests of one token can't take all places.

    0     guests, a share for each token       bound names    only routers     neighbours
    ├────────────────────────────────────────┬──────────────┬────────────────┤

Guests may not take reserved places. Agents with bound names may take places reserved for bound
names, but not places reserved for routers. Routers may take any place. A node without tokens and
certificates can't distinguish clients, so all clients share all places.
"""

from __future__ import annotations

from collections import Counter

from tidings.broker.admission.permissions import Permissions
from tidings.routing.protocol import Limits


class NeighbourPlaces:
    """Counts of the neighbours of each kind. Each call takes constant time."""

    def __init__(self, limits: Limits) -> None:
        most = limits.neighbours
        reserved_routers = most * limits.router_percent // 100
        reserved_bound = most * limits.bound_percent // 100
        self.most_of_token = max(1, most * limits.guest_percent // 100)
        self.most_agents = max(1, most - reserved_routers)
        self.most_guests = max(1, self.most_agents - reserved_bound)
        self._guests: Counter[bytes] = Counter()  # guests, by the digests of their tokens
        self._all_guests = self._agents = 0

    def take(self, one: Permissions) -> None:
        """Count a new neighbour."""
        self._count(one, 1)

    def leave(self, one: Permissions) -> None:
        """Stop counting a neighbour that left."""
        self._count(one, -1)
        if self._guests.get(one.key) == 0:
            del self._guests[one.key]

    def refusal(self, one: Permissions) -> str:
        """Why there is no place for a neighbour of this kind; empty if there is a place."""
        if not one.bound:
            if self._guests[one.key] >= self.most_of_token:
                return (
                    f"there are {self._guests[one.key]:,} guests with this token, "
                    f"expected at most {self.most_of_token:,}"
                )
            if self._all_guests >= self.most_guests:
                return (
                    f"there are {self._all_guests:,} guests, expected at most "
                    f"{self.most_guests:,}: the other places are for bound names"
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
