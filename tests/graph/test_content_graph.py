"""The graph against its definition: random sequences of operations, checked after every one."""

from __future__ import annotations

import itertools
import random
import time

import pytest
from tests.repeats import draws, rounds, runs

from tidings import ContentGraph, Filter, FilterError, GraphError, Node, parse
from tidings.filters.canonical import covering

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


def current(graph: ContentGraph, oracle: DefinitionGraph) -> dict[int, Node]:
    """The nodes of all filters; they may have changed with the last one that came."""
    nodes = {number: graph.node(oracle.filters[number]) for number in oracle.live}
    return {number: node for number, node in nodes.items() if node is not None}


@pytest.mark.parametrize("run", runs(1, 4))
def test_random_operations_keep_the_definition(seed: int, run: int) -> None:
    rng = random.Random(f"{seed}/{run}")
    graph, oracle = ContentGraph(), DefinitionGraph()
    nodes: dict[int, Node] = {}
    for step in rounds(100, 250):
        if oracle.live and rng.random() < 0.35:
            number = rng.choice(oracle.live)
            graph.remove(nodes[number])
            oracle.remove(number)
        else:
            new = random_filter(rng)
            known = graph.node(new)
            node = graph.insert(new)
            assert known in (None, node), f"step {step}: an equal filter got another node"
            oracle.insert(new)
        nodes = current(graph, oracle)
        assert set(nodes.values()) == set(graph)
        expected = {(nodes[min(above)], nodes[min(below)]) for above, below in oracle.reduction()}
        assert edges_of(graph) == expected, f"step {step}"
        for node in graph:
            assert all(node in graph.children(parent) for parent in graph.parents(node))


