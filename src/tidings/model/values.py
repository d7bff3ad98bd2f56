"""Values and their order: the semantics that every other module must agree with.

A value is one of these: null (None), a Boolean, a 64-bit integer, a double, a decimal that equals
no integer or double (see decimals.py), a string, a date, a timestamp (UTC, microseconds), or a list
of such values. Values are compared only within one of five families. A comparison of values from
different families is *unknown* (None here, null in SQL):

    false < true
    -Infinity < ... -1 < 0 = -0.0 < 0.5 < 1 = 1.0 ... < Infinity < NaN      exact, NaN = NaN;
                                                     a double lies at its shortest decimal
    strings by code point
    dates and timestamps together by time; a date is its midnight in UTC
    lists element by element, then by length

An attribute that is missing from a notification is *absent*; one that is present may be null. SQL
treats absent and null the same; event patterns distinguish them. In a mapping, a missing name is
absent and None is null. Where a value is expected, `ABSENT` stands for a missing attribute.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from tidings.model.decimals import LongDecimal, normalise_decimal

Scalar = bool | int | float | LongDecimal | str | dt.date | None
Value = Scalar | list[Any]
Event = Mapping[str, Any]

ABSENT: Final = msgspec.UNSET  # msgspec sets this in the fields that a JSON text lacks
NULL_MARK: Final = "\0null "
"""A table has only one kind of null, and it counts as absent. To record that a field is null in
JSON, a table has a second, Boolean field. Its name is this mark followed by the name of the first
field, and it is true where the first field is null in JSON."""
INT_MIN = -(2**63)
INT_MAX = 2**63 - 1
_FINER_TIMES = tuple(f"datetime64[{unit}]" for unit in ("ns", "ps", "fs", "as"))  # NumPy's
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_MICRO = dt.timedelta(microseconds=1)
_DAY_MICROS = 86_400_000_000


def normalise(value: Any) -> Any:
    """Convert a value to one of the types in the module docstring; a value that fits none of them
    is returned unchanged.

    An integer that does not fit in 64 bits becomes the nearest double. A decimal becomes the
    integer or double that it equals; if there is none, it stays a decimal. A NumPy scalar becomes
    its Python value, and a tuple or set becomes a list.
    """
    kind = type(value)
    if kind is str or kind is float or kind is bool or value is None or value is ABSENT:
        return value
    if kind is int:
        return value if INT_MIN <= value <= INT_MAX else _as_double(value)
    if kind is dt.datetime or kind is dt.date or kind is list or kind is dict:
        return value
    return _normalise_other(value)


def _normalise_other(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value if type(value) is LongDecimal else normalise_decimal(value)
    if isinstance(value, dt.datetime):
        return _normalise_datetime(value)
    if isinstance(value, dt.time):  # filters have no type for it, so it becomes a string
        return value.isoformat()
    if isinstance(value, (dt.date, str, float, Mapping)):
        return value
    if isinstance(value, int):
        return normalise(int(value))
    if isinstance(value, (tuple, set, frozenset)):
        return list(value)
    if type(value).__name__ == "NAType":  # pandas.NA
        return None
    if str(getattr(value, "dtype", "")) in _FINER_TIMES:
        value = value.astype("datetime64[us]")
    item = getattr(value, "item", None)  # a NumPy scalar, or an array without dimensions
    if callable(item) and getattr(value, "ndim", None) == 0:
        inner = item()
        return normalise(inner) if type(inner) is not type(value) else value
    tolist = getattr(value, "tolist", None)  # a NumPy array
    return tolist() if callable(tolist) else value


def _normalise_datetime(value: dt.datetime) -> Any:
    if value != value:  # pandas.NaT is a datetime and does not equal itself
        return None
    to_pydatetime = getattr(value, "to_pydatetime", None)
    return to_pydatetime(warn=False) if callable(to_pydatetime) else value


def _as_double(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def micros(value: dt.date) -> int:
    """Microseconds since 1970 in UTC. A date counts as midnight of that day, and a timestamp
    without a time zone as UTC."""
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=dt.UTC)
        return (value - _EPOCH) // _MICRO
    return (value.toordinal() - _EPOCH_DAY) * _DAY_MICROS


def from_micros(count: int) -> dt.date:
    """The inverse of `micros`: a date if the time is midnight, otherwise a timestamp."""
    stamp = _EPOCH + count * _MICRO
    return stamp.date() if count % _DAY_MICROS == 0 else stamp


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def compare(left: Any, right: Any) -> int | None:
    """-1, 0 or 1; None if a value is null or the values belong to different families."""
    if left is None or right is None:
        return None
    if isinstance(left, str):
        return _order(left, right) if isinstance(right, str) else None
    if isinstance(left, bool) or isinstance(right, bool):
        both = isinstance(left, bool) and isinstance(right, bool)
        return _order(left, right) if both else None
    if is_number(left):
        return _compare_numbers(left, right) if is_number(right) else None
    if isinstance(left, dt.date):
        return _order(micros(left), micros(right)) if isinstance(right, dt.date) else None
    if isinstance(left, list) and isinstance(right, list):
        return _compare_lists(left, right)
    return None


def _order(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _compare_numbers(left: Any, right: Any) -> int:
    left_nan, right_nan = bool(left != left), bool(right != right)
    if left_nan or right_nan:
        return left_nan - right_nan
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        left, right = normalise(left), normalise(right)
    return _order(left, right)  # Python compares int and float by exact value


def _compare_lists(left: list[Any], right: list[Any]) -> int | None:
    """Compare the first elements that differ, or else the lengths. Null is below every element and
    equals null."""
    for a, b in zip(left, right, strict=False):
        a, b = normalise(a), normalise(b)
        if isinstance(a, list) or isinstance(b, list):
            return None  # lists hold scalars
        if a is None or b is None:
            order: int | None = (b is None) - (a is None)
        else:
            order = compare(a, b)
        if order != 0:
            return order
    return _order(len(left), len(right))
