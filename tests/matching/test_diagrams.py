"""Compiled diagrams against brute force and against the reference on objects: results, the order in
which they come, edges, budgets, and changes while events are matched."""

from __future__ import annotations

import itertools
import random
import threading
from itertools import pairwise

import numpy as np
import pytest
from tests.matching.test_decision_trees import (
    RANKING,
    S1,
    S2,
    TERMS,
    VALUES,
    X2,
    X3,
    X4,
    X5,
    Y1,
    Y2,
    Y3,
    Y4,
    Z4,
    all_events,
    check,
    clauses,
    graph_of,
    holds,
    random_tree,
    tree_of,
)
from tests.waiting import wait_for

from tidings import TidingsError, parse
from tidings.filters.canonical import AllOf, AnyOf, Node, Test as SetTest
from tidings.filters.language import Attribute
from tidings.filters.values import key
from tidings.matching import Matcher
from tidings.matching.diagrams import class_edges
from tidings.matching.diagrams.diagram_kernels import LAST_STAMP
from tidings.matching.diagrams.diagram_work import STAMP
from tidings.matching.diagrams.diagrams import Diagrams, Draft
from tidings.matching.diagrams.planning import plan as plan_module
from tidings.matching.diagrams.planning.numbered_conditions import (
    BUDGET,
    Reducer,
    count_nodes,
    share_nodes,
)
from tidings.matching.diagrams.planning.numbered_tests import collect_tests
from tidings.matching.diagrams.planning.plan import plan_filters
from tidings.matching.diagrams.planning.ranking import Ranking
from tidings.matching.diagrams.reference.frontier import Frontier
from tidings.matching.diagrams.segment_trees import factor

ATTRIBUTES = {term: Attribute((term,)) for term in TERMS}
ALIVE = np.zeros(100, np.uint8)


def attributes_of(trees: list[Node]) -> dict[str, Attribute]:
    tests = collect_tests(trees, _Any()).tests
    return {test.term: Attribute((test.term,)) for test in tests}


class _Any(dict[str, Attribute]):
    def __missing__(self, term: str) -> Attribute:
        return Attribute((term,))


def diagrams_of(trees: list[Node], **options: object) -> Diagrams:
    return Diagrams.build(enumerate(trees), _Any(), **options)  # type: ignore[arg-type]


def draft_of(diagrams: Diagrams) -> Draft:
    assert diagrams.draft is not None
    return diagrams.draft


def drawn_events(rng: random.Random, count: int) -> list[dict[str, object]]:
    return [{term: rng.choice(VALUES) for term in TERMS} for _ in range(count)]


def places(event: dict[str, object]) -> dict[str, tuple[object, ...]]:
    return {term: key(value) for term, value in event.items()}


def test_results_agree_with_brute_force_with_every_budget(seed: int) -> None:
    rng = random.Random(seed)
    for budget in (1, 3, BUDGET):
        for merge, join in ((True, True), (True, False), (False, False)):
            trees = [random_tree(rng, rng.choice([1, 2, 3])) for _ in range(30)]
            trees += rng.sample(trees, 3)
            found = diagrams_of(trees, merge=merge, join=join, budget=budget)
            assert draft_of(found).plan.nodes <= budget
            events = drawn_events(rng, 30)
            for linked in (False, True):
                if linked:
                    found.link()
                for event in events:
                    values = places(event)
                    want = {at for at, tree in enumerate(trees) if holds(tree, values)}
                    assert set(found.match(event, ALIVE).tolist()) == want
                    results = list(found.decide(event))
                    assert len(results) == len(trees)
                    assert {slot for slot, result in results if result} == want


def test_batches_agree_with_single_events(seed: int) -> None:
    rng = random.Random(seed)
    texts = [
        " AND ".join(
            f"({a} > {rng.randrange(9)} OR {b} = {rng.randrange(3)})"
            for a, b in ((f"a{n}", f"b{n}") for n in rng.sample(range(10), rng.choice([5, 8])))
        )
        for _ in range(40)
    ]
    events = [
        {f"{name}{at}": rng.choice([None, *range(9)]) for name in "ab" for at in range(10)}
        for _ in range(70)
    ]
    filters = {text: parse(text) for text in texts}
    for engine in ("auto", "bdd", "trees"):
        matcher = Matcher(background=False, engine=engine)
        matcher.add_many((text, filters[text]) for text in filters)
        matcher.merge()
        assert bool(matcher.stats()["diagrams"]) is (engine != "trees")
        lists = matcher.match_batch(events).to_pylist()
        for event, ids in zip(events, lists, strict=True):
            want = {text for text, one in filters.items() if one.matches(event)}
            assert set(ids) == want
            assert set(matcher.match(event)) == want
            assert set(matcher.iter_matches(event)) == want


