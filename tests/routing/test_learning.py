"""What a node learns from what it forwards, against a plain model of the frames that were sent."""

from __future__ import annotations

import random

import pytest
from tests.decoding import decode_all
from tests.repeats import rounds

from tidings.model import TidingsError
from tidings.network.forwarding import Forwarder
from tidings.relations import (
    ClusterStore,
    Entry,
    Limit,
    StoreSettings,
    TableDictionary,
    Term,
    TimeSpan,
    encode_terms,
    load_relations,
)
from tidings.relations.clusters.grouping import sweep
from tidings.relations.merit import choose_hops, score_hops
from tidings.relations.semantic import DAY, NameLookup
from tidings.routing.forwarding import Forwarding, Mode
from tidings.routing.forwarding.router import Router
from tidings.routing.learning import EarlySettings, Learning
from tidings.routing.learning.learning import MOST_KEYS, MOST_NOTED, MOST_PENDING
from tidings.routing.protocol import frames, make_front, messages as m

SEMANTIC = load_relations(language=None)
CITIES = "Chicago", "Evanston", "Illinois", "Paris", "Boston"
DAYS = "2013-12-24", "2013-12-25", "2014-03-01", "Christmas"
TAGS = "rose", "flower", "delay"
NAMES = "abcd"


def draw_terms(chance: random.Random) -> tuple[Term, ...]:
    found = [
        SEMANTIC.term("place", chance.choice(CITIES)),
        SEMANTIC.term("time", chance.choice(DAYS)),
        SEMANTIC.term("tag", chance.choice(TAGS)),
    ]
    some = [one for one in found if one is not None]
    return tuple(chance.sample(some, chance.randrange(1, 4)))


