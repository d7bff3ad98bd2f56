"""Turn forms into hulls one by one, without keeping the forms.

While forms are being added, the rank of a cut is not known yet. So cuts are numbered in the order
in which they first occur, and a test is a few small integers in flat arrays. To divide the work, a
process can pack what it has gathered and send it to another process, which appends it to its own
data.

    form       rows                                kind       boxes
    one box    its hull                            ONE_BOX    0
    several    its hull, and each of its boxes     0          their number
    wide       its hull                            0          0

Cost while gathering: 16 bytes for each test of one interval, plus the distinct cuts.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import chain, count, pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import MOST_POINTS, Form
from tidings.filters.language import Attribute, Expression, attributes_of, name_text
from tidings.filters.values import STRING, Cut, ValueSet, sets
from tidings.matching.covering.hulls import Boxes, Hulls, bounds, ranges
from tidings.matching.rank_space.gathering import order_of_cuts
from tidings.matching.segments.join_kernels import sort_by_code

Array = npt.NDArray[Any]
ONE_BOX, NEVER = 1, 2  # bits that describe a form
_END: Cut = (99,)  # sorts after all cuts, and is the end of each set without an upper bound


class HullColumn(msgspec.Struct, frozen=True):
    """The term of a column of hulls."""

    text: str
    node: Expression
    cuts: list[Cut]  # sorted; the code of a value is the number of cuts before it
    ordered: bool  # whether a set has a range or a prefix of strings, so their order matters

    def values(self, low: Array, high: Array) -> ValueSet:
        """The set of values for spans of codes."""
        cuts: list[Cut] = []
        for first, last in zip(low.tolist(), high.tolist(), strict=True):
            cuts.append(self.cuts[first - 1])
            if last < len(self.cuts):
                cuts.append(self.cuts[last])
        return ValueSet(tuple(cuts))


class GatheredHulls(msgspec.Struct, frozen=True):
    """Everything that was gathered from n forms, except their trees."""

    hulls: Hulls
    boxes: Boxes
    never: Array  # bool [n]
    columns: list[HullColumn]

    def __len__(self) -> int:
        return len(self.never)


class PackedTerm(msgspec.Struct, array_like=True):
    """The tests of one term, with arrays as bytes."""

    text: str
    cuts: list[tuple[Any, ...]]
    rows: bytes
    sizes: bytes
    flat: bytes


class PackedHulls(msgspec.Struct, array_like=True):
    """The contents of a gathering, to be sent to another process."""

    kinds: bytes
    boxes: bytes
    terms: list[PackedTerm]


class TermRows:
    """The tests of one term. Each test has the number of its row, the number of cuts in its set,
    and the numbers of those cuts. If a set has no upper bound, its last cut is _END."""

    __slots__ = ("flat", "node", "numbers", "rows", "sizes")

    def __init__(self, node: Expression) -> None:
        self.node = node
        self.rows, self.sizes, self.flat = array("I"), array("I"), array("I")
        self.numbers: dict[Cut, int] = defaultdict(count().__next__)

    def add(self, row: int, values: ValueSet) -> None:
        cuts = values.cuts
        if len(cuts) & 1:
            cuts = (*cuts, _END)
        self.rows.append(row)
        self.sizes.append(len(cuts))
        self.flat.extend(map(self.numbers.__getitem__, cuts))


class HullGathering:
    """Gathers forms, either one by one or in packed groups, and turns them into hulls."""

    def __init__(self) -> None:
        self.kinds = array("B")
        self.boxes = array("I")
        self.by_term: dict[str, TermRows] = {}
        self._rows = 0

    def __len__(self) -> int:
        return len(self.kinds)

    def add(self, form: Form) -> None:
        boxes = form.boxes
        is_hull = boxes is not None and len(boxes) == 1
        is_hull = is_hull and (boxes[0] is form.hull or boxes[0] == form.hull)  # type: ignore[index]
        self.kinds.append(ONE_BOX * is_hull + NEVER * form.never)
        inside = () if is_hull or boxes is None else boxes
        self.boxes.append(len(inside))
        for box in (form.hull, *inside):
            row = self._rows
            for term, values in box.items():
                tests = self.by_term.get(term)
                if tests is None:
                    tests = self.by_term[term] = TermRows(form.terms[term])
                tests.add(row, values)
            self._rows = row + 1

    def pack(self) -> bytes:
        """Everything gathered, as bytes."""
        terms = [
            PackedTerm(text, list(t.numbers), t.rows.tobytes(), t.sizes.tobytes(), t.flat.tobytes())
            for text, t in self.by_term.items()
        ]
        packed = PackedHulls(self.kinds.tobytes(), self.boxes.tobytes(), terms)
        return msgspec.msgpack.encode(packed, enc_hook=sets.pack_number)

    def add_packed(self, packed: bytes, node_of: Callable[[str], Expression]) -> None:
        """Append what another process gathered; `node_of` parses the text of a term."""
        found = msgspec.msgpack.decode(packed, type=PackedHulls)
        for term in found.terms:
            tests = self.by_term.get(term.text)
            if tests is None:
                tests = self.by_term[term.text] = TermRows(node_of(term.text))
            numbers = np.fromiter(
                map(tests.numbers.__getitem__, map(sets.unpack_cut, term.cuts)),
                np.uint32,
                len(term.cuts),
            )
            rows = np.frombuffer(term.rows, np.uint32) + np.uint32(self._rows)
            tests.rows.frombytes(rows.tobytes())
            tests.sizes.frombytes(term.sizes)
            tests.flat.frombytes(numbers[np.frombuffer(term.flat, np.uint32)].tobytes())
        self.kinds.frombytes(found.kinds)
        boxes = np.frombuffer(found.boxes, np.uint32)
        self.boxes.frombytes(found.boxes)
        self._rows += len(boxes) + int(boxes.sum())

    def finish(self, order: Array | None = None) -> GatheredHulls:
        """The hulls of all forms, in the given order. The gathered data is freed."""
        kinds, boxes = np.array(self.kinds, np.uint8), np.array(self.boxes, np.int64)
        if order is None:
            order = np.arange(len(kinds))
        number, starts = self._number_rows(boxes, order)
        one_box = kinds[order] & ONE_BOX
        inner = np.ones(int(boxes.sum()), np.uint8)
        hulls, columns = _finish(self.by_term, number, np.concatenate([one_box, inner]))
        never = (kinds[order] & NEVER) != 0
        return GatheredHulls(hulls.part(len(kinds)), Boxes(hulls, starts), never, columns)

    @staticmethod
    def _number_rows(boxes: Array, order: Array) -> tuple[Array, Array]:
        """The final number of each gathered row, and the position at which the boxes of each form
        begin. Hulls come first, in the given order, then all boxes."""
        starts = len(boxes) + bounds(boxes[order])
        row = bounds(boxes + 1)
        number = np.empty(int(row[-1]), np.uint32)
        number[row[order]] = np.arange(len(boxes))
        inner = ranges(row[order] + 1, row[order] + 1 + boxes[order])
        number[inner] = len(boxes) + np.arange(len(inner))
        return number, starts


def gather(forms: Iterable[Form]) -> GatheredHulls:
    """Gather the hulls of forms; about 3 microseconds per test."""
    gathering = HullGathering()
    for form in forms:
        gathering.add(form)
    return gathering.finish()


class _Coded(msgspec.Struct, frozen=True):
    """The tests of one column: each test has `row`, `pinned` and `size`, and each span has `low`
    and `high`."""

    row: Array
    pinned: Array
    size: Array
    low: Array
    high: Array


def _finish(
    found: dict[str, TermRows], number: Array, one_box: Array
) -> tuple[Hulls, list[HullColumn]]:
    nodes = {text: tests.node for text, tests in found.items()}
    ordered = sorted(found, key=lambda term: (not isinstance(nodes[term], Attribute), term))
    attributes = sum(isinstance(node, Attribute) for node in nodes.values())
    numbered = {term: at for at, term in enumerate(ordered)}
    read_by = [_reads(nodes[term], numbered) for term in ordered]
    points = set(chain.from_iterable(read_by))
    columns: list[HullColumn] = []
    coded: list[_Coded] = []
    for at, term in enumerate(ordered):
        column, tests = _column(term, found.pop(term), number, pinnable=at in points)
        columns.append(column)
        coded.append(tests)
    sizes = [len(one.row) for one in coded]
    of_column = np.repeat(np.arange(len(coded), dtype=np.uint32), np.array(sizes, np.int64))
    row = _concatenate([one.row for one in coded], np.uint32)
    order, starts = np.empty(len(row), np.uint32), np.empty(len(one_box) + 1, np.int64)
    sort_by_code(row, len(one_box), order, starts)
    column_of = of_column[order]
    computed = np.bincount(row[order[column_of < attributes]], minlength=len(one_box))
    del row, of_column
    size = _concatenate([one.size for one in coded], np.int64)
    spans = bounds(size)
    places = ranges(spans[order], spans[order.astype(np.int64) + 1])
    hulls = Hulls(
        starts=starts,
        computed=starts[:-1] + computed,
        column=column_of,
        pinned=_concatenate([one.pinned for one in coded], np.uint8)[order],
        spans=bounds(size[order]),
        low=_concatenate([one.low for one in coded], np.uint32)[places],
        high=_concatenate([one.high for one in coded], np.uint32)[places],
        one_box=one_box,
        base=bounds(np.array([len(one.cuts) + 2 for one in columns], np.int64)),
        reads=bounds(np.array([len(one) for one in read_by], np.int64)),
        read=np.array(list(chain.from_iterable(read_by)), np.int64),
        attributes=attributes,
    )
    return hulls, columns


def _reads(node: Expression, numbered: dict[str, int]) -> list[int]:
    if isinstance(node, Attribute):
        return []
    return [numbered.get(name_text(path), -1) for path in sorted(attributes_of(node))]


def _column(text: str, tests: TermRows, number: Array, pinnable: bool) -> tuple[HullColumn, _Coded]:
    met = list(tests.numbers)
    order = order_of_cuts(met)
    rank = np.empty(len(met), np.uint32)
    rank[order] = np.arange(len(met))
    codes = rank[np.frombuffer(tests.flat, np.uint32)]
    cuts = [met[at] for at in order.tolist()]
    if cuts and cuts[-1] == _END:
        cuts.pop()
    sizes = np.array(tests.sizes, np.int64)
    column = HullColumn(text, tests.node, cuts, _asks_order(cuts, codes, sizes))
    low, high = codes[0::2] + np.uint32(1), codes[1::2]
    pinned = np.zeros(len(sizes), np.uint8)
    if pinnable:
        starts = bounds(sizes // 2).tolist()
        known: dict[bytes, bool] = {}
        for at, (first, last) in enumerate(pairwise(starts)):
            mark = codes[2 * first : 2 * last].tobytes()
            if mark not in known:
                values = column.values(low[first:last], high[first:last])
                known[mark] = values.points(MOST_POINTS) is not None
            pinned[at] = known[mark]
    rows = number[np.frombuffer(tests.rows, np.uint32)]
    return column, _Coded(rows, pinned, sizes // 2, low, high.copy())


def _asks_order(cuts: list[Cut], codes: Array, sizes: Array) -> bool:
    """Whether `ranks.asks_order` is true for any of these sets. A set depends on the order of
    strings if it has only one of the two cuts around a string. The two cuts around a string are
    adjacent, both in the column and in a set."""
    inner = [cut[0] == STRING and len(cut) > 1 and cut[1] != "" for cut in cuts]
    if not any(inner):
        return False
    is_inner = np.array([*inner, False])
    has_next = np.zeros(len(cuts) + 1, bool)
    has_next[: len(cuts) - 1] = [
        here and cut[2] == 0 and after == (STRING, cut[1], 1)
        for here, (cut, after) in zip(inner, pairwise(cuts), strict=False)
    ]
    last = np.zeros(len(codes), bool)
    last[np.cumsum(sizes) - 1] = True
    both = has_next[codes[:-1]] & (codes[1:] == codes[:-1] + 1) & ~last[:-1]
    paired = np.zeros(len(codes), bool)
    paired[:-1] = both
    paired[1:] |= both
    return bool((is_inner[codes] & ~paired).any())


def _concatenate(parts: Iterable[Array], kind: type) -> Array:
    return np.concatenate([np.zeros(0, kind), *parts])
