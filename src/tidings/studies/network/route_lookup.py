"""Measures a router's work for a header and for a subscription, without a network.

One router has ten neighbours, and each subscriber is behind a random neighbour. The setup follows
study 2 of the dissertation, but without the preprocessor's work: the router is given the parents
and children of a topic. Times are processor times, so they do not depend on how busy the machine
is.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from tidings.network import Forwarder
from tidings.routing.forwarding import Router, ways_of
from tidings.routing.protocol import frames, messages as m
from tidings.studies.workloads.scenarios import SCENARIOS, Scenario

NEIGHBOURS = 10
NOTIFICATIONS = 1000
SIZES = tuple(10**power for power in range(7))
FLAT_FROM = 1000  # subscribers


class Lookup(msgspec.Struct, frozen=True):
    """The measurements for one number of subscribers, in microseconds."""

    scenario: str
    subscribers: int
    topics: int  # the number of topics with subscribers
    ids: float  # the mean number of ids per notification
    subscription: float  # the mean time of all subscriptions so far
    fresh: float  # the lookup of the labels of an unknown header
    ways: float  # the same as `fresh`, and making the header that each neighbour gets
    known: float  # the lookup of a known header by its bytes, as in a router
    frame: float  # forwarding a whole frame with known labels
    table_bytes: int


def look_up(
    names: Sequence[str] = (*SCENARIOS,),
    sizes: Sequence[int] = SIZES,
    *,
    seed: int = 1,
    note: Callable[[str], None] = lambda _: None,
) -> list[Lookup]:
    """Measure each scenario with growing numbers of subscribers."""
    found = []
    for name in names:
        filling = _Filling(SCENARIOS[name](), seed)
        for size in sizes:
            note(f"lookup: {name}, {size:,} subscribers")
            filling.fill(size)
            found.append(filling.measure())
    return found


class _Filling:
    """A router with a growing number of subscriptions."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario = scenario
        self.chance = np.random.default_rng(seed)
        self.router = Router("router", "above")
        self.there = np.zeros(scenario.size, np.bool_)
        self.subscribers = 0
        self.seconds = 0.0

    def fill(self, size: int) -> None:
        graph, scenario, clock = self.router.graph, self.scenario, time.process_time
        count = size - self.subscribers
        topics = scenario.subscriptions(self.chance, count).tolist()
        senders = self.chance.integers(0, NEIGHBOURS, count).tolist()
        aside = 0.0  # the time of the preprocessor's work, which is not measured
        start = clock()
        for topic, sender in zip(topics, senders, strict=True):
            if topic not in graph:
                paused = clock()
                parents, children = scenario.around(topic, np.flatnonzero(self.there))
                self.there[topic] = True
                aside += clock() - paused
                graph.insert(topic, parents, children)
            graph.subscribe(topic, sender)
        self.seconds += clock() - start - aside
        self.subscribers = size

    def measure(self) -> Lookup:
        router, scenario = self.router, self.scenario
        router.note_graph_change()
        router.epoch = 1
        there = np.flatnonzero(self.there)
        tags = [
            tuple(sorted(scenario.tag(one, there)))
            for one in scenario.notifications(self.chance, NOTIFICATIONS)
        ]
        labels = [tuple((node,) for node in tag) for tag in tags]  # each lowest node gives one mark
        flat = [label for its in labels for label in its]
        headers = [(frames.encode_labels(its), len(its)) for its in labels]
        graph, forwarding = router.graph, router.forwarding
        groups = graph.groups
        for label in flat:
            found = {name: way.labels[0] for name, way in router.ways((label,)).items()}
            if found != graph.forward(label):
                raise AssertionError(f"{scenario.name}: two functions route {label} differently")
        buffer, starts, ends = _frames(labels)
        forwarder = Forwarder(router)
        plan_of = forwarder.plan_of
        forwarder.forward(buffer, starts, ends)
        return Lookup(
            scenario.name,
            self.subscribers,
            len(there),
            len(flat) / len(tags),
            self.seconds / self.subscribers * 1e6,
            _micros(lambda: [groups(label) for label in flat], len(tags)),
            _micros(lambda: [ways_of(graph, its, forwarding) for its in labels], len(tags)),
            _micros(lambda: [plan_of(one, marks) for one, marks in headers], len(tags)),
            _micros(lambda: forwarder.forward(buffer, starts, ends), len(tags)),
            deep_size(router.graph),
        )


def _frames(labels: Sequence[Sequence[m.Label]]) -> tuple[bytes, list[int], list[int]]:
    """A buffer of notifications, with their starts and ends."""
    buffer = b"".join(
        frames.encode(
            m.Notification(1, number, tuple(m.Mark(one[0], 1, one) for one in its), bytes(200))
        )
        for number, its in enumerate(labels, 1)
    )
    starts, end = frames.split(buffer)
    return buffer, starts, [*starts[1:], end]


def _micros(work: Callable[[], object], count: int, rounds: int = 15) -> float:
    """The median over rounds of the microseconds per item; a round handles `count` items."""
    work()
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return float(np.median(spent)) / count * 1e6


def deep_size(root: object) -> int:
    """The bytes of an object and everything reachable from it; each object counts once."""
    seen: set[int] = set()
    todo: list[object] = [root]
    total = 0
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        todo.extend(_within(one))
    return total


def _within(one: object) -> Iterator[object]:
    if isinstance(one, dict):
        yield from one.keys()
        yield from one.values()
    elif isinstance(one, (list, tuple, set, frozenset)):
        yield from one
    else:
        yield from (part for part in gc.get_referents(one) if not isinstance(part, type))


class Flatness(msgspec.Struct, frozen=True):
    """The time for a header at the highest number of subscribers, divided by the time at 1,000
    subscribers."""

    scenario: str
    known: float  # the ratio for a known header
    notification: float  # the ratio for a new header
    # the same ratio, of the times per id: with more subscribers, more topics have subscribers, so a
    # header has more ids
    id: float


def flatness(found: Sequence[Lookup]) -> list[Flatness]:
    """The flatness of each scenario, if it was measured both with 1,000 subscribers and with
    more."""
    flat = []
    for name in dict.fromkeys(one.scenario for one in found):
        some = [one for one in found if one.scenario == name and one.subscribers >= FLAT_FROM]
        if len(some) > 1:
            first, last = some[0], some[-1]
            ratio = last.fresh / first.fresh
            known = last.known / first.known
            flat.append(Flatness(name, known, ratio, ratio * first.ids / last.ids))
    return flat
