"""Counts the tests that are evaluated for an event in three ways: filter by filter, with equal
tests shared, and in the index.

    one by one    every filter by itself: its tests in order, until its result is known
    shared        the different tests among these: an engine that keeps the results of tests while
                  it matches an event evaluates only those
    index         what the matcher does; see matching/effort.py

The tests of a filter are the tests of its canonical form, in the order of the form. Tests are equal
if they test the same term with equal sets, however they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import AllOf, Form, Node, Test
from tidings.filters.language import Expression, term_value
from tidings.filters.values import ValueSet, key
from tidings.model import Event
from tidings.studies.engine.match_report import Evaluations
from tidings.studies.workloads.checking import WrongMatches

Array = npt.NDArray[Any]
BIG = 1 << 62


class EvaluationCounts(NamedTuple):
    """The number of evaluated tests, the number of different tests among them, and the number of
    filters that match."""

    evaluated: int
    different: int
    matches: int


class NumberedTests:
    """The tests of filters as numbers; equal tests have the same number.

        test     0 1 2 | 0 3 | 4 | 1 5 ...      `box_starts` cut the tests into boxes,
        box      0     | 1   | 2 | 3            `first_box` of a box: the first of its filter
        filter   0           | 1 | 2

    Cost: a number per test, and an entry per different test. For each event, every different test
    is evaluated once.
    """

    def __init__(self, forms: Iterable[Form]) -> None:
        self.numbers: dict[tuple[str, ValueSet], int] = {}
        self._terms: dict[str, Expression] = {}
        self._wide: list[Form] = []
        self._always = 0
        tests: list[int] = []
        starts: list[int] = []
        firsts: list[int] = []
        self.tests = 0  # the tests of all filters, including repeated ones
        for form in forms:
            self._terms.update(form.terms)
            if form.boxes is None:
                self._wide.append(form)
                self.tests += self._add_tree(form)
                continue
            first = len(starts)
            self._always += form.always
            for box in form.boxes:
                if box:
                    starts.append(len(tests))
                    firsts.append(first)
                    tests += [self._number(one) for one in box.items()]
        self.tests += len(tests)
        self._tests = np.array(tests, np.int64)
        self._starts = np.array(starts, np.int64)
        self._first_box = np.array(firsts, np.int64)
        self._box = np.repeat(np.arange(len(starts)), np.diff(np.append(self._starts, len(tests))))

    def _number(self, test: tuple[str, ValueSet]) -> int:
        return self.numbers.setdefault(test, len(self.numbers))

    def _add_tree(self, form: Form) -> int:
        found = [*_tests_of(form.tree)]
        for test in found:
            self._number((test.term, test.values))
        return len(found)

    def count(self, event: Event) -> EvaluationCounts:
        """Evaluate all filters on an event, and count the tests."""
        values = {text: key(term_value(node, event)) for text, node in self._terms.items()}
        passed = np.fromiter(
            (values[term] in allowed for term, allowed in self.numbers), bool, len(self.numbers)
        )
        made = np.zeros(len(passed), bool)
        evaluated, matches = self._count_boxes(passed, made)
        for form in self._wide:
            asked: list[int] = []
            matches += self._inside(form.tree, passed, asked)
            made[asked] = True
            evaluated += len(asked)
        return EvaluationCounts(evaluated, int(made.sum()), matches + self._always)

    def _count_boxes(self, passed: Array, made: Array) -> tuple[int, int]:
        """Count the evaluated tests and the matching filters, for filters with boxes. A box is
        evaluated up to the first test that fails, and a filter up to the first box that passes."""
        if not len(self._starts):
            return 0, 0
        here = np.arange(len(self._tests))
        fails = np.minimum.reduceat(np.where(passed[self._tests], BIG, here), self._starts)
        box_passes = fails == BIG
        before = np.cumsum(box_passes) - box_passes
        is_decided = before > before[self._first_box]  # if an earlier box of the filter has passed
        asked = (here <= fails[self._box]) & ~is_decided[self._box]
        made[self._tests[asked]] = True
        return int(asked.sum()), int((box_passes & ~is_decided).sum())

    def _inside(self, node: Node | None, passed: Array, asked: list[int]) -> bool:
        if isinstance(node, Test):
            number = self.numbers[node.term, node.values]
            asked.append(number)
            return bool(passed[number])
        assert node is not None
        inside = (self._inside(item, passed, asked) for item in node.items)
        return all(inside) if isinstance(node, AllOf) else any(inside)


def _tests_of(node: Node | None) -> Iterable[Test]:
    if isinstance(node, Test):
        yield node
    elif node is not None:
        for item in node.items:
            yield from _tests_of(item)


def count_tests(
    forms: Iterable[Form], events: Sequence[Mapping[str, Any]], effort: Callable[[Event], Any]
) -> Evaluations:
    """For each method, the mean number of tests evaluated per event; `effort` is the method of the
    matcher."""
    table = NumberedTests(forms)
    alone = [table.count(event) for event in events]
    index = [effort(event) for event in events]
    for one, other in zip(alone, index, strict=True):
        if one.matches != len(other.matched):
            raise WrongMatches(
                f"found {one.matches:,} matches when counting tests, but "
                f"{len(other.matched):,} in the index"
            )
    count = len(events)

    def mean(counts: Iterable[int]) -> float:
        return sum(counts) / count

    return Evaluations(
        events=count,
        tests=table.tests,
        different_tests=len(table.numbers),
        one_by_one=mean(one.evaluated for one in alone),
        shared=mean(one.different for one in alone),
        coded=mean(one.coded for one in index),
        candidates=mean(one.candidates for one in index),
        compared=mean(one.compared for one in index),
        compared_different=mean(one.different for one in index),
        asked=mean(one.asked for one in index),
        evaluated=mean(one.evaluated for one in index),
    )
