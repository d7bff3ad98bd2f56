"""Nodes for the types of notifications, in simulated networks: they are bounded, durable and given
to those who ask for them, and no subscriber notices them. The oracles are those of other tests:
what is due by the definition, and the same channel without such nodes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.repeats import draws, runs
from tests.routing import test_revisions as revisions
from tests.routing.revised_world import RevisedWorld
from tests.routing.test_network import busy, check, check_tags, settle
from tests.routing.world import POINTS, ROOT, Faults, World

from tidings.routing.clients.delivering import handout
from tidings.routing.clients.subscriber import Delivery, Phase, Subscriber
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.limits import Limits
from tidings.routing.root import CHANNEL
from tidings.routing.root.rendezvous import Rendezvous


def set_most(world: World, most: int) -> None:
    """Restart the root with another limit."""
    world.nodes_for_types = most
    world.crash(ROOT)
    world.run(15)


def kept(world: World) -> set[int]:
    """The nodes that exist only because of notifications, by what was written down: nobody wants
    them, and the channel owns them."""
    return {one for one, who in world.disk.owners.items() if who == (CHANNEL,)} - set(
        world.root.wants
    )


def check_kept(world: World) -> None:
    assert world.root.nodes.kept == kept(world)
    assert len(kept(world)) <= world.nodes_for_types
    for node in kept(world):
        assert len(world.disk.nodes[node]) == 1
        assert not world.root.claims.owners(node)


def node_of(world: World, *points: int) -> int:
    return next((n for n, p in world.disk.nodes.items() if p == frozenset(points)), 0)


def told(one: Subscriber) -> list[bytes]:
    return [what.payload for what in one.inbox if isinstance(what, Delivery)]


@pytest.mark.parametrize("run", runs(2, 20))
def test_faults_and_crashes(seed: int, run: int) -> None:
    found = 0
    for round_ in draws(2, lambda: found):
        chance = random.Random(f"{seed} {run} {round_} types")
        world = World(chance, chance.randrange(0, 8))
        world.tags = chance.random() < 0.5  # as preprocessors and local agents do
        set_most(world, chance.randrange(1, POINTS + 1))
        for _ in range(3):
            drop, repeat = chance.choice((0.0, 0.02, 0.1)), chance.choice((0.0, 0.05))
            world.faults = Faults(drop, repeat, chance.choice((0.02, 0.5)))
            busy(world, 60, crashes=0.04)
            settle(world)
            check(world)
            check_tags(world)
            check_kept(world)
            found += len(kept(world))
    assert found


@pytest.mark.parametrize("run", runs(2, 20))
def test_revisions_with_faults(seed: int, run: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interest in a type may mean other points later, or none."""
    monkeypatch.setattr(handout, "RECENT", 0)
    found = 0
    for round_ in draws(1, lambda: found):
        chance = random.Random(f"{seed} {run} {round_} revised types")
        world = RevisedWorld(chance, chance.randrange(0, 5))
        world.signals = True
        set_most(world, chance.randrange(1, POINTS + 1))
        if chance.random() < 0.5:
            world.faults = Faults(0.02, 0.02, 0.1)
        readers = revisions.play(world, 120, crashes=0.02)
        revisions.check(world, readers)
        assert len(world.root.nodes.kept) <= world.nodes_for_types
        found += len(world.root.nodes.kept)
    assert found


