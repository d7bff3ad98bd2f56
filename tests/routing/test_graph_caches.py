"""Cached results after changes to a graph: those of a fresh computation, and only those that can
have changed are computed again."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.repeats import rounds
from tests.routing.test_label_graph import put, random_sets

from tidings.network import scanning
from tidings.network.forwarding import Forwarder
from tidings.routing.forwarding import graph_caches
from tidings.routing.forwarding.graph_caches import GraphChanges, HeaderCache, NodeCache
from tidings.routing.forwarding.router import Router
from tidings.routing.forwarding.ways import Forwarding, Mode, first_label, ways_of
from tidings.routing.protocol import frames, messages as m
from tidings.routing.root.handover import node_table
from tidings.routing.root.handover.node_table import NodeTable
from tidings.routing.root.nodes.ancestors import Ancestors

Labels = tuple[tuple[int, ...], ...]


def random_header(chance: random.Random, most: int) -> Labels:
    """Marks with one node, and now and then with a list."""
    return tuple(
        tuple(sorted(chance.sample(range(1, most), chance.choice((1, 1, 1, 2)))))
        for _ in range(chance.randrange(1, 4))
    )


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("most", [2, 1000])
def test_random_changes(seed: int, mode: Mode, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_caches, "MOST_BELOW", most)
    before = scanning.loader.kernels
    scanning.loader.load()
    monkeypatch.setattr(scanning, "LEAST", 0)
    chance = random.Random(seed)
    for _ in rounds(2, 4):
        sets = random_sets(chance, 30)
        router = Router("r", "up")
        router.forwarding = Forwarding(mode, rewrite=20, byte=1)
        graph, caches = router.graph, router.caches
        aside: dict[int, int] = {}
        ancestors = Ancestors(graph, aside, caches)
        first = caches.add(NodeCache[tuple[int, ...]]())
        quick, plain = Forwarder(router), Forwarder(router)
        plain._table = None
        headers = [random_header(chance, 33) for _ in range(40)]
        for _ in range(60):
            number, who = chance.choice(list(sets)), chance.choice("abc")
            if number not in graph:
                put(graph, sets, number)
            elif graph.is_subscribed(number, who):
                graph.unsubscribe(number, who)
            elif chance.random() < 0.8:
                graph.subscribe(number, who)
            elif graph.subscribers(number):
                aside.pop(number) if number in aside else aside.update({number: 1})
            else:
                caches.change(number)
                graph.remove(number)
            caches.change(number)
            for labels in chance.sample(headers, 20):
                assert router.ways(labels) == ways_of(graph, labels, router.forwarding)
            check_forwarders(chance, headers, router, quick, plain)
            for lowest in chance.sample(list(graph), min(len(graph), 5)):
                above = {lowest, *graph.ancestors(lowest)} - aside.keys()
                assert ancestors.add_ancestors((lowest,)) == tuple(sorted(above))
                label = first_label(graph, lowest, router.forwarding)
                assert first.setdefault(lowest, label) == label
    scanning.loader.kernels = before


def check_forwarders(
    chance: random.Random,
    headers: list[Labels],
    router: Router,
    quick: Forwarder,
    plain: Forwarder,
) -> None:
    """Forwarders that have cached plans, with kernels and without, do what a new one does."""
    fresh = Forwarder(router)
    router.caches._dropping.pop()  # the changes are not for this one
    fresh._table = None
    fresh.router = Router("r", "up")
    fresh.router.graph, fresh.router.forwarding = router.graph, router.forwarding
    given = [
        m.Notification(1, at, tuple(m.Mark(1, 1, one) for one in labels), b"x")
        for at, labels in enumerate(chance.choices(headers, k=8))
    ]
    buffer = b"".join(map(frames.encode, given))
    starts, end = frames.split(buffer)
    expected, *found = (
        {to: (b"".join(pieces), count) for to, (pieces, count) in sent.items()}
        for sent in (
            one.forward(buffer, starts, [*starts[1:], end]) for one in (fresh, plain, quick)
        )
    )
    assert found == [expected, expected]


def test_a_new_node_concerns_headers_below_it() -> None:
    router = Router("r", "up")
    for node, parents in ((1, ()), (2, (1,)), (3, (1,)), (4, (3,)), (5, (2,))):
        router.graph.insert(node, parents, ())
        router.graph.subscribe(node, "a")
    router.note_graph_change()
    headers: list[Labels] = [((node,),) for node in range(1, 7)]
    headers.append(((4,), (5,)))
    before = {labels: router.ways(labels) for labels in headers}

    def again() -> set[Labels]:
        """The headers whose results are not those of before."""
        return {labels for labels in headers if router.ways(labels) is not before[labels]}

    router.graph.insert(7, (1,), ())
    router.caches.change(7)
    assert again() == set()
    router.graph.insert(6, (3,), ())  # a header with an unknown node was asked for
    router.caches.change(6)
    assert again() == {((6,),)}
    router.graph.insert(8, (1,), (3,))
    router.caches.change(8)
    assert again() == {((6,),), ((3,),), ((4,),), ((4,), (5,))}


@pytest.mark.parametrize("most", [3, 10_000])
def test_table_of_nodes(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a table says about nodes is what one says that has just been made; nodes that did not
    change and are below none that did are not looked at again."""
    monkeypatch.setattr(node_table, "MOST_FORGOTTEN", most)
    chance = random.Random(seed)
    for _ in range(5):
        sets = random_sets(chance, 40)
        router = Router("r", "up")
        graph, aside, looked = router.graph, set[int](), list[int]()

        def look(node: int, graph: Any = graph, aside: Any = aside, looked: Any = looked) -> Any:
            looked.append(node)
            return node not in aside, graph.ancestors(node) - aside if node in graph else ()

        table = router.caches.add(NodeTable(look))
        for _ in range(60):
            number = chance.choice(list(sets))
            before, known = set(graph), {*table._known}
            if number not in graph:
                put(graph, sets, number)
            elif chance.random() < 0.5:
                aside ^= {number}
            else:
                router.caches.change(number)
                graph.remove(number)
            router.caches.change(number)
            there = sorted(before & set(graph))
            if not there:
                continue
            starts = np.array([0, len(there)])
            nodes = np.array(there, np.int64)
            looked.clear()
            codes = table.codes_of(nodes)
            if most > 1000:
                unchanged = {one for one in known if not sets[one] <= sets[number]}
                assert unchanged.isdisjoint(looked)
            fresh = NodeTable(look)
            expected = fresh.codes_of(nodes)
            assert table.numbers[codes].tolist() == there
            assert table.plain[codes].tolist() == fresh.plain[expected].tolist()
            mine, other = table.list_matched(starts, codes), fresh.list_matched(starts, expected)
            assert sorted(mine.nodes.tolist()) == sorted(other.nodes.tolist())
            for code, one in zip(codes.tolist(), expected.tolist(), strict=True):
                assert above(table, code) == above(fresh, one)


