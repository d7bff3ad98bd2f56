"""The protocol as a whole: random trees, faults and crashes; whenever the network is quiet, all
state is as defined."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from tests.repeats import draws, rounds, runs
from tests.rounds import say
from tests.routing.definition import labels_by_definition
from tests.routing.world import FULL, POINTS, ROOT, Disk, Faults, World, lowest

from tidings.routing.clients.publisher import Publisher, without_incarnation
from tidings.routing.clients.subscriber import (
    LOST_GRANT,
    UNGRANTED,
    WENT_BACK,
    Delivery,
    Lost,
    Phase,
    Subscriber,
)
from tidings.routing.forwarding import downstream, router
from tidings.routing.forwarding.label_graph import Label, LabelGraph
from tidings.routing.forwarding.moving_router import MovingRouter
from tidings.routing.forwarding.neighbours import beats
from tidings.routing.protocol.digests import digest
from tidings.routing.protocol.lineage import Break
from tidings.routing.protocol.tags import unpack_tag
from tidings.routing.root import node_history
from tidings.routing.root.handover import correcting
from tidings.routing.root.publishing import Outdated


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets that are large in the world are large here too, and are looked at part by part."""
    monkeypatch.setattr(beats, "SLICE", 4)
    monkeypatch.setattr(beats, "GRAPH", 3)
    monkeypatch.setattr(downstream, "MOST_FREE", 4)
    monkeypatch.setattr(router, "WANTED", 5)


def settle(world: World) -> None:
    """No more faults, and time enough for everything to be told again."""
    world.faults = Faults()
    world.full = False
    world.run(90)


def check(world: World) -> None:
    check_graphs(world)
    check_told(world)


def check_graphs(world: World) -> None:
    points = world.disk.nodes
    for name, one in {ROOT: world.root, **world.routers}.items():
        graph: LabelGraph[object] = one.graph
        wanted = {below: known.nodes for below, known in one.neighbours.items() if known.nodes}
        pairs = {(a, b) for a in graph for b in graph if points[a] > points[b]}
        reduced = {
            (a, b) for a, b in pairs if not any((a, c) in pairs and (c, b) in pairs for c in graph)
        }
        there = {(a, b) for a in graph for b in graph.children(a)}
        assert there == reduced, name
        labels = {number: graph.labels(number) for number in graph}
        assert labels == labels_by_definition(graph, wanted), name
    for name, below in world.routers.items():
        upper = below.upstream if isinstance(below, MovingRouter) else world.parents[name]
        above = world.root if upper == ROOT else world.routers[str(upper)]
        mine = above.neighbours.get(name)
        assert set(below.graph) == (set() if mine is None else mine.nodes), name
        expected = {one.node for one in world.subscribers.values()
                    if one.phase is Phase.ON and one.router == name}  # fmt: skip
        assert expected <= set(below.graph)
        check_tallies(below)
    check_tallies(world.root)


def check_tallies(one: downstream.Downstream) -> None:
    """Sums and digests that are kept are those of what is there."""
    one.sums.update()
    for known in one.neighbours.values():
        assert known.tally.digest() == digest(known.nodes)
        assert known.tally.sum == sum(map(one.total, known.nodes))
    if isinstance(one, router.Router):
        mine = [node for node in one.held if one._is_mine(node)]
        assert one._mine.digest() == digest(mine)
        assert one._mine.sum == sum(map(one.total, mine))
        for state, nodes in one._by_state.items():
            assert nodes == {node for node, held in one.held.items() if held.state is state}


