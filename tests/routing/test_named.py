"""Named subscriptions in a simulated network: a subscriber that returns under a name continues
after the last confirmed notification, whatever is lost or crashes in between."""

from __future__ import annotations

import random

import msgspec
import pytest
from tests.repeats import rounds
from tests.routing.test_network import read_inbox, settle
from tests.routing.world import POINTS, ROOT, Faults, World, encode

from tidings.routing.clients.subscriber import Delivery, Lost, Phase, Subscriber
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.lineage import Break


class Reader(msgspec.Struct):
    """An application that comes and goes under a name."""

    name: str
    points: frozenset[int]
    came: list[Subscriber] = []
    confirmed: int = 0  # the last serial that it confirmed
    again: list[bytes] = []  # what came after the confirmed ones, one list after the other
    told: list[bytes] = []
    lost: int = 0

    def come(self, world: World) -> None:
        number = len(self.came)
        self.came.append(world.subscribe(f"{self.name}.{number}", self.points, self.name))

    @property
    def now(self) -> Subscriber:
        return self.came[-1]

    def read(self, world: World) -> None:
        """Read what there is, and confirm some of it."""
        told, lost = read_inbox(self.name, self.now)
        self.lost += lost
        self.told += [what.payload for what in told]
        serials = [what.serial for what in told]
        # a serial that was confirmed and is on the disk does not come again
        assert all(serial > self.confirmed_at_start for serial in serials), self.name
        if serials and world.chance.random() < 0.7:
            self.confirmed = world.chance.choice(serials)
            world.send(self.now.name, self.now.confirm(self.confirmed, world.now))

    @property
    def confirmed_at_start(self) -> int:
        return self.now.stream.begun

    def go(self, world: World) -> None:
        world.send(self.now.name, self.now.stop(world.now))

    def come_or_go(self, world: World) -> None:
        """Come back if it is away; otherwise read what there is, and leave."""
        if self.now.phase is Phase.STOPPED:
            self.come(world)
        else:
            self.read(world)
            self.go(world)


def play(world: World, steps: int, *, crashes: float) -> list[Reader]:
    chance = world.chance
    readers = [
        Reader(f"n{at}", frozenset(chance.sample(range(POINTS), chance.randrange(1, POINTS))))
        for at in range(4)
    ]
    for one in readers:
        one.come(world)
    world.run(15)
    assert all(one.now.phase is Phase.ON for one in readers)
    for step in range(steps):
        what = chance.random()
        if what < 0.15:
            chance.choice(readers).come_or_go(world)
        elif what < 0.4:
            one = chance.choice(readers)
            if one.now.phase is Phase.ON:
                one.read(world)
        elif what < 0.45:  # others come, whose nodes lie below
            points = chance.sample(range(POINTS), chance.randrange(1, 4))
            world.subscribe(f"o{step}", points)
        elif what < 0.45 + crashes:
            world.crash(chance.choice([ROOT, *world.routers]))
        elif what < 0.55 and world.movers:
            move_some(world, [one.now for one in readers])
        else:
            point = chance.randrange(POINTS)
            world.publish("p", point, bytes([point]) + f"{step}".encode())
        world.run(chance.random() * 2)
    return readers


def move_some(world: World, subscribers: list[Subscriber]) -> None:
    """A router moves, or one that subscribes is linked to another node: it is still the same."""
    chance = world.chance
    there = [one for one in subscribers if one.phase is Phase.ON]
    if there and chance.random() < 0.5:
        world.relink(str(chance.choice(there).name))
    else:
        world.move(chance.choice([*world.movers]))


def check(world: World, readers: list[Reader]) -> None:
    for one in readers:
        if one.now.phase is Phase.STOPPED:
            one.come(world)
    settle(world)
    for one in readers:
        assert one.now.phase is Phase.ON, one.name
        one.read(world)
        due = [
            record.payload
            for record in world.disk.records()
            if record.serial > one.came[0].stream.begun and record.payload[0] in one.points
        ]
        assert set(one.told) == set(due), one.name
        assert not one.lost, one.name


def test_whoever_comes_back_goes_on(seed: int) -> None:
    for round_ in rounds(5, 12):
        chance = random.Random(f"{seed} {round_}")
        world = World(chance, chance.randrange(0, 8))
        world.signals = True
        readers = play(world, 120, crashes=0.0)
        check(world, readers)


def test_the_same_with_faults_and_crashes(seed: int) -> None:
    for round_ in rounds(5, 12):
        chance = random.Random(f"{seed} {round_} faults")
        world = World(chance, chance.randrange(1, 8))
        world.signals = True
        world.faults = Faults(chance.choice((0.02, 0.1)), 0.02, chance.choice((0.02, 0.2)))
        readers = play(world, 120, crashes=0.03)
        check(world, readers)


