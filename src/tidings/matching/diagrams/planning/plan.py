"""How filters become diagrams within a budget: as units, and as gates that join units.

A *unit* is a condition that gets one diagram: a tree, or shared nodes if the tree is too large. A
filter either is one unit, or is split into parts at its top AND or OR; a *gate* then counts the
parts that are still open. Equal units are merged, even if they come from different filters. So if
the parts of a filter occur in other filters, the filter is also split: each part is then decided
once for all these filters.

Anyone may subscribe, so it must be cheap to plan any filter. Budgets limit nodes and steps, not
seconds, so the same filters always get the same plan. A filter that exceeds a budget is left out:
it remains a tree of sets, which is evaluated separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from tidings.filters.canonical import AllOf, Node, Test
from tidings.filters.language import Expression
from tidings.matching.diagrams.planning.numbered_conditions import (
    BUDGET,
    Condition,
    Reducer,
    all_tests,
    count_nodes,
    count_ways,
    join,
    share_nodes,
)
from tidings.matching.diagrams.planning.numbered_tests import OrderedTests, collect_tests
from tidings.matching.diagrams.planning.ranking import Rates, tests_of

Found = TypeVar("Found")
SHARED_BY = 2  # a filter is split if its parts occur in at least this many filters on average
TRY_STEPS = 8_192  # the most steps to build one diagram
FILTER_STEPS, FILTER_NODES = 32_768, 1_024  # the most steps and nodes for one filter
ALL_STEPS, ALL_NODES = 1 << 25, 1 << 19  # the most steps and nodes for all filters together
MOST_CUTS = 4_096  # the most cuts of a term; the masks of its tests have one bit for each cut


class DiagramPlan(msgspec.Struct, frozen=True):
    """Units and gates, together called signals, have one numbering: first all units, then all
    gates, and each gate comes after its parts."""

    tests: OrderedTests
    units: list[Condition]
    are_shared: list[bool]  # whether a unit has shared nodes
    gates: list[tuple[bool, tuple[int, ...]]]  # the absorbing outcome, and the parts
    outputs: list[tuple[int, int]]  # slot, signal
    decided: list[tuple[int, bool]]  # (slot, result) of filters that need no test
    left_out: list[int]  # slots whose filters exceed a budget
    split: int  # the number of filters that are split into parts
    too_large: int  # how many of these were split because one diagram would exceed the budget
    nodes: int  # the number of nodes in the largest diagram


def plan_filters(
    filters: Iterable[tuple[int, Node]],
    terms: Mapping[str, Expression],
    rates: Rates | None = None,
    *,
    merge: bool = True,
    budget: int = BUDGET,
) -> DiagramPlan:
    """Plan the diagrams of filters, given as (slot, tree of tests). If `merge` is false, equal
    units are not merged."""
    given, left_out = _admit(filters)
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
            signal = planner.place_filter(condition)
            if signal is None:
                left_out.append(slot)
            else:
                outputs.append((slot, signal))
    return planner.finish(outputs, decided, left_out)


def _admit(filters: Iterable[tuple[int, Node]]) -> tuple[list[tuple[int, Node]], list[int]]:
    """The filters that are admitted, and the slots of the filters that are not, because they would
    give a term too many cuts."""
    taken: list[tuple[int, Node]] = []
    left_out: list[int] = []
    cuts: dict[str, set[object]] = {}
    for slot, tree in filters:
        mine: dict[str, set[object]] = {}
        for test in tests_of(tree):
            mine.setdefault(test.term, set()).update(test.values.cuts)
        known = ((term, some, cuts.get(term, set())) for term, some in mine.items())
        if any(len(there) + len(some - there) > MOST_CUTS for _, some, there in known):
            left_out.append(slot)
            continue
        taken.append((slot, tree))
        for term, some in mine.items():
            cuts.setdefault(term, set()).update(some)
    return taken, left_out


def _convert(node: Node, place: Mapping[Test, int], made: dict[Node, Condition]) -> Condition:
    if isinstance(node, Test):
        return place[node]
    found = made.get(node)
    if found is None:
        absorbing = not isinstance(node, AllOf)
        found = join(absorbing, (_convert(item, place, made) for item in node.items))
        made[node] = found
    return found


class _TooMuchError(Exception):
    """A filter exceeds a budget."""


class _Kind(msgspec.Struct, frozen=True):
    """How a condition is evaluated: as several parts, or as one unit with `nodes` nodes."""

    is_gate: bool
    is_shared: bool = False
    nodes: int = 0
    is_too_large: bool = False  # whether it has parts because one diagram would be too large


class _Planner:
    def __init__(self, tests: OrderedTests, merge: bool, budget: int) -> None:
        self._tests = tests
        self._merge = merge
        self._budget = budget
        self._uses: Counter[Condition] = Counter()
        self._known: dict[Condition, int] = {}
        self._kinds: dict[Condition, _Kind] = {}
        self._units: list[Condition] = []
        self._unit_kinds: list[_Kind] = []
        self._gates: list[tuple[bool, tuple[int, ...]]] = []
        self._steps, self._nodes = ALL_STEPS, ALL_NODES  # what is left for all filters
        self._own_steps = self._own_nodes = 0  # what is left for the current filter
        self._split = self._too_large = 0

    def count_parts(self, conditions: Iterable[Condition]) -> None:
        for condition in conditions:
            if isinstance(condition, tuple):
                self._uses.update(item for item in condition[1:] if isinstance(item, tuple))

    def place_filter(self, condition: Condition) -> int | None:
        """Like `_place`, within the budgets of one filter; None if the filter exceeds a budget."""
        self._own_steps = steps = min(FILTER_STEPS, self._steps)
        self._own_nodes = nodes = min(FILTER_NODES, self._nodes)
        units, gates, known = len(self._units), len(self._gates), len(self._known)
        try:
            found = self._place(condition)
        except _TooMuchError:
            del self._units[units:], self._unit_kinds[units:], self._gates[gates:]
            while len(self._known) > known:
                self._known.popitem()
            return None
        finally:
            self._steps -= steps - self._own_steps
        self._nodes -= nodes - self._own_nodes
        kind = self._kinds[condition]
        self._split += kind.is_gate
        self._too_large += kind.is_too_large
        return found

    def _place(self, condition: Condition) -> int:
        """The number of a condition's unit; for a gate instead of a unit, -1 minus its number."""
        found = self._known.get(condition) if self._merge else None
        if found is not None:
            return found
        kind = self._kinds.get(condition)
        if kind is None:
            kind = self._kinds[condition] = self._choose(condition)
        if kind.is_gate:
            parts = tuple(self._place(item) for item in condition[1:])
            self._gates.append((condition[0], parts))
            found = -len(self._gates)
        else:
            self._own_nodes -= kind.nodes
            if self._own_nodes < 0:
                raise _TooMuchError
            found = len(self._units)
            self._units.append(condition)
            self._unit_kinds.append(kind)
        self._known[condition] = found
        return found

    def _choose(self, condition: Condition) -> _Kind:
        if type(condition) is int:
            return _Kind(False, nodes=1)
        parts = [self._uses[item] for item in condition[1:] if isinstance(item, tuple)]
        if parts and sum(parts) >= SHARED_BY * len(parts):
            return _Kind(True)
        size = None
        if count_ways(condition) <= self._budget or self._repeats_terms(condition):
            size = self._try(count_nodes, condition)
        if size is not None:
            return _Kind(False, nodes=size)
        nodes = self._try(share_nodes, condition)
        if nodes is None:
            return _Kind(True, is_too_large=True)
        return _Kind(False, True, len(nodes))

    def _try(
        self, build: Callable[[Condition, Reducer, int], Found | None], condition: Condition
    ) -> Found | None:
        """Build a diagram within the steps that one attempt may take, and within those that the
        filter has left."""
        steps = min(TRY_STEPS, self._own_steps)
        reducer = Reducer(self._tests, steps)
        found = build(condition, reducer, self._budget)
        self._own_steps -= steps - reducer.steps
        if self._own_steps < 0:
            raise _TooMuchError
        return found

    def _repeats_terms(self, condition: Condition) -> bool:
        terms = [self._tests.term_of[test] for test in all_tests(condition)]
        return len(set(terms)) < len(terms)

    def finish(
        self,
        outputs: Sequence[tuple[int, int]],
        decided: list[tuple[int, bool]],
        left_out: list[int],
    ) -> DiagramPlan:
        first = len(self._units)

        def number(place: int) -> int:
            return place if place >= 0 else first - 1 - place

        gates = [(kind, tuple(map(number, parts))) for kind, parts in self._gates]
        placed = [(slot, number(place)) for slot, place in outputs]
        are_shared = [kind.is_shared for kind in self._unit_kinds]
        most = max((kind.nodes for kind in self._unit_kinds), default=0)
        return DiagramPlan(
            self._tests, self._units, are_shared, gates, placed, decided, sorted(left_out),
            self._split, self._too_large, most,
        )  # fmt: skip