def check_told(world: World) -> None:
    """Everyone has what was due, once each, since it was last told of a break."""
    records = {record.serial: record for record in world.disk.records() if record.serial}
    for name, one in world.subscribers.items():
        if one.phase is Phase.STOPPED or one.refusal == FULL:
            continue
        if one.refusal == UNGRANTED:
            assert world.went_back or one.node not in world.disk.nodes, name
            continue
        if one.refusal == LOST_GRANT:
            assert world.went_back, name
            continue
        assert one.phase is Phase.ON, (name, one.phase)
        inbox = list(one.inbox)
        breaks = [at for at, what in enumerate(inbox) if isinstance(what, Break)]
        latest = inbox[breaks[-1] + 1 :] if breaks else inbox
        told = {what.payload for what in latest if isinstance(what, Delivery)}
        payloads = [what.payload for what in inbox if isinstance(what, Delivery)]
        assert len(set(payloads)) == len(payloads), f"{name} was told something twice"
        due = {
            record.payload
            for serial, record in records.items()
            if serial > one.stream.begun and record.payload[0] in frozenset(one.interest)
        }
        assert not [what for what in latest if isinstance(what, Lost)], name
        if one.stream.order is not None:
            check_order(name, inbox)
        before = {
            what.payload for what in inbox[: len(inbox) - len(latest)] if isinstance(what, Delivery)
        }
        assert told == due - before, name
        if not world.went_back:
            assert Break(WENT_BACK) not in inbox, name
    check_acknowledged(world)
    check_promises(world)


def check_order(name: str, inbox: Sequence[object]) -> None:
    """Serials rise, except after a break."""
    last = 0
    for what in inbox:
        if isinstance(what, Break):
            last = 0
        elif isinstance(what, Delivery):
            assert what.serial > last, name
            last = what.serial


def read_inbox(name: str, one: Subscriber) -> tuple[list[Delivery], int]:
    """What a subscriber was told since the last time, in order and without a break, and how many it
    was told are lost."""
    inbox = list(one.inbox)
    one.inbox.clear()
    check_order(name, inbox)
    assert not any(isinstance(what, Break) for what in inbox), inbox
    lost = sum(what.count for what in inbox if isinstance(what, Lost))
    return [what for what in inbox if isinstance(what, Delivery)], lost


def named(publisher: Publisher) -> set[int]:
    """The stamps that it was told to be gone."""
    spans = [span for one in publisher.breaks for span in one.stamps]
    return {stamp for span in spans for stamp in range(span.first, span.last + 1)}


def acknowledged(world: World, name: str) -> set[int]:
    """The stamps that are on the disk, as the publisher believes."""
    publisher = world.publishers[name]
    refused = {one.stamp for one in publisher.refused}
    return {stamp for who, stamp in world.published if who == name} - refused


def check_acknowledged(world: World) -> None:
    """What was wrong is refused, nothing else but for a full disk; all else is on the disk, or its
    publisher knows that it is not."""
    for name, publisher in world.publishers.items():
        assert not publisher.waiting
        refused = {(name, one.stamp): one.reason for one in publisher.refused}
        assert len(refused) == len(publisher.refused)
        wrong = {one for one in world.wrong if one[0] == name}
        assert {one for one, reason in refused.items() if reason != FULL} <= wrong <= set(refused)
        there = Counter(
            one.stamp
            for one in world.disk.records()
            if one.serial and without_incarnation(one.publisher) == name
        )
        gone = acknowledged(world, name) - set(there)
        assert gone <= named(publisher), name
        if not world.went_back:
            assert not publisher.breaks, name
            if publisher.name == name:
                assert not there or max(there.values()) == 1, name


def check_promises(world: World) -> None:
    """Everything that was acknowledged after a subscription was in force has come, but for what its
    publisher knows to be gone."""
    published = [
        (world.published_at[name, stamp], world.published[name, stamp])
        for name, publisher in world.publishers.items()
        for stamp in acknowledged(world, name) - named(publisher)
    ]
    for name, one in world.subscribers.items():
        if one.phase is Phase.ON:
            told = {what.payload for what in one.inbox if isinstance(what, Delivery)}
            since, points = world.on_since[name], frozenset(one.interest)
            due = {payload for at, payload in published if at > since and payload[0] in points}
            assert due <= told, name


def check_tags(world: World) -> None:
    """Every notification has the tag that a fresh tagger would have given it: the lowest of the
    nodes that were there when it was written and that match it."""
    there: dict[frozenset[int], int] = {}
    for kind, what in world.disk.log:
        if kind == "add":
            there[what[1]] = what[0]
        elif kind == "drop":
            there = {points: node for points, node in there.items() if node != what[0]}
        elif kind == "record" and what.serial:
            due = {points: node for points, node in there.items() if what.payload[0] in points}
            assert set(what.matched) == set(due.values()), what
            assert [mark.node for mark in what.marks] == lowest(due), what


