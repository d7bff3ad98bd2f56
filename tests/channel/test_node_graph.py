"""The graph of nodes against its definition, after every step of random sequences."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tidings.channel.interests.graph.node_graph import NodeGraph
from tidings.channel.interests.graph.patched_edges import compile_graph
from tidings.channel.interests.graph.reach import Reach

Sets = dict[int, frozenset[int]]


def is_above(sets: Sets, a: int, b: int) -> bool:
    """By definition: it contains the other; of two equal ones, the later is above."""
    return sets[a] > sets[b] or (sets[a] == sets[b] and a > b)


def parents_by_definition(sets: Sets, node: int) -> set[int]:
    over = {one for one in sets if is_above(sets, one, node)}
    return {a for a in over if not any(is_above(sets, a, b) for b in over)}


def check(graph: NodeGraph, sets: Sets, rng: random.Random) -> None:
    assert len(graph) == len(sets)
    places = {number: graph.need(number) for number in sets}
    numbers = {place: number for number, place in places.items()}
    children: dict[int, set[int]] = {number: set() for number in sets}
    for number, place in places.items():
        wanted = parents_by_definition(sets, number)
        found = graph.parents(place).tolist()
        assert sorted(graph.numbers_of(found)) == sorted(wanted), number
        for parent in wanted:
            children[parent].add(number)
    for number, place in places.items():
        found = graph.children(place).tolist()
        assert sorted(graph.numbers_of(found)) == sorted(children[number]), number
    seen: set[int] = set()
    for place in graph.in_order().tolist():
        assert parents_by_definition(sets, numbers[place]) <= seen
        seen.add(numbers[place])
    assert seen == sets.keys()
    for _ in range(3):
        point = rng.randrange(6)
        matched = [n for n in sets if point in sets[n]]
        alive = {n for n in matched if graph.alive[places[n]]}
        low = {a for a in alive if not any(is_above(sets, a, b) for b in alive)}
        rng.shuffle(matched)
        assert set(graph.lowest([places[n] for n in matched])) == low


def compiled(graph: NodeGraph) -> NodeGraph:
    """What another process would make of the graph, and then some changes are there already."""
    places = graph.places()
    starts, parents = graph.parents_of(places)
    order = np.argsort(graph.numbers[places], kind="stable")
    position = np.zeros(graph.size, np.uint32)
    position[places[order]] = np.arange(len(places))
    lists = [position[parents[starts[at] : starts[at + 1]]] for at in order.tolist()]
    joined = np.concatenate([np.zeros(0, np.uint32), *lists])
    begins = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    return NodeGraph(compile_graph(graph.numbers[places[order]], begins, joined))


@pytest.mark.parametrize("run", range(6))
def test_edges_and_tags_are_those_of_the_definition(seed: int, run: int) -> None:
    rng = random.Random(f"{seed}/{run}")
    graph, sets = NodeGraph(), Sets()
    waiting = None
    number = 0
    for step in range(120):
        if sets and rng.random() < 0.35:
            gone = rng.choice(sorted(sets))
            graph.remove(graph.need(gone))
            del sets[gone]
            assert graph.place(gone) is None
        else:
            number += rng.randint(1, 3)
            values = frozenset(rng.sample(range(6), rng.randint(1, 5)))
            over, under = Reach(graph, is_up=True), Reach(graph, is_up=False)
            for one in rng.sample(sorted(sets), len(sets)):
                if sets[one] >= values and graph.need(one) not in over:
                    over.add(np.array([graph.need(one)]))
                if sets[one] <= values and graph.need(one) not in under:
                    under.add(np.array([graph.need(one)]))
            sets[number] = values
            parents, children = graph.insert(number, over, under)
            place = graph.need(number)
            assert sorted(parents.tolist()) == sorted(graph.parents(place).tolist())
            assert sorted(children.tolist()) == sorted(graph.children(place).tolist())
        if sets and rng.random() < 0.2:
            chosen = rng.choice(sorted(sets))
            graph.alive[graph.need(chosen)] ^= 1
        if waiting is None and rng.random() < 0.1:
            waiting = compiled(graph), graph.begin_cut()
        elif waiting is not None and rng.random() < 0.2:
            graph, waiting = graph.move_to(*waiting), None
        if step % 5 == 0 or step > 100:
            check(graph, sets, rng)


def test_room_is_made(seed: int) -> None:
    """More nodes, patches and parents than there was room for at first."""
    rng = random.Random(seed)
    graph = NodeGraph()
    for number in range(1, 1500):
        over, under = Reach(graph, is_up=True), Reach(graph, is_up=False)
        over.add(np.array([graph.need(one) for one in range(1, min(number, 9))], np.int64))
        graph.insert(number, over, under)
    over, under = Reach(graph, is_up=True), Reach(graph, is_up=False)
    under.add(np.array([graph.need(one) for one in range(1, 1500)]))
    graph.insert(1500, over, under)
    top = graph.need(1500)
    assert graph.numbers_of(graph.children(top).tolist()) == [1]
    assert len(graph.children(graph.need(8))) == 1491
    graph.remove(graph.need(8))
    assert len(graph.children(graph.need(7))) == 1491
    for number in rng.sample(range(1, 8), 7):
        graph.remove(graph.need(number))
    assert len(graph.children(top)) == 1491


@pytest.mark.parametrize("gap", [1, 3, 1_000_000])  # with the largest, the table is not used
@pytest.mark.parametrize("known", [0, 20])
def test_numbers_become_places(seed: int, known: int, gap: int) -> None:
    rng = random.Random(f"{seed} {known} {gap}")
    numbers = np.arange(1, known + 1, dtype=np.int64)
    nothing = np.zeros(known + 1, np.int64), np.zeros(0, np.uint32)
    graph = NodeGraph(compile_graph(numbers, *nothing))
    last, there = known, [*range(1, known + 1)]
    for _ in range(6):
        added = []
        for _ in range(rng.randrange(1, 40)):
            last += rng.randrange(1, gap + 1)
            added.append(last)
        rng.shuffle(added)  # at a start, parents come first
        for number in added:
            graph.insert(number, Reach(graph, is_up=True), Reach(graph, is_up=False))
        there += added
        asked = rng.choices(there, k=50)
        assert graph.translate(np.array(asked)).tolist() == [*map(graph.need, asked)]
