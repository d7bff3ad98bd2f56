"""Types, and reading text as one of them."""

from __future__ import annotations

import datetime as dt
import math
import re
from types import MappingProxyType
from typing import Any

import pytest
from tests.model.moments import utc

from tidings.model import TYPES, LongDecimal, Type, read_value, type_of

NAN, INF = math.nan, math.inf


DAY = utc(2024, 2, 29)

GOOD: list[tuple[Type, str, Any]] = [
    ("string", "a", "a"),
    ("string", " a ", " a "),
    ("string", "", ""),
    *(("boolean", text, True) for text in ("true", "T", "yes", "Y", "1", " TRUE ")),
    *(("boolean", text, False) for text in ("false", "F", "no", "N", "0", "False\n")),
    ("integer", "0", 0),
    ("integer", " -7 ", -7),
    ("integer", "+7", 7),
    ("integer", "007", 7),
    ("integer", "9223372036854775807", 2**63 - 1),
    ("integer", "-9223372036854775808", -(2**63)),
    ("double", "1", 1.0),
    ("double", "-1.5", -1.5),
    ("double", "1.", 1.0),
    ("double", "+.5", 0.5),
    ("double", "2E-3", 0.002),
    ("double", "1.5d", 1.5),
    ("double", "1F", 1.0),
    ("double", "-0.0", -0.0),
    ("double", "1e400", INF),
    ("double", "nan", NAN),
    ("double", "NaN", NAN),
    ("double", "Infinity", INF),
    ("double", "+INF", INF),
    ("double", "inf", INF),
    ("double", "-Infinity", -INF),
    ("double", " -inf ", -INF),
    *(
        ("decimal", text, LongDecimal("0.12345678901234567"))
        for text in ("0.12345678901234567", " +0.1234567890123456700 ", "12345678901234567E-17")
    ),
    ("date", "2024-02-29", dt.date(2024, 2, 29)),
    ("date", "2024-2-9", dt.date(2024, 2, 9)),
    ("date", "2024-02", dt.date(2024, 2, 1)),
    ("date", "2024", dt.date(2024, 1, 1)),
    ("date", " 0001-01-01 ", dt.date(1, 1, 1)),
    ("date", "9999-12-31", dt.date(9999, 12, 31)),
    ("date", "2024-02-29 23:59:59", dt.date(2024, 2, 29)),
    ("timestamp", "2024", utc(2024, 1, 1)),
    ("timestamp", "2024-02-29", DAY),
    ("timestamp", "2024-02-29 10", utc(2024, 2, 29, 10)),
    ("timestamp", "2024-02-29 10:30", utc(2024, 2, 29, 10, 30)),
    ("timestamp", "2024-02-29T1:2:3", utc(2024, 2, 29, 1, 2, 3)),
    ("timestamp", "2024-02-29 10:30:05.5", utc(2024, 2, 29, 10, 30, 5, 500_000)),
    ("timestamp", "2024-02-29 10:30:05.123456789", utc(2024, 2, 29, 10, 30, 5, 123_456)),
    ("timestamp", "2024-02-29 10:30:05.", utc(2024, 2, 29, 10, 30, 5)),
    ("timestamp", "2024-02-29T10:30Z", utc(2024, 2, 29, 10, 30)),
    ("timestamp", "2024-02-29 10:30 UTC", utc(2024, 2, 29, 10, 30)),
    ("timestamp", "2024-02-29 10:30+02:00", utc(2024, 2, 29, 8, 30)),
    ("timestamp", "2024-02-29 10:30:00-0530", utc(2024, 2, 29, 16, 0)),
    ("timestamp", "2024-02-29 10:30+2:00", utc(2024, 2, 29, 8, 30)),
    ("timestamp", "2024-03-01 01:00+02:00", utc(2024, 2, 29, 23)),
]


@pytest.mark.parametrize(("kind", "text", "expected"), GOOD)
def test_text_that_is_read(kind: Type, text: str, expected: Any) -> None:
    found = read_value(text, kind)
    assert repr(found) == repr(expected)  # tells -0.0 from 0.0, and NaN is itself
    assert type_of(found) == kind


BAD: list[tuple[Type, str]] = [
    *(("boolean", text) for text in ("", "on", "2", "tru", "null", "1.0")),
    *(("integer", text) for text in ("", "a", "1.0", "1e3", "0x1F", "1_000", "--1", "1 2", "٣")),
    ("integer", "9223372036854775808"),
    ("integer", "-9223372036854775809"),
    *(("double", text) for text in ("", ".", "e5", "1e", "1,5", "1.5dd", "0x1p3", "1_0", "٣")),
    ("double", "1" * 401),
    *(("date", text) for text in ("", "today", "24-02-01", "2024-13-01", "2024-02-30", "20240201")),
    *(("date", text) for text in ("0000-01-01", "12024-01-01", "2024-02-29x", "2024-", "٢٠٢٤")),
    ("timestamp", "2024-02-29T"),
    ("timestamp", "2024-02 10:30"),  # a time needs a whole day
    ("timestamp", "2024-02-29 24:00"),
    ("timestamp", "2024-02-29 10:60"),
    ("timestamp", "2024-02-29 10:30:61"),
    ("timestamp", "2024-02-29 10:30.5"),
    ("timestamp", "2024-02-29 10:30 CET"),
    ("timestamp", "2024-02-29_10:30"),
    ("timestamp", "0001-01-01 00:00+01:00"),  # that is the year 0 in UTC
    ("timestamp", "9999-12-31 23:59-01:00"),
    *(("decimal", text) for text in ("", ".", "nan", "inf", "1_0", "1e999", "٣", "1" * 401, "a")),
    ("list", "[1]"),
    ("struct", "{}"),
    ("map", "{}"),
]


@pytest.mark.parametrize(("kind", "text"), BAD)
def test_text_that_is_refused(kind: Type, text: str) -> None:
    with pytest.raises(ValueError, match=r"\w+ .*\w"):
        read_value(text, kind)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-29 10:30+01:60", "of '2024-02-29 10:30+01:60' has more than 59 minutes"),
        ("2024-02-29 10:30-18:01", "of '2024-02-29 10:30-18:01' from UTC is more than 18 hours"),
    ],
)
def test_offsets_that_are_refused(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        read_value(text, "timestamp")


def test_every_type_is_read_or_refused_above() -> None:
    assert {kind for kind, *_ in (*GOOD, *BAD)} == set(TYPES)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "boolean"),
        (1, "integer"),
        (1.0, "double"),
        (LongDecimal("0.12345678901234567"), "decimal"),
        (NAN, "double"),
        ("", "string"),
        (dt.date(2024, 1, 1), "date"),
        (DAY, "timestamp"),
        ([], "list"),
        ((1,), "list"),
        ({}, "struct"),
        (MappingProxyType({"a": 1}), "struct"),
        (None, None),
        (b"a", None),
        ({1}, None),
        (1j, None),
        (dt.time(1), None),
    ],
)
def test_type_of(value: Any, kind: Type | None) -> None:
    assert type_of(value) == kind
