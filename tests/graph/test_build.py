"""Building a graph in bulk gives what inserting one by one gives."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator

import pytest
from tests.filters.strategies import Writer, schema
from tests.graph.test_content_graph import random_event, random_filter

from tidings import ContentGraph, Filter, FilterError, parse


def edges_of(graph: ContentGraph) -> set[tuple[bytes, bytes]]:
    """Edges by what their filters are; of filters that share a node, all."""
    return {(min(node._keys), min(child._keys)) for node in graph for child in graph.children(node)}


def nodes_of(graph: ContentGraph) -> set[frozenset[bytes]]:
    return {frozenset(node._keys) for node in graph}


def assert_same(filters: list[Filter]) -> None:
    built, grown = ContentGraph.build(filters), ContentGraph(filters)
    assert nodes_of(built) == nodes_of(grown)
    assert edges_of(built) == edges_of(grown)
    for node in built:
        assert all(node in built.children(parent) for parent in built.parents(node))


@pytest.mark.parametrize("run", range(5))
def test_simple_filters(seed: int, run: int) -> None:
    rng = random.Random(f"{seed}/{run}")
    assert_same([random_filter(rng) for _ in range(250)])


@pytest.mark.parametrize("run", range(3))
def test_filters_of_every_kind(seed: int, run: int) -> None:
    rng = random.Random(f"{seed}/{run}")
    writer = Writer(rng, schema(rng), spark=False)
    filters: list[Filter] = []
    while len(filters) < 120:
        try:
            filters.append(parse(writer.filter(depth=2)))
        except FilterError:
            continue
    assert_same(filters)


def test_many_values_of_one_attribute() -> None:
    """Over 65,536 codes, so that 16 bits are not enough."""
    texts = [f"user = {n}" for n in range(40_000)]
    texts += ["user < 500", "user BETWEEN 100 AND 200", "user = 150 AND x = 1", "x = 1"]
    graph = ContentGraph.build([parse(text) for text in texts])
    node = graph.node(parse("user = 150"))
    assert node is not None
    assert [n.filter.sql() for n in graph.parents(node)] == ["user BETWEEN 100 AND 200"]
    assert [n.filter.sql() for n in graph.children(node)] == ["user = 150 AND x = 1"]
    top = graph.node(parse("user < 500"))
    assert top is not None
    assert len(graph.descendants(top)) == 500 + 1 + 1
    assert len(graph.roots()) == 40_000 - 500 + 2


def test_the_built_graph_lives_on() -> None:
    graph = ContentGraph.build([parse("x > 1"), parse("x > 3")])
    middle = graph.insert(parse("x > 2"))
    assert [n.filter.sql() for n in graph.parents(middle)] == ["x > 1"]
    assert [n.filter.sql() for n in graph.children(middle)] == ["x > 3"]
    graph.remove(middle)
    assert len(graph) == 2


def test_the_index_is_made_when_it_is_asked_for(seed: int) -> None:
    rng = random.Random(seed)
    filters = [random_filter(rng) for _ in range(60)]
    built, grown = ContentGraph.build(filters), ContentGraph(filters)
    for filter_ in filters[:10]:  # before there is an index
        for graph in (built, grown):
            node = graph.node(filter_)
            if node is not None:
                graph.remove(node)
    for _ in range(20):
        event = random_event(rng)
        assert {n.filter for n in built.matching(event)} == {
            n.filter for n in grown.matching(event)
        }
    more = [random_filter(rng) for _ in range(30)]
    for filter_ in more:
        built.insert(filter_)
        grown.insert(filter_)
    assert edges_of(built) == edges_of(grown)


def test_threads_make_no_difference(seed: int) -> None:
    rng = random.Random(seed)
    filters = [random_filter(rng) for _ in range(300)]
    one, many = (ContentGraph.build(filters * 2, threads=threads) for threads in (1, 4))
    assert [node._keys for node in one] == [node._keys for node in many]
    assert edges_of(one) == edges_of(many)


@pytest.mark.parametrize("was_on", [True, False])
def test_garbage_collection_is_as_it_was(was_on: bool) -> None:
    def filters() -> Iterator[Filter]:
        assert not gc.isenabled()
        yield parse("x > 1")
        raise ValueError("no more")

    before = gc.isenabled()
    try:
        (gc.enable if was_on else gc.disable)()
        with pytest.raises(ValueError, match="no more"):
            ContentGraph.build(filters())
        assert gc.isenabled() is was_on
    finally:
        (gc.enable if before else gc.disable)()


def test_of_equal_filters_the_first_is_kept() -> None:
    filters = [parse("x > 1 AND y = 2"), parse("y = 2 AND NOT (x <= 1)")]
    for graph in (ContentGraph.build(filters), ContentGraph(filters)):
        (node,) = graph
        assert node.filter is filters[0]


def test_nothing_is_a_graph_too() -> None:
    assert len(ContentGraph.build([])) == 0
    assert len(ContentGraph.build([parse("false"), parse("true"), parse("x = 1")])) == 3