def another_disk(world: World) -> Disk:
    """None, one that is put back, or the one that there is as it was some time ago."""
    what = world.chance.random()
    if what < 0.2:
        return Disk()
    if what < 0.6 and world.backups:
        return world.chance.choice(world.backups)
    return world.disk.copy(world.chance.randrange(world.disk.synced + 1))


def busy(
    world: World,
    steps: int,
    *,
    crashes: float = 0.0,
    disks: float = 0.0,
    fills: float = 0.0,
    moves: float = 0.0,
) -> None:
    chance = world.chance
    serial = len(world.subscribers)
    for step in range(steps):
        what = chance.random()
        if what < 0.1:
            size = chance.randrange(1, POINTS)
            world.subscribe(f"s{serial}", chance.sample(range(POINTS), size))
            serial += 1
        elif what < 0.15 and world.subscribers:
            one = chance.choice(list(world.subscribers.values()))
            world.send(one.name, one.stop(world.now))
        elif what < 0.18:
            world.publish(f"p{chance.randrange(3)}", None, b"wrong")
        elif what < 0.18 + fills:
            world.full = not world.full
        elif what < 0.18 + fills + crashes:
            name = chance.choice([ROOT, *world.routers])
            other = name == ROOT and chance.random() < disks
            world.crash(name, disk=another_disk(world) if other else None)
        else:
            point = chance.randrange(POINTS)
            text = f"{world.now} {step}".encode()
            world.publish(f"p{chance.randrange(3)}", point, bytes([point]) + text)
        if moves and chance.random() < moves:
            world.move(chance.choice([*world.movers]))
        if disks and chance.random() < 0.05:
            world.backups.append(world.disk.copy())
        world.run(chance.random() * 0.5)


@pytest.mark.parametrize("run", runs(1, 4))
def test_a_quiet_network(seed: int, run: int) -> None:
    for round_ in range(5):
        chance = random.Random(f"{seed} {run} {round_}")
        world = World(chance, chance.randrange(0, 12))
        busy(world, 80)
        settle(world)
        check(world)


@pytest.mark.parametrize("run", runs(1, 4))
@pytest.mark.parametrize("crashes", [0.0, 0.05])
def test_a_lossy_network(seed: int, crashes: float, run: int) -> None:
    for round_ in range(5):
        chance = random.Random(f"{seed} {run} {round_} {crashes}")
        world = World(chance, chance.randrange(1, 15))
        for _ in range(3):
            world.faults = Faults(
                chance.choice((0.0, 0.02, 0.2)),
                chance.choice((0.0, 0.05)),
                chance.choice((0.02, 2.0)),
            )
            busy(world, 60, crashes=crashes)
            settle(world)
            check(world)


@pytest.mark.parametrize("run", runs(1, 4))
@pytest.mark.parametrize("disks", [0.0, 0.5])
def test_subscribers_with_grants(seed: int, disks: float, run: int) -> None:
    """They ask nobody for their nodes, some of which are gone by then; sets of points are few, so
    that most have a node."""
    granted = 0
    for round_ in draws(2, lambda: granted > 20):
        chance = random.Random(f"{seed} {run} {round_} {disks} grants")
        world = World(chance, chance.randrange(1, 8))
        world.grants = True
        for _ in range(3):
            drop, repeat = chance.choice((0.0, 0.02, 0.1)), chance.choice((0.0, 0.05))
            world.faults = Faults(drop, repeat, chance.choice((0.02, 0.5)))
            for _ in range(5):
                low = chance.randrange(POINTS - 1)
                world.subscribe(f"g{len(world.subscribers)}", (low, low + 1))
                busy(world, 15, crashes=0.05, disks=disks)
            settle(world)
            check(world)
        for one in world.subscribers.values():
            granted += one._joining.is_granted and one.phase is Phase.ON
        never = world.subscribe("never", (0, 1), granted=(world.disk.lineage[-1].life, 10**6))
        settle(world)
        assert never.phase is Phase.REFUSED
    assert granted > 20


