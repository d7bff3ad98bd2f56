"""Named subscriptions and payloads in pieces, in a simulated network: readers come, go and die
between the pieces, and get each payload whole; what they confirmed does not come again."""

from __future__ import annotations

import random

import msgspec
from tests.routing.test_network import read_inbox, settle
from tests.routing.world import POINTS, ROOT, Faults, World

from tidings.routing.clients.delivering.pieces import LONGEST
from tidings.routing.clients.subscriber import Delivery, Lost, Phase, Subscriber
from tidings.routing.protocol import About, Piece, unwrap


class Author(msgspec.Struct):
    """Publishes payloads, many of them in pieces, piece by piece."""

    name: str
    number: int = 0
    first: int = 0
    point: int = 0
    parts: list[bytes] = []
    at: int = 0

    def go_on(self, world: World) -> None:
        if self.at == len(self.parts):
            self.number += 1
            self.point = world.chance.randrange(POINTS)
            count = world.chance.choice((1, 1, 2, 3, 5))
            whole = bytes([self.point]) + f"{self.name}:{self.number}".encode()
            cuts = sorted(world.chance.randrange(1, len(whole)) for _ in range(count - 1))
            ends = [*cuts, len(whole)]
            self.parts = [whole[a:b] for a, b in zip([0, *cuts], ends, strict=True)]
            self.at = 0
        about = None
        if len(self.parts) > 1:
            known = world.publishers.get(self.name)
            stamp = 1 if known is None else known.acknowledged + known.waiting + 1
            self.first = stamp - self.at
            about = About(piece=Piece(self.first, self.at, len(self.parts)))
        world.publish(self.name, self.point, self.parts[self.at], about)
        self.at += 1


class Reader(msgspec.Struct):
    name: str
    points: frozenset[int]
    came: list[Subscriber] = []
    stays: list[list[Delivery]] = []  # what was told in each stay
    confirmed: dict[bytes, int] = {}  # by payload: the serial of a confirmation that is on the disk
    lost: int = 0

    @property
    def now(self) -> Subscriber:
        return self.came[-1]

    def come(self, world: World) -> None:
        self._note_confirmed()
        self.came.append(world.subscribe(f"{self.name}.{len(self.came)}", self.points, self.name))
        self.stays.append([])

    def read(self, world: World) -> None:
        found, lost = read_inbox(self.name, self.now)
        self.lost += lost
        for what in found:
            assert what.payload not in self.confirmed, f"{self.name} got {what} again"
        self.stays[-1] += found
        told = [one.payload for one in self.stays[-1]]
        assert len(set(told)) == len(told), f"{self.name} got something twice"
        serials = [what.serial for what in found]
        if serials and world.chance.random() < 0.7:
            world.send(self.now.name, self.now.confirm(world.chance.choice(serials), world.now))

    def _note_confirmed(self) -> None:
        for one, told in zip(self.came[-1:], self.stays[-1:], strict=True):
            assert one.confirming is not None
            stored = one.confirming.stored
            self.confirmed |= {what.payload: stored for what in told if what.serial <= stored}

    def leave(self, world: World) -> None:
        if world.chance.random() < 0.5:
            self.read(world)
            world.send(self.now.name, self.now.stop(world.now))
        else:  # it is killed: nothing from it arrives any more
            world.cut_off(str(self.now.name))
            self.now.stop(world.now)


def play(world: World, steps: int, *, crashes: float) -> tuple[list[Reader], list[Author]]:
    chance = world.chance
    sets = [frozenset(chance.sample(range(POINTS), chance.randrange(3, POINTS))) for _ in range(4)]
    readers = [Reader(f"n{at}", points) for at, points in enumerate(sets)]
    authors = [Author(f"p{at}") for at in range(3)]
    for one in readers:
        one.come(world)
    world.run(15)
    assert all(one.now.phase is Phase.ON for one in readers)
    for _ in range(steps):
        what, one = chance.random(), chance.choice(readers)
        if what < 0.15:
            if one.now.phase is Phase.STOPPED:
                one.come(world)
            else:
                one.leave(world)
        elif what < 0.4:
            if one.now.phase is Phase.ON:
                one.read(world)
        elif what < 0.4 + crashes:
            world.crash(chance.choice([ROOT, *world.routers]))
        else:
            chance.choice(authors).go_on(world)
        world.run(chance.random() * 1.5)
    return readers, authors


