"""Whether two lists have a value in common, without comparing every pair.

Equal values have equal keys, so equal values are found with a set of keys. If no two values are
equal, the answer is false if the values of every pair are comparable, and otherwise unknown. Values
of one family are comparable. Nested lists compare up to the first position where they differ, so
lists with a common prefix are examined together, position by position. Each element is visited only
a few times.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from tidings.filters.values import sets
from tidings.filters.values.sets import Key
from tidings.filters.values.work_limit import look
from tidings.model import normalise

# lists form a family of their own, because inside a list, a list is not comparable to null
_LIST = sets.OTHER + 1
_LIST_KEY: Key = (_LIST, 0, 0)
_NOT_COMPARED = (sets.OTHER, _LIST)


def overlap(left: list[Any], right: list[Any]) -> bool | None:
    """True if any pair is equal; otherwise None if any pair is not comparable, and False if all
    pairs are comparable."""
    if not left or not right:
        return False
    ours, theirs = _normalise_all(left), _normalise_all(right)
    common = _keys(ours) & _keys(theirs)
    if common - {None}:
        return True
    families = {_family(_place(value)) for value in (*ours, *theirs)}
    if len(families) > 1 or families & {sets.NO_VALUE, sets.OTHER}:
        return None
    return None if _LIST in families and _some_do_not_compare(ours, theirs) else False


def _place(value: Any) -> Key:
    """The key of a value; lists have keys of their own, which differ from those of other nested
    values."""
    return _LIST_KEY if isinstance(value, list) else sets.key(value)


def _family(place: Key) -> int:
    family: int = place[0]
    return sets.NUMBER if family == sets.NAN else family


def _normalise_all(values: list[Any]) -> list[Any]:
    look()
    return [_normalise_list(one) if isinstance(one := normalise(v), list) else one for v in values]


def _normalise_list(values: list[Any]) -> list[Any]:
    return [normalise(value) for value in values]


def _keys(values: list[Any]) -> set[Hashable]:
    """The keys of all values; None is the key of values that equal nothing: null, structs, and
    lists that contain lists or structs."""
    look()
    return {_whole_key(value) for value in values}


def _whole_key(value: Any) -> Hashable:
    if isinstance(value, list):
        places = tuple(map(_place, value))
        return None if any(place[0] in _NOT_COMPARED for place in places) else (_LIST, places)
    place = sets.key(value)
    return None if place[0] in (sets.NO_VALUE, sets.OTHER) else place


def _some_do_not_compare(ours: Sequence[list[Any]], theirs: Sequence[list[Any]]) -> bool:
    """Whether a list in `ours` can't be compared with a list in `theirs`, because the two are equal
    up to a position at which their values are not comparable.

    Lists with a common prefix form a group. At each position, a group is split by the next value in
    its lists. If all lists of a group come from the same side, the group needs no further
    comparison.
    """
    groups, at = [(ours, theirs)], 0
    while groups:
        look()
        following: list[tuple[Sequence[list[Any]], Sequence[list[Any]]]] = []
        for one, other in groups:
            mine, yours = _by_place(one, at), _by_place(other, at)
            if _differ_in_family(mine, yours):
                return True
            following += [(mine[place], yours[place]) for place in mine.keys() & yours.keys()]
        groups, at = following, at + 1
    return False


def _by_place(lists: Sequence[list[Any]], at: int) -> dict[Key, list[list[Any]]]:
    found: dict[Key, list[list[Any]]] = {}
    for one in lists:
        if at < len(one):
            found.setdefault(_place(one[at]), []).append(one)
    return found


def _differ_in_family(mine: dict[Key, Any], yours: dict[Key, Any]) -> bool:
    ours, theirs = set(map(_family, mine)), set(map(_family, yours))
    if not ours or not theirs:
        return False
    if _LIST in ours | theirs:
        return True
    ours, theirs = ours - {sets.NO_VALUE}, theirs - {sets.NO_VALUE}
    if not ours or not theirs:
        return False
    return sets.OTHER in ours | theirs or len(ours | theirs) > 1
