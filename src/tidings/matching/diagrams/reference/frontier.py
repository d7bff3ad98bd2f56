"""Evaluate the diagrams of several filters on one event, as Python objects: the reference for the
kernel.

Each filter has a current node in its diagram. The nodes wait in the order of their ranks. The test
with the lowest rank is evaluated once, and all filters that wait for it step to a branch. The
implication edges of that branch move other filters down, and the edges of their new nodes move
further filters. A filter is decided when it reaches a leaf, and its result is then yielded.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Mapping

import msgspec

from tidings.filters.canonical import Node, Test
from tidings.filters.values import Key
from tidings.matching.diagrams.planning.ranking import Ranking, Rates
from tidings.matching.diagrams.reference.decision_tree import (
    LEAF,
    Decision,
    build_shared,
    build_tree,
)
from tidings.matching.diagrams.reference.implication_graph import ImplicationGraph
from tidings.model import TidingsError


class Step(msgspec.Struct, frozen=True):
    """One test that a filter gets past: by evaluating the test, or by an implication from another
    filter, `by`. `outcome` is None if the filter skips a path that is not recorded."""

    owner: Hashable
    test: Test
    outcome: bool | None
    by: Hashable | None = None


class Frontier:
    """The filters of a graph while one event is evaluated. `values` has the key of each term's
    value, that is, the position of the value in the order of all values."""

    def __init__(self, graph: ImplicationGraph, values: dict[str, Key], edges: bool = True) -> None:
        self._graph = graph
        self._values = values
        self._edges = edges
        self.current: dict[Hashable, Decision] = dict(graph.roots)
        self.outcomes: dict[Test, bool] = {}
        self.steps: list[Step] = []

    @property
    def inferred(self) -> list[Step]:
        """The tests that filters skipped because of implications."""
        return [step for step in self.steps if step.by is not None]

    @property
    def node_steps(self) -> int:
        """The number of times that a filter moved because its own test was evaluated."""
        return sum(step.by is None for step in self.steps)

    def run(self) -> Iterator[tuple[Hashable, bool]]:
        """The result of each filter, in the order in which the filters are decided."""
        waiting: dict[int, list[Decision]] = {}
        for node in self.current.values():
            waiting.setdefault(node.rank, []).append(node)
        ranks = list(waiting)
        heapq.heapify(ranks)
        while ranks:
            rank = heapq.heappop(ranks)
            for node in waiting.pop(rank):
                if self.current.get(node.owner) is not node:
                    continue  # an edge has already moved the filter further down
                moved = [node] if rank == LEAF else self._step(node)
                for one in moved:
                    if one.value is not None:
                        if self.current.pop(one.owner, None) is not None:
                            yield one.owner, one.value
                    elif one.rank in waiting:
                        waiting[one.rank].append(one)
                    else:
                        waiting[one.rank] = [one]
                        heapq.heappush(ranks, one.rank)

    def _step(self, node: Decision) -> list[Decision]:
        """Evaluate the test of a node; move the node's filter to a branch, and move other filters
        along the edges from that branch."""
        test = node.test
        assert test is not None
        outcome = self.outcomes.get(test)
        if outcome is None:
            outcome = self.outcomes[test] = self._values[test.term] in test.values
        branch = node.branch(outcome)
        self.steps.append(Step(node.owner, test, outcome))
        self.current[node.owner] = branch
        moved = [branch]
        if self._edges:
            self._follow(branch, moved)
        return moved

    def _follow(self, start: Decision, moved: list[Decision]) -> None:
        stack = [start]
        while stack:
            for target in self._graph.targets_of(stack.pop()):
                now = self.current.get(target.owner)
                if now is not None and target.rank > now.rank and now.test is not None:
                    self.steps += _list_passed(now, target, start.owner)
                    self.current[target.owner] = target
                    moved.append(target)
                    stack.append(target)


def _list_passed(now: Decision, target: Decision, by: Hashable) -> list[Step]:
    """The tests that a filter skips when it is moved from one node to another below it."""
    found: list[Step] = []
    node = target
    while node is not now and node.parent is not None:
        above = node.parent
        assert above.test is not None
        found.append(Step(target.owner, above.test, above.high is node, by))
        node = above
    if node is not now and now.test is not None:  # a shared node records only one path
        return [Step(target.owner, now.test, None, by)]
    return found[::-1]


def graph_of(trees: Mapping[Hashable, Node], rates: Rates | None = None) -> ImplicationGraph:
    """The diagrams of filters by name, with all edges between them. A filter whose diagram would be
    too large is split at its topmost AND or OR; its parts are named (name, 1), (name, 2) ..."""
    graph = ImplicationGraph()
    ranking = Ranking.of(trees.values(), rates)
    for name, tree in trees.items():
        for owner, part in _parts(name, tree, ranking):
            root = build_tree(owner, part, ranking) or build_shared(owner, part, ranking)
            if root is None:
                raise TidingsError(
                    f"the filter {name!r} has parts that are too large for a diagram"
                )
            graph.add(root)
    graph.link()
    return graph


def _parts(name: Hashable, tree: Node, ranking: Ranking) -> Iterator[tuple[Hashable, Node]]:
    fits = build_tree(name, tree, ranking) or build_shared(name, tree, ranking)
    if fits or isinstance(tree, Test):
        yield name, tree
    else:
        for number, item in enumerate(tree.items, 1):
            yield (name, number), item
