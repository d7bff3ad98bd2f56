"""The tables of a label graph: after every step, against a graph of Python objects, and array by
array against lists and dictionaries."""

from __future__ import annotations

import random
from collections import Counter
from itertools import accumulate, chain

import numpy as np
import numpy.typing as npt
import pytest
from tests.repeats import rounds
from tests.routing.plain_label_graph import PlainLabelGraph
from tests.routing.test_label_graph import Sets, random_sets

from tidings.model import GraphError
from tidings.routing.forwarding import label_graph
from tidings.routing.forwarding.label_graph import LabelGraph
from tidings.routing.forwarding.tables import below
from tidings.routing.forwarding.tables.edges import Edges
from tidings.routing.forwarding.tables.slot_lists import SlotLists
from tidings.routing.forwarding.tables.slots import Slots
from tidings.studies.network.route_lookup import deep_size

Column = npt.NDArray[np.int64]
NAMES = "FGHIJKL"


def check(graph: LabelGraph[str], plain: PlainLabelGraph[str]) -> None:
    """Everything that can be asked."""
    assert sorted(graph) == sorted(plain.nodes)
    assert len(graph) == len(plain)
    assert graph.subscriptions == plain.subscriptions
    assert graph.sole_neighbour() == plain.sole_neighbour()
    for number, node in plain.nodes.items():
        assert number in graph
        assert graph.parents(number) == tuple(sorted(node.parents))
        assert graph.children(number) == tuple(sorted(node.children))
        assert graph.ancestors(number) == plain.ancestors(number)
        assert graph.descendants(number) == plain.descendants(number)
        assert graph.labels(number) == node.labels
        assert set(graph.subscribers(number)) == node.subscribers
        for name in NAMES:
            assert graph.is_subscribed(number, name) is (name in node.subscribers)
            if name in node.subscribers:
                assert graph.around(number, name) == plain.around(number, name)
            above, _ = plain.around(number, name)
            assert graph.parents_for(number, name) == above


def check_sharing(graph: LabelGraph[str]) -> None:
    """Labels that others can find are found under their names, and those that nobody has are not
    kept. Nor are neighbours that subscribe to nothing."""
    uses = Counter(map(id, graph._labels))
    assert all(one.uses == uses[id(one)] for one in graph._labels)
    known = graph._pool._known
    assert {id(one) for one in known.values()} == {id(one) for one in graph._labels if one.is_known}
    assert all(key == (one.who, one.what) for key, one in known.items())
    assert graph._pool.index.keys() == graph.subscriptions.keys()


def check_answers(
    chance: random.Random, sets: Sets, graph: LabelGraph[str], plain: PlainLabelGraph[str]
) -> None:
    """What is asked about several nodes, some of them unknown."""
    some = chance.sample([*sets, 998, 999], chance.randrange(1, 4))
    assert graph.forward(some) == plain.forward(some)
    assert graph.lowest(some) == plain.lowest(some)
    for most in (2, 64):
        assert graph.list_for_all(some[0], most) == plain.list_for_all(some[0], most)
        for name in NAMES:
            listed = graph.list_subscribed(some, name, most)
            assert listed == plain.list_subscribed(some, name, most)
    places = {number: at for at, number in enumerate(graph.in_order(some))}
    assert places.keys() == {one for one in some if one in plain}
    assert all(places[a] < places[b] for a in places for b in plain.descendants(a) if b in places)


