"""Sets of values of one attribute: disjoint intervals on a line that contains all values.

All values of all types, and "absent", are ordered on one line, family after family:

    absent null | false true | -Inf ... Inf | NaN | strings | dates, timestamps | lists and others
         0      |     1      |      2       |  3  |    4    |         5         |        6

A set is the sorted tuple of the *cuts* at which membership flips, starting from "outside":

    x > 5             ((2, 5, 1), (4,))      from just after 5 up to the strings: NaN is above 5
    x != 'a'          ((4,), (4, 'a', 0), (4, 'a', 1), (5,))
    x IS NULL         ((0,), (1,))           absent or null
    isabsent(x)       ((0,), (0, 0, 1))      absent only
    x IS NOT NULL     ((1,),)                to the end of the line
    everything        ((0,),)

A cut is either (family,), which is the start of a family, or (family, value, 0 | 1), which is just
before (0) or just after (1) a value. Cuts are ordinary tuples, in the order in which Python sorts
tuples. Invariant: the cuts strictly increase, and between two neighbouring values there is only one
possible cut (`_cut` ensures this), so equal sets have equal cuts. Membership is one bisection;
union, intersection and containment are linear merges.
"""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any

import msgspec

from tidings.model import ABSENT, INT_MAX, INT_MIN, LongDecimal, micros, normalise

NO_VALUE, BOOLEAN, NUMBER, NAN, STRING, TIME, OTHER = range(7)

Cut = tuple[Any, ...]
Key = tuple[Any, ...]

ABSENT_KEY: Key = (NO_VALUE, 0, 0)
NULL_KEY: Key = (NO_VALUE, 1, 0)
_PRESENT: Cut = (NO_VALUE, 0, 1)  # the cut between absent and null
_NAN_KEY: Key = (NAN, 0, 0)
_OTHER_KEY: Key = (OTHER, 0, 0)
_INF = float("inf")
_LAST_CHARACTER = 0x10FFFF
MOST_REMEMBERED = 65_536
LONGEST_REMEMBERED = 200  # the most characters of a cached string; longer ones could fill memory
_points: dict[Key, ValueSet] = {}


def key(value: Any) -> Key:
    """The key of a plain value: its position on the line. The key is also the cut just before the
    value."""
    kind = type(value)
    if kind is str:
        return (STRING, value, 0)
    if kind is int:
        return (NUMBER, value, 0)
    if value is None:
        return NULL_KEY
    if kind is bool:
        return (BOOLEAN, value, 0)
    if kind is float:
        if value != value:
            return _NAN_KEY
        # each number has one form: whole doubles become integers, so -0.0 becomes 0
        if value.is_integer() and -(2.0**63) <= value < 2.0**63:
            return (NUMBER, int(value), 0)
        return (NUMBER, value, 0)
    if isinstance(value, dt.date):
        return (TIME, micros(value), 0)
    if isinstance(value, str):
        return (STRING, str(value), 0)
    if isinstance(value, float):
        return key(float(value))
    if isinstance(value, Decimal):
        return (NUMBER, value, 0) if type(value) is LongDecimal else key(normalise(value))
    return ABSENT_KEY if value is ABSENT else _OTHER_KEY


def pack_number(value: Any) -> str:
    """Encode a decimal as a string; the family of the cut still marks it as a number."""
    if isinstance(value, LongDecimal):
        return str(value)
    raise TypeError(f"found {type(value).__name__}, expected a value that can end an interval")


def unpack_cuts(cuts: list[Cut]) -> list[Cut]:
    """Undo `pack_number` in sorted cuts; only cuts of numbers are visited."""
    first, last = bisect_right(cuts, (NUMBER,)), bisect_left(cuts, (NAN,))
    if str in set(map(type, map(itemgetter(1), cuts[first:last]))):
        cuts[first:last] = map(unpack_cut, cuts[first:last])
    return cuts


def unpack_cut(cut: Cut) -> Cut:
    """Undo `pack_number` in one cut."""
    if len(cut) == 3 and cut[0] == NUMBER and type(cut[1]) is str:
        return (NUMBER, LongDecimal(cut[1]), cut[2])
    return cut


