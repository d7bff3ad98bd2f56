"""Filters that are taken out of compiled diagrams: the results of the others stay, and so do their
implications, as in the reference on objects."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from tests.matching.test_decision_trees import graph_of, holds, random_tree, tree_of
from tests.matching.test_diagrams import ALIVE, diagrams_of, draft_of, drawn_events, places
from tests.waiting import wait_for

from tidings.filters.canonical import Node
from tidings.filters.values import sets
from tidings.matching import Matcher, batch_pieces
from tidings.matching.diagrams.class_edges import find_edges
from tidings.matching.diagrams.diagram_arrays import CompiledDiagrams, link_classes
from tidings.matching.diagrams.diagrams import Diagrams, Draft
from tidings.matching.diagrams.node_classes import Knowledge
from tidings.matching.diagrams.planning.numbered_tests import OrderedTests
from tidings.matching.diagrams.planning.ranking import Ranking
from tidings.matching.diagrams.reference.decision_tree import Decision
from tidings.matching.diagrams.reference.implication_graph import ImplicationGraph
from tidings.matching.diagrams.removal import remove_filters

MANY = 1_000  # edges of a class: no limit
Implied = set[tuple[int, bool]]  # classes' groups, by place in the arrays, and their outcomes


def linked(trees: list[Node]) -> tuple[CompiledDiagrams, Draft]:
    """Diagrams with all edges, and what they were compiled from."""
    found = diagrams_of(trees)
    draft = draft_of(found)
    edges = find_edges(draft.classes, draft.plan.tests, most=MANY)
    return link_classes(found.compiled, draft.classes, edges), draft


def direct_edges(compiled: CompiledDiagrams, owner: int) -> Implied:
    arrays = compiled.arrays
    inside = slice(*arrays.class_edges[owner : owner + 2].tolist())
    return {(edge >> 1, bool(edge & 1)) for edge in arrays.edges[inside].tolist()}


def target_of(compiled: CompiledDiagrams, group: int, outcome: bool) -> int:
    arrays = compiled.arrays
    return int((arrays.group_high if outcome else arrays.group_low)[group])


def all_edges(compiled: CompiledDiagrams, owner: int) -> Implied:
    """The edges of a class, and those that follow from them."""
    found: Implied = set()
    stack = [*direct_edges(compiled, owner)]
    while stack:
        edge = stack.pop()
        if edge not in found:
            found.add(edge)
            stack += direct_edges(compiled, target_of(compiled, *edge))
    return found


def owners_of(compiled: CompiledDiagrams) -> list[int]:
    """The class of each group."""
    starts = compiled.arrays.class_groups.tolist()
    return [
        owner for owner, (first, last) in enumerate(pairwise(starts)) for _ in range(first, last)
    ]


def implied_by(known: Knowledge, other: Knowledge) -> bool:
    have = dict(known)
    return all(term in have and have[term] & ~mask == 0 for term, mask in other)


def living_classes(compiled: CompiledDiagrams) -> set[int]:
    arrays = compiled.arrays
    sizes = np.diff(arrays.class_groups.astype(np.int64)) + np.diff(
        arrays.class_leaves.astype(np.int64)
    )
    return set(np.flatnonzero(sizes).tolist()) - {0}


def expected_edges(compiled: CompiledDiagrams, draft: Draft, owner: int) -> Implied:
    """What a class decides about later tests of the term that led to it, by comparing it with all
    groups that are left."""
    classes, tests = draft.classes.classes, draft.plan.tests
    mine = classes[owner]
    term = tests.term_of[mine.test]
    have = dict(mine.known).get(term)
    found: Implied = set()
    for group, above in enumerate(owners_of(compiled)):
        test = int(compiled.arrays.group_test[group])
        if have is None or test <= mine.test or tests.term_of[test] != term:
            continue
        inside = have & tests.masks[test]
        if inside in (0, have) and implied_by(mine.known, classes[above].known):
            outcome = inside == have
            if owner not in (above, target_of(compiled, group, outcome)):
                found.add((group, outcome))
    return found


def test_the_rest_matches_as_before(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(6):
        trees = [random_tree(rng, rng.choice([1, 2, 3])) for _ in range(25)]
        trees += rng.sample(trees, 3)
        found = diagrams_of(trees)
        found.link()
        left = set(range(len(trees)))
        events = drawn_events(rng, 20)
        before = found.nbytes
        while left:
            gone = rng.sample(sorted(left), min(len(left), rng.randint(1, 12)))
            found = found.remove(np.array(gone))
            left -= set(gone)
            assert found.slots.tolist() == sorted(left)
            assert len(found) == len(left)
            for event in events:
                want = {at for at in left if holds(trees[at], places(event))}
                assert set(found.match(event, ALIVE).tolist()) == want
                assert {slot for slot, result in found.decide(event) if result} == want
        assert found.nbytes < before
        assert len(found.arrays.group_test) == len(found.arrays.edges) == 0


def test_implications_between_the_rest_stay(seed: int) -> None:
    """Against all pairs of a class and a group that are left, compared one by one."""
    rng = random.Random(seed)
    bridged = 0
    for _ in range(8):
        trees = [random_tree(rng) for _ in range(12)]
        compiled, draft = linked(trees)
        left = set(range(len(trees)))
        for _ in range(4):
            gone = rng.sample(sorted(left), 2)
            before = {owner: direct_edges(compiled, owner) for owner in living_classes(compiled)}
            compiled = remove_filters(compiled, np.array(gone), most=MANY)
            left -= set(gone)
            for owner in living_classes(compiled):
                if draft.classes.classes[owner].exact and draft.classes.classes[owner].test >= 0:
                    implied = all_edges(compiled, owner)
                    assert expected_edges(compiled, draft, owner) <= implied
                    check_sound(compiled, draft, owner, implied)
                    direct = direct_edges(compiled, owner)
                    for edge in direct:
                        assert not direct & direct_edges(compiled, target_of(compiled, *edge))
                    bridged += len(direct) > 0 and len(before[owner]) > 0
    assert bridged > 20


def check_sound(compiled: CompiledDiagrams, draft: Draft, owner: int, implied: Implied) -> None:
    classes, tests = draft.classes.classes, draft.plan.tests
    above = owners_of(compiled)
    known = classes[owner].known
    for group, outcome in implied:
        test = int(compiled.arrays.group_test[group])
        have, mask = dict(known)[tests.term_of[test]], tests.masks[test]
        assert have & mask == (have if outcome else 0)
        assert implied_by(known, classes[above[group]].known)


def test_the_reference_implies_nothing_else(seed: int) -> None:
    """After the same filters are removed, what follows in the reference follows in the arrays."""
    rng = random.Random(seed)
    compared = 0
    for _ in range(30):
        trees = [random_tree(rng) for _ in range(6)]
        compiled, draft = linked(trees)
        plan = draft.plan
        if plan.gates or any(plan.are_shared):
            continue
        names = {f"f{at}": tree for at, tree in enumerate(trees)}
        graph = graph_of(names, Ranking(plan.tests.tests))
        by_knowledge = {one.known: at for at, one in enumerate(draft.classes.classes)}
        for gone in rng.sample(range(len(trees)), 3):
            graph.remove(f"f{gone}")
            compiled = remove_filters(compiled, np.array([gone]), most=MANY)
            for node in nodes_of(graph):
                owner = by_knowledge[knowledge_of(node, plan.tests)]
                reached = {owner} | {
                    target_of(compiled, *edge) for edge in all_edges(compiled, owner)
                }
                for target in implied_nodes(graph, node):
                    assert by_knowledge[knowledge_of(target, plan.tests)] in reached
                    compared += 1
    assert compared > 50


def nodes_of(graph: ImplicationGraph) -> Iterator[Decision]:
    for root in graph.roots.values():
        yield from (node for node in root.walk() if node.parent is not None)


def implied_nodes(graph: ImplicationGraph, node: Decision) -> Iterator[Decision]:
    """The nodes that follow from a node, by way of a test after the one that led to it."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        for target in graph.targets_of(stack.pop()):
            if id(target) not in seen and target.owner != node.owner:
                seen.add(id(target))
                stack.append(target)
                assert node.parent is not None
                assert target.parent is not None
                if target.parent.rank > node.parent.rank:
                    yield target


