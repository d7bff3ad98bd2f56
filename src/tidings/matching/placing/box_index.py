"""An index of compiled filters. It finds the neighbours of a new filter without a pass over all
filters.

    question ──stab──> boxes around its corner ──ask_above──> filters that cover it
             ──sift──> corners in its pieces ──ask_below──> filters that it covers

For simple filters, one call of a kernel does all of this (lookup_kernels.py).

The boxes decide nearly all candidates (matching/covering/compiled_neighbours.py); all others are
returned as undecided. Filters that are trees have no corner and are left out: the caller compares
them one by one.

Cost in memory: 24 bytes per test and 8 per box, in addition to what Neighbours needs. With
1,000,000 filters of the workload `mixed`, a question examines a few thousand entries and tests. If
the new filter has no usable test (`a IS NULL OR b = 1`), a question takes a pass over all boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import MOST_BOXED
from tidings.filters.values import ValueSet
from tidings.matching.covering import MAYBE, YES, CompiledBoxes, Neighbours, Spans, bounds
from tidings.matching.covering.neighbour_kernels import Boxed, ask_above, ask_below
from tidings.matching.jit import array_pool
from tidings.matching.placing.box_questions import CornerRange, Question
from tidings.matching.placing.index_kernels import (
    Corners,
    EncodedPiece,
    best_test,
    encode_boxes,
    sift,
    stab,
)
from tidings.matching.placing.lookup_kernels import ListEnds, find_neighbours
from tidings.matching.segments.segment import Segment

Array = npt.NDArray[Any]
LAST = np.iinfo(np.int32).max - 1
MOST_FOUND = 1 << 12  # the most neighbours that one lookup of simple filters returns
MOST_CANDIDATES = 1 << 16  # the most candidates of a simple filter


class FoundSlots(NamedTuple):
    """The slots that were found, ascending. For the filters in `sure`, the boxes prove the
    coverings; the other filters must still be compared."""

    sure: Array  # uint32
    unsure: Array  # uint32


_Pair = tuple[FoundSlots, FoundSlots]
_NOTHING = FoundSlots(np.zeros(0, np.uint32), np.zeros(0, np.uint32))


class IndexArrays(NamedTuple):
    """The arrays that have to be stored; the rest are arrays of the segment."""

    boxes: CompiledBoxes
    corners: Corners
    masks: Array  # uint64: for each box of the segment, the mask of its columns
    loose: Array  # uint32: slots that every search for covered filters must consider


class BoxIndex:
    """The plain filters of a segment. Safe to use from several threads."""

    def __init__(self, segment: Segment, count: int, ready: IndexArrays | None = None) -> None:
        """`count` is the number of slots. `ready` contains the `arrays` of an earlier index of this
        segment."""
        self.segment = segment
        self._neighbours = Neighbours(segment, count, None if ready is None else ready.boxes)
        ends = self._neighbours.ends()
        self.arrays = ready or _arrange(self._neighbours.boxes, segment, ends)
        self._split = _find_split(self.arrays.boxes, self._neighbours.null_columns())

    def __len__(self) -> int:
        return len(self._neighbours)

    def find(self, question: Question) -> tuple[FoundSlots, FoundSlots]:
        """The filters that cover the new filter, and those that it covers."""
        return self.find_all([question])[0]

    def find_all(self, questions: Sequence[Question]) -> list[tuple[FoundSlots, FoundSlots]]:
        """Like `find`, but for several filters at once."""
        if not len(self):
            return [(_NOTHING, _NOTHING)] * len(questions)
        words: list[int] = []
        starts: list[int] = []
        simple: list[int] = []
        for at, question in enumerate(questions):
            box = question.simple_box()
            encoded = None if box is None else self._neighbours.encode_simple(box)
            if encoded is not None:
                simple.append(at)
                starts.append(len(words))
                words += encoded
        found = dict(zip(simple, self._find_simple(words, starts), strict=True)) if simple else {}
        return [found.get(at) or self.find_general(one) for at, one in enumerate(questions)]

    def _find_simple(self, words: list[int], starts: list[int]) -> Iterator[_Pair | None]:
        """The neighbours of simple filters; None for each filter that has too many candidates."""
        arrays, count = self.arrays, len(starts)
        out, ends = np.empty(MOST_FOUND, np.uint32), np.empty((count, len(ListEnds)), np.int64)
        find_neighbours(
            np.array(words, np.int64), np.array(starts, np.int64), self.segment.arrays,
            arrays.masks, arrays.corners, self._split, arrays.loose, *arrays.boxes,
            self._neighbours.reads, MOST_BOXED, array_pool.empty(MOST_CANDIDATES, np.uint32), out,
            ends,
        )  # fmt: skip
        first = 0
        for sure_above, above, sure_below, below in ends.tolist():
            if below < 0:
                yield None
            elif below == first:
                yield _NOTHING, _NOTHING
            else:
                up = FoundSlots(out[first:sure_above], out[sure_above:above])
                yield up, FoundSlots(out[above:sure_below], out[sure_below:below])
                first = below

    def find_general(self, question: Question) -> tuple[FoundSlots, FoundSlots]:
        """Like `find`, but for filters of any kind, and in several steps."""
        form = question.form
        known: Spans = {}
        new, reads = self._neighbours.encode(form, known)
        encoded = new, len(form.boxes or ()), reads
        above = self._decide(self._above(question, known), encoded, ask_above)
        return above, self._decide(self._below(question, known), encoded, ask_below)

    def _above(self, question: Question, known: Spans) -> Array:
        """Filters that may cover the new filter."""
        if question.corner is None:
            return self._all()
        columns, codes, mask = [0], [0], 0
        for term, values in question.corner.items():
            column = self._neighbours.column_of(term)
            if column is None:
                continue
            mask |= 1 << column % 64
            spans = self._neighbours.spans_of(column, values, known)
            if spans and column < len(self.segment.terms):
                columns.append(column + 1)
                codes.append((spans[0][0] + 1) // 2)
        order = np.argsort(columns)
        args = np.array(columns, np.int64)[order], np.array(codes, np.int64)[order]
        room = 1 << 12
        while True:
            out = np.empty(room, np.uint32)
            count = stab(*args, self.segment.arrays, self.arrays.masks, np.uint64(mask), out)
            if count >= 0:
                return np.union1d(out[:count], self._split)
            room *= 8

    def _below(self, question: Question, known: Spans) -> Array:
        """Filters that the new filter may cover."""
        choices = [self._encode_all(pieces, known) for pieces in question.alternatives]
        cost, chosen = min(
            ((_cost(pieces), pieces) for pieces in choices), key=lambda choice: choice[0]
        )
        if cost >= len(self):
            return self._all()
        found = [self._sift(*piece) for piece in chosen]
        return np.unique(np.concatenate([self.arrays.loose, *found]))

    def _encode_all(self, pieces: tuple[CornerRange, ...], known: Spans) -> list[_Ranked]:
        encoded = ((self._encode(piece, known), piece.is_tight) for piece in pieces)
        return [
            _Ranked(one, is_tight, *self._rank(one)) for one, is_tight in encoded if one is not None
        ]

    def _rank(self, piece: EncodedPiece) -> tuple[int, int]:
        if not len(piece.columns):
            return 0, len(self)
        test, count = best_test(self.arrays.corners, piece)
        return int(test), int(count)

    def _encode(self, piece: CornerRange, known: Spans) -> EncodedPiece | None:
        """A piece as spans of positions; None if it has a term that no compiled filter tests."""
        columns: list[int] = []
        found: list[list[tuple[int, int]]] = []
        mask = 0
        tests: list[tuple[str, ValueSet | None]] = [*piece.tests.items()]
        tests += [(name, None) for name in piece.reads if name not in piece.tests]
        for term, values in tests:
            column = self._neighbours.column_of(term)
            if column is None or column >= self._neighbours.tested:
                return None
            mask |= 1 << column % 64
            if column + 1 < len(self.arrays.corners.starts):
                columns.append(column)
                found.append(
                    [(0, LAST)]
                    if values is None
                    else self._neighbours.spans_of(column, values, known)
                )
        flat = np.array([span for spans in found for span in spans], np.int64).reshape(-1, 2)
        return EncodedPiece(
            np.array(columns, np.int64),
            bounds(np.array([len(spans) for spans in found], np.int64)),
            flat[:, 0].copy(),
            flat[:, 1].copy(),
            np.uint64(mask),
        )

    def _sift(self, piece: EncodedPiece, is_tight: bool, test: int, count: int) -> Array:
        out = array_pool.empty(count, np.uint32)
        kept = sift(self.arrays.corners, piece, test, is_tight, out)
        return out[:kept]

    def _all(self) -> Array:
        return np.arange(len(self), dtype=np.uint32)

    def _decide(self, slots: Array, encoded: tuple[Any, ...], ask: Any) -> FoundSlots:
        boxes = self.arrays.boxes
        slots = slots[boxes.wide[slots] == 0]
        if not len(slots):
            return _NOTHING
        out = np.empty(len(slots), np.uint8)
        ask(slots, *boxes, *encoded, MOST_BOXED, out)
        return FoundSlots(slots[out == YES], slots[out == MAYBE])


class _Ranked(NamedTuple):
    piece: EncodedPiece
    is_tight: bool
    test: int  # the test that the fewest corners pass
    corners: int  # how many corners pass that test


def _cost(pieces: list[_Ranked]) -> int:
    return sum(one.corners for one in pieces)


def _arrange(boxes: CompiledBoxes, segment: Segment, ends: Array) -> IndexArrays:
    slots, boxed, wide = boxes
    sizes = np.diff(boxed.tests)
    owner = np.repeat(np.arange(len(wide)), np.diff(slots))  # for each box, its slot
    mask = _masks(boxed, sizes)
    # for each slot, the box with the most tests; if there are several such boxes, the first
    order = np.lexsort((-sizes, owner))
    chosen = order[slots[:-1][np.diff(slots) > 0]]
    chosen = chosen[wide[owner[chosen]] == 0]
    is_chosen = np.zeros(len(sizes), bool)
    is_chosen[chosen] = True
    tests = np.flatnonzero(np.repeat(is_chosen, sizes))
    box = np.repeat(np.arange(len(sizes)), sizes)[tests]
    known = boxed.spans[tests + 1] > boxed.spans[tests]
    loose = np.unique(owner[box[~known]]).astype(np.uint32)
    tests, box = tests[known], box[known]
    column, low = boxed.column[tests], boxed.low[boxed.spans[tests]]
    order = np.lexsort((low, column))
    tests, box = tests[order], box[order]
    code = np.empty(len(sizes), np.uint32)
    encode_boxes(boxed, ends, code)
    corners = Corners(
        starts=bounds(np.bincount(column, minlength=len(segment.terms))),
        low=low[order],
        high=boxed.high[boxed.spans[tests + 1] - 1],
        mask=mask[box],
        code=code[box],
        slot=owner[box].astype(np.uint32),
        ends=ends,
    )
    # in the segment, boxes are in the order of their entries
    by_slot = np.argsort(segment.arrays.box_slot, kind="stable")
    masks = np.empty(len(sizes), np.uint64)
    masks[by_slot] = mask
    return IndexArrays(boxes, corners, masks, loose)


def _find_split(boxes: CompiledBoxes, nulls: Array) -> Array:
    """Slots of filters that may cover another filter only by several boxes together, one of which
    tests an attribute that the covered filter does not test. Such a box admits null, so a search by
    the columns of the covered filter's corner does not find it. Few filters have such a box; an
    example is `a <=> 1 AND b = 2 OR NOT (a <=> 1)`. `nulls` says for each column whether its first
    cut is below null."""
    slots, boxed, _ = boxes
    tests = np.flatnonzero(boxed.spans[1:] > boxed.spans[:-1])
    low = boxed.low[boxed.spans[tests]]
    tests = tests[(low <= 0) | ((low == 1) & nulls[boxed.column[tests]])]
    box = np.searchsorted(boxed.tests, tests, "right") - 1
    owner = np.searchsorted(slots, box, "right") - 1
    found: Array = np.unique(owner[np.diff(slots)[owner] > 1]).astype(np.uint32)
    return found


def _masks(boxed: Boxed, sizes: Array) -> Array:
    """The mask of each box: one bit for each of its columns, modulo 64."""
    bits = np.uint64(1) << (boxed.column % np.uint32(64)).astype(np.uint64)
    out = np.zeros(len(sizes), np.uint64)
    some = sizes > 0
    if len(bits):
        out[some] = np.bitwise_or.reduceat(bits, boxed.tests[:-1][some])
    return out