def family_of(value: Any) -> int:
    """The family of a value; NaN counts as a number."""
    family: int = key(value)[0]
    return NUMBER if family == NAN else family


def _cut(place: Key, after: bool) -> Cut:
    """The cut just before or just after a key, in the unique form that the invariant requires."""
    family, value, _ = place
    if family == STRING:  # strings come first, because most filters test them
        return (STRING, value, 1 if after else 0) if after or value else (STRING,)
    if family == NUMBER and -_INF < value < _INF:
        return (NUMBER, value, 1 if after else 0)
    if family in (NAN, OTHER):
        return (family + 1,) if after else (family,)
    if family == NO_VALUE:
        if value:
            return (BOOLEAN,) if after else _PRESENT
        return _PRESENT if after else (NO_VALUE,)
    if family == BOOLEAN:
        return ((BOOLEAN, False, 1), (NUMBER,))[value] if after else _cut_before_boolean(value)
    if family == NUMBER:
        if value > 0:
            return (NAN,) if after else (NUMBER, value, 0)
        return (NUMBER, value, 1) if after else (NUMBER,)
    return (family, value, 1 if after else 0)


def _cut_before_boolean(value: bool) -> Cut:
    return (BOOLEAN, False, 1) if value else (BOOLEAN,)


class ValueSet(msgspec.Struct, frozen=True, gc=False):
    """An immutable set of values; see the module docstring. To build a set, use the functions
    below."""

    cuts: tuple[Cut, ...]

    def __contains__(self, place: Key) -> bool:
        return bisect_right(self.cuts, place) & 1 == 1

    def __repr__(self) -> str:
        return f"ValueSet({self.cuts!r})"

    def __bool__(self) -> bool:
        return bool(self.cuts)

    def __and__(self, other: ValueSet) -> ValueSet:
        return ValueSet(_merge(self.cuts, other.cuts, lambda a, b: a and b))

    def __or__(self, other: ValueSet) -> ValueSet:
        return ValueSet(_merge(self.cuts, other.cuts, lambda a, b: a or b))

    def __sub__(self, other: ValueSet) -> ValueSet:
        return ValueSet(_merge(self.cuts, other.cuts, lambda a, b: a and not b))

    def __invert__(self) -> ValueSet:
        if self.cuts and self.cuts[0] == (NO_VALUE,):
            return ValueSet(self.cuts[1:])
        return ValueSet(((NO_VALUE,), *self.cuts))

    def __ge__(self, other: ValueSet) -> bool:
        """Whether this set contains the other: each interval of the other set lies in an interval
        of this set."""
        mine, theirs = self.cuts, other.cuts
        if mine == theirs:
            return True
        size, count = len(mine), len(theirs)
        for number in range(0, count, 2):
            at = bisect_right(mine, theirs[number])
            if at & 1 == 0:
                return False
            if at < size and (number + 1 == count or mine[at] < theirs[number + 1]):
                return False
        return True

    def __le__(self, other: ValueSet) -> bool:
        return other >= self

    def intervals(self) -> Iterator[tuple[Cut, Cut | None]]:
        """The (first cut, last cut) of each interval; None as the last cut means the end of the
        line of values."""
        cuts = self.cuts
        for at in range(0, len(cuts), 2):
            yield cuts[at], cuts[at + 1] if at + 1 < len(cuts) else None

    @property
    def is_everything(self) -> bool:
        return len(self.cuts) == 1 and self.cuts[0] == (NO_VALUE,)

    def points(self, most: int = 1 << 30) -> list[Key] | None:
        """The keys of the values in the set if there are at most `most`; otherwise None."""
        if len(self.cuts) & 1 or len(self.cuts) > 2 * most:
            return None
        if len(self.cuts) == 2:
            first, last = self.cuts
            # most sets are one string, one number, or an interval of numbers
            is_usual = len(first) == 3 == len(last) and not first[2]
            if is_usual and (first[0] == STRING or last[0] < NAN):
                return [first] if last == (first[0], first[1], 1) else None
        places: list[Key] = []
        for low, high in self.intervals():
            inside = _places_between(low, high)
            if inside is None:
                return None
            places.extend(inside)
        return places if len(places) <= most else None


