"""How often tests pass; these rates decide the order of tests when diagrams are built again.

Evaluations count the codes of all events. The pass rates of all tests follow from these counts,
whether a test is evaluated, inferred or skipped. The counts outlive the diagrams in which they were
made. The counts are kept when arrays are swapped, and are saved with the diagrams; new diagrams
start with the counts of the diagrams that they replace. When new diagrams start, the counts of each
test are scaled down to at most MOST events, so that new events soon outweigh old ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import Test
from tidings.matching.array_fields import Int64
from tidings.matching.diagrams.diagram_arrays import CompiledDiagrams
from tidings.matching.diagrams.diagram_work import COUNTED, DiagramCounts

Array = npt.NDArray[Any]
Measured = Mapping[Test, tuple[int, int]]  # how many events were seen, and how many passed
ENOUGH = 64  # a pass rate counts as measured after this many events
MOST = 1 << 14  # new diagrams start with counts from at most this many events


class PassCounts(NamedTuple):
    """Counts for each test of some diagrams, in the order of the tests."""

    seen: Int64  # [T]: the number of events
    passed: Int64  # [T]: the number of events that passed the test


def rates_of(measured: Measured) -> dict[Test, float]:
    """The pass rates of the tests for which enough events were seen."""
    return {test: passed / seen for test, (seen, passed) in measured.items() if seen >= ENOUGH}


def add_measured(some: Iterable[Measured]) -> Measured:
    """The counts of several diagrams together."""
    found: dict[Test, tuple[int, int]] = {}
    for one in some:
        for test, (seen, passed) in one.items():
            before = found.get(test, (0, 0))
            found[test] = before[0] + seen, before[1] + passed
    return found


def no_counts(tests: int) -> PassCounts:
    return PassCounts(np.zeros(tests, np.int64), np.zeros(tests, np.int64))


def first_counts(tests: Sequence[Test], measured: Measured) -> PassCounts:
    """The initial counts of diagrams with these tests."""
    counts = no_counts(len(tests))
    for at, test in enumerate(tests):
        seen, passed = measured.get(test, (0, 0))
        if seen > MOST:
            seen, passed = MOST, passed * MOST // seen
        counts.seen[at], counts.passed[at] = seen, passed
    return counts


def count_tests(compiled: CompiledDiagrams, first: PassCounts, counts: DiagramCounts) -> PassCounts:
    """The initial counts, plus the counts of the events that were evaluated since."""
    arrays = compiled.arrays
    test = np.repeat(np.arange(len(arrays.test_column)), np.diff(arrays.test_sets))
    start = counts.code_starts[arrays.test_column[test]]
    before = np.concatenate([[0], np.cumsum(counts.codes)])
    inside = before[start + arrays.set_high + 1] - before[start + arrays.set_low]
    passed = first.passed.copy()
    np.add.at(passed, test, inside)
    return PassCounts(first.seen + counts.counts[COUNTED.index("events")], passed)


def name_counts(compiled: CompiledDiagrams, counts: PassCounts) -> Measured:
    """The counts by test, without the tests for which no event was seen."""
    return {
        _test(compiled, at): (int(counts.seen[at]), int(counts.passed[at]))
        for at in np.flatnonzero(counts.seen).tolist()
    }


def _test(compiled: CompiledDiagrams, number: int) -> Test:
    arrays = compiled.arrays
    term = compiled.terms[int(arrays.test_column[number]) - 1]
    inside = slice(*arrays.test_sets[number : number + 2].tolist())
    spans = zip(arrays.set_low[inside].tolist(), arrays.set_high[inside].tolist(), strict=True)
    return Test(term.text, term.ranks.values(spans))
