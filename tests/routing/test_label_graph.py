"""Labels: after every step those of the definition, and forwarding as the simpler forwarders do."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.repeats import rounds
from tests.routing.definition import labels_by_definition

from tidings.model import GraphError
from tidings.routing.forwarding.forwarders import ContentList, FullGraph, MinimalGraph
from tidings.routing.forwarding.label_graph import LabelGraph

Sets = dict[int, frozenset[int]]


def covers(sets: Sets, above: int, below: int) -> bool:
    """Nodes stand for sets of points: the larger covers the smaller."""
    return above != below and sets[above] > sets[below]


def random_sets(chance: random.Random, count: int, points: int = 7) -> Sets:
    """Distinct sets by number."""
    found: set[frozenset[int]] = set()
    while len(found) < count:
        size = chance.randrange(1, points + 1)
        found.add(frozenset(chance.sample(range(points), size)))
    shuffled = sorted(found, key=sorted)
    chance.shuffle(shuffled)
    return dict(enumerate(shuffled, start=1))


def reduction(sets: Sets, nodes: set[int]) -> set[tuple[int, int]]:
    pairs = {(a, b) for a in nodes for b in nodes if covers(sets, a, b)}
    return {(a, b) for a, b in pairs if not any((a, c) in pairs and (c, b) in pairs for c in nodes)}


def edges(graph: LabelGraph[str]) -> set[tuple[int, int]]:
    for number in graph:
        assert all(number in graph.parents(child) for child in graph.children(number))
    return {(a, b) for a in graph for b in graph.children(a)}


def lowest(sets: Sets, nodes: set[int]) -> set[int]:
    return {a for a in nodes if not any(covers(sets, a, b) for b in nodes)}


def put(graph: LabelGraph[Any], sets: Sets, number: int) -> None:
    there = set(graph)
    above = {one for one in there if covers(sets, one, number)}
    below = {one for one in there if covers(sets, number, one)}
    highest = {b for b in below if not any(covers(sets, c, b) for c in below)}
    graph.insert(number, lowest(sets, above), highest)


def test_random_steps(seed: int) -> None:
    chance = random.Random(seed)
    neighbours = ["F", "G", "H"]
    for _ in rounds(10, 25):
        sets = random_sets(chance, chance.randrange(2, 30))
        parents = {a: [b for b in sets if (b, a) in reduction(sets, set(sets))] for a in sets}
        graph = LabelGraph[str]()
        wanted: dict[str, set[int]] = {one: set() for one in neighbours}
        oracles = [FullGraph(parents), MinimalGraph(parents)]
        plain = ContentList()
        for _ in range(60):
            number, who = chance.choice(list(sets)), chance.choice(neighbours)
            if number not in graph:
                put(graph, sets, number)
            if chance.random() < 0.6:
                assert graph.subscribe(number, who) is (number not in wanted[who])
                wanted[who].add(number)
                for one in (*oracles, plain):
                    one.subscribe(number, who)
            else:
                assert graph.unsubscribe(number, who) is (number in wanted[who])
                wanted[who].discard(number)
                for one in (*oracles, plain):
                    one.unsubscribe(number, who)
            if not graph.subscribers(number) and chance.random() < 0.7:
                graph.remove(number)
            assert edges(graph) == reduction(sets, set(graph))
            labels = {number: graph.labels(number) for number in graph}
            assert labels == labels_by_definition(graph, wanted)
            check_forwarding(chance, sets, graph, wanted, oracles, plain)


def check_forwarding(
    chance: random.Random,
    sets: Sets,
    graph: LabelGraph[str],
    wanted: dict[str, set[int]],
    oracles: list[FullGraph],
    plain: ContentList,
) -> None:
    """A notification is a point. Its header comes from a router that knows what this one has: the
    lowest of the nodes here that match."""
    point = chance.randrange(7)
    matching = {number for number in sets if point in sets[number]}
    header = lowest(sets, matching & set(graph))
    expected = {
        who: tuple(sorted(lowest(sets, nodes & matching)))
        for who, nodes in wanted.items()
        if nodes & matching
    }
    assert graph.forward(sorted(header)) == expected
    assert oracles[1].forward(sorted(lowest(sets, matching))) == expected
    assert set(oracles[0].forward(lowest(sets, matching))) == set(expected)
    assert set(plain.forward(matching)) == set(expected)


def test_what_a_neighbour_is_told(seed: int) -> None:
    """A chain of routers, each told by the one above: all have the right edges."""
    chance = random.Random(seed)
    for _ in range(20):
        sets = random_sets(chance, 25)
        top, below = LabelGraph[str](), LabelGraph[str]()
        for number in sets:
            put(top, sets, number)
        for number in chance.sample(list(sets), 15):
            top.subscribe(number, "below")
            below.insert(number, *top.around(number, "below"))
            assert edges(below) == reduction(sets, set(below))
            assert not any(below.is_subscribed(one, "x") for one in below)
        assert sorted(one for one in top if top.is_subscribed(one, "below")) == sorted(below)


def test_what_is_told_late_is_added(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        sets = random_sets(chance, 20)
        graph = LabelGraph[str]()
        wanted = {one: set(chance.sample(list(sets), 7)) for one in "FG"}
        for number in sets:
            graph.insert(number, (), ())
            for one in "FG":
                if number in wanted[one]:
                    graph.subscribe(number, one)
        pairs = sorted(reduction(sets, set(sets)))
        chance.shuffle(pairs)
        for above, below in pairs:
            graph.insert(below, [above, 999], [998])
            labels = {number: graph.labels(number) for number in graph}
            assert labels == labels_by_definition(graph, wanted)
        assert edges(graph) == set(pairs)


def test_what_is_refused() -> None:
    graph = LabelGraph[str]()
    graph.insert(1, (), ())
    graph.insert(2, [1], ())
    with pytest.raises(GraphError, match="node 7 is not in the graph"):
        graph.subscribe(7, "F")
    with pytest.raises(GraphError, match="node 1 as a child of node 2, expected a node that does"):
        graph.insert(2, (), [1])
    graph.subscribe(2, "F")
    with pytest.raises(GraphError, match="node 2 has subscribers"):
        graph.remove(2)
    assert graph.unsubscribe(7, "F") is False
    assert graph.forward([7]) == {}