@pytest.mark.parametrize("run", runs(2, 20))
def test_the_same_deliveries_as_without(seed: int, run: int) -> None:
    """Random subscriptions, names, restarts and revisions, with other limits on the way: everybody
    gets the same, in the same order."""
    found = 0
    for round_ in draws(2, lambda: found):
        there: list[dict[str, list[bytes]]] = []
        for is_on in (False, True):
            chance = random.Random(f"{seed} {run} {round_} same")
            world = RevisedWorld(random.Random(f"{seed} {run} {round_}"), chance.randrange(0, 4))
            world.signals = True
            names = 0
            for step in range(60):
                what, most = chance.random(), chance.randrange(1, POINTS)
                point, other = chance.randrange(POINTS), random.Random(chance.random())
                live = [one for one in world.subscribers.values() if one.phase is Phase.ON]
                if what < 0.15 or not live:
                    points = other.sample(range(POINTS), other.choice((1, 1, 2, 5)))
                    durable = f"name {names}" if other.random() < 0.5 else ""
                    world.subscribe(f"s{names}", points, durable)
                    names += 1
                elif what < 0.22:
                    one = other.choice(live)
                    world.send(one.name, one.stop(world.now))
                    world.run(other.choice((1, 60)))
                elif what < 0.3:
                    world.nodes_for_types = most if is_on else 0
                    world.crash(ROOT)
                elif what < 0.36:
                    before, world.chance = world.chance, other
                    world.revise(world.any_table())
                    world.chance = before
                else:
                    world.publish("p", point, bytes([point]) + b"%d" % step)
                world.run(15)
            settle(world)
            there.append({name: told(one) for name, one in world.subscribers.items()})
            found += is_on * len(world.root.nodes.kept)
        assert there[0] == there[1]
        assert any(there[0].values())
    assert found


def test_a_type_gets_a_node_that_stays() -> None:
    world = World(random.Random(0), 0)
    set_most(world, 2)
    all_ = world.subscribe("all", range(POINTS))
    world.run(5)
    for number, point in enumerate((1, 1, 2, 3)):
        world.publish("p", point, bytes([point, number]))
        world.run(2)
    first, second = node_of(world, 1), node_of(world, 2)
    assert kept(world) == {first, second}
    assert not node_of(world, 3), "the limit is reached"
    counts = world.root.counts.counts
    assert (counts[first], counts[second], counts[all_.node]) == (2, 1, 1)
    world.run(200)
    world.crash(ROOT)
    world.run(200)
    assert kept(world) == {first, second}
    check_kept(world)
    # it is given to one who asks for it, and leaves room for another
    one = world.subscribe("one", {1})
    world.run(5)
    assert one.node == first
    assert world.disk.owners[first] != (CHANNEL,)
    world.publish("p", 3, b"\x03")
    world.run(5)
    third = node_of(world, 3)
    assert kept(world) == {second, third}
    # there is no room when it leaves
    world.send("one", one.stop(world.now))
    world.run(60)
    assert node_of(world, 1) == 0
    assert kept(world) == {second, third}
    check(world)


def test_the_node_of_one_who_left_is_kept_if_there_is_room() -> None:
    world = World(random.Random(0), 0)
    set_most(world, 3)
    one = world.subscribe("one", {1})
    never = world.subscribe("never", {2})
    both = world.subscribe("both", {1, 2})
    world.run(5)
    world.publish("p", 1, b"\x01")
    world.run(5)
    assert not kept(world)
    for name in ("one", "never", "both"):
        world.send(name, world.subscribers[name].stop(world.now))
    world.run(100)
    assert kept(world) == {one.node}, "the others had no notification of their type"
    check_kept(world)
    assert not {never.node, both.node} & set(world.root.graph)
    back = world.subscribe("back", {1})
    world.run(5)
    assert back.node == one.node
    # a crash after an answer, before anybody subscribes: it is the channel's again
    world.send("back", back.stop(world.now))
    world.crash(ROOT)
    world.run(100)
    assert kept(world) == {one.node}


def test_one_who_only_asks() -> None:
    """The node is the channel's again, and nobody is charged for it."""
    world = World(random.Random(0), 0)
    set_most(world, 3)
    world.publish("p", 1, b"\x01")
    world.run(5)
    (node,) = kept(world)
    world.send(ROOT, world.root.receive("asks", m.Ask(1, b"\x01", "asks"), world.now))
    assert not world.root.nodes.kept
    assert world.disk.owners[node] == ("asks/asks",)
    world.run(100)
    assert kept(world) == {node}
    check_kept(world)