def test_whoever_moves_is_still_the_same(seed: int) -> None:
    """An agent that moves between routers keeps its name, also when nodes crash meanwhile."""
    for round_ in rounds(5, 12):
        chance = random.Random(f"{seed} {round_} moves")
        world = World(chance, chance.randrange(1, 6), movers=chance.randrange(1, 4))
        world.signals = True
        world.faults = Faults(chance.choice((0.0, 0.05)), 0.02, chance.choice((0.02, 0.2)))
        readers = play(world, 120, crashes=chance.choice((0.0, 0.03)))
        check(world, readers)


def test_the_last_program_has_the_name(seed: int) -> None:
    """Several programs use one name at the same time, at different routers: the last one has it,
    and gets everything after what was confirmed; the others are told once, and end."""
    for round_ in range(12):
        chance = random.Random(f"{seed} {round_} programs")
        world = World(chance, chance.randrange(1, 6), movers=chance.randrange(1, 4))
        world.signals = True
        world.faults = Faults(chance.choice((0.0, 0.05)), 0.05, chance.choice((0.02, 0.5)))
        points = frozenset(chance.sample(range(POINTS), chance.randrange(1, POINTS)))
        programs: list[Subscriber] = []
        for step in range(100):
            what = chance.random()
            if not programs or what < 0.08:
                programs.append(world.subscribe(f"n.{len(programs)}", points, "n"))
                while not has_name(programs[-1]):
                    world.run(1)
            elif what < 0.3:
                confirm_some(world, chance.choice(programs))
            elif what < 0.33:
                world.crash(chance.choice([ROOT, *world.routers]))
            elif what < 0.4:
                move_some(world, programs)
            else:
                point = chance.randrange(POINTS)
                world.publish("p", point, bytes([point]) + f"{step}".encode())
            world.run(chance.random() * 2)
        settle(world)
        world.publish("p", min(points), bytes([min(points)]))  # all who still listen hear this
        world.run(3 * world.times.expire)
        *others, last = programs
        assert last.phase is Phase.ON
        for one in others:
            assert one.phase is Phase.REFUSED
            assert one.refusal == (
                "the subscription 'n' was continued by another program, or by another call of this "
                "one, so this one has ended"
            )
        began = last.stream.begun
        due = [
            record.payload
            for record in world.disk.records()
            if record.serial > began and record.payload[0] in points
        ]
        assert told_to(last) == due
        assert not [what for what in last.inbox if isinstance(what, Lost | Break)]


def has_name(one: Subscriber) -> bool:
    assert one.confirming is not None
    return one.phase is Phase.ON and one.confirming.claimed


def told_to(one: Subscriber) -> list[bytes]:
    return [what.payload for what in one.inbox if isinstance(what, Delivery)]


def confirm_some(world: World, one: Subscriber) -> None:
    serials = [what.serial for what in one.inbox if isinstance(what, Delivery)]
    if serials:
        world.send(one.name, one.confirm(world.chance.choice(serials), world.now))


def test_whoever_lost_the_name_confirms_nothing(seed: int) -> None:
    world = World(random.Random(seed), 3)
    first = world.subscribe("n.0", {1}, "n")
    world.run(10)
    world.publish("p", 1, b"\1a")
    world.run(5)
    second = world.subscribe("n.1", {1}, "n")
    world.run(5)
    assert told_to(first) == told_to(second) == [b"\1a"]
    before = world.root.naming.cursors.known["\0n"].serial
    confirm_some(world, first)
    world.run(5)
    assert world.root.naming.cursors.known["\0n"].serial == before
    assert (first.phase, second.phase) == (Phase.REFUSED, Phase.ON)
    world.send("n.0", first.drop_name(world.now))  # nor can it drop the name
    world.run(5)
    confirm_some(world, second)
    world.run(5)
    assert world.root.naming.cursors.known["\0n"].serial > before
    other = world.subscribe("n.2", {1}, "n")
    world.run(5)
    world.crash(ROOT)  # it does not remember who had the name; those who have it say so
    world.run(40)
    world.publish("p", 1, b"\1b")
    world.run(3 * world.times.expire)
    assert (second.phase, other.phase) == (Phase.REFUSED, Phase.ON)


def test_late_messages_of_one_that_is_gone(seed: int) -> None:
    """They do not take the name from the one that has it."""
    world = World(random.Random(seed), 2)
    gone = world.subscribe("n.0", {1}, "n")
    world.run(10)
    world.send("n.0", gone.stop(world.now))
    one = world.subscribe("n.1", {1}, "n")
    world.run(10)
    epoch, interest = one.epoch, encode({1})
    for late in (m.Resume(epoch, 7, "n", one.node, interest), m.Confirm(epoch, 8, "n", term=1)):
        world.send("n.0", [(ROOT, late)])
    world.run(5)
    for payload in (b"\1a", b"\1b"):
        world.publish("p", 1, payload)
        world.run(2 * world.times.expire)
        confirm_some(world, one)
    assert one.phase is Phase.ON
    assert told_to(one) == [b"\1a", b"\1b"]


