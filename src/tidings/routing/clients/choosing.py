"""Which router an agent should use. The rendezvous point tells the agent the loads of routers, and
the agent measures round trips itself.

    Advised ──> loads ──> measure some round trips ──> costs ──> a better router? ──> wait ──> move
                                                                     ^── still better by then?

The cost of a router is its round trip divided by the free share of its capacity. An agent moves
only to a router with a much lower cost (BETTER), after a random delay, if that router is still
better by then. After a move, the agent stays for a while. Many agents see the same loads. So each
agent moves only with a certain probability: the share of its router's agents that would have to
leave until the other router is no longer much better. An agent chooses at random among the good
routers, and the delays spread the moves over several reports. So agents do not all move to the same
router, and do not move back and forth.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import msgspec

from tidings.routing.protocol import messages as m

BETTER = 0.7  # an agent moves only to a router with less than this share of the present cost
LEAST = 0.001  # seconds added to each round trip: smaller differences do not matter
FULL = 0.95  # agents leave a router whose load is above this, whatever the costs are
ROOM = 0.85  # no agent moves to a router whose load is above this
LONG = 8 << 20  # bytes; a router with this many bytes in its queues is full
SIMILAR = 1.5  # routers with up to this multiple of the lowest cost count as equally good
FEWEST = 0.02  # if agents should leave a router, at least this share of its agents leaves
MEASURED = 4  # round trips to measure after each piece of advice


class ChoosingTimes(msgspec.Struct, frozen=True):
    """All values are in seconds."""

    ask: float = 10.0  # the time between two requests for advice
    spread: float = 30.0  # the longest random delay before a move
    stay: float = 120.0  # the shortest time between two moves
    old: float = 300.0  # the age at which a round trip is measured again
    failed: float = 600.0  # how long a router that could not be used is left out


class _Trip(msgspec.Struct, frozen=True):
    seconds: float
    at: float


class Choosing:
    """Chooses a router for one agent."""

    def __init__(self, here: str, chance: random.Random, times: ChoosingTimes) -> None:
        """`here` is the name of the present router."""
        self.here = here
        self.addresses: dict[str, str] = {}
        """The addresses of the routers that were advised, by name."""
        self._chance = chance
        self._times = times
        self._loads: dict[str, float] = {}  # loads between 0 and 1, by name
        self._trips: dict[str, _Trip] = {}
        self._failed: dict[str, float] = {}  # by name: when the router could not be used
        self._advised = self._moved = float("-inf")
        self._due: float | None = None  # when to move, if another router is still better then

    def take(self, routers: Iterable[m.RouterLoad], now: float) -> list[str]:
        """Record the advice. Return the names of routers to which the round trip should be
        measured, because none is known or the last measurement is old: the present router, and a
        few others."""
        self._advised = now
        routers = [*routers]
        self._loads = {one.name: load_of(one) for one in routers}
        self.addresses = {one.name: one.address for one in routers}
        self._trips = {
            name: trip
            for name, trip in self._trips.items()
            if name == self.here or name in self._loads
        }
        old = now - self._times.old
        fresh = {name for name, trip in self._trips.items() if trip.at > old}
        others = [one for one in self._loads if one not in fresh and one != self.here]
        self._chance.shuffle(others)
        return [self.here][: self.here not in fresh] + others[:MEASURED]

    def note_trip(self, name: str, seconds: float | None, now: float) -> None:
        """Record how long a round trip took; None if the router could not be reached."""
        if seconds is None:
            self.note_failure(name, now)
        else:
            self._trips[name] = _Trip(seconds, now)

    def note_failure(self, name: str, now: float) -> None:
        """Record that a router could not be used."""
        self._failed[name] = now
        self._trips.pop(name, None)
        self._due = None

    def note_move(self, name: str, now: float) -> None:
        """Record that the agent uses another router, because it moved or lost its link."""
        if name != self.here:
            self.here, self._moved, self._due = name, now, None

    def cost(self, name: str) -> float:
        """The cost of a router; infinite if it is full, or if too little is known. If a router is
        missing from the advice, its load is unknown, so an agent leaves such a router if another
        router has room."""
        trip, load = self._trips.get(name), self._loads.get(name, 1.0)
        if trip is None or load >= FULL:
            return float("inf")
        return (trip.seconds + LEAST) / (1.0 - load)

    def next_move(self, now: float) -> str | None:
        """The name of the router to which to move now, if any. Call this often."""
        times = self._times
        if now - self._moved < times.stay or now - self._advised > 3 * times.ask:
            return None
        better = self._find_better(now)
        if not better:
            self._due = None
            return None
        if self._due is None:
            self._due = now + self._chance.random() * times.spread
        if now < self._due:
            return None
        self._due = None
        if self._chance.random() >= self._share(min(map(self.cost, better))):
            return None
        return self._choose(better)

    def _share(self, cost: float) -> float:
        """The share of the present router's agents that should leave it, if another router has this
        cost."""
        trip, load = self._trips.get(self.here), self._loads.get(self.here)
        if trip is None or not load:
            return 1.0
        wanted = min(FULL, 1.0 - BETTER * (trip.seconds + LEAST) / cost)
        return max(FEWEST, (load - wanted) / load)

    def _find_better(self, now: float) -> list[str]:
        self._failed = {
            one: at for one, at in self._failed.items() if now - at < self._times.failed
        }
        most = BETTER * self.cost(self.here)
        return [
            one
            for one in self._loads
            if one != self.here
            and one not in self._failed
            and self._loads[one] < ROOM
            and self.cost(one) < most
        ]  # fmt: skip

    def _choose(self, better: Sequence[str]) -> str:
        """The cheaper of two routers that are drawn at random from the good ones."""
        most = SIMILAR * min(map(self.cost, better))
        good = [one for one in better if self.cost(one) <= most]
        return min(self._chance.choices(good, k=2), key=self.cost)


def load_of(router: m.RouterLoad) -> float:
    """How much of a router is in use, between 0 and 1."""
    places = router.neighbours / max(1, router.most)
    return min(1.0, max(places, router.waiting / LONG))
