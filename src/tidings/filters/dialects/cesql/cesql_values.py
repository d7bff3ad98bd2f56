"""The three types of CloudEvents SQL, the conversion of attributes to them, and casts.

A String is a `str`, an Integer is an `int` of 32 bits, and a Boolean is a `bool`. Any other
attribute value becomes a String: a time is written in RFC 3339 format, in UTC; a number that is not
an Integer is written as in JSON; a list or object is written as JSON. A whole number is an Integer,
however it was written: 1.0 is 1, as in values/sets.py.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from typing import Any, Literal as Choice

from tidings.filters.dialects.cesql.syntax import Scalar
from tidings.filters.values import like
from tidings.model import micros

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
Kind = Choice["boolean", "integer", "string"]
ZEROS: dict[Kind, Scalar] = {"boolean": False, "integer": 0, "string": ""}
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001
_INTEGER = re.compile("([+-]?)0*([0-9]{1,10})", re.ASCII)
_WORDS = ("true", "false", "NaN", "Infinity", "-Infinity")
_FIGURES = re.compile("[-+0-9.eETZ:]*", re.ASCII)  # the characters of numbers and times
_OPENS, _CLOSES = '[{"', ']}"'  # first and last characters of lists, objects and strings as JSON


class CastError(ValueError):
    """A value can't be cast to another type."""


def fits(value: int) -> bool:
    return INT_MIN <= value <= INT_MAX


def kind_of(value: Scalar) -> Kind:
    if isinstance(value, bool):
        return "boolean"
    return "integer" if isinstance(value, int) else "string"


def scalar_of(value: Any) -> Scalar:
    """Convert a plain attribute value that is not null to one of the three types."""
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if fits(value) else str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, dt.date):
        return _time(value)
    try:
        return json.dumps(value, default=str, separators=(",", ":"), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "{}"


def _number(value: float) -> Scalar:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value.is_integer():
        return int(value) if fits(int(value)) else str(int(value))
    return repr(value)


def _time(value: dt.date) -> str:
    try:
        return f"{(_EPOCH + dt.timedelta(microseconds=micros(value))).isoformat()}Z"
    except OverflowError:  # converted to UTC, the year is before 1 or after 9999
        return value.isoformat()


def cast(value: Scalar, kind: Kind) -> Scalar:
    """Cast a value; raise CastError if the specification does not define that cast."""
    if kind == "string":
        return to_string(value)
    return to_integer(value) if kind == "integer" else to_boolean(value)


def to_string(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def to_integer(value: Scalar) -> int:
    if isinstance(value, int):
        return int(value)
    found = _INTEGER.fullmatch(value)
    whole = int(found[1] + found[2]) if found else INT_MAX + 1
    if not fits(whole):
        raise CastError
    return whole


def to_boolean(value: Scalar) -> bool:
    if isinstance(value, int):
        return value != 0
    lower = value.lower()
    if lower not in ("true", "false"):
        raise CastError
    return lower == "true"


def only_strings_are(text: str) -> bool:
    """Whether only a string converts to this String, and no value of another type does."""
    return not text or not (text in _WORDS or _FIGURES.fullmatch(text) or text[0] in _OPENS)


def only_strings_match(parts: tuple[like.Part, ...]) -> bool:
    """Whether only strings can match the pattern: no value of another type converts to a String
    that matches.

    The start and the end of the pattern decide this: `com.%` can't match a number, a time or a
    Boolean.
    """
    if not parts:
        return True
    (first, start), (last, end) = parts[0], parts[-1]
    if len(parts) == 1 and first == "text":
        return only_strings_are(start)
    begins = first == "text" and not (
        any(word.startswith(start) for word in _WORDS)
        or _FIGURES.fullmatch(start)
        or start[0] in _OPENS
    )
    ends = last == "text" and not (
        any(word.endswith(end) for word in _WORDS) or _FIGURES.fullmatch(end) or end[-1] in _CLOSES
    )
    return begins or ends


def pattern_parts(pattern: str) -> tuple[like.Part, ...]:
    """The parts of a LIKE pattern. A backslash makes % and _ literal; before any other character it
    is an ordinary backslash."""
    return like.split(re.sub(r"\\(?![%_])", r"\\\\", pattern))