def _places_between(low: Cut, high: Cut | None) -> list[Key] | None:
    """The keys between two cuts; None if they can't be listed.

    Some keys are adjacent, so an interval that spans them can still be listed value by value:
    absent, null and false; true and -Infinity; Infinity, NaN and ''.
    """
    places: list[Key] = []
    cut = low
    while cut != high:
        place = cut if len(cut) == 3 and cut[2] == 0 else _FIRST.get(cut)
        if place is None:
            return None
        places.append(place)
        cut = _cut(place, True)
    return places


# For each cut that is not just before a value: the key that follows the cut, if there is one.
_FIRST: dict[Cut, Key] = {
    (NO_VALUE,): ABSENT_KEY,
    _PRESENT: NULL_KEY,
    (BOOLEAN,): (BOOLEAN, False, 0),
    (BOOLEAN, False, 1): (BOOLEAN, True, 0),
    (NUMBER,): (NUMBER, -_INF, 0),
    (NAN,): _NAN_KEY,
    (STRING,): (STRING, "", 0),
}


def _merge(
    left: tuple[Cut, ...], right: tuple[Cut, ...], keep: Callable[[bool, bool], bool]
) -> tuple[Cut, ...]:
    """Sweep over both sets at once, and keep the cuts at which membership in the result changes."""
    out: list[Cut] = []
    i = j = 0
    inside = False
    size_left, size_right = len(left), len(right)
    while i < size_left or j < size_right:
        if j == size_right or (i < size_left and left[i] <= right[j]):
            cut = left[i]
            if j < size_right and right[j] == cut:
                j += 1
            i += 1
        else:
            cut = right[j]
            j += 1
        now = keep(i & 1 == 1, j & 1 == 1)
        if now != inside:
            out.append(cut)
            inside = now
    return tuple(out)


def unite(parts: Sequence[ValueSet]) -> ValueSet:
    """The union of many sets, merged pairwise, so that n points take n log n steps instead of
    n²."""
    return _join_halves(parts, ValueSet.__or__)


def intersect(parts: Sequence[ValueSet]) -> ValueSet:
    """The intersection of many sets, merged pairwise like a union."""
    return _join_halves(parts, ValueSet.__and__)


def _join_halves(
    parts: Sequence[ValueSet], join: Callable[[ValueSet, ValueSet], ValueSet]
) -> ValueSet:
    while len(parts) > 1:
        pairs = [join(parts[at], parts[at + 1]) for at in range(0, len(parts) - 1, 2)]
        parts = [*pairs, parts[-1]] if len(parts) % 2 else pairs
    return parts[0]


def _make_family(first: int, beyond: int) -> ValueSet:
    return ValueSet(((first,), (beyond,)))


NOTHING = ValueSet(())
EVERYTHING = ValueSet(((NO_VALUE,),))
NULL = _make_family(NO_VALUE, BOOLEAN)  # absent or null, like SQL's IS NULL
IS_ABSENT = ValueSet(((NO_VALUE,), _PRESENT))
IS_PRESENT = ValueSet((_PRESENT,))
EXPLICIT_NULL = ValueSet((_PRESENT, (BOOLEAN,)))  # only tests use it
NOT_NULL = ValueSet(((BOOLEAN,),))
BOOLEANS = _make_family(BOOLEAN, NUMBER)
NUMBERS = _make_family(NUMBER, STRING)
STRINGS = _make_family(STRING, TIME)
TIMES = _make_family(TIME, OTHER)
LISTS = ValueSet(((OTHER,),))
IS_NAN = _make_family(NAN, STRING)
TRUE = ValueSet(((BOOLEAN, False, 1), (NUMBER,)))
FALSE = ValueSet(((BOOLEAN,), (BOOLEAN, False, 1)))

_COMPARABLE = {
    BOOLEAN: BOOLEANS,
    NUMBER: NUMBERS,
    NAN: NUMBERS,
    STRING: STRINGS,
    TIME: TIMES,
    OTHER: LISTS,
}


def comparable_with(place: Key) -> ValueSet:
    """The values that are comparable with the value with this key: its family. NaN counts as a
    number."""
    return _COMPARABLE[place[0]]


