"""The choice of a router by many agents at once, in simulated time: they spread, stay near, leave
full routers, and come to rest."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.repeats import runs

from tidings.routing.clients.choosing import Choosing, ChoosingTimes, load_of
from tidings.routing.protocol import messages as m

TIMES = ChoosingTimes()
MOST = 400


class Town:
    """Agents and routers, each in a region. Round trips are 2 ms within it and 80 ms to others.
    Reports of loads are one to three seconds old."""

    def __init__(self, chance: random.Random, routers: list[int], agents: list[int]) -> None:
        self.chance, self.routers, self.agents = chance, routers, agents
        self.now = 0.0
        self.gone: set[str] = set()
        names = [f"r{at}" for at in range(len(routers))]
        self.region = dict(zip(names, routers, strict=True))
        self.names = names
        self.choosers = [Choosing("r0", chance, TIMES) for _ in agents]
        self.asks = [chance.random() * TIMES.ask for _ in agents]
        self.moves: list[tuple[float, int, str, str]] = []
        self.history: list[Counter[str]] = []

    def counts(self) -> Counter[str]:
        return Counter(one.here for one in self.choosers)

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1.0
            self.history.append(self.counts())
            reported = self.history[-min(len(self.history), self.chance.randrange(2, 4))]
            advice = [
                m.RouterLoad(one, reported[one], MOST) for one in self.names if one not in self.gone
            ]
            for at, one in enumerate(self.choosers):
                if self.now >= self.asks[at]:
                    self.asks[at] = self.now + TIMES.ask
                    for address in one.take(advice, self.now):
                        near = self.region[address] == self.agents[at]
                        trip = (0.002 if near else 0.08) * (0.9 + 0.2 * self.chance.random())
                        one.note_trip(address, None if address in self.gone else trip, self.now)
                to = one.next_move(self.now)
                if to is not None:
                    self.moves.append((self.now, at, one.here, to))
                    one.note_move(to, self.now)


@pytest.mark.parametrize("run", runs(1, 20))
def test_agents_spread_and_come_to_rest(run: int, seed: int) -> None:
    """All begin at one router. No router gets more than its share in the time of one report."""
    chance = random.Random(f"{seed} {run}")
    town = Town(chance, [0] * chance.randrange(3, 8), [0] * 350)
    town.run(1200)
    counts = town.counts()
    share = 350 / len(town.names)
    loads = [counts[one] / MOST for one in town.names]
    assert min(1 - one for one in loads) > 0.6 * max(1 - one for one in loads)
    assert max(loads) < 0.6
    assert len(town.moves) < 500
    # round trips are measured again now and then, so a few may still find a better router
    assert len([one for one in town.moves if one[0] > 900]) <= 5
    assert max(Counter(agent for _, agent, _, _ in town.moves).values()) <= 4
    arrivals = Counter((to, at // 3) for at, _, _, to in town.moves)
    assert max(arrivals.values()) < max(30, share)


def test_agents_stay_near(seed: int) -> None:
    """Those far from the first router go to their own region; the others have no reason to move."""
    chance = random.Random(seed)
    town = Town(chance, [0, 1, 1, 2], [at % 3 for at in range(90)])
    town.run(900)
    for agent, one in zip(town.agents, town.choosers, strict=True):
        assert town.region[one.here] == agent
    assert Counter(town.region[old] == town.agents[at] for _, at, old, _ in town.moves)[True] == 0


def test_a_full_router_is_left_for_one_far_away(seed: int) -> None:
    chance = random.Random(seed)
    town = Town(chance, [0, 1], [0] * 395)
    town.run(900)
    counts = town.counts()
    assert counts["r1"] >= 395 - int(0.96 * MOST)
    assert counts["r0"] > 300
    assert len([one for one in town.moves if one[0] > 700]) <= 5


def test_a_router_that_is_not_advised_any_more(seed: int) -> None:
    """Agents leave it within a few minutes, not all at once. Until their next request for advice,
    they do not know of it, and some may still come."""
    chance = random.Random(seed)
    town = Town(chance, [0, 0, 0], [0] * 200)
    town.run(600)
    town.gone.add("r1")
    begun, there = town.now, town.counts()["r1"]
    town.run(300)
    assert town.counts()["r1"] == 0
    left = Counter(at // 3 for at, _, old, _ in town.moves if at > begun and old == "r1")
    came = [at for at, _, _, to in town.moves if at > begun and to == "r1"]
    assert max(came, default=begun) <= begun + TIMES.ask
    assert sum(left.values()) == there + len(came)
    assert max(left.values()) < max(6, there / 2)


def chooser(**loads: tuple[int, float]) -> Choosing:
    """Routers with so many neighbours, and round trips in milliseconds; "a" is the present one."""
    one = Choosing("a", random.Random(1), TIMES)
    one.take([m.RouterLoad(name, count, 100) for name, (count, _) in loads.items()], 0.0)
    for name, (_, millis) in loads.items():
        one.note_trip(name, millis / 1000, 0.0)
    return one


def moves_within(one: Choosing, seconds: float) -> str | None:
    return next((to for at in range(int(seconds)) if (to := one.next_move(at))), None)


def test_costs() -> None:
    assert moves_within(chooser(a=(50, 10.0), b=(50, 9.0)), 31) is None
    assert moves_within(chooser(a=(50, 10.0), b=(50, 2.0)), 31) == "b"
    assert moves_within(chooser(a=(90, 10.0), b=(10, 10.0)), 31) == "b"
    assert moves_within(chooser(a=(90, 10.0), b=(96, 1.0)), 31) is None
    assert load_of(m.RouterLoad("a", 1, 100, 16 << 20)) == 1.0
    assert load_of(m.RouterLoad("a", 5, 0)) == 1.0


def test_old_advice_and_failures() -> None:
    one = chooser(a=(90, 10.0), b=(10, 10.0), c=(50, 10.0))
    one.note_failure("b", 1.0)
    assert moves_within(one, 31) == "c"
    assert one.next_move(1000.0) is None  # the advice is too old
    one.take([m.RouterLoad("a", 90, 100), m.RouterLoad("b", 10, 100)], 1000.0)
    one.note_trip("b", 0.01, 1000.0)
    one.note_trip("a", 0.01, 1000.0)
    assert one.next_move(1000.0) is None  # a random delay first
    one.take([m.RouterLoad("a", 5, 100), m.RouterLoad("b", 10, 100)], 1010.0)
    assert one.next_move(1031.0) is None  # it is not better any more
    assert one.take([m.RouterLoad("b", 10, 100)], 2000.0) == ["a", "b"]