def test_the_reference_takes_the_same_steps_where_no_diagrams_are_joined(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        trees = [random_tree(rng) for _ in range(3)]
        found = diagrams_of(trees, merge=False, join=False)
        if draft_of(found).plan.gates:
            continue
        graph = graph_of({f"f{at}": tree for at, tree in enumerate(trees)},
                         Ranking(draft_of(found).plan.tests.tests))  # fmt: skip
        for event in drawn_events(rng, 15):
            frontier = Frontier(graph, places(event), edges=False)
            dict(frontier.run())
            before = found.total_counts()
            found.match(event, ALIVE)
            after = found.total_counts()
            assert after["node_steps"] - before["node_steps"] == frontier.node_steps
            assert after["tests"] - before["tests"] == len(frontier.outcomes)


def test_edges_are_sound_not_redundant_and_save_steps(seed: int) -> None:
    rng = random.Random(seed)
    events = list(all_events())
    saved = edge_count = 0
    for _ in range(6):
        trees = [random_tree(rng) for _ in range(20)]
        found = diagrams_of(trees)
        draft = draft_of(found)
        tests, classes = draft.plan.tests, draft.classes
        edges = class_edges.find_edges(classes, tests)
        codes = [
            [{at: term.ranks.code(None if place[0] == 0 else place[1])
              for at, term in enumerate(tests.terms) for place in [values[term.text]]}
             for values in events]
        ][0]  # fmt: skip
        for number, some in enumerate(edges):
            known = classes.classes[number].known
            reached = [one for one in codes if all(mask >> one[t] & 1 for t, mask in known)]
            assert len(some) <= class_edges.MOST_EDGES
            for group, outcome in some:
                target = classes.groups[group]
                mask, term = tests.masks[target.test], tests.term_of[target.test]
                above = classes.classes[target.owner].known
                for one in reached:
                    assert bool(mask >> one[term] & 1) is outcome
                    assert all(m >> one[t] & 1 for t, m in above)
                child = target.high if outcome else target.low
                assert not set(edges[child]) & set(some)
                edge_count += 1
        drawn = drawn_events(rng, 20)
        steps = []
        for _ in range(2):
            before = found.total_counts()["node_steps"]
            for event in drawn:
                found.match(event, ALIVE)
            steps.append(found.total_counts()["node_steps"] - before)
            found.link()
        assert steps[1] <= steps[0]
        saved += steps[0] - steps[1]
    assert edge_count > 20
    assert saved > 0


def test_a_stronger_filter_decides_a_weaker_one_in_the_kernel() -> None:
    trees = [tree_of("a > 5 AND b > 3"), tree_of("a > 3 AND b > 1")]
    found = diagrams_of(trees)
    found.link()
    assert sorted(found.match({"a": 10, "b": 10}, ALIVE).tolist()) == [0, 1]
    assert found.total_counts()["tests"] == 2
    assert found.total_counts()["inferred"] == 2


def figure_nine() -> Diagrams:
    """Figure 9 in compiled arrays; the pass rates put the tests in the order of the figure."""
    order = (X3, X5, X2, X4, Y1, Y4, Y3, Y2, Z4)
    measured = {test: (1000, 10 * at) for at, test in enumerate(order)}
    found = diagrams_of([S1, S2], measured=measured)
    assert tuple(draft_of(found).plan.tests.tests) == order
    found.link()
    return found


def test_figure_nine_has_its_edges_in_the_arrays() -> None:
    """Edges lead from a class to a group, with the outcome of the group's test."""
    found = figure_nine()
    arrays, tests = found.arrays, (X3, X5, X2, X4, Y1, Y4, Y3, Y2, Z4)
    reached = {
        int((arrays.group_high if outcome else arrays.group_low)[group]): (tests[test], outcome)
        for group, test in enumerate(arrays.group_test.tolist())
        for outcome in (False, True)
    }
    edges = {
        (reached[owner], (tests[int(arrays.group_test[edge >> 1])], bool(edge & 1)))
        for owner, (first, last) in enumerate(pairwise(arrays.class_edges.tolist()))
        for edge in arrays.edges[first:last].tolist()
    }
    # together, the edges of a class lead to a node of the figure: x = 3 to z > 4, x = 5 to y > 2;
    # the edge of x = 2 to the leaf of S1 saves nothing, because S1 is past its tests by then
    assert edges == {
        ((X3, True), (X2, False)), ((X3, True), (X4, False)),
        ((X5, True), (X2, False)), ((X5, True), (X4, True)),
    }  # fmt: skip


def test_figure_nine_takes_the_same_steps_in_the_arrays() -> None:
    """For all small x, y and z: the tests that are evaluated, and those that are inferred."""
    found = figure_nine()
    graph = graph_of({"S1": S1, "S2": S2}, RANKING)
    steps = {"evaluated": 0, "inferred": 0}
    for x, y, z in itertools.product(range(7), range(6), range(3, 7)):
        event: dict[str, object] = {"x": x, "y": y, "z": z}
        frontier = Frontier(graph, places(event))
        results = dict(frontier.run())
        want = {at for at, name in enumerate(("S1", "S2")) if results[name]}
        found.forget_counts()
        assert set(found.match(event, ALIVE).tolist()) == want
        counts = found.total_counts()
        inferred = sum(step.by is not None for step in frontier.steps)
        assert counts["tests"] == len(frontier.outcomes), event
        assert counts["inferred"] == inferred, event
        steps["evaluated"] += counts["tests"]
        steps["inferred"] += inferred
    assert steps["inferred"] > 50


def test_results_are_handed_out_before_the_event_is_done() -> None:
    trees = [tree_of("a = 1"), tree_of("a = 1 AND b = 1 AND c = 1"), tree_of("c = 2 AND b = 1")]
    found = diagrams_of(trees)
    stream = found.decide({"a": 2, "b": 1, "c": 2})
    first = [next(stream), next(stream)]
    assert sorted(first) == [(0, False), (1, False)]
    assert found.total_counts()["events"] == 0  # the evaluation is not given back yet
    assert list(stream) == [(2, True)]


def test_the_stamps_of_events_begin_again(seed: int) -> None:
    """There are more events than stamps: 2^31 pass in six hours at 100,000 a second."""
    rng = random.Random(seed)
    shared = [AnyOf(tuple(random_tree(rng, 1) for _ in range(4))) for _ in range(12)]
    trees = [AllOf(tuple(rng.sample(shared, 6))) for _ in range(20)]
    found = diagrams_of([*trees, clauses(15)])
    assert draft_of(found).plan.gates
    events = drawn_events(rng, 60)
    want = [found.match(event, ALIVE).tolist() for event in events]
    (evaluation,) = found._version.evaluations()
    evaluation.work.now[STAMP] = LAST_STAMP - 20
    assert [found.match(event, ALIVE).tolist() for event in events] == want
    assert evaluation.work.now[STAMP] == 40


def test_none_exceeds_its_budget_and_large_filters_are_split() -> None:
    wide, small = (
        clauses(15),
        AllOf(tuple(AnyOf((check(f"r{n} = 1"), check(f"s{n} = 1"))) for n in range(4))),
    )
    plan = plan_filters([(0, wide), (1, small)], _Any())
    assert plan.nodes <= BUDGET
    assert len(plan.gates) == 1
    assert len(plan.units) == 16  # the 15 clauses of one, and the other as a tree
    assert not any(plan.are_shared)
    assert count_nodes(plan.units[-1], Reducer(plan.tests), BUDGET) == plan.nodes
    assert count_nodes(plan.units[-1], Reducer(plan.tests), plan.nodes - 1) is None
    for budget in (2, 8, 64):
        assert plan_filters([(0, wide), (1, small)], _Any(), budget=budget).nodes <= budget


def test_shared_nodes_take_over_where_a_tree_is_too_large() -> None:
    seven = clauses(7)
    plan = plan_filters([(0, seven)], _Any())
    assert plan.are_shared == [True]
    nodes = share_nodes(plan.units[0], Reducer(plan.tests), BUDGET)
    assert nodes is not None
    assert len(nodes) == plan.nodes <= BUDGET
    found = diagrams_of([seven])
    event = {f"p{n}": 1 for n in range(7)}
    assert found.match(event, ALIVE).tolist() == [0]
    assert found.match({**event, "p3": 0}, ALIVE).tolist() == []
    assert found.match({**event, "p3": 0, "q3": 1}, ALIVE).tolist() == [0]


def test_equal_parts_of_filters_are_one_unit() -> None:
    shared = AnyOf((check("a = 1"), check("b = 1")))
    trees: list[Node] = [
        AllOf((shared, AnyOf((check(f"c = {n}"), check(f"d = {n}"))))) for n in "12"
    ]
    trees += [AllOf((shared, AnyOf((check("c = 1"), check("d = 1")))))]
    trees += [AllOf((shared, AnyOf((check("c = 2"), check("d = 2"))), check("e = 1")))]
    plan = plan_filters(enumerate(trees), _Any())
    assert len(plan.units) == 4  # the shared clause, two others, e = 1
    apart = plan_filters(enumerate(trees), _Any(), merge=False)
    assert len(apart.units) == 9


def test_equal_units_are_merged_without_implications(seed: int) -> None:
    """Then a unit takes one step for each test of its path, however many filters have it."""
    rng = random.Random(seed)
    clause = AnyOf((check("a = 1"), check("b = 1")))
    others = [AnyOf((check(f"c = {n}"), check(f"d = {n}"))) for n in "123123"]
    trees: list[Node] = [AllOf((clause, other)) for other in others]
    ways = [diagrams_of(trees, merge=merge, join=False) for merge in (False, True)]
    assert [len(draft_of(one).plan.units) for one in ways] == [12, 4]
    steps = []
    for _ in range(30):
        event = {term: rng.randrange(4) for term in "abcd"}
        assert {*ways[0].match(event, ALIVE)} == {*ways[1].match(event, ALIVE)}
    for one in ways:
        counts = one.total_counts()
        assert counts["inferred"] == 0
        steps.append(counts["node_steps"])
    assert steps[1] < steps[0]


def test_boxes_that_are_a_product_are_taken_apart(seed: int) -> None:
    rng = random.Random(seed)
    pairs = [(check(f"p{n} = 1"), check(f"q{n} < 3")) for n in range(4)]
    boxes = [[pair[bits >> at & 1] for at, pair in enumerate(pairs)] for bits in range(16)]
    rng.shuffle(boxes)
    found = factor(boxes)
    assert isinstance(found, AllOf)
    assert {frozenset(item.items) for item in found.items} == set(map(frozenset, pairs))  # type: ignore[union-attr]
    assert factor(boxes[1:]) is None
    assert factor([[check("a = 1")], [check("b = 1"), check("c = 1")]]) is None


def test_measured_pass_rates_change_the_order() -> None:
    trees = [tree_of("s = 'a' AND t = 1"), tree_of("s = 'b' AND t = 1")]
    found = diagrams_of(trees)
    for number in range(200):
        found.match({"s": "a" if number % 10 else "b", "t": 0}, ALIVE)
    rates = found.rates()
    often, rare = check("s = 'a'"), check("s = 'b'")
    assert rates[often] == pytest.approx(0.9)
    again = diagrams_of(trees, measured=found.read_measured())
    order = draft_of(again).plan.tests.tests
    assert order.index(rare) < order.index(often)


def test_edges_are_switched_in_while_events_are_matched(seed: int) -> None:
    rng = random.Random(seed)
    trees = [random_tree(rng) for _ in range(40)]
    found = diagrams_of(trees)
    events = drawn_events(rng, 40)
    want = [{at for at, tree in enumerate(trees) if holds(tree, places(e))} for e in events]
    stream = found.decide(events[0])
    begun = [next(stream)]
    wrong: list[int] = []

    def work() -> None:
        for at, event in enumerate(events * 3):
            if set(found.match(event, ALIVE).tolist()) != want[at % len(events)]:
                wrong.append(at)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for one in threads:
        one.start()
    found.link()
    for one in threads:
        one.join()
    assert wrong == []
    assert {slot for slot, result in [*begun, *stream] if result} == want[0]


def test_a_matcher_finds_edges_in_the_background() -> None:
    matcher = Matcher()
    for number in range(3):
        matcher.add(number, " AND ".join(f"(a{n} > {number} OR b{n} = 1)" for n in range(8)))
    event = {f"a{n}": 2 for n in range(8)}
    assert [*map(sorted, matcher.match_batch([event]).to_pylist())] == [[0, 1]]

    def is_linked() -> bool:
        matcher.match_batch([event])
        return all(sealed.is_linked for sealed in matcher._state.parts)

    assert wait_for(is_linked)
    assert matcher.stats()["diagrams"] == 3
    assert sorted(matcher.match(event), key=str) == [0, 1]
    matcher.remove(1)
    assert matcher.match(event) == [0]
    assert matcher.match_batch([event]).to_pylist() == [[0]]


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(TidingsError, match="'auto', 'bdd', 'trees'"):
        Matcher(engine="dd")


def test_lists_and_residuals_are_forced_into_diagrams_too() -> None:
    texts = [
        "array_contains(tags, 'x') AND a > 1",
        "NOT array_contains(tags, 'y') OR name RLIKE 'b+'",
        "name LIKE '%b%' AND lower(name) = 'abc'",
        "array_contains(days, DATE '2024-05-01') AND a IS NULL",
    ]
    events: list[dict[str, object]] = [
        {"tags": ["x"], "a": 2, "name": "aBC"},
        {"tags": ["y", None], "a": 1, "name": "abc"},
        {"tags": None, "name": "bb", "days": ["2024-05-01"]},
        {"a": 3},
    ]
    matcher = Matcher(background=False, engine="bdd")
    matcher.add_many((text, text) for text in texts)
    matcher.merge()
    assert matcher.stats()["diagrams"] == len(texts)
    for event in events:
        want = {text for text in texts if parse(text).matches(event)}
        assert set(matcher.match(event)) == want
    assert isinstance(tree_of("a = 1 OR b = 2"), AnyOf | AllOf | SetTest)


# -- budgets -----------------------------------------------------------------------------------


def tangled(rng: random.Random, count: int, number: int) -> Node:
    """A filter whose parts share their terms, so no split makes its diagrams small."""
    tests = [check(f"h{n} > {number + n % 7}") for n in range(count)]
    sides = []
    for _ in range(6):
        some = [AnyOf(tuple(rng.sample(tests, 3))) for _ in range(12)]
        sides.append(AllOf(tuple(some)))
    return AllOf((AnyOf(tuple(sides[:3])), AnyOf(tuple(sides[3:]))))


def test_a_filter_that_takes_too_long_to_plan_is_left_out(seed: int) -> None:
    rng = random.Random(seed)
    honest = [random_tree(rng) for _ in range(10)]
    trees = [*honest, *(tangled(rng, 40, number) for number in range(3))]
    plan = plan_filters(enumerate(trees), _Any())
    assert plan.left_out == [10, 11, 12]
    assert sorted([slot for slot, _ in (*plan.outputs, *plan.decided)]) == list(range(10))
    assert plan.nodes <= BUDGET
    alone = plan_filters(enumerate(honest), _Any())
    assert len(plan.units) == len(alone.units)  # nothing is left of those that were left out
    assert len(plan.gates) == len(alone.gates)
    again = plan_filters(enumerate(trees), _Any())
    assert (again.units, again.gates, again.outputs) == (plan.units, plan.gates, plan.outputs)
    found = diagrams_of(trees)
    for event in drawn_events(rng, 10):
        want = {at for at, tree in enumerate(honest) if holds(tree, places(event))}
        assert set(found.match(event, ALIVE).tolist()) == want


def test_all_filters_together_have_budgets(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    trees = [clauses(7) if not at else tangled(rng, 12, 10 * at) for at in range(8)]
    monkeypatch.setattr(plan_module, "FILTER_STEPS", 1 << 40)
    monkeypatch.setattr(plan_module, "ALL_STEPS", 40_000)
    plan = plan_filters(enumerate(trees), _Any())
    assert 0 not in plan.left_out
    assert 7 in plan.left_out
    monkeypatch.setattr(plan_module, "ALL_STEPS", 1 << 40)
    monkeypatch.setattr(plan_module, "ALL_NODES", draft_of(diagrams_of(trees[:1])).plan.nodes)
    assert plan_filters(enumerate(trees), _Any()).left_out == list(range(1, 8))


def test_a_term_has_only_so_many_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "MOST_CUTS", 20)
    texts = {f"w{number}": " AND ".join(f"(a{n} > {number}.5 OR b{n} = 1)" for n in range(8))
             for number in range(30)}  # fmt: skip
    matcher = Matcher(background=False)
    matcher.add_many(texts.items())
    matcher.merge()
    assert 0 < matcher.stats()["diagrams"] < 30
    for value in (0, 7, 25, 29, 40):
        event = {f"a{n}": value for n in range(8)}
        want = {id_ for id_, text in texts.items() if parse(text).matches(event)}
        assert set(matcher.match(event)) == want
        assert set(matcher.match_batch([event]).to_pylist()[0]) == want
