"""Rank space: the values of one term as small integers.

Filters test a term with sets of values. The cuts are the end points of all these sets, in sorted
order; they divide the line of values into pieces. The *code* of a value is the number of cuts below
it, so it identifies the piece that contains the value. Every set then consists of one or a few
intervals of codes, whatever the type:

    cuts        (2,)      (2, 5, 0)   (2, 5, 1)    (4,)
    codes    0   |    1       |    2      |    3     |    4
          absent, null  below 5    5         above 5    strings

Absent and null have the same code unless a set distinguishes them.

A single value is looked up by bisection. Columns of one type are encoded in bulk. Numbers and times
are encoded by thresholds; strings by a hash table, or by bisection if some set depends on the order
of strings.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.filters.values import Cut, ValueSet, key, sets
from tidings.model import INT_MAX, INT_MIN, exact_value, normalise

Codes = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]


class Ranks:
    """The cuts of a term, in sorted order. `ordered` says whether some set depends on the order of
    strings."""

    def __init__(self, cuts: list[Cut], ordered: bool) -> None:
        self.cuts = cuts
        self.ordered = ordered

    def __len__(self) -> int:
        """How many codes there are."""
        return len(self.cuts) + 1

    @cached_property
    def place(self) -> dict[Cut, int]:
        return {cut: at for at, cut in enumerate(self.cuts)}

    def intervals(self, values: ValueSet) -> list[tuple[int, int]]:
        """A set as (low, high) intervals of codes, both ends included."""
        place = self.place
        top = len(self.cuts)
        return [
            (place[low] + 1, top if high is None else place[high])
            for low, high in values.intervals()
        ]

    def values(self, spans: Iterable[tuple[int, int]]) -> ValueSet:
        """The set with these intervals of codes: the reverse of `intervals`."""
        cuts = self.cuts
        ends = [end for low, high in spans for end in (cuts[low - 1], *cuts[high : high + 1])]
        return ValueSet(tuple(ends))

    # -- one value -----------------------------------------------------------------------------

    def code(self, value: Any) -> int:
        """The code of any value."""
        kind = type(value)
        if kind is str:
            code = self.strings.get(value)
            if code is not None:
                return code
            return self.unknown_string if not self.ordered else self._search(value)
        if kind is int and INT_MIN <= value <= INT_MAX:
            return self.number_base + bisect_right(self.integer_list, value)
        return self._search(normalise(value))

    def _search(self, value: Any) -> int:
        return bisect_right(self.cuts, key(value))

    @cached_property
    def null(self) -> int:
        return bisect_right(self.cuts, sets.NULL_KEY)

    @cached_property
    def absent(self) -> int:
        return bisect_right(self.cuts, sets.ABSENT_KEY)

    @property
    def tells_null(self) -> bool:
        """Whether a set distinguishes null from absent."""
        return self.null != self.absent

    @cached_property
    def other(self) -> int:
        """The code of lists, structs and other values that have no order."""
        return bisect_right(self.cuts, (sets.OTHER, 0, 0))

    @cached_property
    def booleans(self) -> tuple[int, int]:
        return self._search(False), self._search(True)

    # -- numbers -------------------------------------------------------------------------------

    def _inner(self, family: int) -> list[Cut]:
        """The cuts between values of a family, without the cut at the start of the family."""
        first = bisect_right(self.cuts, (family,))
        return self.cuts[first : bisect_left(self.cuts, (family + 1,))]

    @cached_property
    def number_base(self) -> int:
        """The code of a number that is below all thresholds."""
        return bisect_right(self.cuts, (sets.NUMBER,))

    @cached_property
    def _small(self) -> tuple[Places, Places] | None:
        """The cuts between numbers, as two arrays: the value of each cut, and 1 if the cut is after
        its value. None if some value is not an integer that a double represents exactly."""
        inner = self._inner(sets.NUMBER)
        values = [cut[1] for cut in inner]
        if not set(map(type, values)) <= {int}:
            return None
        if values and (values[0] < -(2**53) or values[-1] > 2**53):
            return None
        return np.array(values, np.int64), np.array([cut[2] for cut in inner], np.int64)

    @cached_property
    def integers(self) -> npt.NDArray[np.int64]:
        """For each cut, the smallest integer above it, as a threshold: x is beyond the cut if x >=
        threshold. Cuts beyond all 64-bit integers are left out."""
        if self._small is not None:
            values, after = self._small
            return values + after
        out = [_least_integer(*cut[1:]) for cut in self._inner(sets.NUMBER)]
        return np.array([least for least in out if least <= INT_MAX], dtype=np.int64)

    def scale_thresholds(self, scale: int) -> npt.NDArray[np.int64]:
        """Thresholds for decimals with `scale` digits after the point, in units of the last one."""
        found = self._scaled.get(scale)
        if found is None:
            least = [_least_unit(cut[1], cut[2], scale) for cut in self._inner(sets.NUMBER)]
            found = np.array([one for one in least if one <= INT_MAX], dtype=np.int64)
            self._scaled[scale] = found
        return found

    @cached_property
    def _scaled(self) -> dict[int, npt.NDArray[np.int64]]:
        return {}

    @cached_property
    def integer_list(self) -> list[int]:
        out: list[int] = self.integers.tolist()
        return out

    @cached_property
    def doubles(self) -> npt.NDArray[np.float64]:
        """Thresholds for doubles, with NaN last: the threshold of the cut before NaN is NaN
        itself."""
        if self._small is not None:
            whole = self._small[0].astype(np.float64)
            found = np.where(self._small[1] == 1, np.nextafter(whole, np.inf), whole)
        else:
            least = [_least_double(*cut[1:]) for cut in self._inner(sets.NUMBER)]
            found = np.array(least, dtype=np.float64)
        last = [math.nan] if self._search(math.nan) > self._search(math.inf) else []
        return np.append(found, last)

    @cached_property
    def double_list(self) -> list[float]:
        """`doubles` without NaN, as a list for bisection."""
        out: list[float] = self.doubles[~np.isnan(self.doubles)].tolist()
        return out

    def _take_small(self, parts: Sequence[Ranks], places: Sequence[Places]) -> None:
        """Compute `_small` from the `_small` of the merged parts."""
        size = len(self._inner(sets.NUMBER))
        values, after = np.empty(size, np.int64), np.empty(size, np.int64)
        for part, place in zip(parts, places, strict=True):
            if part._small is None:
                return
            first = part.number_base
            here = place[first : first + len(part._small[0])] - self.number_base
            values[here], after[here] = part._small
        self._small = values, after

    # -- times ---------------------------------------------------------------------------------

    @cached_property
    def time_base(self) -> int:
        return bisect_right(self.cuts, (sets.TIME,))

    @cached_property
    def times(self) -> npt.NDArray[np.int64]:
        found = [value + after for _, value, after in self._inner(sets.TIME)]
        return np.array(found, dtype=np.int64)

    # -- strings -------------------------------------------------------------------------------

    @cached_property
    def strings(self) -> dict[str, int]:
        """The code of each string at which there is a cut."""
        found: dict[str, int] = {}
        first = bisect_right(self.cuts, (sets.STRING,))
        if first and self.cuts[first - 1] == (sets.STRING,):
            found[""] = first  # the cut before "" is where the family of strings begins
        for at, (_, text, after) in enumerate(self._inner(sets.STRING), first):
            if after:
                found.setdefault(text, at)
            else:
                found[text] = at + 1
        return found

    @cached_property
    def unknown_string(self) -> int:
        """The code of a string that no filter mentions, if the order of strings does not matter."""
        # behind the last string that filters mention, and before the end of the family
        return bisect_right(self.cuts, (sets.STRING,)) + len(self._inner(sets.STRING))

    @cached_property
    def sorted_strings(self) -> list[str]:
        return sorted(self.strings)

    @cached_property
    def string_codes(self) -> tuple[Codes, Codes]:
        """(code of sorted_strings[i], code of a string between sorted_strings[i - 1] and [i])."""
        exact = [self.strings[text] for text in self.sorted_strings]
        base = bisect_right(self.cuts, (sets.STRING,))
        inner = self._inner(sets.STRING)
        gaps = [base]
        at = 0
        for text in self.sorted_strings:
            while at < len(inner) and inner[at][1] <= text:
                at += 1
            gaps.append(base + at)
        return np.array(exact, dtype=np.uint32), np.array(gaps, dtype=np.uint32)


def _least_integer(value: float, after: int) -> int:
    if math.isinf(value):
        return INT_MAX + 1 if value > 0 else INT_MIN
    least = math.floor(value) + 1 if after else math.ceil(value)
    return min(max(least, INT_MIN), INT_MAX + 1)


def _least_unit(value: Any, after: int, scale: int) -> int:
    """The smallest number of units of 10 ** -scale that is not below a number or, with `after`, the
    smallest one above it."""
    if math.isinf(value):
        return INT_MAX + 1 if value > 0 else INT_MIN
    exact = Fraction(exact_value(value)) * 10**scale
    least: int = math.floor(exact) + 1 if after else math.ceil(exact)
    return min(max(least, INT_MIN), INT_MAX + 1)


def _least_double(value: float, after: int) -> float:
    """The smallest double that is not below a number or, with `after`, the smallest one above it;
    numbers are compared exactly."""
    try:
        nearest = float(value)
    except OverflowError:  # pragma: no branch
        return math.inf if value > 0 else -math.inf
    if nearest < value or (after and nearest == value):
        return math.nextafter(nearest, math.inf)
    return nearest


def asks_order(values: ValueSet) -> bool:
    """Whether a set distinguishes strings that no cut mentions, as a range or a prefix does."""
    cuts = values.cuts
    at = 0
    while at < len(cuts):
        cut = cuts[at]
        if cut[0] != sets.STRING or len(cut) == 1 or cut[1] == "":
            at += 1
        elif cut[2] == 0 and cuts[at + 1 : at + 2] == ((sets.STRING, cut[1], 1),):
            at += 2  # the set includes or excludes a single string
        else:
            return True
    return False


def merge_ranks(parts: Sequence[Ranks]) -> tuple[Ranks, list[Places]]:
    """Merge rank spaces into one; return it and, for each part, the indexes of its cuts.

    Rank spaces are merged during matching, so merging must be fast: the cuts of the largest part
    are copied in slices, and only the cuts that this part lacks are handled one by one.
    """
    base = max(parts, key=len)
    found = [_places_in(base, part) for part in parts]
    # for each cut that the largest part does not have, the index at which it belongs
    before: dict[Cut, int] = {}
    for part, places in zip(parts, found, strict=True):
        for number in np.nonzero(places < 0)[0].tolist():
            before[part.cuts[number]] = -1 - int(places[number])
    cuts: list[Cut] = []
    fresh: dict[Cut, int] = {}
    done = 0
    for cut in sorted(before):
        cuts += base.cuts[done : before[cut]]
        done = before[cut]
        fresh[cut] = len(cuts)
        cuts.append(cut)
    cuts += base.cuts[done:]

    left = np.ones(len(cuts), bool)
    left[list(fresh.values())] = False
    moved = np.nonzero(left)[0]
    for part, places in zip(parts, found, strict=True):
        new = np.nonzero(places < 0)[0]
        known = places >= 0
        places[known] = moved[places[known]]
        places[new] = [fresh[part.cuts[number]] for number in new.tolist()]
    ranks = Ranks(cuts, any(part.ordered for part in parts))
    ranks._take_small(parts, found)
    return ranks, found


def _places_in(base: Ranks, part: Ranks) -> Places:
    """For each cut of a part, its index among the cuts of the base. If the base lacks the cut: -1
    minus the index at which the cut belongs."""
    if part is base:
        return np.arange(len(base.cuts))
    out = np.empty(len(part.cuts), np.int64)
    first, last = 0, 0
    if base._small is not None and part._small is not None:
        have, wanted = (2 * values + after for values, after in (base._small, part._small))
        at = np.searchsorted(have, wanted)
        known = np.append(have, 2**62)[at] == wanted
        at += base.number_base
        first, last = part.number_base, part.number_base + len(wanted)
        out[first:last] = np.where(known, at, -1 - at)
    for number in (*range(first), *range(last, len(part.cuts))):
        cut = part.cuts[number]
        place = bisect_left(base.cuts, cut)
        is_there = place < len(base.cuts) and base.cuts[place] == cut
        out[number] = place if is_there else -1 - place
    return out
