"""A simulated network: routers, subscribers, publishers and pipelines on links that delay, drop and
repeat messages, in simulated time. Interests are sets of points, notifications are points."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from tests.routing.definition import memory_of
from tests.routing.pipelines import Pipeline
from tests.routing.simulation import Simulation

from tidings.model import TidingsError
from tidings.routing.clients.publisher import Publisher
from tidings.routing.clients.subscriber import Phase, Subscriber
from tidings.routing.forwarding.cache import Cache
from tidings.routing.forwarding.locating import LOCATOR
from tidings.routing.forwarding.moving_router import MovingRouter
from tidings.routing.forwarding.router import Router
from tidings.routing.forwarding.ways import Forwarding, Mode
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.contents.bodies import About
from tidings.routing.protocol.limits import work_of
from tidings.routing.protocol.lineage import Lineage
from tidings.routing.protocol.tags import pack_tag
from tidings.routing.protocol.times import Times
from tidings.routing.root.cursors import Confirmation, Cursor
from tidings.routing.root.interests import Fair, Placed, TaggedMany
from tidings.routing.root.journal import Memory
from tidings.routing.root.node_history import History, RemovedNode
from tidings.routing.root.records import Block, Progress, Record
from tidings.routing.root.rendezvous import Rendezvous

POINTS = 8
ROOT = "root"
FULL = "the disk is full"
TICK = 0.5
SLACK = 30  # as journals have: who is just about to join is not known of yet


def encode(points: Iterable[int]) -> bytes:
    return bytes(sorted(points))


class Sets:
    """A preprocessor of sets of points."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.numbers = {points: node for node, points in disk.nodes.items()}
        self.next = disk.history.base + 1
        self.aside: set[int] = set()
        self.suggested = 0

    def place(self, interest: bytes) -> Placed:
        points = frozenset(interest)
        if not points or max(points) >= POINTS:
            raise TidingsError("found no set of points")
        node = self.numbers.get(points)
        if node is None:
            node, self.next = self.next, self.next + 1
            self.numbers[points] = node
        return placed(node, self.numbers)

    def place_at(
        self, interest: bytes, key: bytes, above: Sequence[int], below: Sequence[int],
        newer: Sequence[int],
    ) -> Placed:  # fmt: skip
        """What is suggested must be true, and leave out only newer nodes."""
        points, sets = frozenset(interest), {node: p for p, node in self.numbers.items()}
        if points not in self.numbers:
            over = {n for n, p in sets.items() if p > points} - {*newer}
            under = {n for n, p in sets.items() if p < points} - {*newer}
            assert all(sets[node] > points for node in above)
            assert all(sets[node] < points for node in below)
            assert all(any(sets[one] <= sets[node] for one in above) for node in over)
            assert all(any(sets[one] >= sets[node] for one in below) for node in under)
            self.suggested += 1
        return self.place(interest)

    def tag(self, content: bytes) -> list[int]:
        if len(content) != 1:
            raise TidingsError("found no point")
        there = {p: n for p, n in self.numbers.items() if n not in self.aside}
        return lowest({p: n for p, n in there.items() if content[0] in p})

    def tag_many(self, contents: Sequence[bytes]) -> TaggedMany:
        tags, refused = list[list[int]](), dict[int, TidingsError]()
        for at, content in enumerate(contents):
            try:
                tags.append(sorted(self.tag(content)))
            except TidingsError as problem:
                tags.append([])
                refused[at] = problem
        starts = np.cumsum([0, *map(len, tags)], dtype=np.int64)
        return TaggedMany(starts, np.array([n for one in tags for n in one], np.int64), refused)

    def among(self, content: bytes, nodes: Sequence[int]) -> list[int]:
        if len(content) != 1:
            raise TidingsError("found no point")
        return [n for p, n in self.numbers.items() if n in nodes and content[0] in p]

    def tag_fairly(self, content: bytes, owners: Callable[[int], Sequence[str]]) -> Fair:
        return Fair(self.tag(content), {})

    def remove(self, node: int) -> int:
        self.numbers = {points: one for points, one in self.numbers.items() if one != node}
        self.aside.discard(node)
        self.next += 1
        return self.next - 1

    def take_number(self) -> int:
        self.next += 1
        return self.next - 1

    def text(self, node: int) -> str:
        return self.identity(node).hex()

    def refuse_outside(self, interest: bytes, within: Sequence[str]) -> str:
        is_inside = all(set(interest) <= {*bytes.fromhex(one)} for one in within)
        return "" if is_inside else "found points outside"

    def lies_within(self, node: int, within: Sequence[str]) -> bool:
        return not self.refuse_outside(self.identity(node), within)

    def type_of(self, content: bytes) -> str:
        """The type of a point is the set that has only this point."""
        return str(content[0])

    def find_type(self, type_: str) -> tuple[bytes, int | None]:
        interest = bytes([int(type_)])
        return interest, self.look_up(interest)[1]

    def type_at(self, node: int) -> str:
        points = self.identity(node)
        return str(points[0]) if len(points) == 1 else ""

    def equal(self, node: int) -> Sequence[int]:
        return ()

    def set_aside(self, nodes: Iterable[int]) -> None:
        self.aside.update(nodes)

    def bring_back(self, node: int) -> None:
        self.aside.discard(node)

    def look_up(self, interest: bytes) -> tuple[bytes, int | None]:
        return encode(set(interest)), self.numbers.get(frozenset(interest))

    def identity(self, node: int) -> bytes:
        return next(encode(points) for points, one in self.numbers.items() if one == node)


