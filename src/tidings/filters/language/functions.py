"""The functions of the language: one table of names, arities, result types and bodies.

The body of a function gets plain values. Functions are *strict* by default: if any argument is
null, the body is not called, and the result is null. An argument of the wrong type, an integer
overflow and a division by zero also give null, and a test of a null value is unknown.
"""

from __future__ import annotations

import datetime as dt
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tidings.filters.values import casts, geography, inet, like, regular, sets, subjects
from tidings.filters.values.overlap import overlap
from tidings.filters.values.work_limit import WORTH, spend
from tidings.model import ABSENT, INT_MAX, INT_MIN, Type, compare, is_number, normalise

Body = Callable[..., Any]
MOST_TEXT = 1 << 20  # the most characters that concat returns


class Function(msgspec.Struct, frozen=True):
    name: str
    body: Body
    least: int
    most: int
    returns: Type | None  # None if the type depends on the arguments
    takes: tuple[str, ...] = ()  # the families of the arguments, for checks and messages
    strict: bool = True
    spark: bool = True  # whether Spark SQL has a function of this name
    any_type: bool = False  # whether the function is defined on values of every type, and on ABSENT


def _integer(value: int) -> int | None:
    return value if INT_MIN <= value <= INT_MAX else None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _arithmetic(whole: Body, floating: Body) -> Body:
    def body(left: Any, right: Any) -> Any:
        if not (is_number(left) and is_number(right)):
            return None
        if isinstance(left, int) and isinstance(right, int):
            result = whole(left, right)
            return result if result is None else _integer(result)
        try:
            return floating(float(left), float(right))
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return None

    return body


def _divide_whole(left: int, right: int) -> int | None:
    if right == 0:
        return None
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int | None:
    return None if right == 0 else int(math.copysign(1, left)) * (abs(left) % abs(right))


def _floating_remainder(left: float, right: float) -> float | None:
    if right == 0.0:
        return None
    if math.isnan(left) or math.isnan(right) or math.isinf(left):
        return math.nan
    return math.fmod(left, right)


def _divide(left: Any, right: Any) -> float | None:
    if not (is_number(left) and is_number(right)) or right == 0:
        return None
    return float(left) / float(right)


def _whole_division(left: Any, right: Any) -> int | None:
    if not (_is_whole(left) and _is_whole(right)):
        return None
    quotient = _divide_whole(left, right)
    return None if quotient is None else _integer(quotient)


def _negative(value: Any) -> Any:
    if not is_number(value):
        return None
    return _integer(-value) if isinstance(value, int) else -float(value)


def _abs(value: Any) -> Any:
    if not is_number(value):
        return None
    return _integer(abs(value)) if isinstance(value, int) else abs(float(value))


def _rounding(down: Callable[[float], int]) -> Body:
    def body(value: Any) -> int | None:
        if not is_number(value):
            return None
        if isinstance(value, int):
            return value
        return _integer(down(value)) if math.isfinite(value) else None

    return body


def _text(change: Callable[..., Any]) -> Body:
    """A function on strings; it returns null for other values."""

    def body(*values: Any) -> Any:
        size = 0
        for value in values:
            if not isinstance(value, str):
                return None
            size += len(value)
        if size >= WORTH:
            spend(size)
        return change(*values)

    return body


def _concat(*texts: str) -> str | None:
    """Return null if the result exceeds MOST_TEXT characters, because nested calls could otherwise
    grow it without limit."""
    return "".join(texts) if sum(map(len, texts)) <= MOST_TEXT else None


def _reverse(value: Any) -> Any:
    if not isinstance(value, (str, list)):
        return None
    spend(len(value))
    return value[::-1]


def _substring(text: Any, start: Any, size: Any = INT_MAX) -> str | None:
    """Positions count from 1; 0 counts as 1, and a negative start counts from the end."""
    if not (isinstance(text, str) and _is_whole(start) and _is_whole(size)):
        return None
    spend(len(text))
    first = start - 1 if start > 0 else (0 if start == 0 else len(text) + start)
    last = first + size
    return text[max(first, 0) : max(last, 0)]


