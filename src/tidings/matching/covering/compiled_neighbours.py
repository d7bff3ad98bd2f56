"""Find which compiled filters a new filter covers, and which cover it, without parsing the compiled
filters again.

All boxes of a segment are compared with the boxes of the new filter in one pass. The new filter's
cuts are not added to the segment's rank spaces. A new cut either equals a compiled cut or lies
between two of them, so there are two positions for each compiled cut:

    compiled cuts          0       1       2          cut i has position 2 i + 1
    positions          0   1   2   3   4   5   6      between cuts i - 1 and i is position 2 i

Two new cuts may share a position. That does no harm, because new cuts are never compared with each
other. Tests on elements of lists, and tests that must be evaluated, have columns here too. Such
tests have no spans, because their sets are not compared.

Cost: 21 bytes for each compiled test of one span. For each new filter, two passes of about 15
nanoseconds per compiled box: 3 ms for 100,000 filters of the workload `mixed`, or 20 ms if the new
filter has three boxes with no test in common. If the new filter is wide, the answer for every
filter with several boxes is MAYBE.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import MOST_BOXED, MOST_POINTS, Box, Form
from tidings.filters.language import Attribute, Expression, attributes_of, name_text, text_of
from tidings.filters.values import Cut, ValueSet
from tidings.matching.covering.cover_kernels import MAYBE, NO, YES
from tidings.matching.covering.hulls import bounds, ranges
from tidings.matching.covering.neighbour_kernels import (
    Boxed,
    ColumnReads,
    find_above,
    find_below,
)
from tidings.matching.segments.assembly import DisassembledSegment, disassemble
from tidings.matching.segments.segment import Segment
from tidings.matching.segments.segment_builder import is_element

__all__ = ["MAYBE", "NO", "YES", "Neighbours"]

Array = npt.NDArray[Any]
Spans = dict[tuple[int, int], list[tuple[int, int]]]  # by column, and by the identity of a set
MOST_PLACED = 1 << 18  # the most cuts whose positions are cached
MOST_CODES = 5  # the most points that can be adjacent: absent, null, false, true, -Infinity


class CompiledBoxes(NamedTuple):
    """The boxes of n compiled filters, in the order of their slots."""

    slots: Array  # int64 [n + 1]: where the boxes of a filter begin
    boxed: Boxed
    wide: Array  # uint8 [n]: whether the only box of a filter is the hull of a tree


class Neighbours:
    """The filters of a segment, ready to be compared with new filters. Safe to use from several
    threads."""

    def __init__(self, segment: Segment, count: int, ready: CompiledBoxes | None = None) -> None:
        """`count` is the number of slots; a slot without a box in the segment matches nothing.
        `ready` is the value of `boxes` that an earlier `Neighbours` computed for this segment; it
        may come from a file."""
        self._columns: dict[tuple[bool, str], int] = {}  # by (elements, text)
        self._cuts: list[list[Cut]] = []
        self._nodes: list[tuple[bool, Expression]] = []
        for term in segment.terms:
            self._column(term.elements, term.text, term.node, term.ranks.cuts)
        for text, node in segment.opaque.items():
            self._column(False, text, node, [])
        self.tested = len(self._nodes)
        """The columns from this number on are those of attributes that no compiled filter tests."""
        # attributes that computed terms read also get columns: a new filter may restrict these
        # attributes to points
        for _, node in list(self._nodes):
            for path in attributes_of(node):
                self._column(False, name_text(path), Attribute(path), [])
        self._plain = len(segment.terms)  # only columns before this one have cuts
        self._placed: list[dict[Cut, int]] = [{} for _ in self._cuts]  # positions by cut
        self._room = MOST_PLACED
        self.reads = self._read_by(self._columns, self._nodes)
        """The attributes that compiled columns read."""
        self._computes = bool(self.reads.computed.any())
        self.boxes = ready or self._boxes_of(disassemble(segment), count)

    def __len__(self) -> int:
        return len(self.boxes.wide)

    def of(self, form: Form) -> tuple[Array, Array]:
        """Two uint8 arrays (above, below), with one item for each slot: whether the filter of the
        slot covers the form, and whether the form covers that filter. MAYBE means that the filters
        themselves must be compared. A form that matches nothing covers no filter, and no filter
        covers it."""
        above, below = np.zeros(len(self), np.uint8), np.zeros(len(self), np.uint8)
        if form.never:
            return above, below
        boxes = form.boxes or ()
        new, reads = self.encode(form)
        args = (*self.boxes, new, len(boxes), reads, MOST_BOXED)
        find_above(*args, above)
        find_below(*args, below)
        return above, below

    def null_columns(self) -> Array:
        """bool [C]: whether the first cut of a column lies before null."""
        return np.array([bool(cuts) and cuts[0][0] == 0 for cuts in self._cuts], bool)

    def ends(self) -> Array:
        """int64 [C]: the last position of a column, plus one."""
        return np.array([2 * len(cuts) + 1 for cuts in self._cuts], np.int64)

    def column_of(self, text: str) -> int | None:
        """The column of a term that is not an element of a list."""
        return self._columns.get((False, text))

    def _column(self, elements: bool, text: str, node: Expression, cuts: list[Cut]) -> None:
        if self._columns.setdefault((elements, text), len(self._nodes)) == len(self._nodes):
            self._nodes.append((elements, node))
            self._cuts.append(cuts)

    @staticmethod
    def _read_by(
        columns: Mapping[tuple[bool, str], int], nodes: list[tuple[bool, Expression]]
    ) -> ColumnReads:
        computed = [elements or not isinstance(node, Attribute) for elements, node in nodes]
        reads = [
            [columns.get((False, name_text(path)), -1) for path in sorted(attributes_of(node))]
            if is_computed
            else []
            for is_computed, (_, node) in zip(computed, nodes, strict=True)
        ]
        return ColumnReads(
            computed=np.array(computed, np.uint8),
            reads=bounds(np.array([len(one) for one in reads], np.int64)),
            read=np.array([column for one in reads for column in one], np.int64),
        )

    def _boxes_of(self, source: DisassembledSegment, count: int) -> CompiledBoxes:
        """The boxes of a segment, sorted by slot; a slot may have several boxes."""
        order = np.argsort(source.slots, kind="stable")
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        wide = np.zeros(count, np.uint8)
        for box, rest in source.rest.items():
            wide[source.slots[box]] = rest.form is not None
        slots = bounds(np.bincount(source.slots, minlength=count))
        return CompiledBoxes(slots, self._collect_tests(source, number), wide)

    def _collect_tests(self, source: DisassembledSegment, number: Array) -> Boxed:
        """The tests of a segment. A box has at most one test per column, or several tests without
        spans."""
        tests = source.tests
        others = [(box, column - 1) for box, column, *_ in source.elements]
        others += [
            (box, self._columns[False, text])
            for box, rest in source.rest.items()
            for text, _ in rest.tests
        ]
        other_box, other_column = np.array(others, np.int64).reshape(-1, 2).T
        box = number[np.concatenate([tests.box.astype(np.int64), other_box])]
        column = np.concatenate([tests.column.astype(np.int64) - 1, other_column])
        has = tests.several >= 0
        sizes = np.ones(len(tests.box), np.int64)
        sizes[has] = np.diff(tests.set_starts)[tests.several[has]]
        low, high = np.repeat(tests.low, sizes), np.repeat(tests.high, sizes)
        at = np.repeat(has, sizes)
        first = tests.set_starts[tests.several[has]]
        inside = ranges(first, first + sizes[has])
        low[at], high[at] = tests.set_low[inside], tests.set_high[inside]
        narrow = np.concatenate([[0], np.cumsum(high - low >= MOST_CODES)])
        starts = bounds(np.append(sizes, np.zeros(len(others), np.int64)))
        pinned = np.ones(len(box), np.uint8)
        pinned[: len(sizes)] = narrow[starts[1 : len(sizes) + 1]] == narrow[starts[: len(sizes)]]
        order = np.lexsort((column, box))
        spans = ranges(starts[order], starts[order + 1])
        return Boxed(
            tests=bounds(np.bincount(box, minlength=len(number))),
            column=column[order].astype(np.uint32),
            spans=bounds(starts[order + 1] - starts[order]),
            low=2 * low[spans].astype(np.int32) - np.int32(1),
            high=2 * high[spans].astype(np.int32),
            pinned=pinned[order],
        )

    def encode(self, form: Form, known: Spans | None = None) -> tuple[Boxed, ColumnReads]:
        """The boxes of a new filter, then its hull, and the attributes that all columns read,
        including the new filter's own columns. `known` caches the spans of the filter's sets."""
        known = {} if known is None else known
        foreign: dict[tuple[bool, str], int] = {}
        nodes: list[tuple[bool, Expression]] = []
        of: dict[str, int] = {}
        for text, node in form.terms.items():
            name = (True, text_of(node.args[0])) if is_element(node) else (False, text)
            column = self._columns.get(name, foreign.get(name))
            if column is None:
                column = foreign[name] = len(self._nodes) + len(nodes)
                nodes.append((name[0], node))
            of[text] = column
        rows = [self._rows(box, of, known) for box in form.boxes or ()]
        is_hull = len(rows) == 1 and form.boxes is not None and form.boxes[0] is form.hull
        rows.append(rows[0] if is_hull else self._rows(form.hull, of, known))
        tests, column_of, sizes, low, high, pinned = _join(rows)
        boxed = Boxed(
            tests=bounds(np.array(tests, np.int64)),
            column=np.array(column_of, np.uint32),
            spans=bounds(np.array(sizes, np.int64)),
            low=np.array(low, np.int32),
            high=np.array(high, np.int32),
            pinned=np.array(pinned, np.uint8),
        )
        reads = self.reads
        if nodes:
            more = self._read_by({**self._columns, **foreign}, nodes)
            reads = ColumnReads(
                computed=np.concatenate([reads.computed, more.computed]),
                reads=np.concatenate([reads.reads, reads.reads[-1] + more.reads[1:]]),
                read=np.concatenate([reads.read, more.read]),
            )
        return boxed, reads

    def _rows(self, box: Box, of: Mapping[str, int], known: Spans) -> _Rows:
        found = _Rows([], [], [], [], [])
        for column, text in sorted((of[text], text) for text in box):
            spans = self.spans_of(column, box[text], known)
            found.column.append(column)
            found.sizes.append(len(spans))
            found.low.extend(one for one, _ in spans)
            found.high.extend(other for _, other in spans)
            pins = self._computes and box[text].points(MOST_POINTS) is not None
            found.pinned.append(pins)
        return found

    def spans_of(self, column: int, values: ValueSet, known: Spans) -> list[tuple[int, int]]:
        """A set as spans of positions, both ends included; a column without cuts has no spans.
        `known` caches the spans; it is valid only while the sets exist."""
        spans = known.get((column, id(values)))
        if spans is None:
            spans = known[column, id(values)] = self._spans(column, values)
        return spans

    def _spans(self, column: int, values: ValueSet) -> list[tuple[int, int]]:
        if column >= len(self._cuts) or not self._cuts[column] or self._nodes[column][0]:
            return []
        end = 2 * len(self._cuts[column]) + 1
        found = [self._position(column, cut) for cut in values.cuts]
        if len(found) & 1:
            found.append(end)
        return [(found[at], found[at + 1] - 1) for at in range(0, len(found), 2)]

    def _position(self, column: int, cut: Cut) -> int:
        """The position of a cut. Positions are cached, because a search through the cuts of a
        column has to fetch many objects from memory."""
        placed = self._placed[column]
        found = placed.get(cut)
        if found is None:
            cuts = self._cuts[column]
            at = bisect_left(cuts, cut)
            found = 2 * at + (at < len(cuts) and cuts[at] == cut)
            self._room -= 1
            if self._room < 0:
                self._room = MOST_PLACED
                for one in self._placed:
                    one.clear()
            placed[cuts[at] if found & 1 else cut] = found
        return found

    def encode_simple(self, box: Box) -> list[int] | None:
        """A box as words for `find_neighbours`; None if a term has no column with cuts."""
        columns, rows = self._columns, []
        for text, values in box.items():
            column = columns.get((False, text))
            if column is None or column >= self._plain:
                return None
            rows.append((column, values))
        rows.sort(key=itemgetter(0))
        words, count = [len(rows)], 0
        places: list[int] = []
        for column, values in rows:
            cuts, placed = values.cuts, self._placed[column]
            for cut in cuts:
                found = placed.get(cut)
                places.append(self._position(column, cut) if found is None else found)
            if len(cuts) & 1:
                places.append(2 * len(self._cuts[column]) + 1)
            count += len(cuts) + 1 >> 1
            pinned = self._computes and values.points(MOST_POINTS) is not None
            words += column, pinned, count
        for at in range(1, len(places), 2):
            places[at] -= 1  # because spans include their last position
        return words + places


class _Rows(NamedTuple):
    """The tests of one box."""

    column: list[int]
    sizes: list[int]  # the number of spans
    low: list[int]
    high: list[int]
    pinned: list[bool]


def _join(rows: Sequence[_Rows]) -> tuple[list[int], ...]:
    """Return the number of tests of each box, and then each field, concatenated over all rows."""
    sizes = [len(one.column) for one in rows]
    return sizes, *(
        [value for part in parts for value in part] for parts in zip(*rows, strict=True)
    )