def point(place: Key) -> ValueSet:
    """The set that contains only the value with this key. The set is cached, because filters test
    the same values repeatedly."""
    known = _points.get(place)
    if known is None:
        known = ValueSet((_cut(place, False), _cut(place, True)))
        if place[0] != STRING or len(place[1]) <= LONGEST_REMEMBERED:
            if len(_points) >= MOST_REMEMBERED:
                _points.clear()
            _points[place] = known
    return known


def tells_null(values: ValueSet) -> bool:
    """Whether a set distinguishes null from absent: it contains one of them and not the other."""
    return _PRESENT in values.cuts[:2]


def points(places: Iterable[Key]) -> ValueSet:
    """The set of exactly the values with these keys."""
    cuts: list[Cut] = []
    for place in sorted(set(places)):
        low, high = _cut(place, False), _cut(place, True)
        # no value lies between these two neighbours (for example, false and true)
        if cuts and cuts[-1] == low:
            cuts[-1] = high
        else:
            cuts += (low, high)
    return ValueSet(tuple(cuts))


def below(place: Key, inclusive: bool) -> ValueSet:
    """The comparable values below the value with this key; also that value if `inclusive`."""
    first, last = comparable_with(place).cuts[0], _cut(place, inclusive)
    return ValueSet((first, last)) if first < last else NOTHING


def above(place: Key, inclusive: bool) -> ValueSet:
    """The comparable values above the value with this key; also that value if `inclusive`."""
    family = comparable_with(place).cuts
    first = _cut(place, not inclusive)
    if len(family) == 1:  # the last family, that of lists, has no upper end
        return ValueSet((first,))
    return ValueSet((first, family[1])) if first < family[1] else NOTHING


def between(low: Key, high: Key) -> ValueSet:
    """The values from one key to another, both included; empty if the two keys are not
    comparable."""
    if comparable_with(low) is not comparable_with(high):
        return NOTHING
    first, last = _cut(low, False), _cut(high, True)
    return ValueSet((first, last)) if first < last else NOTHING


def prefix(text: str) -> ValueSet:
    """The strings that start with a prefix: from the prefix up to, but not including, its
    successor."""
    if not text:
        return STRINGS
    last = text.rstrip(chr(_LAST_CHARACTER))
    if not last:
        return above(key(text), True)
    code = ord(last[-1]) + 1
    if 0xD800 <= code <= 0xDFFF:  # surrogates are not characters; skip them
        code = 0xE000
    return ValueSet((key(text), key(last[:-1] + chr(code))))


def whole_numbers(values: ValueSet) -> ValueSet:
    """The set with the same integers and with integer ends: x > 10 becomes x >= 11."""
    low_family, high_family = (NUMBER,), (STRING,)
    outside = values - NUMBERS
    spans: list[list[float | int]] = []
    for low, high in (values & NUMBERS).intervals():
        assert high is not None  # NUMBERS is bounded
        if low >= (NAN,):
            continue
        first = -_INF if low == low_family else _whole_at_least(low)
        last = _INF if high >= (NAN,) else _whole_at_least(high) - 1
        if first > min(last, INT_MAX) or last < INT_MIN:
            continue
        # integers have 64 bits, so an interval that reaches the largest or smallest one is
        # unbounded
        first = -_INF if first <= INT_MIN else first
        last = _INF if last >= INT_MAX else last
        if spans and first <= spans[-1][1] + 1:
            spans[-1][1] = last
        else:
            spans.append([first, last])
    cuts: list[Cut] = []
    for first, last in spans:
        cuts.append(low_family if first == -_INF else (NUMBER, first, 0))
        cuts.append(high_family if last == _INF else (NUMBER, last, 1))
    return outside | ValueSet(tuple(cuts))


def _whole_at_least(cut: Cut) -> int | float:
    """The smallest integer above the cut."""
    value: int | float = cut[1]
    if isinstance(value, float):
        return value if value in (_INF, -_INF) else int(value // 1) + 1
    if isinstance(value, Decimal):
        return math.floor(value) + 1
    return value + int(cut[2])
