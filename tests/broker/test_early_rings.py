"""Early bodies among nodes whose links form rings, as a wrong configuration or a hostile node may
make them: each node passes a body on once, and not further than its hops allow."""

from __future__ import annotations

import random
from collections import Counter, deque
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.repeats import rounds

from tidings.broker.early import EarlySending, early_sending
from tidings.network import Forwarder
from tidings.relations import SemanticStore, Term, encode_terms
from tidings.routing.channels import Channel
from tidings.routing.early import Early, decode_early
from tidings.routing.forwarding import Router
from tidings.routing.learning import EarlySettings, Learning
from tidings.routing.protocol import frames, make_front, messages as m

SERVING = EarlySettings(SemanticStore())
ROSE = encode_terms([Term("tag", "rose")])
OTHER = encode_terms([Term("tag", "fog")])
Sent = tuple[str, str, Early]  # from, to


class FakeLink:
    def __init__(self, ring: Ring, source: str, name: str) -> None:
        self.ring, self.source, self.name = ring, source, name

    def send_early(self, early: Early, number: int, frame: bytes, body: Any) -> None:
        assert decode_early(frame) == early
        self.ring.waiting.append((self.source, self.name, early))


class Ring:
    """Nodes that all serve each other: everything about roses was forwarded to each neighbour."""

    def __init__(self, edges: dict[str, list[str]]) -> None:
        self.edges = edges
        self.waiting: deque[Sent] = deque()
        self.channels: dict[str, Channel] = {}
        self.sending: dict[str, EarlySending] = {}
        for name, neighbours in edges.items():
            channel = self.channels[name] = self._learnt(name, neighbours)
            flow = SimpleNamespace(passes=lambda _: True, room=lambda _: 1 << 20)
            node = SimpleNamespace(
                channels=SimpleNamespace(links=SimpleNamespace(flow_of=lambda _, one=flow: one)),
                links={one: FakeLink(self, name, one) for one in neighbours},
                now=0.0, is_busy=lambda: False,
            )  # fmt: skip
            self.sending[name] = EarlySending(cast(Any, node), lambda: SERVING)
            channel.below = dict.fromkeys(neighbours, 0)

    def _learnt(self, name: str, neighbours: list[str]) -> Channel:
        router = Router(name, "up")
        router.epoch = 1
        router.graph.insert(1, (), ())
        for one in neighbours:
            router.hear(one)
            router.subscriptions.add(one, 1)
        router.drain_outgoing()
        channel = Channel("", router, None, 0.0)
        forwarder = channel.extra = Forwarder(router)
        learning = forwarder.learning = Learning(router, SERVING, 0.0)
        told = m.Notification(1, 1, (m.Mark(1, 1, (1,)),), make_front(ROSE) + b"x", "p", 1)
        buffer = frames.encode(told)
        forwarder.forward(buffer, [0], [len(buffer)])
        while learning.work(0.0):
            pass
        assert len(learning.store) == len(neighbours)
        return channel

    def run(self) -> Counter[tuple[str, str, int]]:
        """Deliver bodies until none is on the way; how often each went over each link, by stamp.
        Fails if they go on for ever."""
        found: Counter[tuple[str, str, int]] = Counter()
        while self.waiting:
            source, name, early = self.waiting.popleft()
            found[source, name, early.stamp] += 1
            assert found.total() < 10_000
            self.sending[name].pass_on(self.channels[name], early)
        return found

    def inject(self, name: str, early: Early) -> None:
        self.sending[name].pass_on(self.channels[name], early)

    def within(self, name: str, hops: int) -> set[str]:
        """The nodes that pass on a body with this many hops that arrives at a node."""
        reached, level = {name}, {name}
        for _ in range(hops - 1):
            level = {one for at in level for one in self.edges[at]} - reached
            reached |= level
        return reached if hops else set()


def early(stamp: int, hops: int, context: bytes = ROSE) -> Early:
    return Early(hops, 1.0, context, b"p", stamp, b"b" * 2_000)


@pytest.fixture(autouse=True)
def always_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share of time for early bodies is large enough on any machine."""
    monkeypatch.setattr(early_sending, "SHARE", 1e9)


def test_a_body_goes_over_each_link_of_rings_once(seed: int) -> None:
    chance = random.Random(seed)
    for _ in rounds(10, 100):
        names = [f"n{at}" for at in range(chance.randint(2, 9))]
        edges = {name: {names[at - len(names) + 1]} for at, name in enumerate(names)}  # a ring
        for _ in range(chance.randrange(8)):  # shorter rings in it
            one, other = chance.sample(names, 2)
            edges[one].add(other)
        ring = Ring({name: sorted(others) for name, others in edges.items()})
        repeats = Counter[int]()
        for stamp in range(1, 6):
            first, hops = chance.choice(names), chance.choice([0, 1, 2, 5, 32])
            ring.inject(first, early(stamp, hops))
            found = ring.run()
            expected = {
                (name, other, stamp) for name in ring.within(first, hops) for other in edges[name]
            }
            assert found == Counter(expected)
            repeats[stamp] = hops
        for stamp, hops in repeats.items():  # the same bodies come again, with as many hops
            passed = {name for name in names if (b"p", stamp) in _keys(ring, name)}
            for name in chance.sample(names, 2):
                ring.inject(name, early(stamp, 32))
                found = ring.run()
                assert not {one for one, _, _ in found} & passed
                if hops == 32:
                    assert not found
                passed |= {one for one, _, _ in found}


def _keys(ring: Ring, name: str) -> set[tuple[bytes, int]]:
    return set(ring.channels[name].extra.learning._keys)


def test_without_hops_nothing_is_passed_on() -> None:
    ring = Ring({"a": ["b"], "b": ["a"]})
    ring.inject("a", early(1, 0))
    assert not ring.run()
    ring.inject("a", early(2, 1))
    assert ring.run() == Counter([("a", "b", 2)])  # it comes to b with no hops left


def test_other_contexts_stay_where_they_came() -> None:
    ring = Ring({"a": ["b"], "b": ["a"]})
    ring.inject("a", early(1, 32, OTHER))
    assert not ring.run()


def test_a_body_that_was_published_twice_is_sent_once() -> None:
    """A publisher repeats a publication that is not acknowledged yet."""
    ring = Ring({"a": ["b"], "b": ["a"]})
    publish = m.Publish("p", 7, 1, b"{}", bytes(2_000))
    for _ in range(3):
        ring.sending["a"].publish(ring.channels["a"], publish, lambda _: ROSE)
    assert ring.run() == Counter([("a", "b", 7), ("b", "a", 7)])  # back to where it came from, once
    ring.sending["a"].publish(ring.channels["a"], publish, lambda _: ROSE)
    assert not ring.run()
