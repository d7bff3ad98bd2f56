"""Owners take turns, and so do the links of an owner and the names on a link; the messages of a
name stay in order."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from types import SimpleNamespace
from typing import cast

import pytest
from tests.broker.test_backlog import FakeLink

from tidings.broker.links import Lane
from tidings.broker.queues import turns as module
from tidings.broker.queues.turns import Turns


def fake(owner: str = "") -> Lane:
    return cast(Lane, FakeLink(owner))


def test_a_flood_delays_nobody() -> None:
    turns: Turns[int] = Turns("x", 10_000, 100_000)
    flood, honest = fake(), fake()
    for number in range(1000):
        turns.put(flood, f"name {number % 100}", number)
    turns.put(honest, "writer", -1)
    assert [turns.take()[1] for _ in range(2)] == [0, -1]


def test_many_links_of_one_owner_have_one_turn() -> None:
    turns: Turns[int] = Turns("x", 10_000, 100_000)
    for number in range(100):
        turns.put(fake("guests"), "", number)
    honest = fake()
    for number in range(10):
        turns.put(honest, "writer", -number - 1)
    found = [turns.take()[1] for _ in range(20)]
    assert [one for one in found if one < 0] == [-number - 1 for number in range(10)]


@pytest.mark.parametrize("is_one_link", [False, True])
def test_a_turn_that_takes_long_counts_as_many(
    is_one_link: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of owners, and of the names behind a router."""
    now = 1.0
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr(module, "time", clock)  # so no pause of this process counts
    turns: Turns[str] = Turns("x", 10_000, 100_000)
    dear = fake()
    cheap = dear if is_one_link else fake()
    for _ in range(20):
        turns.put(dear, "trudy", "dear")
    for _ in range(200):
        turns.put(cheap, "writer", "cheap")
    found: list[str] = []

    def take(_: Lane, item: str) -> None:
        nonlocal now
        found.append(item)
        now += 0.005 if item == "dear" else 0.00001

    while found.count("cheap") < 200:
        turns.serve(take, 0.0)
    assert found.count("dear") <= 10  # and not as many as the other says


def test_who_says_little_is_read_from_whatever_others_say() -> None:
    """Sixteen links of guests filled what may wait of all, and then everybody was paused."""
    turns: Turns[int] = Turns("x", 10, 100)
    guests = [FakeLink("guests") for _ in range(40)]
    for one in guests:
        for _ in range(10):
            if one.reading:
                turns.put(cast(Lane, one), "", 1)
    assert sum(one.reading for one in guests) < 40
    assert len(turns) < 80
    others = [FakeLink() for _ in range(6)]
    for one in others:
        for _ in range(11):
            if one.reading:
                turns.put(cast(Lane, one), "", 1, 2)
    honest = FakeLink()
    turns.put(cast(Lane, honest), "", 1)
    assert honest.reading
    while turns:
        turns.take()
        turns.resume()
    assert all(one.reading for one in (*guests, *others))


def test_names_of_a_link_have_their_turns() -> None:
    turns: Turns[str] = Turns("x", 100, 100)
    edge = fake()
    for item in ("t1", "t2", "t3", "w1", "g1", "g2"):
        turns.put(edge, item[0], item)
    found = [turns.take()[1] for _ in range(len(turns))]
    assert found == ["t1", "w1", "g1", "t2", "g2", "t3"]
    with pytest.raises(IndexError):
        turns.take()


def test_random_turns(seed: int) -> None:
    rng = random.Random(seed)
    turns: Turns[int] = Turns("x", 40, 100)
    links = [fake() for _ in range(5)]
    said: dict[tuple[int, str], list[int]] = defaultdict(list)
    waiting = 0
    for step in range(5000):
        at = rng.randrange(5)
        if rng.random() < 0.52:
            name = rng.choice("abc")
            turns.put(links[at], name, step, rng.randrange(1, 5))
            said[at, name].append(step)
            waiting += 1
        elif rng.random() < 0.02:
            turns.forget(links[at])
            cast(FakeLink, links[at]).reading = True  # it is over, and another comes
            waiting -= sum(len(said.pop((at, name), ())) for name in "abc")
        elif waiting:
            link, item = turns.take()
            at = links.index(link)
            (queue,) = (said[at, name] for name in "abc" if item in said[at, name])
            assert queue.pop(0) == item  # of one name, what came first goes first
            waiting -= 1
        turns.resume()
        assert len(turns) == waiting
    while turns:
        turns.take()
    turns.resume()
    assert all(cast(FakeLink, link).reading for link in links)
    left = turns._waiting, turns._links, turns._shares, turns._paused
    assert not any((*left, turns._size, turns._owners))


def test_random_slices(seed: int) -> None:
    """What waits alone is served without turns; while it is served, links may be closed."""
    rng = random.Random(seed)
    turns: Turns[int] = Turns("x", 400, 1000)
    links = [fake() for _ in range(3)]
    said: dict[tuple[int, str], list[int]] = defaultdict(list)

    def forget(at: int) -> None:
        turns.forget(links[at])
        for name in "ab":
            said.pop((at, name), None)

    def take(link: Lane, item: int) -> None:
        at = links.index(link)
        (queue,) = (said[at, name] for name in "ab" if item in said[at, name])
        assert queue.pop(0) == item
        if rng.random() < 0.02:
            forget(rng.randrange(3))

    for step in range(3000):
        at, name = rng.randrange(rng.choice((1, 3))), rng.choice(rng.choice(("a", "ab")))
        turns.put(links[at], name, step, rng.randrange(1, 5))
        said[at, name].append(step)
        if rng.random() < 0.1:
            turns.serve(take, time.monotonic() + rng.choice((0.0, 0.001)))
        assert len(turns) == sum(map(len, said.values()))
    while turns:
        turns.serve(take, time.monotonic() + 0.001)
    left = turns._waiting, turns._links, turns._shares, turns._paused
    assert not any((*left, turns._size, turns._owners))


def test_who_says_too_much_is_not_read_from_until_little_waits() -> None:
    turns: Turns[int] = Turns("x", 10, 1000)
    flood, modest = FakeLink(), FakeLink()
    turns.put(cast(Lane, flood), "", 1, 6)
    assert flood.reading
    turns.put(cast(Lane, flood), "", 2, 6)
    turns.put(cast(Lane, modest), "", 3, 6)
    assert (flood.reading, modest.reading) == (False, True)
    turns.take()
    turns.resume()
    assert not flood.reading  # more than half of it is left
    turns.take()
    turns.take()
    turns.resume()
    assert flood.reading