def knowledge_of(node: Decision, tests: OrderedTests) -> Knowledge:
    """What a node knows, in codes."""
    number = {term.text: at for at, term in enumerate(tests.terms)}
    found = []
    for text, values in node.known.items():
        term = number[text]
        begins = [(sets.NO_VALUE,), *tests.terms[term].ranks.cuts]
        codes = (
            code
            for code, begin in enumerate(begins)
            for low, high in values.intervals()
            if low <= begin and (high is None or begin < high)
        )
        found.append((term, sum(1 << code for code in codes) & tests.full[term]))
    return tuple(sorted(found))


def test_removing_the_middle_of_a_chain_keeps_the_ends_connected() -> None:
    texts = ["x > 9 AND y > 1", "x > 5 AND y > 2", "x > 3 AND y > 3"]
    found = diagrams_of([tree_of(text) for text in texts])
    found.link()
    event = {"x": 10, "y": 5}
    found.match(event, ALIVE)
    before = found.total_counts()
    found.forget_counts()
    found = found.remove(np.array([1]))
    assert sorted(found.match(event, ALIVE).tolist()) == [0, 2]
    after = found.total_counts()
    assert (before["tests"], before["inferred"]) == (4, 2)  # x > 5 and x > 3 follow from x > 9
    assert (after["tests"], after["inferred"]) == (3, 1)


