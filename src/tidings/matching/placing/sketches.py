"""Sketches of the filters that are not compiled yet. The boxes of these filters are in arrays that
grow.

There is no rank space yet. A cut is represented by a key of 64 bits instead: the beginning of a
string, or a number as a double. Keys keep the order of cuts, though several cuts may have the same
key. So comparing keys rejects many filters, but never one that a comparison of cuts would accept.
Single values also have a hash, because long strings often have the same beginning.

Cost: 40 bytes per test and 29 per box. For a filter with one box, a question takes one pass over
all boxes. If the mask of its columns rules out a box, this takes about a nanosecond.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import Box, Form
from tidings.filters.values import STRING, Cut, ValueSet
from tidings.matching.placing.box_questions import CornerRange, Question, corner_box
from tidings.matching.placing.sketch_kernels import WORDS, find_around, find_both, find_inside

Array = npt.NDArray[Any]
_ALL = (1 << 64) - 1
_DOUBLE, _BITS = struct.Struct(">d"), struct.Struct(">Q")
Row = tuple[int, int, int, int, bool]  # column, low, high, hash, and whether the set is a point
Known = dict[int, tuple[int, int, int, bool]]


class Sketches:
    """The boxes of plain filters, grouped by owner; an owner is a small integer. Not thread-safe: a
    caller must hold a lock."""

    def __init__(self) -> None:
        self._columns: dict[str, int] = {}
        self._count = 0
        self._filled = 0  # the number of tests
        self._masks: Array = np.zeros(64, np.uint64)
        self._owners: Array = np.zeros(64, np.uint32)
        self._is_corner: Array = np.zeros(64, np.uint8)
        self._starts = np.zeros(65, np.int64)
        self._tests: Array = np.zeros((256, WORDS), np.uint64)
        self._out: Array = np.empty(128, np.uint32)
        self._split: list[int] = []  # the owners for which `_is_split` is true

    def __len__(self) -> int:
        """The number of boxes."""
        return self._count

    def add(self, owner: int, form: Form, known: Known | None = None) -> None:
        """Add a plain filter. `known` caches the keys of its sets."""
        boxes, known = form.boxes or (), {} if known is None else known
        corner = boxes[0] if len(boxes) == 1 else corner_box(form)
        columns = self._columns
        for box in boxes:
            rows = [
                (columns.setdefault(term, len(columns)), *_keys_of(values, known))
                for term, values in box.items()
            ]
            rows.sort()
            self._append(owner, rows, box is corner)
        if len(boxes) > 1 and _is_split(form):
            self._split.append(owner)

    def _append(self, owner: int, rows: list[Row], is_corner: bool) -> None:
        at, first = self._count, self._filled
        last = self._filled = first + len(rows)
        if at == len(self._masks):
            self._masks, self._owners = _double(self._masks), _double(self._owners)
            self._is_corner = _double(self._is_corner)
            self._starts = np.append(self._starts, np.zeros_like(self._masks, np.int64)[:at])
            self._out = np.empty(2 * len(self._masks), np.uint32)
        while last > len(self._tests):
            self._tests = _double(self._tests)
        if rows:
            self._tests[first:last] = rows
        self._masks[at] = _mask_of(rows)
        self._owners[at], self._is_corner[at] = owner, is_corner
        self._starts[at + 1] = last
        self._count += 1

    def around(self, question: Question) -> tuple[list[int], list[int]]:
        """The owners whose filters may cover the new filter, and those whose filters it may
        cover."""
        box, count = question.simple_box(), self._count
        if not count:
            return [], []
        rows = None if box is None else self._rows(box, question.known)
        # if there are fewer rows, the box tests terms that no sketch has
        if box is None or rows is None or len(rows) < len(box):
            return self.above(question), self.below(question)
        above, below = find_both(
            count, self._masks, self._owners, self._starts, self._tests, self._is_corner,
            np.array(rows, np.uint64), np.uint64(_mask_of(rows)), self._out,
        )  # fmt: skip
        out = self._out
        over = out[:above].tolist() if above else []
        if self._split:
            over += self._split
        under = out[count : count + below].tolist() if below else []
        return _once(over), _once(under)

    def above(self, question: Question) -> list[int]:
        """The owners whose filters may cover the new filter."""
        if question.corner is None:
            return self._all()
        rows = self._rows(question.corner, question.known)
        found = find_around(
            self._count, self._masks, self._owners, self._starts, self._tests,
            _tests_of(rows), np.uint64(_mask_of(rows)), self._out,
        )  # fmt: skip
        return _once([*self._out[:found].tolist(), *self._split])

    def below(self, question: Question) -> list[int]:
        """The owners whose filters the new filter may cover."""
        best: list[int] | None = None
        for pieces in question.alternatives:
            found = [one for piece in pieces for one in self._inside(piece, question.known)]
            if best is None or len(found) < len(best):
                best = found
        return [] if best is None else _once(best)

    def _inside(self, piece: CornerRange, known: Known) -> list[int]:
        names = piece.tests.keys() | piece.reads
        if any(name not in self._columns for name in names):
            return []
        mask = 0
        for name in names:
            mask |= 1 << self._columns[name] % 64
        found = find_inside(
            self._count, self._masks, self._owners, self._starts, self._tests, self._is_corner,
            _tests_of(self._rows(piece.tests, known)), piece.is_tight, np.uint64(mask), self._out,
        )  # fmt: skip
        inside: list[int] = self._out[:found].tolist()
        return inside

    def _all(self) -> list[int]:
        return _once(self._owners[: self._count].tolist())

    def _rows(self, box: Box | Mapping[str, ValueSet], known: Known) -> list[Row]:
        columns = self._columns
        rows = [
            (columns[term], *_keys_of(values, known))
            for term, values in box.items()
            if term in columns
        ]
        rows.sort()
        return rows


def _is_split(form: Form) -> bool:
    """Whether a filter may cover another only with several boxes together: one of the boxes admits
    null and tests an attribute that the other filter does not test. See `_find_split` in
    box_index.py."""
    boxes = form.boxes or ()
    sets = (values for box in boxes for values in box.values())
    return len(boxes) > 1 and any(values.cuts and values.cuts[0][0] == 0 for values in sets)


def _keys_of(values: ValueSet, known: Known) -> tuple[int, int, int, bool]:
    """Low, high and hash of a set, and whether it is a point. `known` caches the result for as long
    as the set exists."""
    found = known.get(id(values))
    if found is None:
        cuts = values.cuts
        last = None if len(cuts) & 1 else cuts[-1]
        is_point = len(cuts) == 2 and (
            (cuts[0][:2], *cuts[0][2:]) == (cuts[1][:2], 0) or values.points(1) is not None
        )
        found = key_of(cuts[0]), key_of(last), hash(cuts[0]) & _ALL, is_point
        known[id(values)] = found
    return found


def key_of(cut: Cut | None) -> int:
    """A key of 64 bits for a cut. Keys keep the order of cuts; None is after all cuts."""
    if cut is None:
        return _ALL
    family = cut[0] << 61
    if len(cut) == 1:
        return int(family)
    value = cut[1]
    if cut[0] == STRING:
        start = value[:8].encode(errors="surrogatepass")[:8]
        return int(family | int.from_bytes(start.ljust(8, b"\0")) >> 3)
    try:
        number = float(value)
    except OverflowError:
        number = float("inf") if value > 0 else float("-inf")
    (bits,) = _BITS.unpack(_DOUBLE.pack(number + 0.0))  # -0.0 becomes 0.0
    bits = ~bits & _ALL if bits >> 63 else bits | 1 << 63
    return int(family | bits >> 3)


def _mask_of(rows: Iterable[Row]) -> int:
    mask = 0
    for row in rows:
        mask |= 1 << row[0] % 64
    return mask


def _double(array: Array) -> Array:
    return np.append(array, np.zeros_like(array), axis=0)


def _tests_of(rows: list[Row]) -> Array:
    return np.array(rows, np.uint64).reshape(-1, WORDS)


def _once(owners: list[int]) -> list[int]:
    return list(dict.fromkeys(owners)) if len(owners) > 1 else owners