@pytest.mark.parametrize("disks", [0.0, 0.5])
def test_places_from_preprocessors(seed: int, disks: float) -> None:
    """Preprocessors that are behind the rendezvous point or ahead of routers, answer late, leave
    nodes out, or are gone: graphs and deliveries are the same as without them."""
    located = 0
    for round_ in draws(2, lambda: located > 40):
        chance = random.Random(f"{seed} {round_} {disks} places")
        world = World(chance, chance.randrange(1, 12), locates=True)
        for _ in range(3):
            drop, repeat = chance.choice((0.0, 0.02, 0.2)), chance.choice((0.0, 0.05))
            world.faults = Faults(drop, repeat, chance.choice((0.02, 2.0)))
            for _ in range(10):
                size = chance.randrange(1, POINTS)
                world.subscribe(f"l{len(world.subscribers)}", chance.sample(range(POINTS), size))
                busy(world, 6, crashes=chance.choice((0.0, 0.05)), disks=disks)
            located += sum(one.locating.located for one in world.routers.values())
            settle(world)
            check(world)
    assert located > 40


def test_places_are_exact_at_once(seed: int) -> None:
    """If a preprocessor knows all that is on the disk, and no message is lost, the graphs of
    routers are right after each message, with nothing asked of the node above and nothing drawn
    again. The covering of sets of points is compared with each graph."""
    compared = 0
    for round_ in rounds(4, 10):
        chance = random.Random(f"{seed} {round_} exact")
        world = World(chance, chance.randrange(1, 12), locates=True)
        world.behind = 1
        points: dict[int, frozenset[int]] = {}
        for _ in range(40):
            size = chance.randrange(1, POINTS)
            world.subscribe(f"s{len(world.subscribers)}", chance.sample(range(POINTS), size))
            busy(world, 2)
            for _ in range(8):
                world.run(0.02)
                points.update(world.disk.nodes)
                for name, one in world.routers.items():
                    for node in one.graph:
                        above = {other for other in one.graph if points[other] > points[node]}
                        assert upwards(one.graph, node) == above, (name, node)
                        compared += 1
        settle(world)
        check(world)
        assert not world.redraws
        joined = {node for one in world.routers.values() for node in one.graph}
        assert sum(one.locating.located for one in world.routers.values()) >= len(joined)
    assert compared > 1_000


def upwards(graph: LabelGraph[object], node: int) -> set[int]:
    found: set[int] = set()
    todo = [node]
    while todo:
        new = set(graph.parents(todo.pop())) - found
        found |= new
        todo += new
    return found


@pytest.mark.parametrize("run", runs(1, 4))
def test_order_where_links_say_what_they_drop(seed: int, run: int) -> None:
    """Nothing is lost, and half of the subscribers get everything in order."""
    for round_ in range(5):
        chance = random.Random(f"{seed} {run} {round_} order")
        world = World(chance, chance.randrange(1, 12))
        world.signals = True
        for _ in range(3):
            drop = chance.choice((0.0, 0.02, 0.1))
            world.faults = Faults(drop, 0.0, chance.choice((0.02, 0.5)))
            busy(world, 60, crashes=chance.choice((0.0, 0.03)))
            settle(world)
            check(world)


@pytest.mark.parametrize("run", runs(1, 4))
def test_journals_that_go_back_in_time(seed: int, run: int) -> None:
    """Lost, put back from a backup, or cut off, while everybody else goes on."""
    for round_ in range(6):
        chance = random.Random(f"{seed} {run} {round_} disks")
        world = World(chance, chance.randrange(1, 10))
        for _ in range(3):
            world.faults = Faults(0.02, 0.02, 0.2)
            busy(world, 60, crashes=0.06, disks=0.5)
            settle(world)
            check(world)


def check_moved(world: World) -> None:
    """Who has two links is subscribed over one of them only."""
    everyone = {ROOT: world.root, **world.routers}
    for name in world.movers:
        mover = world.routers[name]
        for other, one in everyone.items():
            if other != mover.upstream and name in one.neighbours:
                assert not one.neighbours[name].nodes, (name, other)


