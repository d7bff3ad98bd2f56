"""Simulated networks with a channel that has relations, and an oracle of what each subscriber gets.

The oracle computes from the parts of which filters are made: it reads no filter, and relates values
pair by pair (full_scan.py)."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import msgspec
from tests.routing.definition import memory_of
from tests.routing.world import ROOT, Disk, World

from tidings.channel.related import RelatedArrayInterests
from tidings.preprocessing import Kind
from tidings.relations import Reading, RelationSettings, Term, load_relations
from tidings.relations.clusters.full_scan import relate
from tidings.routing.clients.subscriber import Subscriber
from tidings.routing.forwarding.cache import Cache
from tidings.routing.protocol import Limits, relate_dialect
from tidings.routing.protocol.limits import work_of
from tidings.routing.root import Memory, Rendezvous

SETTINGS = RelationSettings(
    load_relations(language=None), Reading(place="city", time="day", tag="tags", person="author")
)
CITIES = ("Chicago", "Evanston", "Milwaukee", "Illinois", "Paris", "Versailles", "nowhere")
DAYS = ("2013-12-22", "2013-12-25", "2013-12-26", "2013-12", "Christmas", "2014-07-04")
TAGS = ("rose", "flower", "tulip", "plant", "other")
PEOPLE = ("Anna", "Ben", "David", "Dave", "Zoe")


class Clause(NamedTuple):
    """One alternative of a filter: the values that it names in each context, and other tests."""

    city: tuple[str, ...] = ()
    day: tuple[str, ...] = ()
    tag: str = ""
    author: tuple[str, ...] = ()
    late: int | None = None

    def write(self) -> str:
        tests = [
            f"{name} IN ({', '.join(map(repr, names))})"
            for name, names in (("city", self.city), ("day", self.day), ("author", self.author))
            if names
        ]
        tests += [f"array_contains(tags, '{self.tag}')"] if self.tag else []
        tests += [f"late > {self.late}"] if self.late is not None else []
        return f"({' AND '.join(tests) or 'TRUE'})"

    def named(self) -> dict[str, list[Term]]:
        given: tuple[tuple[Any, tuple[str, ...]], ...] = (
            ("place", self.city), ("time", self.day),
            ("tag", (self.tag,) if self.tag else ()), ("person", self.author),
        )  # fmt: skip
        found = {
            context: [SETTINGS.semantic.term(context, one) for one in names]
            for context, names in given
            if names
        }
        return {c: [one for one in terms if one] for c, terms in found.items() if all(terms)}


class Want(NamedTuple):
    clauses: tuple[Clause, ...]
    least: float | None

    def write(self) -> str:
        return " OR ".join(one.write() for one in self.clauses)

    def matches(self, event: dict[str, Any]) -> bool:
        return any(_matches(one, event) for one in self.clauses)

    def weight(self, event: dict[str, Any]) -> float:
        """How strongly an event is related to this filter. An alternative that another one covers
        adds nothing to the filter, and does not count."""
        kept: list[Clause] = []
        for one in dict.fromkeys(self.clauses):
            if not any(_covers(other, one) for other in kept):
                kept = [other for other in kept if not _covers(one, other)] + [one]
        return max(_weight(one, event) for one in kept)

    def gets(self, event: dict[str, Any]) -> float | None:
        """Nothing (0), a match (None), or something that is related, with its weight."""
        if self.matches(event):
            return None
        weight = self.weight(event)
        return weight if self.least is not None and weight >= self.least - 1e-9 else 0.0


def _covers(wide: Clause, clause: Clause) -> bool:
    """Whether everything that matches a clause matches the wide one."""
    names = [(wide.city, clause.city), (wide.day, clause.day), (wide.author, clause.author)]
    return (
        all(not one or (other and {*other} <= {*one}) for one, other in names)
        and wide.tag in ("", clause.tag)
        and (wide.late is None or (clause.late is not None and clause.late >= wide.late))
    )


def _matches(clause: Clause, event: dict[str, Any]) -> bool:
    return (
        (not clause.city or event.get("city") in clause.city)
        and (not clause.day or event.get("day") in clause.day)
        and (not clause.author or event.get("author") in clause.author)
        and (not clause.tag or clause.tag in event.get("tags", ()))
        and (clause.late is None or event["late"] > clause.late)
    )


def _weight(clause: Clause, event: dict[str, Any]) -> float:
    named = clause.named()
    if not named or (clause.late is not None and event["late"] <= clause.late):
        return 0.0
    own = {
        "place": [event.get("city")], "time": [event.get("day")],
        "tag": event.get("tags", []), "person": [event.get("author")],
    }  # fmt: skip
    best: list[float] = []
    for context, values in named.items():
        found = [SETTINGS.semantic.term(context, one) for one in own[context] if one]  # type: ignore[arg-type]
        pairs = [
            relate(SETTINGS.semantic, SETTINGS.weights, one, value)
            for one in found
            if one
            for value in values
        ]
        best.append(max(pairs, default=0.0))
    return sum(max(0.0, one) for one in best) / len(best)


def draw_want(chance: random.Random) -> Want:
    def some(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(chance.sample(names, chance.choice([1, 1, 2])))

    clauses = []
    for _ in range(chance.choice([1, 1, 1, 2])):
        kinds = chance.sample(["city", "day", "tag", "author"], chance.choice([1, 2, 2, 3]))
        clauses.append(
            Clause(
                some(CITIES) if "city" in kinds else (),
                some(DAYS) if "day" in kinds else (),
                chance.choice(TAGS) if "tag" in kinds else "",
                some(PEOPLE) if "author" in kinds else (),
                chance.choice([None, None, 0, 60]),
            )
        )
    least = chance.choice([None, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    return Want(tuple(clauses), least)


def draw_event(chance: random.Random) -> dict[str, Any]:
    event: dict[str, Any] = {"late": chance.choice([-5, 30, 90])}
    if chance.random() < 0.9:
        event["city"] = chance.choice(CITIES)
    if chance.random() < 0.9:
        event["day"] = chance.choice(DAYS)
    if chance.random() < 0.7:
        event["tags"] = chance.sample(TAGS, chance.randint(0, 3))
    if chance.random() < 0.7:
        event["author"] = chance.choice(PEOPLE)
    return event


class TextDisk(Disk):
    """A disk whose nodes are stored interests."""

    def add_node(self, node: int, interest: bytes, owner: str = "", key: bytes = b"") -> None:
        self.log.append(("add", (node, interest, owner)))

    @property
    def texts(self) -> dict[int, bytes]:
        """The stored interests of all nodes."""
        return cast(dict[int, bytes], self.nodes)

    def interests(self) -> RelatedArrayInterests:
        stored = sorted(self.texts.items())
        last = max(self.history.base, self.history.version)
        return RelatedArrayInterests(SETTINGS, stored, last, Limits(), None, None, Kind())

    def memory_with(self, interests: RelatedArrayInterests) -> Memory:
        places = {one.node: one for one in interests.all_placed()}
        found = memory_of(self.records(), Memory(self.lineage), places)
        found.owners, found.history, found.sources = self.owners, self.history, self.sources
        found.cursors, found.term = self.cursors, self.term
        found.sizes = {node: work_of(one) for node, one in self.texts.items()}
        return found


class RelatedWorld(World):
    """A network whose channel has relations."""

    def __init__(self, chance: random.Random, routers: int) -> None:
        self.wants: dict[str, Want] = {}
        super().__init__(chance, routers)

    def want(self, name: str, want: Want, durable: str = "") -> Subscriber:
        dialect = "sql" if want.least is None else relate_dialect("sql", want.least)
        ordered = self.signals and self.chance.random() < 0.5
        one = Subscriber(
            name, self.choose(), want.write().encode(), self.times, dialect=dialect,
            ordered=ordered, durable=durable,
        )  # fmt: skip
        self.subscribers[name], self.wants[name] = one, want
        self.send(name, one.start(self.now))
        return one

    def tell(self, name: str, event: dict[str, Any], payload: bytes) -> None:
        """Publish an event."""
        from tidings.routing.clients.publisher import Publisher

        one = self.publishers.get(name)
        if one is None:
            one = self.publishers[name] = Publisher(name, self.choose(), self.times, window=20)
        self.send(name, one.publish(msgspec.json.encode(event), payload, self.now))

    def _new_root(self) -> Rendezvous:
        if not isinstance(self.disk, TextDisk):
            self.disk = TextDisk()
        self.disk.synced = len(self.disk.log)
        self.disk.begin_life(self.chance.randrange(1, 1 << 63))
        self._base = len(self.disk.log)
        interests = self.disk.interests()
        root = Rendezvous(
            ROOT, interests, self.disk, self.disk.memory_with(interests), self.times, Cache(50),
            relating=interests.relating,
        )  # fmt: skip
        root.forwarding = self._any_forwarding()
        return root

    def settle(self, seconds: float = 120.0) -> None:
        """Run without faults, until all is delivered."""
        faults, self.faults = self.faults, type(self.faults)()
        self.run(seconds)
        self.faults = faults


def payloads(deliveries: Iterable[Any]) -> list[bytes]:
    return [one.payload for one in deliveries]