def _date_part(read: Callable[[dt.datetime], int]) -> Body:
    def body(value: Any) -> int | None:
        if not isinstance(value, dt.date):
            return None
        if not isinstance(value, dt.datetime):
            value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
        elif value.tzinfo is not None:
            try:
                value = value.astimezone(dt.UTC)
            except OverflowError:  # in UTC, the year is before 1 or after 9999
                return None
        return read(value)

    return body


def _size(value: Any) -> int | None:
    return len(value) if isinstance(value, list) else None


def _get(values: Any, index: Any) -> Any:
    if not isinstance(values, list) or not _is_whole(index):
        return None
    return normalise(values[index]) if 0 <= index < len(values) else None


def _array_contains(values: Any, wanted: Any) -> bool | None:
    """True if the value is found; unknown if it is not found and some element is null or not
    comparable with it."""
    if not isinstance(values, list):
        return None
    spend(len(values))
    orders = [compare(normalise(v), wanted) for v in values]
    if 0 in orders:
        return True
    return None if None in orders else False


def _arrays_overlap(left: Any, right: Any) -> bool | None:
    if not (isinstance(left, list) and isinstance(right, list)):
        return None
    spend(len(left) + len(right))
    return overlap(left, right)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


def _coalesce(*values: Any) -> Any:
    return next((v for v in values if v is not None), None)


def _rlike(text: str, pattern: str) -> bool | None:
    try:
        return regular.compile_pattern(pattern).search(text)
    except regular.RegularError:
        return None  # can't happen: the parser accepts only literal patterns, and has checked them


def _like(text: str, pattern: str) -> bool | None:
    compiled = like.compile_pattern(pattern)
    return None if compiled is None else compiled.holds(text)


