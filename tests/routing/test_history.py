"""The versions of a channel, against a list of everything that happened, and pages against that."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, cast

import pytest
from tests.repeats import draws
from tests.routing.world import Disk, Sets

from tidings.routing.clients.tagging.follower import Follower
from tidings.routing.forwarding.neighbours import Charges, Context
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.limits import Limits
from tidings.routing.protocol.lineage import Lineage
from tidings.routing.protocol.times import Times
from tidings.routing.root import node_history as module
from tidings.routing.root.handover import Definition, Following
from tidings.routing.root.interests import Placed
from tidings.routing.root.journal import Memory
from tidings.routing.root.node_history import History, RemovedNode
from tidings.routing.root.nodes import Registry, node_registry as registry
from tidings.routing.root.rendezvous import Rendezvous


class Past:
    """A channel whose nodes come and go, through lives, and what its nodes were at each version."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.history = History()
        self.nodes: set[int] = set()
        self.at: dict[int, set[int]] = {}
        self.lives: list[m.Life] = []
        self.next = 1
        self.registry = Registry(self.history, ())
        self.restart()

    def restart(self) -> None:
        self.lives.append(m.Life(self.chance.randrange(1, 1 << 62), 1))
        base = Lineage(self.lives).first_node(self.history.version)
        self.history.begin_life(self.lives[-1].life, base, broken=False)
        self.next = base + 1
        self.registry = Registry(self.history, self.nodes)
        self.at[self.history.version] = set(self.nodes)

    def change(self) -> None:
        number, self.next = self.next, self.next + 1
        if self.nodes and self.chance.random() < 0.45:
            node = self.chance.choice(sorted(self.nodes))
            self.nodes.discard(node)
            self.registry.drop(node, RemovedNode(number, (), tuple(sorted(self.nodes)[:1])))
        else:
            self.nodes.add(number)
            self.registry.add(number)
        self.at[number] = set(self.nodes)

    def pages(self, since: int, life: int) -> Iterator[m.Changed]:
        follower = Follower(m.Follow(5, since, life))
        while not follower.is_done:
            assert isinstance(follower.question, m.Follow)
            page = self.registry.page(follower.question, str, 1)
            follower.receive(page)
            yield page
        assert follower.changed is not None
        self.answer = follower.changed


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PAGE", 7)


