"""The types that an attribute can be declared with, and how to parse text as each of them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal, get_args

from tidings.model.decimals import read_decimal
from tidings.model.values import INT_MAX, INT_MIN, normalise

Type = Literal[
    "boolean", "integer", "double", "decimal", "string", "date", "timestamp",
    "list", "struct", "map",
]  # fmt: skip
TYPES: tuple[Type, ...] = get_args(Type)

_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", re.ASCII)
_TIME = re.compile(
    r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?"
    r"\s*(?:Z|UTC|GMT|([+-])(\d{1,2})(?::(\d{1,2}))?|([+-])(\d{2})(\d{2}))?)?",
    re.ASCII,
)
_SPECIAL = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "+infinity": float("inf"),
    "-infinity": float("-inf"),
    "inf": float("inf"),
    "+inf": float("inf"),
    "-inf": float("-inf"),
}


def type_of(value: Any) -> Type | None:
    """The type of a normalised value; None for null and for a value that fits none of the types."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "double"
    if isinstance(value, Decimal):
        return "decimal"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dt.datetime):
        return "timestamp"
    if isinstance(value, dt.date):
        return "date"
    if isinstance(value, (list, tuple)):
        return "list"
    if isinstance(value, Mapping):
        return "struct"
    return None


def read_value(text: str, kind: Type) -> Any:
    """Parse text as a cast of Spark does; raise ValueError if the text is not of this type."""
    word = text.strip()
    if kind == "string":
        return text
    if kind == "boolean":
        return _read_boolean(word)
    if kind == "integer":
        return _read_integer(word)
    if kind == "double":
        return _read_double(word)
    if kind == "decimal":
        return normalise(read_decimal(word))
    if kind == "date":
        return _read_date(word)
    if kind == "timestamp":
        return _read_timestamp(word)
    raise ValueError(f"a {kind} can't be parsed from text")


def _read_boolean(word: str) -> bool:
    low = word.lower()
    if low in ("true", "t", "yes", "y", "1"):
        return True
    if low in ("false", "f", "no", "n", "0"):
        return False
    raise ValueError(f"'{word}' is not a boolean")


def _read_integer(word: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,19}", word, re.ASCII):
        raise ValueError(f"'{word}' is not an integer")
    number = int(word)
    if not INT_MIN <= number <= INT_MAX:
        raise ValueError(f"'{word}' does not fit in 64 bits")
    return number


def _read_double(word: str) -> float:
    special = _SPECIAL.get(word.lower())
    if special is not None:
        return special
    if len(word) > 400 or not re.fullmatch(
        r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[dDfF]?", word, re.ASCII
    ):
        raise ValueError(f"'{word[:40]}' is not a number")
    return float(word.rstrip("dDfF"))


def _read_date(word: str) -> dt.date:
    """Parse the date at the start of a text, and ignore a time and an offset after it."""
    found = _DATE.match(word)
    rest = word[found.end() :] if found else ""
    if not found or (rest and (rest[0] not in " T" or not found.group(3))):
        raise ValueError(f"'{word[:40]}' is not a date or timestamp")
    year, month, day = (int(part or 1) for part in found.groups())
    return dt.date(year, month, day)


def _read_timestamp(word: str) -> dt.datetime:
    """Parse ISO 8601 as leniently as Spark: it allows one-digit fields, a space instead of the T,
    and an offset."""
    found = _DATE.match(word)
    if not found:
        raise ValueError(f"'{word[:40]}' is not a date or timestamp")
    year, month, day = (int(part or 1) for part in found.groups())
    rest = word[found.end() :]
    moment = dt.datetime(year, month, day, tzinfo=dt.UTC)
    if not rest:
        return moment
    clock = _TIME.fullmatch(rest[1:]) if rest[0] in " T" and found.group(3) else None
    if not clock:
        raise ValueError(f"'{word[:40]}' is not a date or timestamp")
    hour, minute, second, fraction, *zone = clock.groups()
    micro = int(((fraction or "") + "000000")[:6])
    sign, hours, minutes = zone[:3] if zone[0] else zone[3:]  # +1:30, or +0130
    offset = dt.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    if int(minutes or 0) > 59:
        raise ValueError(f"the offset of '{word[:40]}' has more than 59 minutes")
    if offset > dt.timedelta(hours=18):
        raise ValueError(f"the offset of '{word[:40]}' from UTC is more than 18 hours")
    if sign == "-":
        offset = -offset
    try:
        return (
            moment.replace(
                hour=int(hour), minute=int(minute or 0), second=int(second or 0), microsecond=micro
            )
            - offset
        )
    except OverflowError:
        raise ValueError(f"'{word}' is outside the years 1 to 9999") from None