@pytest.mark.parametrize("steps", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_operations(seed: int, steps: int) -> None:
    """The longer run: the invariant at every tenth step, paths against the closed relation."""
    rng = random.Random(seed)
    graph, oracle = ContentGraph(), DefinitionGraph()
    nodes: dict[int, Node] = {}
    for step in range(steps):
        if len(oracle.live) > 60 or (oracle.live and rng.random() < 0.4):
            number = rng.choice(oracle.live)
            graph.remove(nodes[number])
            oracle.remove(number)
        else:
            new = random_filter(rng)
            graph.insert(new)
            oracle.insert(new)
        nodes = current(graph, oracle)
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
    for _ in rounds(100, 300):
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


RINGS = 5


def spiral(turned: bool) -> Filter:
    """A square as rings of four boxes each, wound one way or the other."""
    one, other = ("y", "x") if turned else ("x", "y")
    boxes: list[str] = []
    for low in range(RINGS):
        high = 2 * RINGS - low
        for a, b, c, d in (
            (low, high - 1, low, low + 1),
            (high - 1, high, low, high - 1),
            (low + 1, high, high - 1, high),
            (low, low + 1, low + 1, high),
        ):
            boxes.append(f"{one} >= {a} AND {one} < {b} AND {other} >= {c} AND {other} < {d}")
    return parse(" OR ".join(boxes))


@pytest.fixture
def square(monkeypatch: pytest.MonkeyPatch) -> tuple[Filter, Filter, Filter, Filter]:
    """Two spirals that are not shown to be equal, their square, which is shown to equal each, and
    points that only the square is shown to cover."""
    monkeypatch.setattr(covering, "EFFORT", 150)
    left, right = spiral(turned=False), spiral(turned=True)
    size = 2 * RINGS
    whole = parse(f"x >= 0 AND x < {size} AND y >= 0 AND y < {size}")
    points = (f"x = {n} AND y = {3 * n % size} AND z = {n}" for n in range(size))
    some = parse(" OR ".join(points))
    assert not left.covers(right)
    assert not right.covers(left)
    assert all(one.covers(whole) and whole.covers(one) for one in (left, right))
    assert not left.covers(some)
    assert whole.covers(some)
    return left, right, whole, some


def test_nodes_that_turn_out_equal_become_one(
    square: tuple[Filter, Filter, Filter, Filter],
) -> None:
    left, right, whole, some = square
    graph = ContentGraph([left, right, parse("x >= 0"), parse("y = 3 AND x = 4 AND z = 1"), some])
    first, second = graph.node(left), graph.node(right)
    assert first is not None
    assert second is not None
    assert first is not second
    assert graph.insert(whole) is first
    assert graph.node(right) is first
    assert first in graph
    assert second not in graph
    assert set(first._keys) == {left.key, right.key, whole.key}
    assert [n.filter.sql() for n in graph.parents(first)] == ["x >= 0"]
    assert len(graph.children(first)) == 2
    assert len(graph) == 4
    for call in (graph.parents, graph.children, graph.ancestors, graph.descendants, graph.remove):
        with pytest.raises(GraphError, match=r"not in this graph; the node of its filter is Node"):
            call(second)
    with pytest.raises(GraphError):
        graph.lowest([second])
    assert graph.matching({"x": 2, "y": 2}) == [first, graph.node(parse("x >= 0"))]
    graph.remove(first)
    assert [graph.node(one) for one in (left, right, whole)] == [None] * 3
    assert graph.matching({"x": 2, "y": 2}) == [graph.node(parse("x >= 0"))]
    assert not set(graph._index._all) & {left, right, whole}


def test_every_filter_of_a_node_is_asked(square: tuple[Filter, Filter, Filter, Filter]) -> None:
    for filters in itertools.permutations(square):
        graph = ContentGraph(filters)
        node, low = graph.node(filters[0]), graph.node(square[-1])
        assert len(graph) == 2
        assert node is not None
        assert low is not None
        assert graph.ancestors(low) == [graph.node(square[0])]


def test_random_operations_where_little_is_shown(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Filters that are equal, cut up in many ways, with hardly any effort to find it out."""
    monkeypatch.setattr(covering, "EFFORT", 30)
    rng = random.Random(seed)
    graph, oracle = ContentGraph(), DefinitionGraph()
    united = 0
    for step in draws(120, lambda: united):
        if oracle.live and rng.random() < 0.1:
            number = rng.choice(oracle.live)
            node = graph.node(oracle.filters[number])
            assert node is not None
            graph.remove(node)
            oracle.remove(number)
        else:
            before = len(graph)
            new = cut_up(rng)
            if graph.node(new) is None:
                oracle.insert(new)
            graph.insert(new)
            united += len(graph) < before
        keys = {number: oracle.filters[number].key for number in oracle.live}
        groups = {frozenset(keys[n] for n in oracle.same(number)) for number in oracle.live}
        assert {frozenset(node._keys) for node in graph} == groups, f"step {step}"
        expected = {
            (frozenset(keys[n] for n in a), frozenset(keys[n] for n in b))
            for a, b in oracle.reduction()
        }
        edges = {(frozenset(a._keys), frozenset(b._keys)) for a, b in edges_of(graph)}
        assert edges == expected, f"step {step}"
    assert united


def cut_up(rng: random.Random) -> Filter:
    """A square, whole or as five boxes that turn around a middle one; or a few points of it."""
    size = rng.choice([4, 5])
    kind = rng.random()
    if kind < 0.15:
        return parse(f"x >= 0 AND x < {size} AND y >= 0 AND y < {size}")
    if kind < 0.4:
        n, m = rng.randrange(size), rng.randrange(1, size)
        points = (f"x = {i} AND y = {(m * i + n) % size} AND z = {i}" for i in range(size))
        return parse(" OR ".join(points))
    (a, b), (c, d) = (sorted(rng.sample(range(1, size), 2)) for _ in range(2))
    boxes = [(0, b, 0, c), (b, size, 0, d), (a, size, d, size), (0, a, c, size), (a, b, c, d)]
    one, other = rng.sample("xy", 2)
    texts = (
        f"{one} >= {i} AND {one} < {j} AND {other} >= {k} AND {other} < {m}"
        for i, j, k, m in boxes[: rng.choice([4, 5, 5])]
    )
    return parse(" OR ".join(texts))


def test_a_text_is_no_filter() -> None:
    graph = ContentGraph([parse("x > 1")])
    with pytest.raises(FilterError, match="parse"):
        graph.node("x > 1")  # type: ignore[arg-type]


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


@pytest.mark.bench
def test_texts_are_placed_among_patterns_soon() -> None:
    """Each pattern was computed on the whole text, which took half a second for ten of them."""
    graph = ContentGraph()
    for number in range(10):
        graph.insert(parse(f"s LIKE '%a{'_' * 200}{number}%'"))
    long = parse(f"s = '{''.join(random.Random(1).choices('ab', k=60_000))}'")
    assert long.form.boxes is not None
    start = time.thread_time()
    graph.insert(long)
    assert time.thread_time() - start < 0.1
