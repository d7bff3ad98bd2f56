"""The graph against its definition: random sequences of operations, checked after every one."""

from __future__ import annotations

import random

import pytest

from tidings import ContentGraph, Filter, GraphError, Node, parse

ATTRIBUTES = ("a", "b", "c", "name")


def random_test(rng: random.Random) -> str:
    attribute = rng.choice(ATTRIBUTES[:3])
    number = rng.randint(0, 4)
    return rng.choice(
        [
            f"{attribute} > {number}",
            f"{attribute} <= {number}",
            f"{attribute} = {number}",
            f"{attribute} IN ({number}, {rng.randint(0, 4)})",
            f"{attribute} BETWEEN {number} AND {number + rng.randint(0, 3)}",
            f"{attribute} != {number}",
            f"{attribute} IS NOT NULL",
            f"name = '{rng.choice(['Bo', 'bo', 'Al'])}'",
            f"lower(name) = '{rng.choice(['bo', 'al'])}'",
            f"startswith(name, '{rng.choice('ABb')}')",
            "a < b",
        ]
    )


def random_filter(rng: random.Random) -> Filter:
    tests = [random_test(rng) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
    text = " AND ".join(tests)
    if rng.random() < 0.3:
        text = f"{text} OR {random_test(rng)}"
    if rng.random() < 0.02:
        pairs = (f"({random_test(rng)} OR x{i} = 1)" for i in range(8))
        text = " AND ".join(pairs)  # wide
    if rng.random() < 0.02:
        text = rng.choice(["true", "false"])
    return parse(text)


class DefinitionGraph:
    """The definition, as directly as it can be written: a set of pairs, closed by hand."""

    def __init__(self) -> None:
        self.filters: list[Filter] = []
        self.covers: set[tuple[int, int]] = set()
        self.live: list[int] = []

    def insert(self, new: Filter) -> None:
        number = len(self.filters)
        self.filters.append(new)
        for old in self.live:
            if self.filters[old].covers(new):
                self.covers.add((old, number))
            if new.covers(self.filters[old]):
                self.covers.add((number, old))
        self.live.append(number)
        above = {a for a, b in self.covers if b == number} | {number}
        below = {b for a, b in self.covers if a == number} | {number}
        above |= {a for a, b in self.covers if b in above}
        below |= {b for a, b in self.covers if a in below}
        self.covers |= {(a, b) for a in above for b in below if a != b}

    def same(self, number: int) -> frozenset[int]:
        """All live filters that cover this one and are covered by it."""
        both = {o for o in self.live if {(o, number), (number, o)} <= self.covers}
        return frozenset(both | {number})

    def remove(self, number: int) -> None:
        gone = self.same(number)
        self.live = [n for n in self.live if n not in gone]
        self.covers = {(a, b) for a, b in self.covers if a not in gone and b not in gone}

    def reduction(self) -> set[tuple[frozenset[int], frozenset[int]]]:
        groups = {number: self.same(number) for number in self.live}
        edges = {(a, b) for a, b in self.covers if groups[a] != groups[b]}
        return {
            (groups[a], groups[b])
            for a, b in edges
            if not any((a, m) in edges and (m, b) in edges for m in self.live)
        }


def edges_of(graph: ContentGraph) -> set[tuple[Node, Node]]:
    return {(node, child) for node in graph for child in graph.children(node)}


@pytest.mark.parametrize("run", range(4))
def test_random_operations_keep_the_definition(seed: int, run: int) -> None:
    rng = random.Random(f"{seed}/{run}")
    graph, oracle = ContentGraph(), DefinitionGraph()
    nodes: dict[int, Node] = {}
    for step in range(250):
        if oracle.live and rng.random() < 0.35:
            number = rng.choice(oracle.live)
            graph.remove(nodes[number])
            oracle.remove(number)
        else:
            new = random_filter(rng)
            known = graph.node(new)
            node = graph.insert(new)
            assert known in (None, node), f"step {step}: an equal filter got another node"
            nodes[len(oracle.filters)] = node
            oracle.insert(new)
        live = {number: nodes[number] for number in oracle.live}
        assert set(live.values()) == set(graph)
        expected = {(nodes[min(above)], nodes[min(below)]) for above, below in oracle.reduction()}
        assert edges_of(graph) == expected, f"step {step}"
        for node in graph:
            assert all(node in graph.children(parent) for parent in graph.parents(node))


def test_a_thousand_operations(seed: int) -> None:
    """The longer run: the invariant at every tenth step, paths against the closed relation."""
    rng = random.Random(seed)
    graph, oracle = ContentGraph(), DefinitionGraph()
    nodes: dict[int, Node] = {}
    for step in range(1000):
        if len(oracle.live) > 60 or (oracle.live and rng.random() < 0.4):
            number = rng.choice(oracle.live)
            graph.remove(nodes[number])
            oracle.remove(number)
        else:
            new = random_filter(rng)
            nodes[len(oracle.filters)] = graph.insert(new)
            oracle.insert(new)
        if step % 10 == 0:
            expected = {(nodes[min(a)], nodes[min(b)]) for a, b in oracle.reduction()}
            assert edges_of(graph) == expected, f"step {step}"
            for number in oracle.live:
                above = {nodes[a] for a, b in oracle.covers if b == number} - {nodes[number]}
                below = {nodes[b] for a, b in oracle.covers if a == number} - {nodes[number]}
                assert set(graph.ancestors(nodes[number])) == above
                assert set(graph.descendants(nodes[number])) == below


def random_event(rng: random.Random) -> dict[str, object]:
    values: list[object] = [None, *range(-1, 7), 0.5, 2.5, float("nan"), "text", True]
    event = {attribute: rng.choice(values) for attribute in ("a", "b", "c", "x0", "x1")}
    event["name"] = rng.choice(["Bo", "bo", "BO", "Al", "al", "b", None, 3])
    return event


def test_matching_and_lowest_follow_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    filters = [random_filter(rng) for _ in range(200)]
    graph = ContentGraph(filters)
    for _ in range(300):
        event = random_event(rng)
        matched = graph.matching(event)
        assert matched == [node for node in graph if node.filter.matches(event)]
        lowest = graph.lowest(matched)
        for node in matched:
            has_matched_below = any(n in matched for n in graph.descendants(node))
            assert (node in lowest) is not has_matched_below


def test_equal_filters_share_a_node() -> None:
    graph = ContentGraph()
    node = graph.insert(parse("price > 5 AND symbol = 'A'"))
    assert graph.insert(parse("symbol IN ('A') AND NOT (price <= 5)")) is node
    assert len(graph) == 1


def test_filters_that_cover_each_other_share_a_node() -> None:
    # the same L-shape, cut into boxes in two ways that no rule makes alike
    tall = parse("(x = 1 AND y < 5) OR (x IN (1, 2) AND y BETWEEN 5 AND 9)")
    wide = parse("(x = 1 AND y <= 9) OR (x = 2 AND y BETWEEN 5 AND 9)")
    assert tall.covers(wide)
    assert wide.covers(tall)
    graph = ContentGraph([tall])
    assert graph.insert(wide) is graph.node(tall)
    graph.remove(graph.insert(wide))
    assert len(graph) == 0
    assert graph.node(wide) is None


def test_remove_joins_parents_to_children() -> None:
    graph = ContentGraph()
    top, middle, low = (graph.insert(parse(f"x > {n}")) for n in (1, 2, 3))
    assert graph.children(top) == [middle]
    graph.remove(middle)
    assert graph.children(top) == [low]
    assert graph.parents(low) == [top]
    assert graph.roots() == [top]


def test_a_node_of_another_graph_is_refused() -> None:
    one, other = ContentGraph([parse("x > 1")]), ContentGraph([parse("x > 1")])
    (node,) = other
    with pytest.raises(GraphError, match="not in this graph"):
        one.remove(node)
    with pytest.raises(GraphError):
        one.lowest([node])
    other.remove(node)
    with pytest.raises(GraphError):
        other.parents(node)


def test_a_number_is_never_given_twice() -> None:
    graph = ContentGraph()
    first = graph.insert(parse("x > 1"))
    graph.remove(first)
    assert graph.insert(parse("x > 1")).id != first.id