@pytest.mark.parametrize("few", [1, 1000])
@pytest.mark.parametrize("is_told_all", [True, False])
def test_random_steps(
    seed: int, few: int, is_told_all: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes come with all edges, or with some that are told late or never."""
    monkeypatch.setattr(below, "FEW", few)  # of what is below, even little is searched upwards
    monkeypatch.setattr(label_graph, "FEW", few)
    chance = random.Random(seed)
    for _ in rounds(3, 6):
        sets = random_sets(chance, chance.randrange(2, 40))
        graph, plain = LabelGraph[str](), PlainLabelGraph[str]()
        for _ in range(80):
            number, who = chance.choice(list(sets)), chance.choice(NAMES)
            if number not in plain or chance.random() < 0.2:
                above = [one for one in plain.nodes if sets[one] > sets[number]]
                under = [one for one in plain.nodes if sets[one] < sets[number]]
                if not is_told_all:
                    above = chance.sample(above, chance.randrange(len(above) + 1))
                    under = chance.sample(under, chance.randrange(len(under) + 1))
                for one in (graph, plain):
                    one.insert(number, above, [*under, 999])
            step = chance.random()
            if step < 0.5:
                assert graph.subscribe(number, who) is plain.subscribe(number, who)
            elif step < 0.9:
                assert graph.unsubscribe(number, who) is plain.unsubscribe(number, who)
            if not plain.nodes[number].subscribers and chance.random() < 0.5:
                graph.remove(number)
                plain.remove(number)
            check(graph, plain)
            check_sharing(graph)
            check_answers(chance, sets, graph, plain)
        for number, node in plain.nodes.items():
            for name in node.subscribers:
                graph.unsubscribe(number, name)
            graph.remove(number)
            check_sharing(graph)
        assert len(graph) == 0


def test_loading(seed: int) -> None:
    """A loaded graph is the one that takes nodes one by one, also in later steps."""
    chance = random.Random(seed)
    for _ in range(20):
        sets = random_sets(chance, chance.randrange(60))
        order = sorted(sets, key=lambda one: -len(sets[one]))
        graph, plain = LabelGraph[str](), PlainLabelGraph[str]()
        for number in order:
            plain.insert(number, [one for one in plain.nodes if sets[one] > sets[number]], ())
        parents = [[*plain.nodes[one].parents] for one in order]
        graph.load(*columns(order, parents))
        check(graph, plain)
        for number in chance.sample(order, len(order)):
            if chance.random() < 0.3:
                graph.remove(number)
                plain.remove(number)
            else:
                name = chance.choice(NAMES)
                assert graph.subscribe(number, name)
                assert plain.subscribe(number, name)
        check(graph, plain)
        check_sharing(graph)
        for number in sets.keys() - plain.nodes.keys():
            above = [one for one in plain.nodes if sets[one] > sets[number]]
            under = [one for one in plain.nodes if sets[one] < sets[number]]
            graph.insert(number, above, under)
            plain.insert(number, above, under)
        check(graph, plain)


def columns(numbers: list[int], parents: list[list[int]]) -> tuple[Column, Column, Column]:
    starts = [0, *accumulate(map(len, parents))]
    each = numbers, starts, [*chain.from_iterable(parents)]
    return tuple(np.array(one, np.int64) for one in each)  # type: ignore[return-value]


def test_loading_what_does_not_fit() -> None:
    graph = LabelGraph[str]()
    for numbers, parents, words in (
        ([5, 6, 5], [[], [5], []], "found node 5 twice, expected each node once"),
        ([5, 6], [[], [7]], "found parent 7 of node 6, expected each parent before its child"),
        ([5, 6], [[6], []], "found parent 6 of node 5, expected each parent before its child"),
        ([5], [[5]], "found parent 5 of node 5, expected each parent before its child"),
    ):
        with pytest.raises(GraphError, match=words):
            graph.load(*columns(numbers, parents))
        assert len(graph) == 0
        graph.insert(1, (), ())
        graph.remove(1)
    graph.load(*columns([2**62, 3, 4], [[], [2**62], [2**62]]))
    assert graph.children(2**62) == (3, 4)
    with pytest.raises(GraphError, match="found a graph of 3 nodes, expected an empty graph"):
        graph.load(*columns([5], [[]]))


def test_a_place_that_is_refused_changes_nothing() -> None:
    graph, plain = LabelGraph[str](), PlainLabelGraph[str]()
    for one in (graph, plain):
        for number, parents in ((1, ()), (2, (1,)), (3, (2,)), (4, ())):
            one.insert(number, parents, ())
        one.subscribe(1, "F")
    for number, above, under, words in (
        (2, (4,), (1,), "node 1 as a child of node 2"),
        (1, (3,), (4,), "node 3 as a parent of node 1"),
        (5, (3,), (4, 1), "node 1 as a child of node 5"),
    ):
        with pytest.raises(GraphError, match=words):
            graph.insert(number, above, under)
        check(graph, plain)
    with pytest.raises(GraphError, match="F does not subscribe to node 2"):
        graph.around(2, "F")


def test_equal_nodes_cost_no_object() -> None:
    """Under one parent, each node with one of ten subscribers; first nodes, then subscriptions
    above and below them."""
    graph = LabelGraph[str]()
    graph.insert(1, (), ())
    many = 20_000
    for number in range(2, many + 2):
        graph.insert(number, (1,), ())
        graph.subscribe(number, f"neighbour {number % 10}")
    graph.subscribe(1, "above")
    assert len(set(map(id, graph._labels))) == 12  # of ten kinds, of the parent, of no node
    assert graph.labels(7) == {"neighbour 7": (7,), "above": (1,)}
    assert deep_size(graph) / many < 100
    graph.unsubscribe(1, "above")
    assert len(set(map(id, graph._labels))) == 11
    for number in range(2, many + 2):
        graph.unsubscribe(number, f"neighbour {number % 10}")
        graph.remove(number)
    assert not graph.children(1)
    assert len(set(map(id, graph._labels))) == 1


def test_an_empty_graph_is_small() -> None:
    """A router can have thousands."""
    assert deep_size(LabelGraph[str]()) < 4000


def test_slots(seed: int) -> None:
    chance = random.Random(seed)
    slots = Slots()
    there: dict[int, int] = {}
    for _ in range(3000):
        number = chance.choice((chance.randrange(300), chance.randrange(2**63)))
        if there and chance.random() < 0.45:
            number = chance.choice(list(there))
            slots.remove(number)
            del there[number]
        elif number not in there:
            there[number] = slots.add(number)
        assert slots.find(number) == there.get(number, 0)
        assert len(slots) == len(there)
    assert sorted(slots) == sorted(there)
    assert sorted(there.values()) == sorted({slots.find(number) for number in there})
    assert max(there.values()) < len(slots.numbers)
    for number in (-1, 2**64, 2**64 - 1):
        assert slots.find(number) == 0
    for number in list(there):
        slots.remove(number)
    assert not slots.pages


@pytest.mark.parametrize("paired", [False, True])
def test_lists(seed: int, paired: bool) -> None:
    chance = random.Random(seed)
    lists = SlotLists(paired=paired)
    plain: list[list[tuple[int, int]]] = []
    for _ in range(20):
        lists.add_owner()
        plain.append([])
    for step in range(8000):
        owner = min(int(chance.expovariate(0.3)), 19)
        mine = plain[owner]
        if mine and chance.random() < (0.3 if step < 5000 else 0.8):
            at = chance.randrange(len(mine))
            moved = lists.remove_at(owner, at)
            last = mine.pop()
            if at < len(mine):
                mine[at] = last
            assert moved == (last[0] if at < len(mine) else 0)
        else:
            pair = chance.randrange(1, 1000), chance.randrange(1000)
            assert lists.append(owner, *pair) == len(mine)
            mine.append(pair)
        assert [*lists.values(owner)] == [one for one, _ in mine]
        for at, (value, second) in enumerate(mine[:5]):
            assert lists.value(owner, at) == value
            assert mine[lists.find(owner, value)][0] == value
            if paired:
                assert lists.second(owner, at) == second
    longest = sum(map(len, plain)) + 8000 * 0.7
    assert len(lists.pool) < 8 * longest  # blocks are used again


def test_edges(seed: int) -> None:
    chance = random.Random(seed)
    edges = Edges()
    for _ in range(30):
        edges.add_slot()
    there: set[tuple[int, int]] = set()
    for _ in range(3000):
        upper = chance.randrange(1, 30)
        pair = upper, chance.randrange(upper + 1, 31)
        if pair in there:
            edges.untie(*pair)
        else:
            edges.tie(*pair)
        there ^= {pair}
        assert {(a, b) for a in range(31) for b in edges.children(a)} == there
        assert {(a, b) for b in range(31) for a in edges.parents(b)} == there
        for lower in range(31):
            for at, above in enumerate(edges.parents(lower)):
                assert edges.down.value(above, edges.up.second(lower, at)) == lower
