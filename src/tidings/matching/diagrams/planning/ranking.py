"""The global order of tests. Ranks are labels with gaps, so a new test fits between two old ones.

Tests of one term stay together, because the outcome of a test can decide only other tests of the
same term. Terms come in the order of how many filters use them, the most used first; among terms
that are used equally often, those whose tests fewer events pass on average come first. Among the
tests of a term, those that fewer events pass come first, because a stronger test that passes also
decides the weaker ones. If no pass rate was measured, a test whose set contains fewer pieces of the
line of values counts as stronger; a subset always contains fewer pieces.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping

from tidings.filters.canonical import Node, Test
from tidings.filters.values import ValueSet

GAP = 1 << 16  # the initial difference between the labels of neighbouring tests
Rates = Mapping[Test, float]  # the measured share of events that pass a test


class Ranking:
    """Labels of tests. Tests with lower labels are evaluated earlier."""

    def __init__(self, order: Iterable[Test] = ()) -> None:
        self._order = list(order)
        self._labels: dict[Test, int] = {}
        self._relabel()

    @classmethod
    def of(cls, trees: Iterable[Node], rates: Rates | None = None) -> Ranking:
        """The order for these filters."""
        return cls(order_tests(map(tests_of, trees), rates or {}))

    def _relabel(self) -> None:
        self._labels = {test: GAP * at for at, test in enumerate(self._order, 1)}

    def __getitem__(self, test: Test) -> int:
        return self._labels[test]

    def __contains__(self, test: Test) -> bool:
        return test in self._labels

    def __len__(self) -> int:
        return len(self._order)

    @property
    def order(self) -> tuple[Test, ...]:
        return tuple(self._order)

    def add(self, test: Test) -> None:
        """Give a new test a label: before the first weaker test of its term or, if the term is new,
        after all other tests. The other labels stay as they are, unless no gap is left."""
        if test in self._labels:
            return
        same = [at for at, one in enumerate(self._order) if one.term == test.term]
        weaker = (at for at in same if self._order[at].values >= test.values)
        place = next(weaker, same[-1] + 1 if same else len(self._order))
        before = self._labels[self._order[place - 1]] if place else 0
        self._order.insert(place, test)
        if place == len(self._order) - 1:
            self._labels[test] = before + GAP
            return
        label = (before + self._labels[self._order[place + 1]]) // 2
        if label == before:
            self._relabel()
        else:
            self._labels[test] = label


def order_tests(filters: Iterable[Iterable[Test]], rates: Rates) -> list[Test]:
    """The tests of all filters in the global order."""
    uses: Counter[str] = Counter()
    tests: dict[Test, None] = {}
    for one in filters:
        mine = set(one)
        uses.update({test.term for test in mine})
        tests.update(dict.fromkeys(mine))
    cuts: dict[str, set[tuple[object, ...]]] = {}
    for test in tests:
        cuts.setdefault(test.term, set()).update(test.values.cuts)
    lines = {term: sorted(some) for term, some in cuts.items()}
    sizes = {test: count_pieces(test.values, lines[test.term]) for test in tests}
    passing = {
        test: rates.get(test, size / (len(lines[test.term]) + 1)) for test, size in sizes.items()
    }
    by_term: dict[str, list[float]] = {}
    for test, rate in passing.items():
        by_term.setdefault(test.term, []).append(rate)
    usual = {term: math.fsum(some) / len(some) for term, some in by_term.items()}

    def place(test: Test) -> tuple[object, ...]:
        term = test.term
        return -uses[term], usual[term], term, passing[test], sizes[test], test.values.cuts

    return sorted(tests, key=place)


def count_pieces(values: ValueSet, line: list[tuple[object, ...]]) -> int:
    """The number of pieces between these cuts that a set contains."""
    top = len(line) + 1
    return sum(
        (top if high is None else bisect_left(line, high) + 1) - bisect_left(line, low) - 1
        for low, high in values.intervals()
    )


def tests_of(node: Node | bool) -> set[Test]:
    """The distinct tests of a tree."""
    if isinstance(node, bool):
        return set()
    if isinstance(node, Test):
        return {node}
    return set().union(*(tests_of(item) for item in node.items))