def _apply(body: Body, name: str, *values: Any) -> Any:
    try:
        return normalise(body(*values))
    except Exception as problem:  # an error in an application's function must not stop matching
        warnings.warn(
            f"the function '{name}' raised {type(problem).__name__}: {problem}; its result is null",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def _preorder(tree: Any, name: Any, _fingerprint: Any = None) -> int | None:
    found: int | None = tree.number(name)
    return found


def _named(_name: Any, condition: Any) -> bool | None:
    """The condition itself; as in every condition, a non-Boolean value counts as unknown."""
    return condition if condition is True or condition is False else None


def _foreign(program: Any, _text: str, *values: Any) -> Any:
    return program.value(values)


def flatten(values: list[Any]) -> list[Any]:
    """The elements of a list and of all lists nested in it, nulls included."""
    out: list[Any] = []
    spend(len(values))
    stack = [iter(values)]
    while stack:
        for value in stack[-1]:
            value = normalise(value)
            if isinstance(value, list):
                spend(len(value))
                stack.append(iter(value))
                break
            out.append(value)
        else:
            stack.pop()
    return out


def _leaves(value: Any) -> list[Any] | None:
    """The elements of a list and of the lists nested in it, except nulls and structs; null if the
    value is not a list."""
    if not isinstance(value, list):
        return None
    found = flatten(value)
    return [one for one in found if one is not None and not isinstance(one, Mapping)]


def _is_nested(value: Any) -> bool:
    return value is not None and sets.key(value)[0] == sets.OTHER


def _is_absent(value: Any) -> bool:
    return value is ABSENT


def _table() -> dict[str, Function]:
    number, text, time, many = ("number",), ("string",), ("time",), ("list",)
    rows = [
        Function("+", _arithmetic(int.__add__, float.__add__), 2, 2, None, number * 2),
        Function("-", _arithmetic(int.__sub__, float.__sub__), 2, 2, None, number * 2),
        Function("*", _arithmetic(int.__mul__, float.__mul__), 2, 2, None, number * 2),
        Function("/", _divide, 2, 2, "double", number * 2),
        Function("%", _arithmetic(_remainder, _floating_remainder), 2, 2, None, number * 2),
        Function("div", _whole_division, 2, 2, "integer", number * 2),
        Function("negative", _negative, 1, 1, None, number),
        Function("abs", _abs, 1, 1, None, number),
        Function("floor", _rounding(math.floor), 1, 1, "integer", number),
        Function("ceil", _rounding(math.ceil), 1, 1, "integer", number),
        Function("isnan", _is_nan, 1, 1, "boolean", number, strict=False),
        Function("lower", _text(str.lower), 1, 1, "string", text),
        Function("upper", _text(str.upper), 1, 1, "string", text),
        Function("trim", _text(lambda s: s.strip(" ")), 1, 1, "string", text),
        Function("concat", _text(_concat), 1, 64, "string", text * 64),
        Function("length", _text(len), 1, 1, "integer", text),
        Function("substring", _substring, 2, 3, "string", (*text, *number, *number)),
        Function("reverse", _reverse, 1, 1, None),
        Function("startswith", _text(str.startswith), 2, 2, "boolean", text * 2),
        Function("endswith", _text(str.endswith), 2, 2, "boolean", text * 2),
        Function("contains", _text(str.__contains__), 2, 2, "boolean", text * 2),
        Function("like", _text(_like), 2, 2, "boolean", text * 2),
        Function(
            "ilike", _text(lambda s, p: _like(s.lower(), p.lower())), 2, 2, "boolean", text * 2
        ),
        Function("rlike", _text(_rlike), 2, 2, "boolean", text * 2),
        Function("size", _size, 1, 1, "integer", many),
        Function("get", _get, 2, 2, None, (*many, *number)),
        Function("array_contains", _array_contains, 2, 2, "boolean", many),
        Function("arrays_overlap", _arrays_overlap, 2, 2, "boolean", many * 2),
        Function("isabsent", _is_absent, 1, 1, "boolean", strict=False, spark=False, any_type=True),
        Function("isnested", _is_nested, 1, 1, "boolean", strict=False, spark=False, any_type=True),
        Function("leaves", _leaves, 1, 1, "list", spark=False, any_type=True),
        Function("cast", casts.cast_value, 2, 2, None),
        Function("coalesce", _coalesce, 1, 64, None, strict=False),
        Function("year", _date_part(lambda t: t.year), 1, 1, "integer", time),
        Function("month", _date_part(lambda t: t.month), 1, 1, "integer", time),
        Function("day", _date_part(lambda t: t.day), 1, 1, "integer", time),
        Function("hour", _date_part(lambda t: t.hour), 1, 1, "integer", time),
        Function("minute", _date_part(lambda t: t.minute), 1, 1, "integer", time),
        Function("second", _date_part(lambda t: t.second), 1, 1, "integer", time),
        Function("dayofweek", _date_part(lambda t: t.isoweekday() % 7 + 1), 1, 1, "integer", time),
        # functions that SQL does not have: for addresses, places, subjects and topics
        Function("cidr", _text(inet.in_network), 2, 2, "boolean", text * 2, spark=False),
        Function("inet", _text(inet.address), 1, 1, "string", text, spark=False),
        Function("within_box", geography.within_box, 6, 6, "boolean", number * 6, False, False),
        Function("within_km", geography.within_km, 5, 5, "boolean", number * 5, spark=False),
        Function("subject_field", subjects.field, 2, 2, "string", (*text, *number), spark=False),
        Function("subject_length", subjects.length, 1, 1, "integer", text, spark=False),
        Function("subject_matches", subjects.matches, 2, 2, "boolean", text * 2, spark=False),
        Function("isa", subjects.isa, 2, 2, "boolean", text * 2, spark=False),
        Function("preorder", _preorder, 1, 2, "integer", text, spark=False),
        # a condition with a name (see named_parts.py)
        Function("named", _named, 2, 2, "boolean", strict=False, spark=False),
        # conditions of other dialects (see foreign.py) and functions of the application
        Function("foreign", _foreign, 1, 65, None, text, strict=False, spark=False, any_type=True),
        Function("apply", _apply, 0, 64, None, spark=False),
    ]
    return {row.name: row for row in rows}


FUNCTIONS = _table()
BOUND = frozenset({"isa", "preorder", "foreign", "apply"})
"""Functions whose implementation gets Call.bound as its first argument."""

ALIASES = {
    "mod": "%", "char_length": "length", "character_length": "length", "len": "length",
    "lcase": "lower", "ucase": "upper", "substr": "substring", "cardinality": "size",
    "dayofmonth": "day", "ceiling": "ceil", "regexp_like": "rlike", "regexp": "rlike",
}  # fmt: skip

OPERATORS = frozenset({"+", "-", "*", "/", "%", "div", "negative"})