def test_an_event_ends_on_the_filters_with_which_it_began() -> None:
    trees = [tree_of("a = 1 AND b = 1"), tree_of("a = 1 AND b = 2"), tree_of("c = 1")]
    found = diagrams_of(trees)
    found.link()
    stream = found.decide({"a": 2, "b": 2, "c": 1})
    first = next(stream)
    found = found.remove(np.array([0, 2]))
    assert sorted([first, *stream]) == [(0, False), (1, False), (2, True)]
    assert [*found.decide({"a": 1, "b": 2, "c": 1})] == [(1, True)]


def test_a_batch_ends_on_the_filters_with_which_it_began() -> None:
    """A filter is replaced and taken out of the diagrams while a batch is under way. The batch does
    not have the new filter, so it must still find the old one."""
    matcher = Matcher(engine="bdd", background=False)
    matcher.add_many({number: f"x > {number} AND y > 0" for number in range(40)})
    matcher.merge()
    batch = pa.RecordBatch.from_pylist([{"x": 30, "y": 1}])
    state, dead = matcher._seal()
    for number in range(20):
        matcher.replace(number, f"x < {100 + number}")
    matcher._prune()
    assert matcher.stats()["diagrams"] == 20
    ((_, slots),) = batch_pieces.match_lists(state, dead, batch, 1)
    assert sorted(slots.tolist()) == list(range(30))
    assert sorted(matcher.match_batch(batch).to_pylist()[0]) == list(range(30))


def test_a_matcher_takes_removed_filters_out_in_the_background() -> None:
    matcher = Matcher()
    for number in range(60):
        matcher.add(number, " AND ".join(f"(a{n} > {number} OR b{n} = {n})" for n in range(8)))
    event = {f"a{n}": 40 for n in range(8)}
    matcher.merge()
    assert matcher.stats()["diagrams"] == 60
    for number in range(0, 60, 3):
        matcher.remove(number)
    assert wait_for(lambda: matcher.stats()["diagrams"] < 60)
    want = [number for number in range(40) if number % 3]
    assert set(matcher.match(event)) == set(want)
    assert sorted(matcher.match_batch([event]).to_pylist()[0]) == want


def test_nothing_is_taken_out_before_there_are_edges(seed: int) -> None:
    rng = random.Random(seed)
    trees = [random_tree(rng) for _ in range(5)]
    found: Diagrams = diagrams_of(trees)
    found = found.remove(np.array([0, 1]))
    assert len(found) == 5
    found.link()
    found = found.remove(np.array([0, 1]))
    assert found.slots.tolist() == [2, 3, 4]
