"""Revisions of a channel in a simulated network: whatever is lost, late or crashes, each subscriber
gets what its interest meant when a notification was accepted, once, without a break."""

from __future__ import annotations

import random

import pytest
from tests.repeats import draws, runs
from tests.routing.revised_world import SAME, Meanings, RevisedWorld, check_edges
from tests.routing.test_named import Reader
from tests.routing.test_network import check_acknowledged, check_order, settle
from tests.routing.world import POINTS, ROOT, Faults

from tidings.routing.clients.delivering import handout
from tidings.routing.clients.subscriber import Delivery, Lost, Phase, Subscriber
from tidings.routing.protocol.lineage import Break


@pytest.fixture(autouse=True)
def no_second_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subscribers recognise publications that come twice; here, the numbers alone must do."""
    monkeypatch.setattr(handout, "RECENT", 0)


def any_points(chance: random.Random, most: int) -> frozenset[int]:
    return frozenset(chance.sample(range(POINTS), chance.randrange(1, most)))


def play(world: RevisedWorld, steps: int, *, crashes: float) -> list[Reader]:
    chance = world.chance
    readers = [Reader(f"n{at}", any_points(chance, POINTS)) for at in range(3)]
    for one in readers:
        one.come(world)
    world.run(15)
    assert all(one.now.phase is Phase.ON for one in readers)
    for step in range(steps):
        what = chance.random()
        if what < 0.06:
            world.revise(world.any_table())
        elif what < 0.14:
            chance.choice(readers).come_or_go(world)
        elif what < 0.3:
            one = chance.choice(readers)
            if one.now.phase is Phase.ON:
                one.read(world)
        elif what < 0.38:
            world.subscribe(f"s{step}", any_points(chance, 4))
        elif what < 0.4:
            other = chance.choice([*world.subscribers.values()])
            if not other.confirming:
                world.send(other.name, other.stop(world.now))
        elif what < 0.4 + crashes:
            world.crash(chance.choice([ROOT, *world.routers]))
        else:
            point = chance.randrange(POINTS)
            world.publish(f"p{chance.randrange(3)}", point, bytes([point]) + f"{step}".encode())
        world.run(chance.random() * chance.choice((0.2, 1, 3)))
    return readers


def check(world: RevisedWorld, readers: list[Reader]) -> None:
    for one in readers:
        if one.now.phase is Phase.STOPPED:
            one.come(world)
    settle(world)
    check_edges(world)
    check_acknowledged(world)
    for one in readers:
        assert one.now.phase is Phase.ON, (one.name, one.now.refusal)
        one.read(world)
        assert set(one.told) == {*world.due(one.points, one.came[0].stream.begun)}, one.name
        assert not one.lost, one.name
    for name, two in world.subscribers.items():
        if two.confirming or two.phase is Phase.STOPPED:
            continue
        assert two.phase is Phase.ON, (name, two.phase, two.refusal)
        inbox = list(two.inbox)
        assert not [what for what in inbox if isinstance(what, Break | Lost)], name
        told = [what.payload for what in inbox if isinstance(what, Delivery)]
        due = world.due(two.interest, two.stream.begun)
        assert sorted(told) == sorted(due), name
        if two.stream.order is not None:
            assert told == due, name
            check_order(name, inbox)


@pytest.mark.parametrize("run", runs(3, 60))
def test_every_meaning_in_turn(seed: int, run: int) -> None:
    replaced = 0
    for round_ in draws(1, lambda: replaced):
        chance = random.Random(f"{seed} {run} {round_}")
        world = RevisedWorld(chance, chance.randrange(0, 6))
        world.signals = True
        readers = play(world, 150, crashes=0.0)
        check(world, readers)
        replaced += world.replaced if world.revisions else 0
    assert replaced


@pytest.mark.parametrize("run", runs(3, 60))
def test_the_same_with_faults_and_crashes(seed: int, run: int) -> None:
    chance = random.Random(f"{seed} {run} faults")
    world = RevisedWorld(chance, chance.randrange(1, 6))
    world.signals = True
    world.faults = Faults(chance.choice((0.02, 0.1)), 0.02, chance.choice((0.02, 0.2)))
    readers = play(world, 150, crashes=0.03)
    check(world, readers)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_new_node_lies_above_an_old_one_with_the_same_meaning(
    *, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A revision gives `one` the meaning of `all`, whose node stays: the new node of `one` lies
    above it, and begins with its present number. A subscriber that is not told so asks for the
    earlier numbers. They are not due; it asked for ever, and never noticed the next loss."""
    if not is_told:
        monkeypatch.setattr(Meanings, "alike", lambda _, node: [node])
    world = RevisedWorld(random.Random(0), 0)
    world.signals = False  # so that no subscriber is ordered: these give up after a while
    came: list[Subscriber] = []
    for points in ({1}, {1, 2, 3}, {2}):
        came.append(world.subscribe(f"{points}", points))
        world.run(5)
    one, all_, _ = came
    before, stays = one.node, all_.node
    world.publish("p", 3, b"\x03 before")
    world.run(5)
    world.revise((*SAME[:1], frozenset({1, 2, 3}), *SAME[2:]))
    world.run(5)
    assert before < stays == all_.node < one.node
    step = world.disk.history.gone[before].step
    assert step is not None
    assert step.begins == ({stays: 1} if is_told else {})
    world.publish("p", 3, b"\x03 after")
    world.run(5)
    world.faults.drop = 1.0
    world.publish("p", 3, b"\x03 lost")
    world.run(0.1)
    settle(world)
    assert one.stream.flows()
    told = [what.payload for what in one.inbox if isinstance(what, Delivery)]
    assert told == world.due({1}, 0) == [b"\x03 after", b"\x03 lost"]