@pytest.mark.parametrize("disks", [0.0, 0.5])
@pytest.mark.parametrize("crashes", [0.0, 0.05])
def test_routers_that_move(seed: int, crashes: float, disks: float) -> None:
    """They move to other nodes and back, or lose the second link, at any time; nothing is lost, and
    nothing is told twice or out of order."""
    moves = 0
    for round_ in draws(3, lambda: moves > 20):
        chance = random.Random(f"{seed} {round_} {crashes} {disks} moves")
        world = World(chance, chance.randrange(1, 8), movers=chance.randrange(1, 5))
        for _ in range(3):
            drop, repeat = chance.choice((0.0, 0.02, 0.2)), chance.choice((0.0, 0.05))
            world.faults = Faults(drop, repeat, chance.choice((0.02, 0.5, 2.0)))
            busy(world, 60, crashes=crashes, disks=disks, moves=chance.choice((0.05, 0.3)))
            settle(world)
            check(world)
            check_moved(world)
        moves += world.moves
    assert moves > 20


def test_a_node_that_is_forgotten_while_somebody_above_it_is_away(seed: int) -> None:
    """Its last numbers are known of until everyone has them."""
    world = World(random.Random(seed), 2)
    for name, points in (("a", (0, 1, 2)), ("b", (1,)), ("c", (0, 1))):
        world.subscribe(name, points)
    world.run(10)
    world.cut = {"a"}
    for number in range(3):
        world.publish("p", 1, b"\1%d" % number)
    world.run(1)
    b = world.subscribers["b"]
    world.send("b", b.stop(world.now))
    world.run(2 * world.times.expire + 5)
    assert b.node not in world.root.graph
    world.cut = set()
    settle(world)
    check(world)
    assert [
        what.payload for what in world.subscribers["a"].inbox if isinstance(what, Delivery)
    ] == [b"\1%d" % number for number in range(3)]
    world.run(5 * world.times.expire)
    assert not world.root.nodes.retired


@pytest.mark.parametrize("run", runs(1, 4))
@pytest.mark.parametrize("crashes", [0.0, 0.05])
def test_disks_that_are_full(seed: int, crashes: float, run: int) -> None:
    for round_ in range(4):
        chance = random.Random(f"{seed} {run} {round_} {crashes} full")
        world = World(chance, chance.randrange(1, 10))
        for _ in range(3):
            world.faults = Faults(chance.choice((0.0, 0.02, 0.2)), 0.02, 0.2)
            busy(world, 80, crashes=crashes, fills=0.05)
            settle(world)
            check(world)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("most", [40_000, pytest.param(4_000_000, marks=pytest.mark.slow)])
def test_trees_of_up_to_fifty_routers(
    seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least so many operations. In half of the trees publishers tag, often with nodes of long
    ago, so that the root corrects their tags, or finds them too old and tags by itself."""
    monkeypatch.setattr(correcting, "FEW", 4)
    monkeypatch.setattr(node_history, "MOST_AROUND", 20)
    found = Counter[str]()
    real = correcting.Correcting.correct

    def correct(self: correcting.Correcting, data: bytes, content: bytes) -> Label:
        try:
            label = real(self, data, content)
        except Outdated:
            found["outdated"] += 1
            raise
        tag = unpack_tag(data)
        found["corrected" if tag is None or tag.nodes != label else "taken"] += 1
        return label

    monkeypatch.setattr(correcting.Correcting, "correct", correct)
    kinds = ("taken", "corrected", "outdated")
    while found["operations"] < most or (found["worlds"] < 50 and not all(map(found.get, kinds))):
        chance = random.Random(f"{seed} {found['worlds']} fifty")
        world = World(chance, chance.randrange(10, 51))
        world.tags = found["worlds"] % 2 == 0
        world.behind = chance.choice((6, 60))
        for _ in range(3):
            drop, repeat = chance.choice((0.0, 0.02, 0.2)), chance.choice((0.0, 0.05))
            world.faults = Faults(drop, repeat, chance.choice((0.02, 0.5, 2.0)))
            busy(world, 100, crashes=chance.choice((0.0, 0.05)), disks=chance.choice((0, 0.3)))
            settle(world)
            check(world)
            check_tags(world)
        found.update(operations=world.operations, worlds=1, tagged=world.tagged)
    say(f"{dict(found)}")
    assert found["tagged"] > 20
    assert all(map(found.get, kinds)), found