def lowest(numbers: dict[frozenset[int], int]) -> list[int]:
    return sorted(n for p, n in numbers.items() if not any(other < p for other in numbers))


def placed(node: int, numbers: dict[frozenset[int], int]) -> Placed:
    mine = next(points for points, number in numbers.items() if number == node)
    above = {points: number for points, number in numbers.items() if points > mine}
    below = {points: number for points, number in numbers.items() if points < mine}
    highest = sorted(n for p, n in below.items() if not any(other > p for other in below))
    return Placed(node, tuple(lowest(above)), tuple(highest))


class Disk:
    """What the root wrote down, and how much of it is there for good."""

    def __init__(self) -> None:
        self.log: list[tuple[str, Any]] = []
        self.synced = 0
        self.kept = 0  # notifications up to this serial were pruned
        self.slack = 0  # that stay though nobody seems to need them

    def begin_life(self, life: int) -> None:
        serial = max((record.serial for record in self.records()), default=0)
        lives = (*self.lineage, m.Life(life, serial + 1))
        base = Lineage(lives).first_node(max(self.used, default=0))
        self.log.append(("life", (lives[-1], base)))
        self.synced = len(self.log)

    @property
    def lineage(self) -> tuple[m.Life, ...]:
        return tuple(what[0] for kind, what in self.log if kind == "life")[-m.MOST_LIVES :]

    def add_node(self, node: int, interest: bytes, owner: str = "", key: bytes = b"") -> None:
        self.log.append(("add", (node, frozenset(interest), owner)))

    def set_owners(self, node: int, owners: tuple[str, ...]) -> None:
        self.log.append(("own", (node, owners)))

    def drop_node(self, node: int, gone: RemovedNode) -> None:
        self.log.append(("drop", (node, gone)))

    def append(self, record: Record) -> None:
        self.log.append(("record", record))

    def append_block(self, block: Block) -> None:
        self.log.append(("block", block))

    def find(
        self, ranges: Iterable[m.Range], most_bytes: int
    ) -> tuple[list[m.Notification], list[m.Range]]:
        cache = Cache(10**9, 1 << 60)
        for record in self.records():
            if record.serial > self.kept:
                cache.put(record.notification(self.lineage[-1].life))
        return cache.find(ranges, most_bytes)

    def set_rows(self, first: int, rows: Sequence[object]) -> None:
        self.log.append(("rows", (first, tuple(rows))))

    def set_cursor(self, key: str, cursor: Cursor | None) -> None:
        self.log.append(("cursor", (key, cursor)))

    def confirm(self, key: str, one: Confirmation) -> None:
        self.log.append(("confirm", (key, one)))

    @property
    def cursors(self) -> dict[str, Cursor]:
        found: dict[str, Cursor] = {}
        for kind, what in self.log:
            if kind == "cursor":
                found.pop(what[0], None)
                if what[1] is not None:
                    found[what[0]] = what[1]
            elif kind == "confirm":
                found[what[0]] = found[what[0]].confirm(*what[1:])
        return found

    @property
    def term(self) -> int:
        return max(
            (what[1].term for kind, what in self.log if kind == "cursor" and what[1]), default=0
        )

    def forget_publishers(self, names: Iterable[str]) -> None:
        pass

    def prune(self, upto: int) -> None:
        self.kept = max(self.kept, upto - self.slack)

    # -- for the world -------------------------------------------------------------------------

    def records(self) -> list[Record]:
        found: list[Record] = []
        for kind, what in self.log[: self.synced]:
            if kind == "record":
                found.append(what)
            elif kind == "block":
                found += what.records()
        return found

    @property
    def used(self) -> set[int]:
        begun = {what[0] for kind, what in self.log if kind == "add"}
        return begun | {what[1].version for kind, what in self.log if kind == "drop"}

    @property
    def history(self) -> History:
        found = History()
        for kind, what in self.log:
            if kind == "life":
                found.begin_life(what[0].life, what[1], broken=False)
            elif kind == "add":
                found.add(what[0])
            elif kind == "drop":
                found.drop(*what)
        return found

    @property
    def sources(self) -> dict[str, Progress]:
        return {what.source: what.progress for kind, what in self.log if kind == "block"}

    @property
    def nodes(self) -> dict[int, frozenset[int]]:
        found: dict[int, frozenset[int]] = {}
        for kind, what in self.log:
            if kind == "add":
                found[what[0]] = what[1]
            elif kind == "drop":
                found.pop(what[0], None)
        return found

    @property
    def owners(self) -> dict[int, tuple[str, ...]]:
        found: dict[int, tuple[str, ...]] = {}
        for kind, what in self.log:
            if kind == "add":
                found[what[0]] = (what[2],)
            elif kind == "own":
                found[what[0]] = what[1]
        return {node: owners for node, owners in found.items() if node in self.nodes}

    def crash(self) -> None:
        del self.log[self.synced :]

    def copy(self, synced: int | None = None) -> Disk:
        """A backup of what was there when so much was."""
        found = Disk()
        found.log = self.log[: self.synced if synced is None else synced]
        found.synced = len(found.log)
        last = max((record.serial for record in found.records()), default=0)
        found.kept, found.slack = min(self.kept, last), self.slack
        return found

    def memory(self) -> Memory:
        numbers = {points: node for node, points in self.nodes.items()}
        by_size = sorted(numbers.items(), key=lambda item: -len(item[0]))
        places = {node: placed(node, numbers) for _, node in by_size}
        found = memory_of(self.records(), Memory(self.lineage), places)
        # nodes are put in one after the other: children come later, and name their parents
        found.placed = [msgspec.structs.replace(one, children=()) for one in found.placed]
        found.owners = self.owners
        found.history, found.sources = self.history, self.sources
        found.cursors, found.term = self.cursors, self.term
        for source in found.sources:
            found.publishers.pop(source, None)
        found.sizes = {node: work_of(bytes(points)) for node, points in self.nodes.items()}
        return found


