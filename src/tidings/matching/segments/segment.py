"""A segment: many filters compiled into flat arrays, immutable.

    term      what is tested; each has a rank space and is one *column* of codes of a batch
    box       a conjunction; its tests lie side by side, the most selective first
    access    one test of each box is taken out: the one that the fewest events pass. Its interval
              is an *entry*; entries lie sorted by (term, width class, low end), so that the events
              of a sorted batch that pass one are a slice, and so that the entries that one event
              passes are slices too
    extras    what no single interval of 16-bit codes can express: sets of several intervals, terms
              of over 65,536 codes, elements of lists; checked on the few events that are left
    rest      residuals and wide filters; evaluated on the events that are left after that

Column 0 is the same for all events: boxes without an indexable test have their entry there.
Honest cost, one box of k indexable tests: 6 (k - 1) bytes of tests, 12 of entry, 9 of box.
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

EXTRA, REST = 1, 2  # flags of a box
INTERVALS, ELEMENT = 1, 2  # kinds of extra
MOST_TERMS = 30_000  # columns: their numbers, and twice those, fit 16 bits

Array = npt.NDArray[Any]


class Term(msgspec.Struct, frozen=True):
    """A column: what is evaluated, and its rank space. `elements`: of the elements of a list."""

    text: str
    node: Expression
    ranks: Ranks
    elements: bool = False


class Arrays(NamedTuple):
    """Everything the kernels need (E entries, G groups, B boxes, T tests, X extras, C columns).
    The files of a snapshot have the names of the fields."""

    entry_low: UInt32  # [E]: one access interval of one box, both ends inside
    entry_high: UInt32  # [E]
    entry_box: UInt32  # [E]
    group_column: Int64  # [G]: entries of one column and about one width lie side by side
    group_start: Int64  # [G]
    group_end: Int64  # [G]
    group_width: Int64  # [G]: the greatest in it
    box_tests: UInt32  # [B + 1]: the tests of box b are box_tests[b] up to box_tests[b + 1]
    test_column: UInt16  # [T]
    test_low: UInt16  # [T]: of coarse codes
    test_width: UInt16  # [T]
    box_slot: UInt32  # [B]: the filter that a box is of
    box_flags: UInt8  # [B]: EXTRA, REST
    box_extras: UInt32  # [B + 1], or [1] where there are none
    extra_kind: UInt8  # [X]: INTERVALS, ELEMENT
    extra_column: UInt32  # [X]
    extra_a: UInt32  # [X]: the first interval; or the code of an element
    extra_b: UInt32  # [X]: one more than the last interval; or outcomes and comparable families
    set_low: UInt32  # the intervals of all extras
    set_high: UInt32
    shift: UInt8  # [C]: how far exact codes are shifted to fit 16 bits

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


class Rest(msgspec.Struct, frozen=True):
    """What is left to evaluate for a box: tests on opaque terms, or the whole of a wide form."""

    tests: tuple[tuple[str, ValueSet], ...] = ()
    form: Form | None = None


class Segment(msgspec.Struct, frozen=True):
    terms: tuple[Term, ...]  # of columns 1, 2, ...
    arrays: Arrays
    rest: Mapping[int, Rest]  # by box
    opaque: Mapping[str, Expression]  # terms of the rest
    slots: int  # one more than the highest slot
    many: Array  # uint8 per slot: a filter of several boxes, which may repeat


class Tests(msgspec.Struct):
    """All indexable tests of a segment as arrays, before an access test is chosen.

    One row per test: box, column, and the interval of codes. A set of several intervals has the
    hull here and its intervals in set_low / set_high [first, last) of `several`.
    """

    box: Array
    column: Array
    low: Array
    high: Array
    several: Array  # -1, or the number of the interval set
    set_starts: Array
    set_low: Array
    set_high: Array
