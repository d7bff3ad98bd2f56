"""Building a graph in bulk gives what inserting one by one gives."""

from __future__ import annotations

import random

import pytest
from tests.filters.strategies import Writer, schema
from tests.graph.test_content_graph import random_filter

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


def test_nothing_is_a_graph_too() -> None:
    assert len(ContentGraph.build([])) == 0
    assert len(ContentGraph.build([parse("false"), parse("true"), parse("x = 1")])) == 3