def check(world: World, readers: list[Reader]) -> None:
    for one in readers:
        if one.now.phase is Phase.STOPPED:
            one.come(world)
    settle(world)
    for one in readers:
        assert one.now.phase is Phase.ON, one.name
        one.read(world)
        due = wholes(world, one.came[0].stream.begun)
        due = {payload for payload in due if payload[0] in one.points}
        told = {what.payload for stay in one.stays for what in stay}
        assert told == due, (one.name, due ^ told)
        assert not one.lost, one.name


def wholes(world: World, after: int) -> set[bytes]:
    """The payloads whose pieces are all on the disk, after a serial."""
    found: set[bytes] = set()
    parts: dict[tuple[str, int], dict[int, bytes]] = {}
    for record in world.disk.records():
        about, payload = unwrap(record.payload)
        if record.serial <= after:
            continue
        if about.piece is None:
            found.add(payload)
        else:
            first, at, of = about.piece
            there = parts.setdefault((record.publisher, first), {})
            there[at] = payload
            if len(there) == of:
                found.add(b"".join(there[one] for one in range(of)))
    return found


def test_whoever_comes_back_gets_payloads_whole(seed: int) -> None:
    for round_ in range(6):
        chance = random.Random(f"{seed} {round_}")
        world = World(chance, chance.randrange(0, 5))
        world.signals = True
        readers, _ = play(world, 150, crashes=0.0)
        check(world, readers)


def test_the_same_with_faults_and_crashes(seed: int) -> None:
    for round_ in range(6):
        chance = random.Random(f"{seed} {round_} faults")
        world = World(chance, chance.randrange(1, 5))
        world.signals = True
        world.faults = Faults(chance.choice((0.02, 0.1)), 0.02, chance.choice((0.02, 0.2)))
        readers, _ = play(world, 150, crashes=0.03)
        check(world, readers)


def test_an_author_that_dies_between_two_pieces(seed: int) -> None:
    """What the reader confirms afterwards stays confirmed; in the end, it is told of a loss, and
    the rendezvous point keeps nothing for it any more."""
    world = World(random.Random(seed), 2)
    one = Reader("n", frozenset({1}))
    one.come(world)
    world.run(10)
    world.publish("a", 1, b"\1half", About(piece=Piece(1, 0, 2)))
    world.run(2)
    for number in range(3):
        world.publish("b", 1, b"\1%d" % number)
    world.run(5)
    assert [what.payload for what in one.now.inbox if isinstance(what, Delivery)] == [
        b"\1%d" % number for number in range(3)
    ]
    last = max(what.serial for what in one.now.inbox if isinstance(what, Delivery))
    world.send(one.now.name, one.now.confirm(last, world.now))
    world.run(5)
    (cursor,) = world.root.naming.cursors.known.values()
    assert (cursor.serial, cursor.upto, cursor.gaps) == (last - 4, last, (last - 3,))
    world.send(one.now.name, one.now.stop(world.now))
    world.crash(ROOT)
    world.run(30)
    one.come(world)
    world.run(30)
    assert not one.now.inbox
    world.publish("b", 1, b"\1later")
    world.run(LONGEST + 30)
    kinds = [type(what) for what in one.now.inbox if isinstance(what, Delivery | Lost)]
    assert sorted(kind.__name__ for kind in kinds) == ["Delivery", "Lost"]
    last = max(what.serial for what in one.now.inbox if isinstance(what, Delivery))
    world.send(one.now.name, one.now.confirm(last, world.now))
    world.run(5)
    (cursor,) = world.root.naming.cursors.known.values()
    assert (cursor.serial, cursor.gaps) == (last, ())