def above(table: NodeTable, code: int) -> set[int]:
    codes = table.above[table.above_starts[code] : table.above_starts[code + 1]]
    return {*table.numbers[codes].tolist()}


def test_index_of_headers() -> None:
    cache = HeaderCache[str, int](3)
    cache.put("ab", 1, (1, 2))
    cache.put("b", 2, (2,))
    assert cache.drop([1, 9]) == ["ab"]
    assert cache.known == {"b": 2}
    assert cache.drop([2]) == ["b"]
    assert len(cache) == 0
    for at in range(4):
        cache.put(str(at), at, (at,))
    assert cache.known == {"3": 3}
    for at in range(100):  # entries of the other node stay when a header is dropped
        cache.put("x", at, (5, 6))
        cache.drop([5])
        assert len(cache._headers.get(6, ())) <= 8 * 3


def test_changes_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_caches, "MOST_WAITING", 5)
    changes = GraphChanges()
    assert not changes
    changes.drop([1, 2])
    assert (changes.everything, changes.nodes) == (False, {1, 2})
    changes.drop(range(10))
    assert (changes.everything, changes.nodes) == (True, set())
    changes.drop([1])
    assert not changes.nodes
    changes.forget()
    assert not changes


def test_a_header_is_hashed_once_when_it_is_dropped() -> None:
    """A header of a thousand nodes takes 20 microseconds to hash, and each of its nodes may change:
    a subscriber of filters that match everything kept a rendezvous point from its work for 0.3 s
    when it unsubscribed from 256 of them."""

    class Counted(tuple[int, ...]):
        hashed = 0

        def __hash__(self) -> int:
            Counted.hashed += 1
            return super().__hash__()

    cache = HeaderCache[Counted, int](1000)
    headers = [Counted((*range(50), 100 + number)) for number in range(20)]
    for header in headers:
        cache.put(header, 1, header)
    Counted.hashed = 0
    assert len(cache.drop(range(50))) == 20
    assert Counted.hashed == 20
    assert not cache.known
    cache.put(headers[0], 2, headers[0])  # its earlier entries for 100 don't count
    assert cache.drop([101]) == []
    assert cache.drop([100]) == [headers[0]]
