"""Diagrams of filters and their implications on objects: the seed's figure 9, and random filters
against brute force on a small domain."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from tidings import parse
from tidings.filters.canonical import AllOf, Node, Test as SetTest
from tidings.filters.canonical.set_tree import AnyOf
from tidings.filters.values import Key, key, sets
from tidings.matching.diagrams.planning.numbered_conditions import BUDGET
from tidings.matching.diagrams.planning.ranking import GAP, Ranking, order_tests
from tidings.matching.diagrams.reference.decision_tree import Decision, build_shared, build_tree
from tidings.matching.diagrams.reference.frontier import Frontier
from tidings.matching.diagrams.reference.implication_graph import (
    ImplicationGraph,
    class_key,
    edges_between,
)
from tidings.matching.diagrams.reference.known_sets import Known


def check(text: str) -> SetTest:
    """The test of a condition on one attribute."""
    ((term, values),) = parse(text).form.hull.items()
    return SetTest(term, values)


X3, X5, X2, X4, Y1, Y4, Y3, Y2, Z4 = map(
    check, ("x = 3", "x = 5", "x = 2", "x > 4", "y > 1", "y < 4", "y = 3", "y > 2", "z > 4")
)
RANKING = Ranking((X3, X5, X2, X4, Y1, Y4, Y3, Y2, Z4))
S1: Node = AnyOf((AllOf((X3, Y1, Y4)), X5))
S2: Node = AnyOf((AllOf((X2, Y3)), AllOf((X4, Y2)), Z4))


def figure_nine() -> tuple[Decision, Decision]:
    one, two = build_tree("S1", S1, RANKING), build_tree("S2", S2, RANKING)
    assert one is not None
    assert two is not None
    return one, two


def is_after_node(node: Decision, target: Decision) -> bool:
    """The rule of the seed: the target comes after the node itself."""
    return target.rank > node.rank


def drawn(node: Decision) -> object:
    """A diagram as nested tuples."""
    return node.value if node.test is None else (
        node.test, drawn(node.branch(True)), drawn(node.branch(False))
    )  # fmt: skip


def test_figure_nine_gives_the_trees_of_the_seed() -> None:
    one, two = figure_nine()
    assert drawn(one) == (X3, (Y1, (Y4, True, False), False), (X5, True, False))
    z = (Z4, True, False)
    assert drawn(two) == (X2, (Y3, True, z), (X4, (Y2, True, z), z))


def test_figure_nine_gives_the_edges_of_the_seed() -> None:
    one, two = figure_nine()
    y1 = one.branch(True)
    z4 = two.branch(False).branch(False)
    assert edges_between(one, two, is_after_node) == [(y1, z4)]
    assert y1.test == Y1
    assert z4.test == Z4
    y3, false = two.branch(True), one.branch(False).branch(False)
    assert edges_between(two, one, is_after_node) == [(y3, false)]
    assert y3.test == Y3
    assert false.value is False


def test_our_rule_adds_the_edge_out_of_a_leaf() -> None:
    one, two = figure_nine()
    leaf, y2 = one.branch(False).branch(True), two.branch(False).branch(True)
    assert leaf.value is True
    assert y2.test == Y2
    found = edges_between(one, two)
    assert found == [(one.branch(True), two.branch(False).branch(False)), (leaf, y2)]
    assert edges_between(two, one) == [(two.branch(True), one.branch(False).branch(False))]


def test_a_stronger_filter_decides_a_weaker_one() -> None:
    strong, weak = "a > 5 AND b > 3", "a > 3 AND b > 1"
    trees = {text: tree_of(text) for text in (strong, weak)}
    ranking = Ranking.of(trees.values())
    assert ranking[check("a > 5")] < ranking[check("a > 3")]
    assert ranking[check("b > 3")] < ranking[check("b > 1")]
    graph = graph_of(trees, ranking)
    frontier = Frontier(graph, {"a": key(10), "b": key(10)})
    assert dict(frontier.run()) == {strong: True, weak: True}
    assert set(frontier.outcomes) == {check("a > 5"), check("b > 3")}
    assert all(step.by == strong for step in frontier.steps if step.owner == weak)


def tree_of(text: str) -> Node:
    form = parse(text).form
    assert form.boxes is not None
    return AnyOf(tuple(AllOf(tuple(SetTest(t, v) for t, v in box.items())) for box in form.boxes))


def graph_of(trees: dict[str, Node], ranking: Ranking, shared: bool = False) -> ImplicationGraph:
    graph = ImplicationGraph()
    for name, tree in trees.items():
        root = (build_shared if shared else build_tree)(name, tree, ranking)
        assert root is not None
        graph.add(root)
    graph.link()
    return graph


# -- random filters on a small domain ----------------------------------------------------------

TERMS = "abc"
VALUES = [None, 0, 1, 2, 3]


def random_test(rng: random.Random) -> SetTest:
    term = rng.choice(TERMS)
    places = [key(value) for value in rng.sample(VALUES, rng.randint(1, 3))]
    values = sets.points(places)
    if rng.random() < 0.5:
        values = sets.between(key(rng.randint(0, 2)), key(3))
    return SetTest(term, values if rng.random() < 0.8 else ~values)


def random_tree(rng: random.Random, depth: int = 2) -> Node:
    if depth == 0 or rng.random() < 0.2:
        return random_test(rng)
    items = tuple(random_tree(rng, depth - 1) for _ in range(rng.randint(2, 3)))
    return AllOf(items) if rng.random() < 0.5 else AnyOf(items)


def all_events() -> Iterator[dict[str, Key]]:
    for values in itertools.product(VALUES, repeat=len(TERMS)):
        yield dict(zip(TERMS, map(key, values), strict=True))


def holds(node: Node, values: dict[str, Key]) -> bool:
    if isinstance(node, SetTest):
        return values[node.term] in node.values
    found = (holds(item, values) for item in node.items)
    return all(found) if isinstance(node, AllOf) else any(found)


def is_reached(known: Known, values: dict[str, Key]) -> bool:
    return all(values[term] in allowed for term, allowed in known.items())


@pytest.mark.parametrize("shared", [False, True], ids=["trees", "shared nodes"])
def test_random_filters_agree_with_brute_force(seed: int, shared: bool) -> None:
    rng = random.Random(f"{seed}/{shared}")
    saved = 0
    for _ in range(12):
        trees = {f"f{n}": random_tree(rng) for n in range(6)}
        ranking = Ranking.of(trees.values())
        graph = graph_of(trees, ranking, shared)
        gone = rng.choice(sorted(trees))
        events = rng.sample(list(all_events()), 40)
        for round_ in range(2):
            for values in events:
                want = {name: holds(tree, values) for name, tree in trees.items()}
                frontier, plain = Frontier(graph, values), Frontier(graph, values, edges=False)
                assert dict(frontier.run()) == want
                assert dict(plain.run()) == want
                assert frontier.node_steps <= plain.node_steps
                saved += plain.node_steps - frontier.node_steps
            if round_ == 0:
                graph.remove(gone)
                del trees[gone]
    assert saved > 0


def test_edges_are_sound_and_not_redundant(seed: int) -> None:
    rng = random.Random(seed)
    events = list(all_events())
    count = 0
    for _ in range(10):
        trees = {f"f{n}": random_tree(rng) for n in range(6)}
        graph = graph_of(trees, Ranking.of(trees.values()))
        for name in (None, "f0"):
            if name is not None:
                graph.remove(name)
            for key_, target in ((key_, one) for key_, all_ in graph.edges.items() for one in all_):
                known = {term: sets.ValueSet(tuple(cuts)) for term, cuts in key_}  # type: ignore[arg-type]
                assert all(
                    is_reached(target.known, values)
                    for values in events
                    if is_reached(known, values)
                )
                assert target.owner in graph.roots
                count += 1
            direct = {key_: set(targets) for key_, targets in graph.edges.items()}
            for key_, targets in direct.items():
                for middle in targets:
                    assert class_key(middle) == key_ or not (
                        targets & direct.get(class_key(middle), set())
                    )
    assert count > 20


def test_removing_the_middle_of_a_chain_keeps_the_ends_connected() -> None:
    texts = ["x > 9 AND y > 1", "x > 5 AND y > 2", "x > 3 AND y > 3"]
    trees = {text: tree_of(text) for text in texts}
    graph = graph_of(trees, Ranking.of(trees.values()))

    def ends(of: str) -> set[object]:
        (node,) = [one for one in graph.roots[of].walk() if one.known and one.test is not None]
        return {target.owner for target in graph.targets_of(node)}

    assert ends(texts[0]) == {texts[1]}
    assert ends(texts[1]) == {texts[2]}
    graph.remove(texts[1])
    assert ends(texts[0]) == {texts[2]}


def test_a_new_filter_takes_part_without_edges() -> None:
    trees = {text: tree_of(text) for text in ("x > 9 AND y > 1", "x > 5 AND y > 2")}
    ranking = Ranking.of(trees.values())
    graph = ImplicationGraph()
    for name, tree in trees.items():
        root = build_tree(name, tree, ranking)
        assert root is not None
        graph.add(root)
    values = {"x": key(10), "y": key(2)}
    before = Frontier(graph, values)
    assert dict(before.run()) == {"x > 9 AND y > 1": True, "x > 5 AND y > 2": False}
    graph.link()
    after = Frontier(graph, values)
    assert dict(after.run()) == {"x > 9 AND y > 1": True, "x > 5 AND y > 2": False}
    assert after.node_steps < before.node_steps


# -- sizes and ranks ---------------------------------------------------------------------------


def clauses(count: int) -> Node:
    pairs = [(check(f"p{n} = 1"), check(f"q{n} = 1")) for n in range(count)]
    return AllOf(tuple(AnyOf(pair) for pair in pairs))


def test_the_tree_of_an_and_of_pairs_has_a_node_per_path() -> None:
    for count in range(1, 7):
        tree = clauses(count)
        pairs = [item.items for item in tree.items]  # type: ignore[union-attr]
        best = Ranking(test for pair in pairs for test in pair)  # type: ignore[misc]
        root = build_tree("f", tree, best)
        assert root is not None
        nodes = [node for node in root.walk() if node.test is not None]
        assert len(nodes) == 2 ** (count + 1) - 2
    assert build_tree("f", clauses(8), Ranking.of([clauses(8)])) is None
    assert 2**8 - 2 <= BUDGET < 2**9 - 2


def test_a_new_test_gets_a_label_in_a_gap(seed: int) -> None:
    rng = random.Random(seed)
    first = [check(f"x > {n}") for n in (0, 100)]
    ranking = Ranking(order_tests([first], {}))
    before = [ranking[test] for test in first]
    for n in rng.sample(range(3, 100), 12):
        ranking.add(check(f"x > {n}"))
    assert [ranking[test] for test in first] == before
    strongest_first = sorted(ranking.order, key=ranking.__getitem__)
    assert list(ranking.order) == strongest_first
    assert [test.values.cuts[0][1] for test in strongest_first] == sorted(
        (test.values.cuts[0][1] for test in strongest_first), reverse=True
    )
    ranking.add(check("y = 1"))
    assert ranking[check("y = 1")] == max(ranking[test] for test in ranking.order)
    for n in range(40):  # until the gap is used up, and all get new labels
        ranking.add(check(f"x > {1 + 2.0**-n}"))
    labels = [ranking[test] for test in ranking.order]
    assert labels == sorted(set(labels))
    assert len(labels) == 55
    assert before[0] < GAP * 55


def test_measured_pass_rates_order_the_tests_of_a_term() -> None:
    rare, common = check("s = 'a'"), check("s = 'b'")
    assert order_tests([[rare, common]], {rare: 0.01, common: 0.5}) == [rare, common]
    assert order_tests([[rare, common]], {rare: 0.5, common: 0.01}) == [common, rare]
