"""The index for single events: boxes are found by two of their tests at once.

Sorting is worthwhile only for a batch. For a single event, boxes are looked up. One test per box
would let too many boxes through: if filters have popular values and wide ranges, one event passes
the best tests of thousands out of 100,000 boxes. So the codes of every column are divided into bins
that contain about equally many events. If many boxes have their two best tests in the same pair of
columns, this pair gets a grid of cells:

                    bins of b
              +-----+-----+-----+-----+       A box is in all cells that its two intervals touch. An
    bins of a |     | x   | x y |     |       event is in one cell of each pair. Each record in a
              +-----+-----+-----+-----+       cell has three tests of its box, so that almost all
              |     |     |   y | z   |       boxes that fail need no further memory access.
              +-----+-----+-----+-----+

Every event needs one lookup for each pair of columns, even if the cell is empty. So a box is not
put in a grid if few boxes have its pair of columns. Such boxes are kept as *single* entries, in
groups of similar width, sorted by their low ends. In each group, the entries that can contain a
given code are next to each other.

Cost: 20 bytes per record, with 1 to MOST_CELLS records per box (1.7 for filters of the workload
`mixed`); 18 bytes per single entry, plus up to 32 for the index of points; 4 bytes per cell.
Looking up one pair of columns takes as long as visiting a dozen single entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.matching.segments import probe_kernels
from tidings.matching.segments.access import code_of_lists, weights
from tidings.matching.segments.probe_kernels import BinSpan, Group, Interval, Pair, Probe, Record
from tidings.matching.segments.segment import Segment

Array = npt.NDArray[Any]
# bins per column: with few bins, the tables fit into the cache; with more bins, fewer boxes pass
BINS, FINE_BINS = 16, 32
MANY = 1 << 18  # finer bins are worthwhile if there are at least this many entries
MOST_CELLS = 64  # a box that would be in more cells than this stays a single entry
MOST_CODES = 8  # points are indexed by code if there are at most this many codes per entry
LEAST_VISITS = 3  # a pair is worthwhile if it saves each event this many visits to entries


class _Entries(msgspec.Struct):
    """One row per entry: its column and interval, its box, and the next two tests of that box."""

    column: Array
    low: Array
    high: Array
    box: Array
    second: Array  # [E, len(Interval)]
    third: Array


class _Grid(msgspec.Struct):
    """The entries that belong in cells."""

    rows: Array
    pair: Array
    spans: Array
    content: Array
    pairs: Array
    cells: int


def build_probe(segment: Segment, counts: Mapping[str, Array] | None = None) -> Probe:
    """Build the probe of a segment. `counts` maps the text of a term to the number of events with
    each code."""
    entries = _entries(segment)
    share = _shares(segment, entries, counts or {})
    starts, bins = _bins(share, FINE_BINS if len(entries.box) >= MANY else BINS)
    grid = _grid(segment, entries, share, starts, bins)
    cells = np.zeros(grid.cells + 1, np.uint32)
    probe_kernels.count_cells(grid.spans, grid.pair, grid.pairs, cells)
    records = np.empty((int(cells[-1]), len(Record)), np.uint16)
    probe_kernels.fill_cells(grid.spans, grid.pair, grid.pairs, cells, grid.content, records)
    alone = np.ones(len(entries.box), bool)
    alone[grid.rows] = False
    groups, index = _groups(segment, alone, entries.low[alone])
    return Probe(
        bin_starts=starts,
        bins=bins,
        pairs=grid.pairs,
        cells=cells,
        records=records,
        groups=groups,
        single_low=entries.low[alone],
        single_high=entries.high[alone],
        single_box=entries.box[alone],
        single_first=entries.second[alone],
        single_index=index,
    )


def _entries(segment: Segment) -> _Entries:
    arrays = segment.arrays
    sizes: Array = arrays.group_end - arrays.group_start
    box = arrays.entry_box.astype(np.int64)
    tests = np.column_stack([arrays.test_column, arrays.test_low, arrays.test_width])
    tests = np.append(tests, np.array([[0, 0, 65535]], np.uint16), axis=0)  # always passes
    first, beyond = arrays.box_tests[box].astype(np.int64), arrays.box_tests[box + 1]
    none = len(tests) - 1
    return _Entries(
        np.repeat(arrays.group_column, sizes),
        arrays.entry_low,
        arrays.entry_high,
        arrays.entry_box,
        tests[np.where(first < beyond, first, none)],
        tests[np.where(first + 1 < beyond, first + 1, none)],
    )


def _shares(segment: Segment, entries: _Entries, counts: Mapping[str, Array]) -> list[Array]:
    """For each column and each coarse code, the estimated share of events that have the code."""
    arrays, shift = segment.arrays, segment.arrays.shift
    out = [np.ones(1)]
    for at, term in enumerate(segment.terms, 1):
        size = ((len(term.ranks) - 1) >> int(shift[at])) + 1
        seen = None if term.elements else counts.get(term.text)
        if seen is not None:
            seen = np.bincount(np.arange(len(seen)) >> shift[at], seen, minlength=size)
        here = (entries.column == at) & (entries.low == entries.high)
        tested = (arrays.test_column == at) & (arrays.test_width == 0)
        points = np.concatenate([entries.low[here] >> shift[at], arrays.test_low[tested]])
        lists = code_of_lists(term.ranks) if shift[at] == 0 else None
        weight = weights(seen, points, size, lists)
        out.append(weight / weight.sum())
    return out


def _bins(share: list[Array], most: int) -> tuple[Array, Array]:
    """The bins of all columns, one column after another, and where each column begins."""
    starts = np.zeros(len(share) + 1, np.int64)
    found = []
    for at, weight in enumerate(share):
        middle = np.cumsum(weight) - weight / 2
        rough = np.minimum(middle * most, most - 1).astype(np.int64)
        found.append(np.unique(rough, return_inverse=True)[1].astype(np.uint8))
        starts[at + 1] = starts[at] + len(weight)
    return starts, np.concatenate(found)


def _grid(
    segment: Segment, entries: _Entries, share: list[Array], starts: Array, bins: Array
) -> _Grid:
    exact = np.array([False, *(not term.elements for term in segment.terms)])
    exact &= segment.arrays.shift == 0  # coarse codes can't express the exact interval of an entry
    rows = np.nonzero(exact[entries.column] & (entries.second[:, Interval.COLUMN] > 0))[0]
    low, high = entries.low[rows].astype(np.int64), entries.high[rows].astype(np.int64)
    column = entries.column[rows].astype(np.int64)
    total = np.concatenate([[0.0], np.cumsum(np.concatenate(share))])
    visits = total[starts[column] + high + 1] - total[starts[column] + low]

    # sort the two columns of a pair, so that it doesn't matter which of them has the access test
    access = np.column_stack([column, low, high - low])
    second = entries.second[rows].astype(np.int64)
    swap = (second[:, Interval.COLUMN] < column)[:, None]
    one, two = np.where(swap, second, access), np.where(swap, access, second)
    spans = np.empty((len(rows), len(BinSpan)), np.int64)
    for test, first, last in (
        (one, BinSpan.A_FIRST, BinSpan.A_LAST),
        (two, BinSpan.B_FIRST, BinSpan.B_LAST),
    ):
        place = starts[test[:, Interval.COLUMN]] + test[:, Interval.LOW]
        spans[:, first], spans[:, last] = bins[place], bins[place + test[:, Interval.WIDTH]]
    a_bins = spans[:, BinSpan.A_LAST] - spans[:, BinSpan.A_FIRST] + 1
    b_bins = spans[:, BinSpan.B_LAST] - spans[:, BinSpan.B_FIRST] + 1
    narrow = a_bins * b_bins <= MOST_CELLS
    columns = one[:, Interval.COLUMN] * len(share) + two[:, Interval.COLUMN]
    known, which = np.unique(columns, return_inverse=True)
    spared = np.bincount(which, np.where(narrow, visits, 0.0), minlength=len(known))
    worth = spared >= LEAST_VISITS
    kept = narrow & worth[which]
    pairs, cells = _pairs(known[worth] // len(share), known[worth] % len(share), starts, bins)
    return _Grid(
        rows[kept],
        (np.cumsum(worth) - 1)[which[kept]],
        spans[kept],
        _content(entries, rows[kept], one[kept], two[kept]),
        pairs,
        cells,
    )


def _pairs(one: Array, two: Array, starts: Array, bins: Array) -> tuple[Array, int]:
    """The rows of `pairs`, and how many cells all pairs have together."""
    out = np.zeros((len(one), len(Pair)), np.int64)
    if len(one) == 0:
        return out, 0
    sizes = np.maximum.reduceat(bins, starts[:-1]).astype(np.int64) + 1
    ends = np.cumsum(sizes[one] * sizes[two])
    out[:, Pair.A], out[:, Pair.B], out[:, Pair.BINS] = one, two, sizes[two]
    out[1:, Pair.CELL] = ends[:-1]
    return out, int(ends[-1])


def _content(entries: _Entries, rows: Array, one: Array, two: Array) -> Array:
    """The records of entries, before they are copied to their cells."""
    out = np.zeros((len(rows), len(Record)), np.uint16)
    out[:, Record.A_LOW], out[:, Record.A_WIDTH] = one[:, Interval.LOW], one[:, Interval.WIDTH]
    out[:, Record.B_LOW], out[:, Record.B_WIDTH] = two[:, Interval.LOW], two[:, Interval.WIDTH]
    third = entries.third[rows]
    out[:, Record.C] = third[:, Interval.COLUMN]
    out[:, Record.C_LOW] = third[:, Interval.LOW]
    out[:, Record.C_WIDTH] = third[:, Interval.WIDTH]
    out[:, Record.BOX] = entries.box[rows] & 0xFFFF
    out[:, Record.BOX_HIGH] = entries.box[rows] >> 16
    return out


def _groups(segment: Segment, alone: Array, low: Array) -> tuple[Array, Array]:
    """The groups of single entries. For groups of points also the index: where the entries of each
    code begin."""
    arrays = segment.arrays
    places = np.concatenate([[0], np.cumsum(alone)])
    first, last = places[arrays.group_start], places[arrays.group_end]
    groups = np.empty((len(first), len(Group)), np.int64)
    groups[:, Group.COLUMN], groups[:, Group.WIDTH] = arrays.group_column, arrays.group_width
    groups[:, Group.FIRST], groups[:, Group.END] = first, last
    groups[:, Group.INDEX] = -1
    groups = np.ascontiguousarray(groups[first < last])
    index, size = [np.zeros(0, np.uint32)], 0
    for group in groups:
        column, begin, end = group[Group.COLUMN], group[Group.FIRST], group[Group.END]
        codes = len(segment.terms[column - 1].ranks) if column else 1
        if group[Group.WIDTH] == 0 and codes <= MOST_CODES * (end - begin):
            starts = begin + np.searchsorted(low[begin:end], np.arange(codes + 1))
            group[Group.INDEX] = size
            index.append(starts.astype(np.uint32))
            size += codes + 1
    return groups, np.concatenate(index)
