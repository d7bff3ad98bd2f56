"""Hulls: the box around each of many filters, as flat arrays in rank space.

    hull      its tests lie side by side, by column; attributes are the first columns, computed
              terms the rest
    test      a column, and the *spans* of codes that its set is: one for an interval, several for
              `x IN (1, 3)` or `x != 2`
    code      of one column as in ranks.py, 0 for "not tested"; the codes of column c are
              base[c] .. base[c + 1] of one line, so that a test has one place among all tests

Honest cost, one hull of k tests: 8 bytes, and 21 for each test, 8 more for each further span.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters.boxes import Box
from tidings.filters.expression import Attribute, Expression, attributes_of
from tidings.filters.form import Form
from tidings.filters.pins import MOST_POINTS
from tidings.filters.sets import Cut, ValueSet
from tidings.filters.unparse import name_text
from tidings.matching.kernels import sort_by_code

Array = npt.NDArray[Any]
_END: Cut = (99,)  # after all cuts: where a set without an upper end ends


class Hulls(msgspec.Struct, frozen=True):
    """n hulls with T tests of S spans in all, over C columns."""

    starts: Array  # int64 [n + 1]: the tests of a hull
    computed: Array  # int64 [n]: where its tests of computed terms begin
    column: Array  # uint32 [T]
    pinned: Array  # uint8 [T]: whether the set is a few points; said of what computed terms read
    spans: Array  # int64 [T + 1]: the spans of a test
    low: Array  # uint32 [S], from 1
    high: Array  # uint32 [S]
    one_box: Array  # uint8 [n]: the filter is its hull, so what the hull holds it covers
    base: Array  # int64 [C + 1]
    reads: Array  # int64 [C + 1]: the attributes that a column is computed from ...
    read: Array  # int64: ... as columns; -1 for one that no hull tests
    attributes: int  # how many columns are attributes

    def __len__(self) -> int:
        return len(self.one_box)

    def take(self, numbers: Array) -> Hulls:
        """These hulls, in this order."""
        tests = _ranges(self.starts[numbers], self.starts[numbers + 1])
        spans = _ranges(self.spans[tests], self.spans[tests + 1])
        starts = _bounds(self.starts[numbers + 1] - self.starts[numbers])
        return msgspec.structs.replace(
            self,
            starts=starts,
            computed=starts[:-1] + self.computed[numbers] - self.starts[numbers],
            column=self.column[tests],
            pinned=self.pinned[tests],
            spans=_bounds(self.spans[tests + 1] - self.spans[tests]),
            low=self.low[spans],
            high=self.high[spans],
            one_box=self.one_box[numbers],
        )

    def part(self, count: int) -> Hulls:
        """The first of these."""
        tests = self.starts[count]
        spans = self.spans[tests]
        return msgspec.structs.replace(
            self,
            starts=self.starts[: count + 1],
            computed=self.computed[:count],
            column=self.column[:tests],
            pinned=self.pinned[:tests],
            spans=self.spans[: tests + 1],
            low=self.low[:spans],
            high=self.high[:spans],
            one_box=self.one_box[:count],
        )

    def sizes(self, computed: bool = False) -> tuple[Array, Array]:
        """Two measures of the attributes of each hull, or of its computed terms too: how many are
        tested, and how many codes the tests leave. Of two hulls that differ, the one around the
        other has fewer tests, or as many and more codes."""
        ends = self.starts[1:] if computed else self.computed
        widths = self.high.astype(np.int64) - self.low + 1
        total = np.concatenate([[0], np.cumsum(widths)])
        first, last = self.spans[self.starts[:-1]], self.spans[ends]
        return ends - self.starts[:-1], total[last] - total[first]


class Boxes(msgspec.Struct, frozen=True):
    """The hulls of n forms, and behind them the boxes of those that have several."""

    rows: Hulls
    starts: Array  # int64 [n + 1]: the boxes of a form; none if it is its hull, or is wide


def gather_hulls(forms: Sequence[Form]) -> tuple[Hulls, Boxes]:
    """The hulls of forms, and with the boxes of those that have several.

    One pass over Python objects, some 3 microseconds for each test.
    """
    one_box = np.fromiter(map(_is_hull, forms), np.uint8, len(forms))
    several = np.zeros(len(forms), np.int64)
    for at in np.nonzero(one_box == 0)[0].tolist():
        several[at] = len(forms[at].boxes or ())
    split = [forms[at] for at in np.nonzero(several)[0].tolist()]
    rows = chain(
        ((form.hull, form.terms) for form in forms),
        ((box, form.terms) for form in split for box in form.boxes or ()),
    )
    whole = np.ones(int(several.sum()), np.uint8)
    gathered = _gather(rows, np.concatenate([one_box, whole]))
    return gathered.part(len(forms)), Boxes(gathered, len(forms) + _bounds(several))


def _gather(rows: Iterable[tuple[Box, Mapping[str, Expression]]], one_box: Array) -> Hulls:
    found: dict[str, tuple[list[int], list[ValueSet]]] = {}
    nodes: dict[str, Expression] = {}
    for number, (box, terms) in enumerate(rows):
        for term, values in box.items():
            lists = found.get(term)
            if lists is None:
                lists = found[term] = ([], [])
                nodes[term] = terms[term]
            lists[0].append(number)
            lists[1].append(values)
    ordered = sorted(found, key=lambda term: (not isinstance(nodes[term], Attribute), term))
    attributes = sum(isinstance(node, Attribute) for node in nodes.values())
    numbered = {term: at for at, term in enumerate(ordered)}
    read_by = [_reads(nodes[term], numbered) for term in ordered]
    points = set(chain.from_iterable(read_by))
    columns = [
        _column(at, *found.pop(term), pinnable=at in points) for at, term in enumerate(ordered)
    ]
    parts = [list(part) for part in zip(*(one[:4] for one in columns), strict=True)]
    row, column, pinned, size = (
        _joined(part, kind)
        for part, kind in zip(
            parts or [[]] * 4, (np.uint32, np.uint32, np.uint8, np.int64), strict=True
        )
    )
    order, starts = np.empty(len(row), np.uint32), np.empty(len(one_box) + 1, np.int64)
    sort_by_code(row, len(one_box), order, starts)
    spans = _bounds(size)
    places = _ranges(spans[order], spans[order.astype(np.int64) + 1])
    column = column[order]
    return Hulls(
        starts=starts,
        computed=starts[:-1] + np.bincount(row[order[column < attributes]], minlength=len(one_box)),
        column=column,
        pinned=pinned[order],
        spans=_bounds(size[order]),
        low=_joined([one[4] for one in columns], np.uint32)[places],
        high=_joined([one[5] for one in columns], np.uint32)[places],
        one_box=one_box,
        base=_bounds(np.array([one[6] for one in columns], np.int64)),
        reads=_bounds(np.array([len(one) for one in read_by], np.int64)),
        read=np.array(list(chain.from_iterable(read_by)), np.int64),
        attributes=attributes,
    )


def _is_hull(form: Form) -> bool:
    boxes = form.boxes
    return (
        boxes is not None and len(boxes) == 1 and (boxes[0] is form.hull or boxes[0] == form.hull)
    )


def _reads(node: Expression, numbered: dict[str, int]) -> list[int]:
    if isinstance(node, Attribute):
        return []
    return [numbered.get(name_text(path), -1) for path in sorted(attributes_of(node))]


def _column(
    number: int, rows: list[int], values: list[ValueSet], pinnable: bool
) -> tuple[Array, Array, Array, Array, Array, Array, int]:
    """(hull, column, pinned, spans) of each test, (low, high) of each span, and the codes."""
    cuts = [v.cuts if len(v.cuts) % 2 == 0 else (*v.cuts, _END) for v in values]
    # hashing cuts is what takes time: each gets the number of its first use, then that of its place
    seen: dict[Cut, int] = defaultdict(count().__next__)
    flat = np.fromiter(map(seen.__getitem__, chain.from_iterable(cuts)), np.int64)
    place = np.empty(len(seen), np.uint32)
    place[[seen[cut] for cut in sorted(seen)]] = np.arange(len(seen))
    codes = place[flat]
    pinned = np.zeros(len(rows), np.uint8)
    if pinnable:
        pinned[:] = [v.points(MOST_POINTS) is not None for v in values]
    return (
        np.array(rows, np.uint32),
        np.full(len(rows), number, np.uint32),
        pinned,
        np.fromiter(map(len, cuts), np.int64, len(cuts)) // 2,
        codes[0::2] + np.uint32(1),
        codes[1::2],
        len(seen) + 1,
    )


def _joined(parts: Iterable[Array], kind: type) -> Array:
    return np.concatenate([np.zeros(0, kind), *parts])


def _bounds(sizes: Array) -> Array:
    out = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def _ranges(first: Array, last: Array) -> Array:
    """first[0] .. last[0] - 1, first[1] .. last[1] - 1, and so on."""
    sizes: Array = last - first
    ends = np.cumsum(sizes)
    out: Array = np.arange(int(sizes.sum())) + np.repeat(first - (ends - sizes), sizes)
    return out
