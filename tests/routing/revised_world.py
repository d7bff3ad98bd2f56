"""A simulated network whose channel is revised: what an interest means changes from one moment to
the next. An interest is a set of points, and a table says which points each of them means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tests.routing.definition import memory_of
from tests.routing.world import POINTS, ROOT, SLACK, Disk, Sets, World, encode

from tidings.channel import renumber
from tidings.channel.interests import find_changed
from tidings.model import TidingsError
from tidings.routing.forwarding.cache import Cache
from tidings.routing.protocol import mark_revised
from tidings.routing.protocol.limits import work_of
from tidings.routing.root.interests import Fair, Placed
from tidings.routing.root.journal import Memory
from tidings.routing.root.node_history import History
from tidings.routing.root.rendezvous import Rendezvous

Table = tuple[frozenset[int], ...]
SAME: Table = tuple(frozenset({point}) for point in range(POINTS))


def meaning_of(interest: Iterable[int], table: Table) -> frozenset[int]:
    return frozenset[int]().union(*(table[point] for point in interest))


class Meanings(Sets):
    """A preprocessor of sets of points, by a table. Each interest has a node of its own. Several
    nodes may have the same meaning: the one with the higher number lies above the other."""

    def __init__(self, disk: RevisedDisk, table: Table) -> None:
        self.disk = disk
        self.table = table
        read = {node: meaning_of(points, table) for node, points in disk.nodes.items()}
        self.refused = {node for node, points in read.items() if not points}
        self.nodes = {node: points for node, points in read.items() if points}
        self.texts = dict(disk.nodes)
        self.next = max(disk.history.base, disk.history.version) + 1
        self.aside: set[int] = set()

    def is_above(self, one: int, other: int) -> bool:
        mine, others = self.nodes[one], self.nodes[other]
        return mine > others or (mine == others and one > other)

    def placed(self, node: int) -> Placed:
        above = [one for one in self.nodes if self.is_above(one, node)]
        below = [one for one in self.nodes if self.is_above(node, one)]
        parents = [one for one in above if not any(self.is_above(one, two) for two in above)]
        children = [one for one in below if not any(self.is_above(two, one) for two in below)]
        return Placed(node, tuple(sorted(parents)), tuple(sorted(children)))

    def all_placed(self) -> list[Placed]:
        order = sorted(self.nodes, key=lambda one: (-len(self.nodes[one]), -one))
        return [Placed(node, self.placed(node).parents, ()) for node in order]

    def equal_to(self, node: int) -> list[int]:
        return [node]

    def alike(self, node: int) -> list[int]:
        return [one for one, points in self.nodes.items() if points == self.nodes[node]]

    def place(self, interest: bytes) -> Placed:
        points = meaning_of(interest, self.table)
        if not points:
            raise TidingsError("found no set of points")
        found = self.look_up(interest)[1]
        if found is None:
            found = self.take_number()
            self.nodes[found], self.texts[found] = points, frozenset(interest)
        return self.placed(found)

    def tag(self, content: bytes) -> list[int]:
        if len(content) != 1:
            raise TidingsError("found no point")
        hit = self.among(content, [*self.nodes.keys() - self.aside])
        return sorted(one for one in hit if not any(self.is_above(one, two) for two in hit))

    def among(self, content: bytes, nodes: Sequence[int]) -> list[int]:
        return [one for one in nodes if one in self.nodes and content[0] in self.nodes[one]]

    def tag_fairly(self, content: bytes, owners: Callable[[int], Sequence[str]]) -> Fair:
        return Fair(self.tag(content), {})

    def remove(self, node: int) -> int:
        del self.nodes[node]
        self.aside.discard(node)
        return self.take_number()

    def look_up(self, interest: bytes) -> tuple[bytes, int | None]:
        text = frozenset(interest)
        same = [node for node in self.nodes if self.texts[node] == text]
        return encode(text), min(same, default=None)

    def identity(self, node: int) -> bytes:
        return encode(self.texts[node])


class RevisedDisk(Disk):
    """A disk that also has the tables."""

    @property
    def tables(self) -> list[tuple[int, Table]]:
        """The tables, each with the serial after which it holds."""
        return [(0, SAME), *(what[:2] for kind, what in self.log if kind == "table")]

    @property
    def history(self) -> History:
        found = super().history
        for kind, what in self.log:
            if kind == "table":
                found.renew(what[2], (), "")
        return found

    @property
    def used(self) -> set[int]:
        return super().used | {what[2] for kind, what in self.log if kind == "table"}

    def interests(self) -> list[tuple[int, bytes]]:
        return sorted((node, bytes(sorted(points))) for node, points in self.nodes.items())

    def memory(self, placed: Sequence[Placed] = ()) -> Memory:
        found = memory_of(self.records(), Memory(self.lineage), {one.node: one for one in placed})
        found.owners = self.owners
        found.history, found.cursors, found.term = self.history, self.cursors, self.term
        found.sizes = {node: work_of(bytes(points)) for node, points in self.nodes.items()}
        return found


class RevisedWorld(World):
    """See the top of the module."""

    disk: RevisedDisk
    revisions = 0
    replaced = 0

    def _new_root(self) -> Rendezvous:
        if not isinstance(self.disk, RevisedDisk):
            self.disk = RevisedDisk()
            self.disk.slack = SLACK
        self.disk.synced = len(self.disk.log)
        self._begin_life(revised=False)
        return self._load_root()

    def _begin_life(self, *, revised: bool) -> None:
        self.disk.begin_life(mark_revised(self.chance.randrange(1, 1 << 63), revised=revised))

    def _load_root(self) -> Rendezvous:
        self._base = len(self.disk.log)
        interests = Meanings(self.disk, self.disk.tables[-1][1])
        memory = self.disk.memory(interests.all_placed())
        root = Rendezvous(
            ROOT, interests, self.disk, memory, self.times, Cache(50),
            nodes_for_types=self.nodes_for_types,
        )  # fmt: skip
        root.forwarding = self._any_forwarding()
        return root

    def revise(self, table: Table) -> None:
        """Another table holds from now on. The root may be killed before it has noted so."""
        self._sync(self.root.written)
        for _ in range(self.chance.choice((1, 1, 1, 2))):  # killed, and started again
            before = Meanings(self.disk, self.disk.tables[-1][1])
            after = Meanings(self.disk, table)
            changed = find_changed(before.all_placed(), after.all_placed())
            self._begin_life(revised=True)
            self.replaced += len(
                renumber(
                    self.disk,
                    changed,
                    before.all_placed(),
                    after.all_placed(),
                    after.equal_to,
                    after.alike,
                )
            )
            self.disk.synced = len(self.disk.log)
        serial = max((one.serial for one in self.disk.records()), default=0)
        version = Meanings(self.disk, table).take_number()
        self.disk.log.append(("table", (serial, table, version)))
        self.disk.synced = len(self.disk.log)
        self.root = self._load_root()
        self.revisions += 1
        self._skipped |= {(ROOT, who) for who, one in self.routers.items() if one.upstream == ROOT}
        self._skipped |= {
            (ROOT, who) for who, one in self.subscribers.items() if one.router == ROOT
        }

    def any_table(self) -> Table:
        """A table that differs from the present one in a few points."""
        table, chance = list(self.disk.tables[-1][1]), self.chance
        for _ in range(chance.randrange(1, 4)):
            few = chance.sample(range(POINTS), chance.choice((1, 1, 2, 3)))
            table[chance.randrange(POINTS)] = frozenset(few)
        return tuple(table)

    def due(self, interest: Iterable[int], after: int) -> list[bytes]:
        """By the definition: what an interest meant when a notification was accepted."""
        tables = self.disk.tables
        found: list[bytes] = []
        for record in self.disk.records():
            if record.serial > after:
                table = next(one for serial, one in reversed(tables) if serial < record.serial)
                if record.payload[0] in meaning_of(interest, table):
                    found.append(record.payload)
        return found


def check_edges(world: RevisedWorld) -> None:
    """All graphs are as defined by the present table."""
    there = world.root.interests
    assert isinstance(there, Meanings)
    for name, one in {ROOT: world.root, **world.routers}.items():
        pairs = {(a, b) for a in one.graph for b in one.graph if there.is_above(a, b)}
        reduced = {
            (a, b)
            for a, b in pairs
            if not any((a, c) in pairs and (c, b) in pairs for c in one.graph)
        }
        assert {(a, b) for a in one.graph for b in one.graph.children(a)} == reduced, name
