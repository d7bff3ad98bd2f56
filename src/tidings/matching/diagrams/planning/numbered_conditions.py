"""Conditions over numbered tests: simplify them, and find the nodes of their diagrams."""

from __future__ import annotations

import math
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any

import msgspec

from tidings.matching.diagrams.planning.numbered_tests import OrderedTests

# A condition over tests: the number of a test; or (absorbing outcome, item, item, ...), with the
# outcome False for an AND and True for an OR; or a Boolean if the condition is decided.
Condition = Any
BUDGET = 256  # the most nodes of a diagram, leaves not counted


def join(absorbing: bool, items: Iterable[Condition]) -> Condition:
    """The AND (False absorbs) or OR (True absorbs) of conditions."""
    left = []
    for item in items:
        if item is absorbing:
            return absorbing
        if not isinstance(item, bool):
            left.append(item)
    if not left:
        return not absorbing
    return left[0] if len(left) == 1 else (absorbing, *left)


def first_test(condition: Condition) -> int:
    """The test of a condition that comes first in the order."""
    if type(condition) is int:
        return condition
    return min(map(first_test, condition[1:]))


def all_tests(condition: Condition) -> list[int]:
    """All tests of a condition; a test that occurs several times is listed several times."""
    if type(condition) is int:
        return [condition]
    return [test for item in condition[1:] for test in all_tests(item)]


def count_ways(condition: Condition) -> int:
    """The number of ways to satisfy a condition whose tests are on different terms; the tree of the
    condition has at least this many leaves."""
    if type(condition) is int:
        return 1
    ways = [count_ways(item) for item in condition[1:]]
    return sum(ways) if condition[0] else math.prod(ways)


class Reducer:
    """Simplifies conditions, using what is known about one term. Each visit to a test or to a part
    is one step; `steps` is the number of steps left."""

    def __init__(self, tests: OrderedTests, steps: int = 1 << 60) -> None:
        self.tests = tests
        self._term_of, self._masks = tests.term_of, tests.masks
        self.steps = steps

    def after(self, known: int, test: int, outcome: bool) -> int:
        """What is known about the term of a test if the test has this outcome."""
        mask = self._masks[test]
        return known & mask if outcome else known & ~mask

    def reduce(self, condition: Condition, term: int, known: int) -> Condition:
        self.steps -= 1
        if type(condition) is int:
            if self._term_of[condition] != term:
                return condition
            mask = self._masks[condition]
            if known & mask == known:
                return True
            return condition if known & mask else False
        absorbing = condition[0]
        left = []
        same = True
        for item in condition[1:]:
            found = self.reduce(item, term, known)
            if found is absorbing:
                return absorbing
            same = same and found is item
            if not isinstance(found, bool):
                left.append(found)
        if same:
            return condition
        if not left:
            return not absorbing
        return left[0] if len(left) == 1 else (absorbing, *left)


def count_nodes(condition: Condition, reducer: Reducer, budget: int) -> int | None:
    """The number of nodes in the tree of a condition; None if it exceeds the budget, or if the
    reducer has no steps left."""
    tests = reducer.tests
    count = 0
    stack: list[tuple[Condition, dict[int, int]]] = [(condition, {})]
    while stack:
        left, known = stack.pop()
        count += 1
        if count > budget or reducer.steps < 0:
            return None
        test = first_test(left)
        term = tests.term_of[test]
        before = known.get(term, tests.full[term])
        for outcome in (True, False):
            after = reducer.after(before, test, outcome)
            found = reducer.reduce(left, term, after)
            if not isinstance(found, bool):
                stack.append((found, {**known, term: after}))
    return count


class SharedNode(msgspec.Struct):
    """A node of a diagram with shared nodes: a branch is the number of a node, or a Boolean."""

    test: int
    known: dict[int, int]  # the hull of what is known on the paths to the node
    high: Any = None
    low: Any = None


def share_nodes(condition: Condition, reducer: Reducer, budget: int) -> list[SharedNode] | None:
    """The nodes of a diagram with shared nodes, the root first; None if their number exceeds the
    budget, or if the reducer has no steps left. Parts with the same remaining condition share a
    node."""
    tests = reducer.tests
    numbers = {condition: 0}
    conditions = [condition]
    nodes = [SharedNode(first_test(condition), {})]
    queue = [(nodes[0].test, 0)]
    while queue:
        # in the order of tests, so that the hull of a node is complete when the node is processed
        test, at = heappop(queue)
        node, term = nodes[at], tests.term_of[test]
        before = node.known.get(term, tests.full[term])
        branches: list[Any] = []
        for outcome in (True, False):
            after = reducer.after(before, test, outcome)
            found = reducer.reduce(conditions[at], term, after)
            if not isinstance(found, bool):
                known = {**node.known, term: after}
                number = numbers.setdefault(found, len(nodes))
                if number == len(nodes):
                    conditions.append(found)
                    nodes.append(SharedNode(first_test(found), known))
                    heappush(queue, (nodes[-1].test, number))
                else:
                    nodes[number].known = _unite(nodes[number].known, known)
                found = number
            branches.append(found)
        node.high, node.low = branches
        if len(nodes) > budget or reducer.steps < 0:
            return None
    return nodes


def _unite(known: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    return {term: mask | other[term] for term, mask in known.items() if term in other}