@pytest.mark.parametrize("with_crash", [False, True])
def test_a_name_that_was_dropped_and_returns(seed: int, *, with_crash: bool) -> None:
    """A program that still has the old one does not keep the new one."""
    world = World(random.Random(seed), 2)
    for number in range(3):  # so that its term is high
        first = world.subscribe(f"n.{number}", {1}, "n")
        world.run(10)
    world.send("x", [(ROOT, m.Confirm(first.epoch, 1, "n", drop=True))])
    world.run(5)
    assert not world.root.naming.cursors.known
    if with_crash:
        world.crash(ROOT)
        world.run(40)
    second = world.subscribe("m", {1}, "n")
    world.run(10)
    world.publish("p", 1, b"\1a")
    world.run(3 * world.times.expire)
    assert (first.phase, second.phase) == (Phase.REFUSED, Phase.ON)


def test_what_was_confirmed_does_not_come_again(seed: int) -> None:
    world = World(random.Random(seed), 2)
    one = Reader("n", frozenset({1}))
    one.come(world)
    world.run(10)
    for number in range(6):
        world.publish("p", 1, b"\1%d" % number)
    world.run(5)
    serials = [what.serial for what in one.now.inbox if isinstance(what, Delivery)]
    assert len(serials) == 6
    world.send(one.now.name, one.now.confirm(serials[2], world.now))
    world.run(5)
    confirming = one.now.confirming
    assert confirming is not None
    assert confirming.stored == serials[2]
    one.go(world)
    world.publish("p", 1, b"\1later")
    world.run(200)  # nobody else wants the node; it stays, and so do the notifications
    world.crash(ROOT)
    world.run(30)
    one.come(world)
    world.run(30)
    payloads = [what.payload for what in one.now.inbox if isinstance(what, Delivery)]
    assert payloads == [b"\0013", b"\0014", b"\0015", b"\1later"]
    world.send(one.now.name, one.now.drop_name(world.now))
    world.run(5)
    confirming = one.now.confirming
    assert confirming is not None
    assert confirming.dropped
    assert not world.root.naming.cursors.known
    one.go(world)
    world.run(200)
    assert not len(world.root.graph)


def test_another_filter_under_the_same_name(seed: int) -> None:
    world = World(random.Random(seed), 1)
    world.subscribe("a", (1,), "n")
    world.run(10)
    other = world.subscribe("b", (1, 2), "n")
    world.run(10)
    assert other.phase is Phase.REFUSED
    assert "found another filter for the name 'n'" in other.refusal


def test_what_matched_a_node_that_is_gone_since(seed: int) -> None:
    """A node below that of the name comes and goes while nobody is there; the rendezvous point is
    started again, twice. Its notifications are not lost."""
    world = World(random.Random(seed), 2)
    one = Reader("n", frozenset({1, 2, 3}))
    one.come(world)
    world.run(10)
    one.go(world)
    between = world.subscribe("between", (1, 2))
    below = world.subscribe("below", (1,))
    world.run(10)
    for number in range(3):
        world.publish("p", 1, b"\1%d" % number)
    world.run(5)
    for other in (below, between):
        world.send(other.name, other.stop(world.now))
        world.run(3 * world.times.expire)
        assert other.node not in world.root.graph
    world.publish("p", 7, b"\7")  # so that everything is on the disk
    world.run(5)
    for _ in range(2):
        world.crash(ROOT)
        assert between.node not in world.root.graph
        world.run(4 * world.times.expire)
    one.come(world)
    settle(world)
    assert [what.payload for what in one.now.inbox if isinstance(what, Delivery)] == [
        b"\1%d" % number for number in range(3)
    ]
    assert not [what for what in one.now.inbox if isinstance(what, Lost | Break)]


def test_whoever_only_asks_does_not_end_a_name() -> None:
    """An agent that comes back asks for its node and dies: the name keeps the node."""
    world = World(random.Random(1), 0)
    one = world.subscribe("n.0", (1, 2), "n")
    world.run(10)
    assert one.phase is Phase.ON
    node = one.node
    world.send("n.0", one.stop(world.now))
    world.run(5)
    world.send("x", [(ROOT, m.Ask(1, encode((1, 2))))])
    world.run(5 * world.times.expire)
    assert node in world.root.graph
    assert node not in world.root.nodes.unwanted
    again = world.subscribe("n.1", (1, 2), "n")
    world.publish("p", 1, b"\1later")
    world.run(10)
    assert [what.payload for what in again.inbox if isinstance(what, Delivery)] == [b"\1later"]
    world.send("n.1", again.drop_name(world.now))
    world.run(5)
    world.send("n.1", again.stop(world.now))
    world.run(5 * world.times.expire)
    assert node not in world.root.graph
