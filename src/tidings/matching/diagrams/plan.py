"""How filters become diagrams within a budget: units, and gates that join them.

A *unit* is a condition that gets one diagram: a tree, or shared nodes if the tree is too large. A
filter is one unit, or it is split at its top AND or OR into parts; a *gate* counts the parts that
are still open. Equal units are one unit, whatever filters they come from. So a filter is also split
if its parts occur in other filters, because such parts are then decided once for all of them.

Sets of values are bit masks over the codes of rank space here: one cut per end point of a set.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Any

import msgspec

from tidings.filters.canonical import All, Node, Test
from tidings.filters.language import Expression
from tidings.filters.values import sets
from tidings.matching.diagrams.decision_tree import BUDGET
from tidings.matching.diagrams.known_sets import tests_of
from tidings.matching.diagrams.ranking import Rates, order_tests
from tidings.matching.rank_space.ranks import Ranks, asks_order

# A condition over tests: the number of a test; or (absorbing outcome, item, item, ...), where False
# absorbs in an AND and True in an OR; or a Boolean if it is decided.
Condition = Any
SHARED_BY = 2  # parts that occur in this many filters on average are worth being units
WORK = 8_192  # visits of tests for one attempt to build a diagram


class Term(msgspec.Struct, frozen=True):
    text: str
    node: Expression
    ranks: Ranks


class Tests(msgspec.Struct, frozen=True):
    """All distinct tests in their global order; a test is known by its place in it."""

    terms: list[Term]
    tests: list[Test]
    term_of: list[int]
    masks: list[int]  # the codes that pass, as bits
    intervals: list[list[tuple[int, int]]]
    full: list[int]  # for each term, the mask of all codes


class Plan(msgspec.Struct, frozen=True):
    """Things are numbered: first all units, then all gates, each after its parts."""

    tests: Tests
    units: list[Condition]
    are_shared: list[bool]  # whether a unit has shared nodes
    gates: list[tuple[bool, tuple[int, ...]]]  # the absorbing outcome, and the parts
    outputs: list[tuple[int, int]]  # slot, thing
    decided: list[tuple[int, bool]]  # slots whose filters need no test
    nodes: int  # the nodes of the largest diagram


def collect_tests(
    filters: Iterable[Node], terms: Mapping[str, Expression], rates: Rates | None = None
) -> Tests:
    """Order the tests of some filters, and give each term a rank space."""
    order = order_tests(map(tests_of, filters), rates or {})
    cuts: dict[str, set[tuple[Any, ...]]] = {}
    ordered: dict[str, bool] = {}
    for test in order:
        cuts.setdefault(test.term, set()).update(test.values.cuts)
        ordered[test.term] = ordered.get(test.term, False) or asks_order(test.values)
    found = [Term(text, terms[text], Ranks(sorted(cuts[text]), ordered[text])) for text in cuts]
    number = {term.text: at for at, term in enumerate(found)}
    term_of = [number[test.term] for test in order]
    pairs = zip(term_of, order, strict=True)
    intervals = [found[at].ranks.intervals(test.values) for at, test in pairs]
    masks = [sum((2 << high) - (1 << low) for low, high in one) for one in intervals]
    # nothing lies before the start of the line, if some set has a cut there
    full = [
        (1 << len(term.ranks)) - (2 if term.ranks.cuts[:1] == [(sets.NO_VALUE,)] else 1)
        for term in found
    ]
    return Tests(found, order, term_of, masks, intervals, full)


def plan_filters(
    filters: Iterable[tuple[int, Node]],
    terms: Mapping[str, Expression],
    rates: Rates | None = None,
    *,
    merge: bool = True,
    budget: int = BUDGET,
) -> Plan:
    """Plan the diagrams of (slot, tree of tests). Without `merge`, equal units stay apart."""
    given = list(filters)
    tests = collect_tests((tree for _, tree in given), terms, rates)
    place = {test: at for at, test in enumerate(tests.tests)}
    made: dict[Node, Condition] = {}
    conditions = [(slot, _convert(tree, place, made)) for slot, tree in given]
    planner = _Planner(tests, merge, budget)
    planner.count_parts(condition for _, condition in conditions)
    outputs, decided = [], []
    for slot, condition in conditions:
        if isinstance(condition, bool):
            decided.append((slot, condition))
        else:
            outputs.append((slot, planner.place(condition)))
    return planner.finish(outputs, decided)


def _convert(node: Node, place: Mapping[Test, int], made: dict[Node, Condition]) -> Condition:
    if isinstance(node, Test):
        return place[node]
    found = made.get(node)
    if found is None:
        absorbing = not isinstance(node, All)
        found = join(absorbing, (_convert(item, place, made) for item in node.items))
        made[node] = found
    return found


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


class Reducer:
    """Simplifies conditions by what is known about one term, and counts the visits."""

    def __init__(self, tests: Tests, work: int = 1 << 60) -> None:
        self._term_of, self._masks = tests.term_of, tests.masks
        self.work = work

    def after(self, known: int, test: int, outcome: bool) -> int:
        """What is known about the term of a test after its outcome."""
        mask = self._masks[test]
        return known & mask if outcome else known & ~mask

    def reduce(self, condition: Condition, term: int, known: int) -> Condition:
        self.work -= 1
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


class _Planner:
    def __init__(self, tests: Tests, merge: bool, budget: int) -> None:
        self._tests = tests
        self._merge = merge
        self._budget = budget
        self._uses: Counter[Condition] = Counter()
        self._known: dict[Condition, int] = {}
        self._kinds: dict[Condition, str] = {}
        self._units: list[Condition] = []
        self._shared: list[bool] = []
        self._gates: list[tuple[bool, tuple[int, ...]]] = []
        self._most = 0

    def count_parts(self, conditions: Iterable[Condition]) -> None:
        for condition in conditions:
            if isinstance(condition, tuple):
                self._uses.update(item for item in condition[1:] if isinstance(item, tuple))

    def place(self, condition: Condition) -> int:
        """The number of the unit of a condition, or -1 minus the number of its gate."""
        found = self._known.get(condition) if self._merge else None
        if found is not None:
            return found
        kind = self._kinds.get(condition)
        if kind is None:
            kind = self._kinds[condition] = self._choose(condition)
        if kind == "gate":
            parts = tuple(self.place(item) for item in condition[1:])
            self._gates.append((condition[0], parts))
            found = -len(self._gates)
        else:
            found = len(self._units)
            self._units.append(condition)
            self._shared.append(kind == "shared")
        self._known[condition] = found
        return found

    def _choose(self, condition: Condition) -> str:
        if type(condition) is int:
            self._most = max(self._most, 1)
            return "tree"
        parts = [self._uses[item] for item in condition[1:] if isinstance(item, tuple)]
        if parts and sum(parts) >= SHARED_BY * len(parts):
            return "gate"
        size = None
        if count_ways(condition) <= self._budget or self._repeats_terms(condition):
            size = count_nodes(condition, self._tests, self._budget)
        if size is not None:
            self._most = max(self._most, size)
            return "tree"
        nodes = share_nodes(condition, self._tests, self._budget)
        if nodes is not None:
            self._most = max(self._most, len(nodes))
            return "shared"
        return "gate"

    def _repeats_terms(self, condition: Condition) -> bool:
        terms = [self._tests.term_of[test] for test in all_tests(condition)]
        return len(set(terms)) < len(terms)

    def finish(self, outputs: list[tuple[int, int]], decided: list[tuple[int, bool]]) -> Plan:
        first = len(self._units)

        def number(place: int) -> int:
            return place if place >= 0 else first - 1 - place

        gates = [(kind, tuple(map(number, parts))) for kind, parts in self._gates]
        placed = [(slot, number(place)) for slot, place in outputs]
        return Plan(self._tests, self._units, self._shared, gates, placed, decided, self._most)


def count_ways(condition: Condition) -> int:
    """The ways to satisfy a condition whose tests are on different terms: a tree has at least as
    many leaves."""
    if type(condition) is int:
        return 1
    ways = [count_ways(item) for item in condition[1:]]
    return sum(ways) if condition[0] else math.prod(ways)


def all_tests(condition: Condition) -> list[int]:
    """The tests of a condition, with repetitions."""
    if type(condition) is int:
        return [condition]
    return [test for item in condition[1:] for test in all_tests(item)]


def count_nodes(condition: Condition, tests: Tests, budget: int) -> int | None:
    """The nodes of the tree of a condition; None if there are more than the budget."""
    reducer = Reducer(tests, WORK)
    count = 0
    stack: list[tuple[Condition, dict[int, int]]] = [(condition, {})]
    while stack:
        left, known = stack.pop()
        count += 1
        if count > budget or reducer.work < 0:
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
    known: dict[int, int]  # the hull of what the paths to it know
    high: Any = None
    low: Any = None


def share_nodes(condition: Condition, tests: Tests, budget: int) -> list[SharedNode] | None:
    """The diagram of a condition with shared nodes, of which the first is the root; None if it has
    more than the budget. Parts in which the same remains to be decided are one node."""
    reducer = Reducer(tests, WORK)
    numbers = {condition: 0}
    conditions = [condition]
    nodes = [SharedNode(first_test(condition), {})]
    queue = [(nodes[0].test, 0)]
    while queue:
        # in the order of tests, so that the hull of a node is complete when it is looked at
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
        if len(nodes) > budget or reducer.work < 0:
            return None
    return nodes


def _unite(known: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    return {term: mask | other[term] for term, mask in known.items() if term in other}
