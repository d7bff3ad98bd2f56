"""Counts the tests that are evaluated to look up one event, and how many of these are distinct.

    values ──> codes: one per term, no matter how many filters test it (`coded`)
                 |
    boxes in the cells and slices of the event (`candidates`)
                 |  each until a test fails: comparisons of codes (`compared`); a comparison that
                 |  several boxes need counts once in `different`
    boxes with a rest: tests that must be evaluated (`asked`), each term once (`evaluated`)

This module does slowly and step by step what probe_kernels.py does, and finds the same boxes. This
module is for measurements, not for matching.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters.values import Key
from tidings.matching.diagrams.diagrams import Diagrams
from tidings.matching.matcher_state import SealedPart
from tidings.matching.segments import residuals
from tidings.matching.segments.join_kernels import ListColumns, extras_hold
from tidings.matching.segments.part import Part
from tidings.matching.segments.probe_kernels import Group, Pair, Record
from tidings.matching.segments.segment import EXTRA, INTERVALS
from tidings.model import Event

Array = npt.NDArray[Any]
Made = set[tuple[object, ...]]  # comparisons that were made, as (column, low, high) or as an extra


class Effort(msgspec.Struct, frozen=True):
    """The tests that were evaluated for one event."""

    coded: int
    """Terms whose value was turned into a code."""
    candidates: int
    """The number of boxes that were looked at."""
    compared: int
    """The number of comparisons of codes with the sets of these boxes."""
    different: int
    """How many of these comparisons are different; the others repeat a comparison from another
    box."""
    asked: int
    """Tests that no index can decide, in the boxes that passed all comparisons."""
    evaluated: int
    """The distinct terms that these tests read."""
    matched: tuple[int, ...]
    """The slots of the filters that match."""

    def __add__(self, other: Effort) -> Effort:
        return Effort(
            *(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__)
        )


NOTHING = Effort(0, 0, 0, 0, 0, 0, ())


def count_effort(sealed: SealedPart, event: Event, dead: Array) -> Effort:
    """Look one event up in a part and its diagrams, and count the tests."""
    part, diagrams = sealed.part, sealed.diagrams
    codes: list[Array] = []
    found = part.probe(event, dead, codes.append)
    lookup = _Lookup(part, codes[0][: len(part.segment.terms) + 1], part.element_codes(event), dead)
    lookup.visit_cells()
    lookup.visit_singles()
    values = _CountingValues()
    slots = part.segment.arrays.box_slot
    rest = part.segment.rest
    matched = {
        int(slots[box])
        for box in lookup.passed
        if box not in rest or residuals.passes(part.segment, rest[box], event, values)
    }
    assert matched == {*found.tolist()}, "the count and the kernel find different filters"
    found_here = Effort(
        len(part.segment.terms), lookup.candidates, lookup.compared, len(lookup.made),
        values.asked, len(values), tuple(sorted(matched)),
    )  # fmt: skip
    return found_here if diagrams is None else found_here + _count_diagrams(diagrams, event, dead)


def _count_diagrams(diagrams: Diagrams, event: Event, dead: Array) -> Effort:
    """Evaluate diagrams on one event. No test is evaluated twice."""
    before = diagrams.total_counts()["tests"]
    slots = diagrams.match(event, dead)
    tests = diagrams.total_counts()["tests"] - before
    coded = len(diagrams.compiled.terms)
    return Effort(coded, len(diagrams), tests, tests, 0, 0, tuple(sorted(slots.tolist())))


class _Lookup:
    """Looks one event up in the index of a part."""

    def __init__(self, part: Part, codes: Array, lists: ListColumns, dead: Array) -> None:
        self.probe, self.arrays, self.lists, self.dead = (
            part.index,
            part.segment.arrays,
            lists,
            dead,
        )
        self.exact = codes
        self.coarse = codes >> self.arrays.shift
        self.candidates = self.compared = 0
        self.made: Made = set()
        self.passed: list[int] = []  # boxes that pass all comparisons

    def visit_cells(self) -> None:
        """For each pair, visit the records in the event's cell, with three comparisons for each
        record."""
        probe, coarse = self.probe, self.coarse
        place = probe.bins[probe.bin_starts[:-1] + coarse].astype(np.int64)
        for pair in probe.pairs.tolist():
            row, column = place[pair[Pair.A]], place[pair[Pair.B]]
            cell = pair[Pair.CELL] + row * pair[Pair.BINS] + column
            records = probe.records[probe.cells[cell] : probe.cells[cell + 1]].astype(np.int64)
            field = records.T
            boxes = field[Record.BOX] | field[Record.BOX_HIGH] << 16
            tests = (
                (np.full(len(boxes), pair[Pair.A]), field[Record.A_LOW], field[Record.A_WIDTH]),
                (np.full(len(boxes), pair[Pair.B]), field[Record.B_LOW], field[Record.B_WIDTH]),
                (field[Record.C], field[Record.C_LOW], field[Record.C_WIDTH]),
            )
            self._visit(boxes, [self._compare(*test) for test in tests], 2)

    def visit_singles(self) -> None:
        """In each group of entries, visit the slice that can contain the event's code."""
        probe = self.probe
        low, high = probe.single_low.astype(np.int64), probe.single_high.astype(np.int64)
        for group in probe.groups.tolist():
            column, index = group[Group.COLUMN], group[Group.INDEX]
            for code in self._codes(column):
                begin, end = group[Group.FIRST], group[Group.END]
                if index >= 0:
                    begin, end = probe.single_index[index + code : index + code + 2].tolist()
                else:
                    begin += int(np.searchsorted(low[begin:end], code - group[Group.WIDTH]))
                    end = begin + int(np.searchsorted(low[begin:end], code + 1))
                span = slice(begin, end)
                spans = low[span], high[span]
                entry = self._note(np.full(end - begin, column), *spans, high[span] >= code)
                rest = self._compare(*probe.single_first[span].astype(np.int64).T)
                self._visit(probe.single_box[span].astype(np.int64), [entry, rest], 1)

    def _codes(self, column: int) -> list[int]:
        """The event's codes in a column: one code, or the codes of all elements of a list."""
        base = int(self.lists.base[column])
        if base < 0:
            return [int(self.exact[column])]
        begin, end = self.lists.starts[base : base + 2].tolist()
        return [*map(int, self.lists.codes[begin:end])]

    def _compare(self, column: Array, low: Array, width: Array) -> Array:
        """Compare codes with intervals; column 0 means that there is no test."""
        inside: Array = (self.coarse[column] - low) % (1 << 16) <= width
        return self._note(column, low, low + width, inside, coarse=True)

    def _note(
        self, column: Array, low: Array, high: Array, inside: Array, coarse: bool = False
    ) -> Array:
        """Count and record the comparisons. Two comparisons are equal if they have the same column
        and the same ends. Coarse codes are recorded separately, because their units differ from
        those of the codes in entries."""
        real = column > 0
        self.compared += int(real.sum())
        other = (self.arrays.shift[column] > 0) & coarse
        rows = np.column_stack([column, low, high, other])[real]
        self.made.update(map(tuple, rows.tolist()))
        return inside

    def _visit(self, boxes: Array, passes: list[Array], skipped: int) -> None:
        """Visit boxes for which some tests were already compared; `passes` has the results. The
        comparisons so far include the first `skipped` tests in the list of each box."""
        self.candidates += len(boxes)
        for box in boxes[np.logical_and.reduce(passes)].tolist():
            if self._passes_tests(box, skipped) and not self.dead[self.arrays.box_slot[box]]:
                if self.arrays.box_flags[box] & EXTRA and not self._passes_extras(box):
                    continue
                self.passed.append(box)

    def _passes_tests(self, box: int, skipped: int) -> bool:
        arrays = self.arrays
        for test in range(int(arrays.box_tests[box]) + skipped, int(arrays.box_tests[box + 1])):
            one = arrays.test_column[test : test + 1], arrays.test_low[test : test + 1]
            width = arrays.test_width[test : test + 1]
            if not self._compare(*(part.astype(np.int64) for part in (*one, width)))[0]:
                return False
        return True

    def _passes_extras(self, box: int) -> bool:
        """Evaluate the extras of a box; stop at the first one that fails, as the kernel does."""
        arrays = self.arrays
        first, last = int(arrays.box_extras[box]), int(arrays.box_extras[box + 1])
        for extra in range(first, last):
            kind, column = int(arrays.extra_kind[extra]), int(arrays.extra_column[extra])
            a, b = int(arrays.extra_a[extra]), int(arrays.extra_b[extra])
            ends: tuple[object, ...] = (a, b)
            if kind == INTERVALS:
                ends = (*arrays.set_low[a:b].tolist(), *arrays.set_high[a:b].tolist())
            self.compared += 1
            self.made.add((kind, column, "extra", *ends))
            only = arrays._replace(box_extras=np.array([extra, extra + 1], np.uint32))
            if not extras_hold(only, 0, 0, self.exact.reshape(-1, 1), self.lists):
                return False
        return True


class _CountingValues(dict[str, Key]):
    """The cached values of terms. Every test asks for a value, so this class can count the
    tests."""

    asked = 0

    def __getitem__(self, term: str) -> Key:
        self.asked += 1
        return super().__getitem__(term)

    def get(self, term: str, default: Any = None) -> Any:
        self.asked += 1
        return super().get(term, default)
