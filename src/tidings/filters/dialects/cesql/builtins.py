"""The functions of CloudEvents SQL: names, parameters, results and bodies.

The body of a function gets values that have the types of the function's parameters. The body of a
function returns a value or a Failure, which consists of an error and the value that the
specification prescribes for that error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tidings.filters.dialects.cesql.cesql_values import (
    INT_MAX,
    CastError,
    Kind,
    fits,
    to_boolean,
    to_integer,
)
from tidings.filters.dialects.cesql.syntax import Scalar
from tidings.filters.language.functions import MOST_TEXT

# white space as Unicode defines it; Python's strip would also remove U+001C to U+001F
_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


class Failure(NamedTuple):
    value: Scalar
    error: str


class Builtin(msgspec.Struct, frozen=True):
    takes: tuple[Kind | None, ...]  # None: any type; further arguments have the last type
    returns: Kind
    body: Callable[..., Any]
    least: int
    most: int | None  # None: any number

    def accepts(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)

    def parameter(self, place: int) -> Kind | None:
        return self.takes[min(place, len(self.takes) - 1)]


def _concat(*texts: str) -> str | Failure:
    return _join("", *texts)


def _join(between: str, *texts: str) -> str | Failure:
    size = sum(map(len, texts)) + len(between) * max(0, len(texts) - 1)
    return between.join(texts) if size <= MOST_TEXT else Failure("", "functionEvaluation")


def _left(text: str, count: int) -> str | Failure:
    return text[:count] if count >= 0 else Failure(text, "functionEvaluation")


def _right(text: str, count: int) -> str | Failure:
    if count < 0:
        return Failure(text, "functionEvaluation")
    return text[max(0, len(text) - count) :]


def _substring(text: str, start: int, size: int = INT_MAX) -> str | Failure:
    if not -len(text) <= start <= len(text) or size < 0:
        return Failure("", "functionEvaluation")
    if start == 0:
        return ""
    first = start - 1 if start > 0 else len(text) + start
    return text[first : first + size]


def _absolute(value: int) -> int | Failure:
    return abs(value) if fits(abs(value)) else Failure(INT_MAX, "math")


def _can(cast: Callable[[Scalar], Scalar]) -> Callable[[Scalar], bool]:
    def body(value: Scalar) -> bool:
        try:
            cast(value)
        except CastError:
            return False
        return True

    return body


def _same(value: Scalar) -> Scalar:
    return value


BUILTINS: dict[str, Builtin] = {
    "LENGTH": Builtin(("string",), "integer", len, 1, 1),
    "CONCAT": Builtin(("string",), "string", _concat, 0, None),
    "CONCAT_WS": Builtin(("string",), "string", _join, 1, None),
    "LOWER": Builtin(("string",), "string", str.lower, 1, 1),
    "UPPER": Builtin(("string",), "string", str.upper, 1, 1),
    "TRIM": Builtin(("string",), "string", lambda s: s.strip(_SPACE), 1, 1),
    "LEFT": Builtin(("string", "integer"), "string", _left, 2, 2),
    "RIGHT": Builtin(("string", "integer"), "string", _right, 2, 2),
    "SUBSTRING": Builtin(("string", "integer", "integer"), "string", _substring, 2, 3),
    "ABS": Builtin(("integer",), "integer", _absolute, 1, 1),
    "INT": Builtin(("integer",), "integer", _same, 1, 1),
    "BOOL": Builtin(("boolean",), "boolean", _same, 1, 1),
    "STRING": Builtin(("string",), "string", _same, 1, 1),
    "IS_INT": Builtin((None,), "boolean", _can(to_integer), 1, 1),
    "IS_BOOL": Builtin((None,), "boolean", _can(to_boolean), 1, 1),
}
