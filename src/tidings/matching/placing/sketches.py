"""Sketches of filters that are not compiled yet: their boxes as arrays that grow.

There is no rank space yet. A cut is represented by a key of 64 bits instead: the beginning of a
string, or a number as a double. Keys keep the order of cuts, though several cuts may have the same
key. So comparing keys rejects many filters, but no filter that a comparison of cuts would accept.
Single values also have a hash, because long strings often have the same beginning.

Cost: 33 bytes per test and 21 per box. A question is one pass over all boxes. A box whose mask of
columns does not fit takes about a nanosecond; 50,000 `mixed` filters take 0.1 ms.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import Box, Form
from tidings.filters.values import STRING, Cut, ValueSet
from tidings.matching.placing.box_questions import Piece, Question, corner_box
from tidings.matching.placing.sketch_kernels import SketchedTests, find_around, find_inside

Array = npt.NDArray[Any]
_ALL = (1 << 64) - 1
_DOUBLE, _BITS = struct.Struct(">d"), struct.Struct(">Q")
Row = tuple[int, int, int, int, bool]  # column, low, high, hash, is it a point?
Known = dict[int, tuple[int, int, int, bool]]


class Sketches:
    """The boxes of plain filters, by owner (a small integer). Not thread-safe: callers
    must hold a lock."""

    def __init__(self) -> None:
        self._columns: dict[str, int] = {}
        self._count = 0
        self._masks: Array = np.zeros(64, np.uint64)
        self._owners: Array = np.zeros(64, np.uint32)
        self._is_corner: Array = np.zeros(64, np.uint8)
        self._starts = np.zeros(65, np.int64)
        self._tests = _room(256)
        self._split: list[int] = []  # owners of filters that may cover others by boxes with nulls

    def __len__(self) -> int:
        """The number of boxes."""
        return self._count

    def add(self, owner: int, form: Form, known: Known | None = None) -> None:
        """Add a plain filter. `known` has the keys of its sets, from the question about it."""
        corner, known = corner_box(form), {} if known is None else known
        columns = self._columns
        for box in form.boxes or ():
            rows = sorted(
                (columns.setdefault(term, len(columns)), *_keys_of(values, known))
                for term, values in box.items()
            )
            self._append(owner, rows, box is corner)
        if _is_split(form):
            self._split.append(owner)

    def _append(self, owner: int, rows: list[Row], is_corner: bool) -> None:
        at, first = self._count, int(self._starts[self._count])
        last = first + len(rows)
        if at == len(self._masks):
            self._masks, self._owners = _double(self._masks), _double(self._owners)
            self._is_corner = _double(self._is_corner)
            self._starts = np.append(self._starts, np.zeros_like(self._masks, np.int64)[:at])
        while last > len(self._tests.low):
            self._tests = SketchedTests(*map(_double, self._tests))
        _fill(self._tests, first, rows)
        self._masks[at] = _mask_of(row[0] for row in rows)
        self._owners[at], self._is_corner[at] = owner, is_corner
        self._starts[at + 1] = last
        self._count += 1

    def above(self, question: Question) -> list[int]:
        """The owners whose filters may cover the new filter."""
        if question.corner is None:
            return self._all()
        rows = self._rows(question.corner, question.known)
        out = np.empty(self._count, np.uint32)
        found = find_around(
            self._count, self._masks, self._owners, self._starts, self._tests,
            _tests_of(rows), _mask_of(row[0] for row in rows), out,
        )  # fmt: skip
        return _once(np.append(out[:found], np.array(self._split, np.uint32)))

    def below(self, question: Question) -> list[int]:
        """The owners whose filters the new filter may cover."""
        best: Array | None = None
        for pieces in question.alternatives:
            found = [self._inside(piece, question.known) for piece in pieces]
            joined = np.concatenate([np.zeros(0, np.uint32), *found])
            if best is None or len(joined) < len(best):
                best = joined
        return [] if best is None else _once(best)

    def _inside(self, piece: Piece, known: Known) -> Array:
        names = piece.tests.keys() | piece.reads
        if any(name not in self._columns for name in names):
            return np.zeros(0, np.uint32)
        rows = self._rows(piece.tests, known)
        out = np.empty(self._count, np.uint32)
        found = find_inside(
            self._count, self._masks, self._owners, self._starts, self._tests, self._is_corner,
            _tests_of(rows), piece.is_tight, _mask_of(self._columns[name] for name in names), out,
        )  # fmt: skip
        return out[:found]

    def _all(self) -> list[int]:
        return _once(self._owners[: self._count])

    def _rows(self, box: Box | Mapping[str, ValueSet], known: Known) -> list[Row]:
        columns = self._columns
        return sorted(
            (columns[term], *_keys_of(values, known))
            for term, values in box.items()
            if term in columns
        )


def _is_split(form: Form) -> bool:
    """Whether several boxes may cover a filter together, one of which tests an attribute that the
    filter does not test: it admits null. See `_find_split` in box_index.py."""
    boxes = form.boxes or ()
    sets = (values for box in boxes for values in box.values())
    return len(boxes) > 1 and any(values.cuts and values.cuts[0][0] == 0 for values in sets)


def _keys_of(values: ValueSet, known: Known) -> tuple[int, int, int, bool]:
    """Low, high and hash of a set, and whether it is a point. `known` caches them while the set
    exists."""
    found = known.get(id(values))
    if found is None:
        cuts = values.cuts
        last = None if len(cuts) & 1 else cuts[-1]
        is_point = len(cuts) == 2 and values.points(1) is not None
        found = key_of(cuts[0]), key_of(last), hash(cuts[0]) & _ALL, is_point
        known[id(values)] = found
    return found


def key_of(cut: Cut | None) -> int:
    """A key of 64 bits that keeps the order of cuts; None means after all cuts."""
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


def _mask_of(columns: Iterable[int]) -> np.uint64:
    mask = 0
    for column in columns:
        mask |= 1 << column % 64
    return np.uint64(mask)


def _room(size: int) -> SketchedTests:
    kinds = np.uint32, np.uint64, np.uint64, np.uint64, np.uint8
    return SketchedTests(*(np.zeros(size, kind) for kind in kinds))


def _double(array: Array) -> Array:
    return np.append(array, np.zeros_like(array))


def _tests_of(rows: list[Row]) -> SketchedTests:
    tests = _room(len(rows))
    _fill(tests, 0, rows)
    return tests


def _fill(tests: SketchedTests, first: int, rows: list[Row]) -> None:
    if rows:
        for into, values in zip(tests, zip(*rows, strict=True), strict=True):
            into[first : first + len(rows)] = values


def _once(owners: Array) -> list[int]:
    return list(dict.fromkeys(owners.tolist()))