class Faults(msgspec.Struct):
    """Chances, of a message."""

    drop: float = 0.0
    repeat: float = 0.0
    delay: float = 0.05  # seconds at most


class World(Simulation):
    """A tree of routers with subscribers and publishers at them."""

    nodes_for_types = 0

    def __init__(
        self,
        chance: random.Random,
        routers: int,
        times: Times | None = None,
        movers: int = 0,
        *,
        locates: bool = False,
    ) -> None:
        """Movers are routers without routers below them, which move from one node to another. With
        `locates`, most routers ask a preprocessor for the places of nodes."""
        self.chance = chance
        self.locates = locates
        self.views: list[tuple[int, int, dict[int, frozenset[int]]]] = []  # epoch, version, nodes
        self.behind = 6  # preprocessors and publishers have one of so many views
        self.redraws = 0
        self.times = times or Times()
        self._lives = 0
        self.faults = Faults()
        self.disk = Disk()
        self.disk.slack = SLACK
        self.backups: list[Disk] = []
        self.went_back = False  # did the journal ever?
        self.on_since: dict[str, float] = {}  # since when subscriptions are in force
        self.published_at: dict[tuple[str, int], float] = {}
        self.root = self._new_root()
        self.parents: dict[str, str] = {}
        self.movers: dict[str, list[str]] = {}  # with the nodes that they can be linked to
        self.routers: dict[str, Router] = {}
        for number in range(routers):
            name = f"r{number}"
            self.parents[name] = chance.choice([ROOT, *self.routers])
            self.routers[name] = self._new_router(name)
        there = [ROOT, *self.routers]
        for number in range(movers):
            name = f"m{number}"
            self.movers[name] = there
            self.parents[name] = chance.choice(there)
            self.routers[name] = self._new_router(name)
        self.moves = 0  # that were made
        self.subscribers: dict[str, Subscriber] = {}
        self.publishers: dict[str, Publisher] = {}
        self.pipelines: dict[str, Pipeline] = {}
        self.tags = False  # do publishers tag what they publish, at some version of late?
        self.mirrors: list[tuple[int, int, dict[int, frozenset[int]]]] = []  # life, version, nodes
        self.tagged = 0
        self.grants = False  # do subscribers have signed grants where there are nodes?
        self.seen: list[tuple[int, dict[int, frozenset[int]]]] = []  # life, nodes
        self.published: dict[tuple[str, int], bytes] = {}  # by publisher and stamp
        self.wrong: set[tuple[str, int]] = set()  # those that must be refused
        self.full = False  # is the disk?
        # Do links say so when they drop something, as real ones do? Only then can subscribers
        # keep the order and lose nothing.
        self.signals = chance.random() < 0.5
        self._skipped: set[tuple[Any, Any]] = set()  # links that must say so
        self.cut: set[str] = set()  # who hears nothing, and is not heard
        self._events: list[tuple[float, int, Any]] = []
        self._links: dict[tuple[Any, Any], float] = {}
        self._down: dict[Any, float] = {}  # who is down until when
        self._at(TICK, ("tick",))

    # -- what happens --------------------------------------------------------------------------

    def subscribe(
        self,
        name: str,
        points: Iterable[int],
        durable: str = "",
        granted: tuple[int, int] | None = None,
    ) -> Subscriber:
        router = self.choose()
        ordered = self.signals and self.chance.random() < 0.5
        granted = granted or self._grant(frozenset(points))
        one = Subscriber(name, router, encode(points), self.times, ordered=ordered, durable=durable,
                         granted=granted)  # fmt: skip
        self.subscribers[name] = one
        self.send(name, one.start(self.now))
        return one

    def _grant(self, points: frozenset[int]) -> tuple[int, int] | None:
        """A grant for the node of some points, by one who has seen it now or some time ago."""
        if not self.grants:
            return None
        if len(self.disk.log) == self.disk.synced:
            self.seen.append((self.disk.lineage[-1].life, self.disk.nodes))
        life, nodes = self.chance.choice(self.seen[-5:] or [(0, {})])
        found = [node for node, one in nodes.items() if one == points]
        return (life, found[0]) if found else None

    def publish(
        self, name: str, point: int | None, payload: bytes, about: About | None = None
    ) -> int:
        """Publish a point, or something that is none; return the stamp."""
        one = self.publishers.get(name)
        if one is None:
            router = self.choose()
            one = self.publishers[name] = Publisher(name, router, self.times, window=20)
        content = b"" if point is None else bytes([point])
        tag = b"" if point is None else self._tag(point)
        self.send(name, one.publish(content, payload, self.now, about, tag))
        stamp = one.acknowledged + one.waiting
        self.published[name, stamp] = payload
        self.published_at[name, stamp] = self.now
        if point is None:
            self.wrong.add((name, stamp))
        return stamp

    def _tag(self, point: int) -> bytes:
        """The tag of a point by one of the last mirrors, or none."""
        if not self.tags or not self.mirrors or self.chance.random() < 0.2:
            return b""
        life, version, nodes = self.chance.choice(self.mirrors[-self.behind :])
        self.tagged += 1
        there = {points: node for node, points in nodes.items() if point in points}
        return pack_tag(life, version, lowest(there))

    def choose(self) -> str:
        """The node to which a client is linked."""
        return self.chance.choice([ROOT, *self.routers])

    def pipe(self, name: str, payloads: Sequence[bytes]) -> None:
        """A pipeline gets a batch of points; it is linked to the root."""
        one = self.pipelines.get(name)
        if one is None:
            one = self.pipelines[name] = Pipeline(name, ROOT, self.times, self.chance)
        self.send(name, one.begin_batch(payloads, self.now))

    def crash(self, name: str, *, disk: Disk | None = None) -> None:
        """A router loses its memory; the root also what was not on its disk, or has another one."""
        if name == ROOT:
            self.disk.crash()
            if disk is not None:
                self.backups.append(self.disk)
                self.disk = disk.copy()
                self.disk.slack = SLACK
                self.went_back = True
            self.root = self._new_root()
        else:
            self.routers[name] = self._new_router(name)
        self._down[name] = self.now + self.chance.random() * 3
        below = [who for who, one in self.routers.items() if one.upstream == name]
        below += [who for who, one in self.subscribers.items() if one.router == name]
        self._skipped |= {(name, one) for one in below}

    def move(self, name: str) -> None:
        """A router begins to move, or its second link ends, with what is under way over it."""
        router = self.routers[name]
        assert isinstance(router, MovingRouter)
        second = next((one for one in (router.upstream, router.beside) if one != router.home), None)
        if second is not None and self.chance.random() < 0.4:
            self._events = [
                one for one in self._events
                if one[2][0] != "message" or {*one[2][1:3]} != {name, second}
            ]  # fmt: skip
            heapq.heapify(self._events)
            self.send(name, router.end_link(second, self.now))
        else:
            other = self.chance.choice(self.movers[name]) if second is None else second
            there = [router.home, other]
            self.send(name, router.move(self.chance.choice(there), self.now))

    def relink(self, name: str) -> None:
        """A subscriber loses its link, with what is under way over it, and is linked to another
        node."""
        one = self.subscribers[name]
        old = one.router
        self._events = [
            event for event in self._events
            if event[2][0] != "message" or {*event[2][1:3]} != {name, old}
        ]  # fmt: skip
        heapq.heapify(self._events)
        node = self.root if old == ROOT else self.routers[str(old)]
        node.context.now = self.now
        node.drop(name)
        self.send(old, node.drain_outgoing())
        one.router = self.choose()
        self._skipped.add((one.router, name))

    def cut_off(self, name: str) -> None:
        """Nothing from or to it arrives any more, not even what is under way."""
        self.cut.add(name)
        ours = [one for one in self._events if one[2][0] == "message" and name in one[2][1:3]]
        self._events = [one for one in self._events if one not in ours]
        heapq.heapify(self._events)

    # -- how -----------------------------------------------------------------------------------

    def send(self, sender: Any, sent: Iterable[tuple[Any, m.Message]]) -> None:
        for to, message in sent:
            if to == LOCATOR:
                assert isinstance(message, m.Locate)
                self._locate(sender, message)
                continue
            self.redraws += isinstance(message, m.Redraw)
            # a real link drops nothing else; if it ends, everything is said again
            may_drop = not self.signals or isinstance(message, m.Notification)
            if (may_drop and self.chance.random() < self.faults.drop) or {sender, to} & self.cut:
                self._skipped.add((sender, to))
                continue
            if self.signals and (sender, to) in self._skipped:
                self._skipped.remove((sender, to))
                at = max(self._links.get((sender, to), 0.0), self.now)
                self._at(at, ("message", sender, to, m.Skipped()))
            copies = 2 if self.chance.random() < self.faults.repeat else 1
            for _ in range(copies):
                delay = self.chance.random() * self.faults.delay
                at = max(self._links.get((sender, to), 0.0), self.now + delay)
                if isinstance(message, m.Trace | m.Lineage) and self.chance.random() < 0.3:
                    at += self.chance.random() * 5  # as over a link that was thought to be gone
                else:
                    self._links[sender, to] = at
                self._at(at, ("message", sender, to, message))

    def _locate(self, name: str, asked: m.Locate) -> None:
        """A preprocessor answers now, soon, after the router has lost its patience, or never. It
        has one of the last views, and may leave nodes out."""
        what = self.chance.random()
        if what < 0.1 * bool(self.faults.drop):
            return
        self._view()
        if not self.views:  # it has read nothing yet
            return
        epoch, version, nodes = self.chance.choice(self.views[-self.behind :])
        found: list[m.NodePlace] = []
        for node in asked.nodes:
            if node in nodes and (self.behind == 1 or self.chance.random() < 0.95):
                mine = nodes[node]
                above = tuple(sorted(one for one, points in nodes.items() if points > mine))
                below = tuple(sorted(one for one, points in nodes.items() if points < mine))
                found.append(m.NodePlace(node, above, below))
        answer = None if what < 0.2 and self.behind > 1 else m.Located(
            epoch, asked.request, version, tuple(found)
        )  # fmt: skip
        late = self.times.retry * 2 if what > 0.95 and self.behind > 1 else self.faults.delay
        at = self.now + self.chance.random() * late
        self._at(at, ("places", self.routers[name], name, asked, answer))

    def _view(self) -> None:
        """A preprocessor follows the changes, all of which are on the disk."""
        if len(self.disk.log) == self.disk.synced:
            view = self.disk.lineage[-1].life, self.disk.history.version, self.disk.nodes
            if not self.views or self.views[-1][:2] != view[:2]:
                self.views.append(view)

    def _at(self, when: float, event: Any) -> None:
        self._put(when, event)

    def _happen(self, event: Any) -> None:
        if event[0] == "tick":
            self._tick()
            self._at(self.now + TICK, ("tick",))
        elif event[0] == "sync":
            if event[1] is self.disk and self.root.written >= event[2]:
                self._sync(event[2])
        elif event[0] == "places":
            _, router, name, asked, answer = event
            if router is self.routers[name]:
                self.send(name, router.take_places(asked, answer, self.now))
        elif event[0] == "piece":
            if event[1] is self.root:  # with a link, what waits from it is gone
                self._take(*event[2:])
        else:
            _, sender, to, message = event
            if self._down.get(to, 0.0) <= self.now:
                self._take(sender, to, message)

    def _take(self, sender: Any, to: Any, message: m.Message) -> None:
        if to == ROOT and isinstance(message, m.HandOver):
            for piece in self.root.split(message):  # others have their turn in between
                at = max(self._links.get((sender, "pieces"), 0.0), self.now)
                self._links[sender, "pieces"] = at = at + self.chance.random() * 0.01
                self._at(at, ("piece", self.root, sender, ROOT, piece))
        elif to == ROOT:
            before = self.root.written
            self.send(ROOT, self.root.receive(sender, message, self.now))
            if self.root.written > before or self.root.queue:
                delay = self.chance.random() * 0.02
                self._at(self.now + delay, ("sync", self.disk, self.root.written))
        elif to in self.routers:
            router = self.routers[to]
            above = router.upstream
            self.send(to, router.receive(sender, message, self.now))
            self.moves += router.upstream != above
        elif to in self.subscribers:
            one = self.subscribers[to]
            phase = one.phase
            self.send(to, one.receive(message, self.now))
            if one.phase is Phase.ON and phase is not Phase.ON:
                self.on_since[to] = self.now
        elif to in self.publishers:
            self.send(to, self.publishers[to].receive(message, self.now))
        elif to in self.pipelines:
            self.send(to, self.pipelines[to].receive(message, self.now))

    def _sync(self, count: int) -> None:
        if self.full and len(self.disk.log) > self.disk.synced:
            self.send(ROOT, self.root.fail(FULL))
            self.disk.crash()
            return
        self.disk.synced = max(self.disk.synced, min(len(self.disk.log), self._base + count))
        if self.locates:
            self._view()
        self.send(ROOT, self.root.mark_stored(count, self.now))

    def _tick(self) -> None:
        if self.root.failed and not self.full:
            self.root = self._new_root()
        if self.tags and len(self.disk.log) == self.disk.synced:
            history = self.disk.history
            self.mirrors.append((history.life, history.version, self.disk.nodes))
        for router in self.routers.values() if self.locates and self.behind > 1 else ():
            if self.chance.random() < 0.02:  # its link to a preprocessor comes and goes
                router.locating.is_on = not router.locating.is_on
        everyone: dict[str, Any] = {ROOT: self.root, **self.routers, **self.subscribers}
        for name, one in {**everyone, **self.publishers, **self.pipelines}.items():
            if self._down.get(name, 0.0) <= self.now:
                self.send(name, one.tick(self.now))

    def _new_root(self) -> Rendezvous:
        self.disk.synced = len(self.disk.log)
        self.disk.begin_life(self.chance.randrange(1, 1 << 63))
        self._base = len(self.disk.log)
        root = Rendezvous(ROOT, Sets(self.disk), self.disk, self.disk.memory(), self.times,
                          Cache(50), nodes_for_types=self.nodes_for_types)  # fmt: skip
        root.forwarding = self._any_forwarding()
        return root

    def _new_router(self, name: str) -> Router:
        self._lives += 1
        kind = MovingRouter if name in self.movers else Router
        router = kind(name, self.parents[name], self.times, Cache(20), self._lives)
        router.forwarding = self._any_forwarding()
        router.locating.is_on = self.locates
        return router

    def _any_forwarding(self) -> Forwarding:
        mode = self.chance.choice(list(Mode))
        return Forwarding(mode, self.chance.choice([0.0, 20.0, 1000.0]), 1.0)
