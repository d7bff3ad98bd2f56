"""Building a graph in bulk gives what inserting one by one gives."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator

import pytest
from tests.filters.strategies import Writer, schema
from tests.graph.test_content_graph import random_event, random_filter, square
from tests.repeats import rounds, runs

from tidings import ContentGraph, Filter, FilterError, parse
from tidings.filters.canonical import covering

__all__ = ["square"]  # a fixture


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


@pytest.mark.parametrize("run", runs(1, 5))
def test_simple_filters(seed: int, run: int) -> None:
    rng = random.Random(f"{seed}/{run}")
    assert_same([random_filter(rng) for _ in rounds(120, 250)])


@pytest.mark.parametrize("run", runs(1, 3))
@pytest.mark.usefixtures("patient_graphs")
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


def hostile_test(rng: random.Random) -> str:
    """Values that compare strangely, terms that are computed, structs and lists."""
    numbers = ["0", "-0.0D", "1", "1.0D", "1.5", "9007199254740993", "9007199254740992D"]
    numbers += ["9223372036854775807", "1e30", "double('NaN')", "double('-Infinity')"]
    strings = ["''", "'a'", "'A'", "'ab'", "'ß'", "'SS'", "'İ'", "'Bo'", "'bo'", "'1'"]
    others = ["DATE '2024-02-29'", "TIMESTAMP '2024-02-29 00:00:00'", "true"]
    value, other = (rng.choice([*numbers, *strings, *others]) for _ in range(2))
    attribute = rng.choice(["a", "b", "s", "s.a"])
    return rng.choice(
        [
            f"{attribute} {rng.choice(['=', '!=', '<', '>=', '<=>'])} {value}",
            f"{attribute} {rng.choice(['IN', 'NOT IN'])} ({value}, {other}, 1)",
            f"{attribute} IS {rng.choice(['', 'NOT '])}NULL",
            f"({attribute} > 1) IS {rng.choice(['NULL', 'TRUE', 'NOT FALSE'])}",
            f"name = {rng.choice(strings)}",
            f"{rng.choice(['lower', 'upper', 'trim'])}(name) = {rng.choice(strings)}",
            f"name IN ({', '.join(rng.sample(strings, 3))}) AND lower(name) = 'bo'",
            f"name {rng.choice(['LIKE', 'ILIKE', 'NOT LIKE'])} '{rng.choice(['%a%', 'B_', '%'])}'",
            f"coalesce(a, b) = {rng.choice(numbers)}",
            rng.choice(["a < b", "a <=> b", "a % 2 = 0", "isnan(a)", "length(name) = 2"]),
            rng.choice(["array_contains(tags, 'a')", "size(tags) = 1", "tags = array('a')"]),
            rng.choice(["'abc' RLIKE 'a'", "name RLIKE '^B'", "subject('a.>')", "true", "false"]),
        ]
    )


def hostile(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.15:  # wide, perhaps empty
        tests = [f"({hostile_test(rng)} OR x{n} = 1)" for n in range(8)]
        if rng.random() < 0.3:
            tests += ["name = 'Al'", "lower(name) = 'bo'"]
        return " AND ".join(tests)
    if kind < 0.4:  # one square, cut up
        a, b = sorted(rng.sample(range(1, 4), 2))
        one, other = rng.sample("xy", 2)
        parts = [(0, b, 0, a), (b, 4, 0, b), (a, 4, b, 4), (0, a, a, 4), (a, b, a, b), (0, 4, 0, 4)]
        boxes = (
            f"{one} >= {i} AND {one} < {j} AND {other} >= {k} AND {other} < {m}"
            for i, j, k, m in rng.choice([parts[:4], parts[:5], parts[5:]])
        )
        return " OR ".join(boxes)
    tests = [hostile_test(rng) for _ in range(rng.choice([1, 1, 2, 3, 4]))]
    text = f"({tests[0]})"
    for test in tests[1:]:
        text = f"({text} {rng.choice(['AND', 'AND', 'OR'])} ({test}))"
    return f"NOT {text}" if rng.random() < 0.1 else text


@pytest.mark.parametrize("run", runs(1, 3))
@pytest.mark.usefixtures("patient_graphs")
def test_hostile_filters_in_any_order(
    seed: int, run: int, square: tuple[Filter, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With little effort to show that one covers another, which `square` allows."""
    monkeypatch.setattr(covering, "AMONG_OTHERS", covering.EFFORT)
    rng = random.Random(f"{seed}/{run}")
    pairs = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(8))
    texts = ["lower(aa) = 'a' AND lower(name) = 'bo'", "'abc' RLIKE 'a' AND y = 1"]
    texts += ["'abc' RLIKE 'a'", f"name = 'Al' AND lower(name) = 'bo' AND {pairs}"]
    filters = [*square, *map(parse, texts)]
    while len(filters) < 40:
        try:
            filters.append(parse(hostile(rng)))
        except FilterError:
            continue
    for _ in range(4):
        rng.shuffle(filters)
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
    filters = [random_filter(rng) for _ in range(150)]
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
