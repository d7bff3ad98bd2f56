"""A segment: many filters compiled into flat arrays, which are never changed.

    term      what a test examines; a term has a rank space, and is one *column* of a batch's codes
    box       a conjunction; its tests are contiguous, the most selective first
    access    one test of each box is stored apart: the one that the fewest events pass. Its
              interval is an *entry*. Entries are sorted by (term, width class, low end). So the
              events of a sorted batch that pass an entry are a slice, and the entries that one
              event passes are slices too
    extras    tests that no single interval of 16-bit codes can express: sets of several intervals,
              terms of over 65,536 codes, elements of lists; checked on the few remaining events
    rest      residuals and wide filters; evaluated on the events that pass all other tests

Column 0 is the same for all events; boxes without an indexable test have their entry in it. Cost of
a box with k tests that can be indexed: 6 (k - 1) bytes for its tests, 12 bytes for its entry, and 9
for the box itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy.typing as npt

from tidings.filters.canonical import Form
from tidings.filters.language import Expression
from tidings.filters.values import ValueSet
from tidings.matching.array_fields import Int64, UInt8, UInt16, UInt32
from tidings.matching.rank_space.ranks import Ranks

EXTRA, REST = 1, 2  # the flags that a box can have
INTERVALS, ELEMENT = 1, 2  # kinds of extra
MOST_TERMS = 30_000  # the most columns; twice their number must fit into 16 bits

Array = npt.NDArray[Any]


class TermColumn(msgspec.Struct, frozen=True):
    """The term of a column: its expression and its rank space. `elements` says whether the values
    of the column are elements of lists."""

    text: str
    node: Expression
    ranks: Ranks
    elements: bool = False


class Arrays(NamedTuple):
    """All that the kernels need (E entries, G groups, B boxes, T tests, X extras, C columns). The
    fields are also the names of files in a snapshot."""

    entry_low: UInt32  # [E]: one access interval of one box, with both ends included
    entry_high: UInt32  # [E]
    entry_box: UInt32  # [E]
    group_column: Int64  # [G]: a group is a run of entries that have one column and similar widths
    group_start: Int64  # [G]
    group_end: Int64  # [G]
    group_width: Int64  # [G]: the greatest width in the group
    box_tests: UInt32  # [B + 1]: the tests of box b are box_tests[b] up to box_tests[b + 1]
    test_column: UInt16  # [T]
    test_low: UInt16  # [T]: the low end of the test, as a coarse code
    test_width: UInt16  # [T]
    box_slot: UInt32  # [B]: the slot of the box's filter
    box_flags: UInt8  # [B]: EXTRA, REST
    box_extras: UInt32  # [B + 1], or [1] if there are no extras
    extra_kind: UInt8  # [X]: INTERVALS, ELEMENT
    extra_column: UInt32  # [X]
    extra_a: UInt32  # [X]: the first interval; or the code of an element
    extra_b: UInt32  # [X]: one after the last interval; or outcomes and comparable families
    set_low: UInt32  # the low ends of the intervals of all extras
    set_high: UInt32
    shift: UInt8  # [C]: by how many bits exact codes are shifted to fit in 16 bits

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


class Rest(msgspec.Struct, frozen=True):
    """What must still be evaluated for a box: the tests on opaque terms, or the whole form if it is
    wide."""

    tests: tuple[tuple[str, ValueSet], ...] = ()
    form: Form | None = None


class Segment(msgspec.Struct, frozen=True):
    terms: tuple[TermColumn, ...]  # the terms of columns 1, 2, ...
    arrays: Arrays
    rest: Mapping[int, Rest]  # the conditions of each box that must be evaluated
    opaque: Mapping[str, Expression]  # the terms of the conditions in `rest`
    slots: int  # one more than the highest slot
    many: Array  # uint8 per slot: 1 for a filter with several boxes, which may be found repeatedly


class Tests(msgspec.Struct):
    """All tests of a segment that can be indexed, as arrays, before access tests are chosen.

    One row per test: box, column, and interval of codes. If a set has several intervals, low and
    high enclose all of them. The intervals of set s are set_low[i] to set_high[i], for i from
    set_starts[s] up to set_starts[s + 1].
    """

    box: Array
    column: Array
    low: Array
    high: Array
    several: Array  # the number of the set if it has several intervals, else -1
    set_starts: Array
    set_low: Array
    set_high: Array