def test_those_who_need_not_ask() -> None:
    """One whose link was gone for long, and one with a grant, use a node that is kept: it
    is theirs, and no longer counted."""
    world = World(random.Random(0), 0)
    set_most(world, 1)
    world.subscribe("one", {1})
    world.run(5)
    world.publish("p", 1, b"\x01 before")
    world.run(5)
    world.cut_off("one")
    world.run(100)
    (node,) = kept(world)
    world.cut.clear()
    world.publish("p", 1, b"\x01 after")
    world.run(100)
    assert not world.root.nodes.kept
    check(world)
    world.send("one", world.subscribers["one"].stop(world.now))
    world.run(100)
    check_kept(world)
    assert kept(world) == {node}
    resume = m.Resume(world.root.epoch, 1, "name", node, b"\x01")
    world.send(ROOT, world.root.receive("guest", resume, world.now))
    assert not world.root.nodes.kept
    world.run(5)
    world.crash(ROOT)
    world.run(100)
    assert node in world.root.graph
    assert not world.root.nodes.kept
    world.publish("p", 2, b"\x02")
    world.run(5)
    assert world.root.nodes.kept == {node_of(world, 2)}


def test_a_lower_limit_removes_the_newest() -> None:
    world = World(random.Random(0), 0)
    set_most(world, 4)
    for point in range(5):
        world.publish("p", point, bytes([point]))
        world.run(1)
    there = sorted(kept(world))
    assert len(there) == 4
    set_most(world, 1)
    world.run(100)
    assert kept(world) == set(world.root.graph) == {there[0]}
    set_most(world, 0)
    world.run(100)
    assert not len(world.root.graph)


def test_refused_notifications_add_nothing() -> None:
    world = World(random.Random(0), 0)
    set_most(world, 4)
    world.publish("p", None, b"wrong")
    world.run(5)
    assert not len(world.root.graph)


def set_limits(monkeypatch: pytest.MonkeyPatch, limits: Limits) -> None:
    begin = Rendezvous.__init__

    def with_limits(self: Rendezvous, *given: Any, **named: Any) -> None:
        begin(self, *given, **{**named, "limits": limits})

    monkeypatch.setattr(Rendezvous, "__init__", with_limits)


def test_a_type_whose_node_gave_way_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the next start: otherwise, each notification would add and remove a node."""
    set_limits(monkeypatch, Limits(matches=3, marks=3))
    world = World(random.Random(0), 0)
    set_most(world, 10)
    for at, points in enumerate(({0, 1}, {0, 2}, {0, 1, 2})):
        world.subscribe(f"s{at}", points)
        world.run(1)
    for number in range(5):
        world.publish("p", 0, b"\x00%d" % number)
        world.run(5)
        assert not node_of(world, 0)
    added = [what[1] for kind, what in world.disk.log if kind == "add"]
    assert added.count(frozenset({0})) == 1
    check(world)


@pytest.mark.parametrize("most", [0, 100])
def test_kept_nodes_give_way_to_filters(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on the nodes of a notification counts the filters of subscribers alone, and so does
    the limit on the filters of the channel."""
    set_limits(monkeypatch, Limits(matches=3, marks=3, all_nodes=5))
    world = World(random.Random(0), 0)
    set_most(world, most)
    for point in range(4):
        world.publish("p", point, bytes([point]))
        world.run(1)
    assert len(kept(world)) == min(most, 4)
    for at, points in enumerate(({0, 1}, {0, 2}, {0, 1, 2})):
        world.subscribe(f"s{at}", points)
        world.run(1)
    world.publish("p", 0, b"\x00 after")
    world.run(100)
    names = ["s0", "s1", "s2"]
    for at, points in enumerate(({4, 5}, {5, 6}, {6, 7})):  # one more than there is room for
        world.subscribe(f"t{at}", points)
        world.run(1)
        names.append(f"t{at}")
    phases = [world.subscribers[name].phase for name in names]
    assert phases == [Phase.ON] * 5 + [Phase.REFUSED]
    world.publish("p", 0, b"\x00 again")
    world.run(100)
    for name in ("s0", "s1", "s2"):
        assert told(world.subscribers[name]) == [b"\x00 after", b"\x00 again"]
    assert not node_of(world, 0)
    assert len(kept(world)) == (3 if most else 0)
