"""CAST: converts a value to a type, as Spark's `try_cast` does in ANSI mode.

Where Spark's `cast` raises an error in ANSI mode, the result here is null: for example, if a string
is not a number, or if a number does not fit the type. Some other casts also give null, because
systems disagree about the result, or because the result depends on a setting: a double or decimal
cast to a string is null, and so is a string cast to a timestamp if it contains a time without a
date, or the name of a time zone.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from typing import Any

from tidings.filters.values.work_limit import WORTH, spend
from tidings.model import Type, from_micros, micros, read_value, type_of

CAST_TYPES: dict[str, Type] = {
    "boolean": "boolean", "tinyint": "integer", "smallint": "integer", "int": "integer",
    "bigint": "integer", "float": "double", "double": "double", "string": "string", "date": "date",
    "timestamp": "timestamp",
}  # fmt: skip
"""The types that a value can be cast to, by their names in SQL."""

CAST_NAMES = {name: name for name in CAST_TYPES} | {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "to_date": "date", "to_timestamp": "timestamp", "timestamp_ltz": "timestamp",
}  # fmt: skip
"""The same types by all their names, including the names of functions that cast."""

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_CASTABLE: dict[str, tuple[str, ...]] = {
    "boolean": ("boolean", "integer", "double", "string"),
    "integer": ("boolean", "integer", "double", "string", "timestamp"),
    "double": ("boolean", "integer", "double", "timestamp"),
    "decimal": ("boolean", "integer", "double", "timestamp"),
    "number": ("boolean", "integer", "double", "string", "timestamp"),
    "string": ("boolean", "integer", "double", "string", "date", "timestamp"),
    "date": ("string", "date", "timestamp"),
    "timestamp": ("integer", "double", "string", "date", "timestamp"),
}


def can_cast(kind: str, target: str) -> bool:
    """Whether a cast of a value of the type `kind` to the SQL type `target` can succeed."""
    targets = _CASTABLE.get(kind)
    return targets is not None and CAST_TYPES[target] in targets


def is_same(kind: str, target: str) -> bool:
    """Whether a cast leaves every value of a type unchanged."""
    return kind == CAST_TYPES[target] and target in ("boolean", "bigint", "double", "string",
                                                     "date", "timestamp")  # fmt: skip


def cast_value(value: Any, target: str) -> Any:
    """The value as an SQL type; null if it can't be converted."""
    kind = type_of(value)
    if kind is None or not can_cast(kind, target):
        return None
    if isinstance(value, str):
        return _cast_text(value, target)
    return _CASTS[CAST_TYPES[target]](value, target)


def _cast_text(text: str, target: str) -> Any:
    if len(text) >= WORTH:
        spend(len(text))
    if target == "string":
        return text
    bare = text.strip(_BLANKS)
    if bare != bare.strip():  # white space that Spark does not trim
        return None
    try:
        found = read_value(bare, CAST_TYPES[target])
    except ValueError:
        return None
    if target in _BITS:
        return _fit(found, target)
    return round_to_single(found) if target == "float" else found


_BLANKS = "".join(map(chr, (*range(0x21), 0x7F)))  # the bytes that Spark trims


def _fit(value: int, target: str) -> int | None:
    most = 1 << (_BITS[target] - 1)
    return value if -most <= value < most else None


def _to_boolean(value: Any, _target: str) -> bool:
    return value if isinstance(value, bool) else bool(value != 0)


def _to_integer(value: Any, target: str) -> int | None:
    if isinstance(value, dt.datetime):
        return _fit(micros(value) // 1_000_000, target)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return _fit(int(value), target)


def _to_double(value: Any, target: str) -> float:
    found = micros(value) / 1_000_000 if isinstance(value, dt.datetime) else float(value)
    return round_to_single(found) if target == "float" else found


def _to_string(value: Any, _target: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        text = value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(sep=" ")
        return text.rstrip("0") if value.microsecond else text
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _to_date(value: dt.date, _target: str) -> dt.date:
    return value.astimezone(dt.UTC).date() if isinstance(value, dt.datetime) else value


def _to_timestamp(value: Any, _target: str) -> dt.datetime | None:
    """A number is read as seconds since 1970."""
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    count = int(value * 1_000_000)
    try:
        found = from_micros(count)
    except (OverflowError, ValueError):
        return None  # outside the years 1 to 9999
    return found if isinstance(found, dt.datetime) else _to_timestamp(found, _target)


_CASTS: dict[str, Callable[[Any, str], Any]] = {
    "boolean": _to_boolean, "integer": _to_integer, "double": _to_double, "string": _to_string,
    "date": _to_date, "timestamp": _to_timestamp,
}  # fmt: skip


def round_to_single(value: float) -> float:
    """Round to single precision; a number out of range becomes infinite, as in Spark."""
    try:
        found: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return found