def grown(mode: Mode = Mode.LABELS) -> Router:
    """A router with nodes that have up to two parents; nobody wants any."""
    router = Router("r", "up")
    router.epoch = 1
    router.forwarding = Forwarding(mode)
    for node in range(1, 20):
        router.graph.insert(node, {node // 2, node // 3} - {0}, [])
    for name in NAMES:
        router.hear(name)
    return router


def frame(chance: random.Random, serial: int, terms: tuple[Term, ...]) -> bytes:
    marks = tuple(
        m.Mark(node, serial, (node,))
        for node in chance.sample(range(1, 20), chance.randrange(1, 3))
    )
    body = make_front(encode_terms(terms)) + b"body"
    return frames.encode(m.Notification(1, serial, marks, body, "p", serial))


class World:
    """A router that forwards, and a model of its store: terms and neighbour -> nodes, uses."""

    def __init__(self, chance: random.Random, settings: StoreSettings) -> None:
        self.chance = chance
        self.router = grown()
        self.forwarder = Forwarder(self.router)
        serving = EarlySettings(SEMANTIC, limit=Limit(1.5), store=settings)
        self.learning = self.forwarder.learning = Learning(self.router, serving, 0.0)
        self.model: dict[tuple[frozenset[Term], str], tuple[set[int], int]] = {}

    def toggle(self) -> None:
        """A neighbour subscribes to a node, or cancels."""
        node, name = self.chance.randrange(1, 20), self.chance.choice(NAMES)
        if node in self.router.neighbours[name].nodes:
            self.router.subscriptions.remove(name, node)
        else:
            self.router.subscriptions.add(name, node)
        self.router.drain_outgoing()

    def forward(self, count: int) -> None:
        self.prune()
        drawn = [draw_terms(self.chance) for _ in range(count)]
        buffer = b"".join(frame(self.chance, n, terms) for n, terms in enumerate(drawn))
        starts, end = frames.split(buffer)
        sent = self.forwarder.forward(buffer, starts, [*starts[1:], end])
        for name, (pieces, _) in sent.items():
            for one in decode_all(b"".join(map(bytes, pieces))):
                assert isinstance(one, m.Notification)
                ids = {node for mark in one.marks for node in mark.label}
                assert ids <= self.router.neighbours[name].nodes
                key = frozenset(drawn[one.serial]), str(name)
                before, uses = self.model.get(key, (set(), 0))
                self.model[key] = before | ids, uses + 1

    def work(self) -> None:
        while self.learning.work(0.0):
            pass

    def prune(self) -> None:
        """Subscriptions that ended leave the model, with what was there for them alone."""
        for (terms, name), (ids, uses) in [*self.model.items()]:
            left = ids & self.router.neighbours[name].nodes
            if left:
                self.model[terms, name] = left, uses
            else:
                del self.model[terms, name]

    def learnt(self) -> dict[tuple[frozenset[Term], str], tuple[set[object], int]]:
        learning = self.learning
        return {
            (frozenset(node.terms), str(learning.hop_name(node.hop))): ({*node.ids}, node.uses)
            for node in learning.store
        }


def test_store_has_what_was_forwarded(seed: int) -> None:
    """Terms, neighbours, nodes and uses are those of the frames that went out; cancelling removes
    by cascade; neighbours are served by a plain sum of merits."""
    chance = random.Random(seed)
    for _ in rounds(4, 30):
        world = World(chance, StoreSettings())
        for _ in range(25):
            for _ in range(chance.randrange(4)):
                world.toggle()
            world.forward(chance.randrange(1, 12))
            world.work()
            for _ in range(chance.randrange(3)):
                world.toggle()
            terms = draw_terms(chance)
            served = world.learning.find_served(encode_terms(terms))
            world.prune()
            assert world.learnt() == world.model
            plain = ClusterStore(SEMANTIC)
            for (each, name), (ids, _) in world.model.items():
                plain.learn(each, name, ids, 0)
            scores = score_hops(plain.find(terms), plain.weights.best)
            expected = choose_hops(scores, Limit(1.5))
            assert served == pytest.approx(expected)


def test_neighbour_that_is_gone_is_forgotten(seed: int) -> None:
    world = World(random.Random(seed), StoreSettings())
    while not any(name == "a" for _, name in world.model):
        world.toggle()
        world.forward(5)
    world.work()
    world.router.drop("a")
    world.work()
    assert "a" not in {name for _, name in world.learnt()}


def test_numbers_of_neighbours_are_used_again(seed: int) -> None:
    """However many neighbours come and go, the arrays stay short."""
    chance = random.Random(seed)
    world = World(chance, StoreSettings(most=5))
    for number in range(200):
        name = f"agent-{number}"
        world.router.hear(name)
        world.router.subscriptions.add(name, chance.randrange(1, 20))
        world.router.drain_outgoing()
        world.model.clear()
        world.forward(5)
        world.work()
        world.router.drop(name)
    world.work()
    assert len(world.learning._hops._names) < 20


def test_sole_neighbour_is_learnt_too(seed: int) -> None:
    """If headers are not read because all goes to one neighbour, its nodes are learnt anyway."""
    chance = random.Random(seed)
    router = grown(Mode.ADAPTIVE)
    for node in range(1, 20):
        router.subscriptions.add("a", node)
    router.drain_outgoing()
    assert router.graph.sole_neighbour() == "a"
    forwarder = Forwarder(router)
    learning = forwarder.learning = Learning(router, EarlySettings(SEMANTIC), 0.0)
    terms = draw_terms(chance)
    buffer = frame(chance, 1, terms)
    forwarder.forward(buffer, [0], [len(buffer)])
    while learning.work(0.0):
        pass
    (learnt,) = learning.store
    (told,) = decode_all(buffer)
    assert isinstance(told, m.Notification)
    assert learnt.ids == {mark.node for mark in told.marks}


def test_a_router_asks_its_own_dictionary(seed: int) -> None:
    """Contexts keep the values that the rendezvous point found; the router learns, and serves, by
    the values of its own dictionary."""
    semantic = load_relations(language=None)
    entries = [Entry("O'Hare", ("Chicago",), ("ORD",), 41.979, -87.904)]
    asking = NameLookup(semantic, TableDictionary("place", entries))
    router = grown()
    forwarder = Forwarder(router)
    learning = forwarder.learning = Learning(
        router, EarlySettings(semantic, limit=Limit(0.6), asking=asking), 0.0
    )
    for node in range(1, 20):
        router.subscriptions.add("a", node)
    router.drain_outgoing()
    ord_, chicago = (semantic.term("place", name) for name in ("ORD", "Chicago"))
    assert ord_ is not None
    assert chicago is not None

    def forward() -> None:
        buffer = frame(random.Random(seed), 1, (ord_,))
        forwarder.forward(buffer, [0], [len(buffer)])
        while learning.work(0.0):
            pass

    forward()
    assert learning.find_served(encode_terms([ord_])) == {"a": 1.0}
    assert learning.find_served(encode_terms([chicago])) == {}
    while asking.work():
        pass
    assert learning.find_served(encode_terms([ord_])) == {"a": 1.0}
    assert learning.find_served(encode_terms([chicago]))["a"] >= 0.69
    forward()
    (learnt,) = learning.store
    assert (learnt.terms, learnt.uses) == ((semantic.term("place", "O'Hare"),), 2)


def test_bounds(seed: int) -> None:
    """Neither what waits nor what is remembered grows, whatever is forwarded."""
    chance = random.Random(seed)
    world = World(chance, StoreSettings(most=20))
    for _ in range(30):
        world.toggle()
    for day in range(1500):
        terms = (Term("tag", f"tag{day}"),)
        buffer = frame(chance, day, terms)
        world.forwarder.forward(buffer, [0], [len(buffer)])
        assert world.learning.pending <= MOST_PENDING
        world.learning.find_served(encode_terms(terms))
    assert world.learning.left_out > MOST_NOTED
    world.work()
    assert len(world.learning.store) <= 20
    keys = [world.learning.is_new(b"p", n) for n in range(2 * MOST_KEYS)]
    assert all(keys)
    assert len(world.learning._keys) == MOST_KEYS
    assert not world.learning.is_new(b"p", 2 * MOST_KEYS - 1)


def test_unused_nodes_are_forgotten(seed: int) -> None:
    world = World(random.Random(seed), StoreSettings(keep=100.0))
    for _ in range(20):
        world.toggle()
    while not world.model:
        world.forward(5)
    world.work()
    assert len(world.learning.store)
    world.learning.work(90.0)
    assert len(world.learning.store)
    world.learning.work(120.0)
    assert not len(world.learning.store)


def test_places_and_times_are_tidied_when_nothing_else_is_left(seed: int) -> None:
    """In short steps, each a call of `work`; what was learnt stays the same."""
    chance = random.Random(seed)
    world = World(chance, StoreSettings())
    for node in range(1, 20):
        world.router.subscriptions.add("a", node)
    world.router.drain_outgoing()
    first = 16_000
    days = chance.sample(range(first, first + 300), 80)
    steps = 0
    for day in days:
        term = Term("time", TimeSpan(day * DAY, (day + 1) * DAY))
        buffer = frame(chance, 1, (term,))
        world.forwarder.forward(buffer, [0], [len(buffer)])
        while world.learning.pending:  # tidying waits
            world.learning.work(0.0)
    times = world.learning.store.elements.times
    assert times.is_untidy
    while world.learning.work(0.0):
        steps += 1
    assert steps > 1
    assert not times.is_untidy
    assert len(times) == len(sweep((day * DAY + DAY / 2 for day in days), 2 * DAY))
    assert len(world.learning.store) == 80


def test_contexts_that_can_not_be_read(seed: int) -> None:
    """Frames with such contexts teach nothing; early bodies with them are refused."""
    world = World(random.Random(seed), StoreSettings())
    for _ in range(20):
        world.toggle()
    body = make_front(b"\xff\xff\xff") + b"body"
    told = m.Notification(1, 1, (m.Mark(19, 1, (19,)),), body, "p", 1)
    buffer = frames.encode(told)
    world.forwarder.forward(buffer, [0], [len(buffer)])
    world.work()
    assert not len(world.learning.store)
    with pytest.raises(TidingsError, match="found a context that can't be read"):
        world.learning.find_served(b"\xff\xff\xff")
