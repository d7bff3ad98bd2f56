"""The state of an evaluation: the groups that wait, the units that are decided, and counts of the
work."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.matching.array_fields import Int64, UInt32
from tidings.matching.diagrams.diagram_arrays import END, CompiledDiagrams, DiagramArrays
from tidings.matching.jit.pointer_table import pointer_table
from tidings.matching.rank_space.event_coder import IntegerCodes
from tidings.matching.segments.segment import TermColumn

Array = npt.NDArray[Any]
STAMP, WORD, RESULTS = 0, 1, 2  # indexes of DiagramWork.now


class DiagramCounts(NamedTuple):
    """Counts of the work, summed over events; COUNTED names the items of `counts`."""

    counts: Int64
    codes: Int64  # how often each code occurred, column after column
    code_starts: Int64  # [C + 1]: where the codes of a column begin; column 0 is not used


COUNTED = ("tests", "node_steps", "inferred", "skipped", "touched", "counted", "events")


class DiagramWork(NamedTuple):
    """The state of an evaluation. Entries with the current stamp belong to the current event."""

    codes: Int64  # [C]
    heads: UInt32  # [T]
    bits: Int64
    next_group: UInt32  # [G]
    group_state: Int64  # [G]: 4 * stamp, plus WAITING, DONE, KNOWN_LOW or KNOWN_HIGH
    class_stamp: UInt32  # [K]
    signal_state: Int64  # [N]: the stamp in the upper half, the number of open parts in the lower
    stack: UInt32  # classes to visit
    decided: UInt32  # signals to decide, each as twice its number plus its result
    now: Int64  # [3]: the current stamp, the next word of bits, and the number of results
    results: UInt32  # twice the slot, plus the result, in the order of decisions


def new_work(arrays: DiagramArrays, columns: int) -> DiagramWork:
    """The state for an evaluation of these arrays."""
    groups, classes, signals = (
        len(arrays.group_test),
        len(arrays.class_groups) - 1,
        len(arrays.gate_parts),
    )
    next_group = np.full(groups, END, np.uint32)
    next_group[: len(arrays.root_next)] = arrays.root_next
    return DiagramWork(
        codes=np.zeros(columns + 1, np.int64),
        heads=np.full(len(arrays.root_heads), END, np.uint32),
        bits=np.zeros(len(arrays.root_bits), np.int64),
        next_group=next_group,
        group_state=np.zeros(groups, np.int64),
        class_stamp=np.zeros(classes, np.uint32),
        signal_state=np.zeros(signals, np.int64),
        stack=np.zeros(classes + 1, np.uint32),
        decided=np.zeros(len(arrays.gates) + signals + 1, np.uint32),
        now=np.zeros(3, np.int64),
        results=np.zeros(max(1, len(arrays.outputs)), np.uint32),
    )


def new_counts(terms: Sequence[TermColumn]) -> DiagramCounts:
    """Counts that are all zero, for the given terms, which are those of columns 1, 2, ..."""
    ends = np.cumsum([0, *(len(term.ranks) for term in terms)])
    starts = np.append(0, ends[:-1]).astype(np.int64)
    return DiagramCounts(np.zeros(len(COUNTED), np.int64), np.zeros(ends[-1], np.int64), starts)


def add_counts(total: DiagramCounts, more: DiagramCounts) -> None:
    total.counts[:] += more.counts
    total.codes[:] += more.codes


class Totals:
    """Counts from evaluations that used arrays which have been replaced since. All versions of the
    same diagrams have the same tests, and share one object of this class."""

    def __init__(self, counts: DiagramCounts) -> None:
        self.counts = counts
        self.lock = threading.Lock()


class Version:
    """Compiled arrays, and evaluations that are not in use; each thread takes its own
    evaluation."""

    def __init__(
        self, compiled: CompiledDiagrams, columns: int, integers: IntegerCodes, totals: Totals
    ) -> None:
        self.compiled = compiled
        self.always = compiled.always
        self._columns = columns
        self._integers = integers
        self._totals = totals
        self._idle: list[Evaluation] = []
        self._is_retired = False

    def take(self) -> Evaluation:
        try:
            return self._idle.pop()
        except IndexError:
            return Evaluation(self.compiled, self._columns, self._integers)

    def give_back(self, evaluation: Evaluation) -> None:
        self._idle.append(evaluation)
        if self._is_retired:
            self.retire()

    def retire(self) -> None:
        """Move the counts to the totals, because another version is used from now on. If an
        evaluation is still in use, its counts are moved when the evaluation is given back."""
        self._is_retired = True
        with self._totals.lock, suppress(IndexError):
            while True:
                add_counts(self._totals.counts, self._idle.pop().counts)

    def counts(self) -> Iterator[DiagramCounts]:
        """The totals, followed by the counts of all evaluations that are not in use."""
        with self._totals.lock:
            yield self._totals.counts
            yield from (one.counts for one in self.evaluations())

    def evaluations(self) -> list[Evaluation]:
        return list(self._idle)


class Evaluation:
    """The state of one evaluation, and the pointer table that kernels get."""

    def __init__(self, compiled: CompiledDiagrams, columns: int, integers: IntegerCodes) -> None:
        self.work = new_work(compiled.arrays, columns)
        self.counts = new_counts(compiled.terms)
        self._kept = compiled.arrays, self.work, self.counts, integers
        self.table = pointer_table(*self._kept)

    @property
    def results(self) -> Array:
        return self.work.results[: self.work.now[RESULTS]]