@pytest.mark.parametrize("most", [12, 1000])
def test_whoever_follows_has_the_nodes_of_the_version(
    seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From any version, known or not; while it reads pages, nodes come and go."""
    monkeypatch.setattr(module, "MOST_AROUND", most)
    chance = random.Random(seed)
    past = Past(chance)
    parts = 0
    enough = 5 if most > 12 else 0
    for _ in draws(300, lambda: parts > enough):
        for _ in range(chance.randrange(6)):
            past.change()
        if chance.random() < 0.05:
            past.restart()
        since = chance.choice([*past.at, 0, past.history.version + chance.randrange(1 << 50)])
        life = chance.choice([past.history.life, past.history.life, 5])
        mirror = set(past.at.get(since, ()))
        gone: set[int] = set()
        for number, _ in enumerate(past.pages(since, life)):
            if number and chance.random() < 0.1:
                before = set(past.nodes)
                past.change()
                gone |= before - past.nodes
        answer = past.answer
        parts += not answer.whole
        if life != past.history.life or since not in past.at:
            assert answer.whole
        if answer.whole:
            mirror = set()
        for version, node, text in answer.changes:
            assert version <= answer.version
            if text is None:
                mirror.discard(node)
            else:
                assert (text, version) == (str(node), node)
                mirror.add(node)
        # whatever went while the pages were read may be missing
        expected = past.at[answer.version]
        assert expected - gone <= mirror <= expected
        assert answer.life == past.history.life
        versions = [one.version for one in answer.changes]
        assert versions == sorted(versions)
    assert parts > enough


def test_versions_of_a_life_that_the_journal_has_forgotten_are_not_known(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(30):
        past = Past(chance)
        for _ in range(chance.randrange(30)):
            past.change()
        backup, known = past.history.copy(), set(past.at)
        for _ in range(20):
            past.change()
            if chance.random() < 0.1:
                past.restart()
        lost = set(past.at) - known
        lives = [*past.lives[:1], m.Life(chance.randrange(1, 1 << 62), 1)]
        backup.begin_life(lives[-1].life, Lineage(lives).first_node(backup.version), broken=False)
        for number in range(backup.base + 1, backup.base + 100):
            backup.add(number)
        assert not [version for version in lost if backup.knows(version)]
        assert all(map(backup.knows, known))


def test_what_stands_for_a_node_that_is_gone() -> None:
    history = History()
    for node in range(1, 10):
        history.add(node)
    history.drop(5, RemovedNode(10, (), (2, 3), (7,)))
    history.drop(3, RemovedNode(11, (), (1,), ()))
    history.drop(7, RemovedNode(12, (8,), (2,), ()))
    assert history.stands_for([5]) == {1, 2}
    assert history.stands_for([5, 9]) == {1, 2, 9}
    assert history.stands_for([7]) == {8}, "an equal one is nearer than what covered it"
    assert history.lay_below([5]) == {8}


def machine_of(gone: dict[int, RemovedNode], *nodes: int) -> Rendezvous:
    """After a restart: nodes between which no covering can be proven."""
    disk = Disk()
    disk.begin_life(7)
    past = History()
    past.begin_life(7, 0, broken=False)
    for node, one in gone.items():
        past.add(node)
        past.drop(node, one)
    memory = Memory(disk.lineage, placed=[Placed(node, (), ()) for node in nodes], history=past)
    return Rendezvous("root", Sets(disk), disk, memory)


def test_coverings_that_only_a_node_that_is_gone_had_proven() -> None:
    root = machine_of(
        {4: RemovedNode(10, (), (1, 2), (7, 8)), 2: RemovedNode(11, (), (3,), ())}, 1, 3, 7, 9
    )
    assert root.graph.ancestors(7) == {1, 3}
    assert not root.graph.ancestors(9)
    assert not root.graph.ancestors(1)


def test_equal_nodes_that_only_a_node_that_is_gone_had_proven() -> None:
    root = machine_of({4: RemovedNode(10, (1, 2), (), ())}, 1, 2, 3)
    assert root.take_over._resolving.equal == {1: {1, 2}, 2: {1, 2}}
    both = machine_of(
        {4: RemovedNode(10, (), (1,), (2,)), 5: RemovedNode(11, (), (2,), (1,))}, 1, 2
    )
    assert both.take_over._resolving.equal == {1: {1, 2}, 2: {1, 2}}


def test_how_far_preprocessors_are_behind(seed: int) -> None:
    """Against everything that happened: what somebody at a version lacks are the nodes that began
    since and are there still, and those that ended since. Who does not register is forgotten."""
    past = Past(random.Random(seed))
    context = Context("root", Times(expire=20.0), Limits(), 1)
    following = Following(
        context, Charges(context), cast(Any, None), past.registry, cast(Any, None), Definition()
    )
    for step in range(200):
        past.change()
        context.now = float(step)
        version = past.chance.choice([*past.at])
        life = past.chance.choice((past.history.life, past.history.life, 7))
        following.register(m.Register("tidings://a", "a", life, version, step, 1000 * step))
        (found,) = following.list_preprocessors()
        known = life == past.history.life and past.history.has_changes_since(version)
        ended = {number for number, gone in past.history.gone.items() if gone.version > version}
        begun = {node for node in past.nodes if node > version}
        assert found.behind == (len(ended) + len(begun) if known else len(past.nodes))
        assert (found.said.version, found.said.tagged, found.time) == (version, step, step)
    context.now += 19.0
    assert following.list_preprocessors()
    context.now += 2.0
    assert not following.list_preprocessors()
