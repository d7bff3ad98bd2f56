"""Pipelines in the world: they tag points by themselves and hand them over, while messages are lost
and everybody crashes. Every row is numbered once and in order, and subscribers get what was due."""

from __future__ import annotations

import random

import pytest
from tests.repeats import draws, rounds
from tests.routing.test_network import busy, check_graphs, settle
from tests.routing.world import POINTS, Faults, World

from tidings.routing.clients.subscriber import Delivery, Lost, Phase
from tidings.routing.protocol.lineage import Break
from tidings.routing.root import node_history
from tidings.routing.root.handover import part_columns
from tidings.routing.root.nodes import node_registry as registry


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts have pieces, and answers have pages."""
    monkeypatch.setattr(part_columns, "ROWS", 2)
    monkeypatch.setattr(registry, "PAGE", 3)


def pipe(world: World, name: str) -> None:
    chance = world.chance
    rows = [bytes([chance.randrange(POINTS)]) + chance.randbytes(8) for _ in range(12)]
    world.pipe(name, rows[: chance.randrange(13)])


def work(world: World, steps: int, *, crashes: float = 0.0, disks: float = 0.0) -> None:
    """What `busy` does, and pipelines besides."""
    for _ in range(steps):
        busy(world, 1, crashes=crashes, disks=disks)
        what = world.chance.random()
        if what < 0.3:
            pipe(world, f"out{world.chance.randrange(2)}")
        elif 0.5 < what < 0.7 and world.pipelines:
            one = world.chance.choice([*world.pipelines.values()])
            sets = [
                frozenset(world.chance.sample(range(POINTS), world.chance.randrange(1, 5)))
                for _ in range(world.chance.randrange(1, 4))
            ]
            world.send(one.name, one.suggest([*dict.fromkeys(sets)]))
        elif what < 0.3 + crashes and world.pipelines:
            one = world.chance.choice([*world.pipelines.values()])
            world.send(one.name, one.crash(world.now))


def check(world: World) -> None:
    check_graphs(world)
    check_taken(world)
    check_told(world)


def check_taken(world: World) -> None:
    """Each row once, in the order of the outbox; and counted once."""
    totals: dict[int, int] = {}
    rows: dict[str, list[bytes]] = {}
    for record in world.disk.records():
        rows.setdefault(record.publisher, []).append(record.payload)
        for node in record.matched:
            totals[node] = totals.get(node, 0) + 1
    for node in world.root.graph:
        assert world.root.counts.totals.get(node, 0) == totals.get(node, 0)
    for name, one in world.pipelines.items():
        assert one.is_idle, name
        if not one.stopped:
            assert rows.get(name, []) == [row for part in one.outbox for row in part.payloads]
            progress = world.root.sources.known.get(name)
            assert (0 if progress is None else progress.stamp) == len(rows.get(name, []))
        else:
            assert world.went_back, one.stopped


def check_told(world: World) -> None:
    """Everyone has what matches and was tagged when its node was there; perhaps also rows that were
    tagged before, with a node below its own; nothing else, and nothing twice."""
    records = [record for record in world.disk.records() if record.serial]
    tagged = {
        (name, row): version
        for name, one in world.pipelines.items()
        for row, version in one.tagged.items()
    }
    for name, one in world.subscribers.items():
        if one.phase is Phase.STOPPED:
            continue
        assert one.phase is Phase.ON, (name, one.phase)
        inbox = list(one.inbox)
        breaks = [at for at, what in enumerate(inbox) if isinstance(what, Break)]
        told = [what.payload for what in inbox if isinstance(what, Delivery)]
        assert len(set(told)) == len(told), f"{name} was told something twice"
        latest = inbox[breaks[-1] + 1 :] if breaks else inbox
        assert not [what for what in latest if isinstance(what, Lost)], name
        points = frozenset(one.interest)
        assert all(row[0] in points for row in told)
        since = [record for record in records if record.serial > one.stream.begun]
        due = [record for record in since if record.payload[0] in points]
        must = {
            record.payload
            for record in due
            if tagged.get((record.publisher, record.payload), one.node) >= one.node
        }
        may = {record.payload for record in due if one.node in record.matched}
        assert must <= may, name
        before = {
            what.payload for what in inbox[: len(inbox) - len(latest)] if isinstance(what, Delivery)
        }
        now = {what.payload for what in latest if isinstance(what, Delivery)}
        assert may - before <= now <= may | before, name


def test_a_quiet_network(seed: int) -> None:
    suggested = 0
    for round_ in rounds(3, 8):
        chance = random.Random(f"{seed} {round_} quiet pipes")
        world = World(chance, chance.randrange(0, 6))
        work(world, 60)
        settle(world)
        check(world)
        assert all(not one.stopped for one in world.pipelines.values())
        suggested += sum(one.suggested for one in world.pipelines.values())
    assert suggested


@pytest.mark.parametrize("crashes", [0.0, 0.06])
def test_a_lossy_network(seed: int, crashes: float) -> None:
    repeated = 0
    for round_ in range(8):
        chance = random.Random(f"{seed} {round_} {crashes} pipes")
        world = World(chance, chance.randrange(0, 6))
        for _ in range(3):
            world.faults = Faults(
                chance.choice((0.0, 0.02, 0.2)), chance.choice((0.0, 0.1)), chance.choice((0.02, 1))
            )
            work(world, 40, crashes=crashes)
            settle(world)
            check(world)
        repeated += sum(one.repeated for one in world.pipelines.values())
        assert all(not one.stopped for one in world.pipelines.values())
    assert repeated if crashes else not repeated


def test_disks_that_are_full(seed: int) -> None:
    for round_ in range(6):
        chance = random.Random(f"{seed} {round_} full pipes")
        world = World(chance, chance.randrange(0, 4))
        for _ in range(2):
            world.faults = Faults(0.02, 0.02, 0.2)
            for _ in range(40):
                busy(world, 1, crashes=0.03, fills=0.1)
                if chance.random() < 0.3:
                    pipe(world, "out")
            settle(world)
            check_graphs(world)
            check_taken(world)


def test_journals_that_go_back_in_time(seed: int) -> None:
    """What was tagged in a life that is gone is refused, never numbered with other nodes."""
    stopped = 0
    for round_ in draws(4, lambda: stopped):
        chance = random.Random(f"{seed} {round_} pipes disks")
        world = World(chance, chance.randrange(0, 5))
        for _ in range(3):
            world.faults = Faults(0.02, 0.02, 0.2)
            work(world, 40, crashes=0.06, disks=0.5)
            settle(world)
            check_graphs(world)
            known = set(world.root.registry.history.gone) | set(world.disk.nodes)
            for record in world.disk.records():
                if record.publisher in world.pipelines:
                    assert {mark.node for mark in record.marks} <= known
            stopped += sum(bool(one.stopped) for one in world.pipelines.values())
            world.pipelines = {}
    assert stopped


def test_tags_of_long_ago(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the history is short, parts are refused with the version to fetch, and tagged again."""
    monkeypatch.setattr(node_history, "MOST_AROUND", 3)
    retagged = 0
    for round_ in draws(4, lambda: retagged):
        world = World(random.Random(f"{seed} {round_} long ago"), 2)
        for _ in range(3):
            work(world, 10)
            settle(world)
            pipe(world, "out0")
            one = world.pipelines["out0"]
            parts = len(one.outbox)
            while len(one.outbox) == parts:
                world.run(0.01)
            world.cut_off("out0")  # its parts are lost, while nodes come and go
            for _ in range(6):
                for each in [*world.subscribers.values()][:-3]:
                    world.send(each.name, each.stop(world.now))
                busy(world, 6)
                world.run(3 * world.times.expire)
            world.cut = set()
            settle(world)
            check(world)
        retagged += sum(one.retagged for one in world.pipelines.values())
    assert retagged
