"""Functions of the filter language on columns, where Arrow computes exactly the same result.

The reference is filters/language/functions.py. Nulls need no special treatment: Arrow's functions
return null for null. Where a function can't give the same result, it raises NotColumnar, or Arrow
raises ArrowInvalid.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidings.filters.language import MOST_TEXT
from tidings.filters.values import like, regular
from tidings.model import INT_MAX

TEXT, WHOLE, DOUBLE, TRUTH, NOTHING = (
    pa.large_string(), pa.int64(), pa.float64(), pa.bool_(), pa.null(),
)  # fmt: skip
LONGEST_LIKE = 256  # in characters; longer patterns are left to Python, which is not slower
# A column of joined strings has at most this many bytes, or this many for each row if that is more.
MOST_JOINED, JOINED_EACH = 4_000_000, 1_000
_EXACT = 2**53  # up to this number, a double represents every integer exactly


class NotColumnar(Exception):
    """Arrow can't compute this expression, or can't compute it for these values."""


def as_double(value: Any, *, exact: bool = False) -> Any:
    """Convert numbers to the nearest doubles; with `exact`, raise NotColumnar unless doubles
    represent all of them exactly."""
    if value.type == DOUBLE:
        return value
    if exact:
        ends = pc.min_max(value) if isinstance(value, pa.Array) else {"min": value, "max": value}
        low, high = ends["min"].as_py(), ends["max"].as_py()
        if low is not None and (low < -_EXACT or high > _EXACT):
            raise NotColumnar
    return pc.cast(value, DOUBLE, safe=False)


# -- numbers -----------------------------------------------------------------------------------


def _arithmetic(whole: Callable[..., Any], floating: Callable[..., Any]) -> Callable[..., Any]:
    def body(left: Any, right: Any) -> Any:
        if left.type == right.type == WHOLE:
            return whole(left, right)
        return floating(as_double(left), as_double(right))

    return body


def _without_zeros(value: Any) -> Any:
    return pc.if_else(pc.equal(value, 0), pa.scalar(None, value.type), value)


def _divide(left: Any, right: Any) -> Any:
    return pc.divide(as_double(left), _without_zeros(as_double(right)))


def _quotient(left: Any, right: Any) -> Any:
    return pc.divide_checked(left, _without_zeros(right))


def _remainder(left: Any, right: Any) -> Any:
    if left.type != WHOLE or right.type != WHOLE:
        raise NotColumnar  # Arrow has no remainder for doubles
    whole = pc.multiply_checked(_quotient(left, right), right)
    return pc.subtract_checked(left, whole)


def _round(down: Callable[..., Any]) -> Callable[..., Any]:
    def body(value: Any) -> Any:
        if value.type == WHOLE:
            return value
        found = down(value)
        fits = pc.and_(pc.greater_equal(found, -(2.0**63)), pc.less(found, 2.0**63))
        return pc.cast(pc.if_else(fits, found, pa.scalar(None, DOUBLE)), WHOLE)

    return body


# -- strings -----------------------------------------------------------------------------------


def _change_case(
    ascii_only: Callable[..., Any], change: Callable[[str], str]
) -> Callable[..., Any]:
    """Arrow changes the case of ASCII strings; for all other strings, Python does so, as in the
    reference."""

    def body(text: Any) -> Any:
        odd = pc.fill_null(pc.invert(pc.string_is_ascii(text)), False)
        if not pc.any(odd).as_py():
            return ascii_only(text)
        changed = [change(one) for one in text.filter(odd).to_pylist()]
        plain = ascii_only(pc.if_else(odd, pa.scalar("", TEXT), text))
        return pc.replace_with_mask(plain, odd, pa.array(changed, TEXT))

    return body


def _part(text: Any, start: Any, size: Any = None) -> Any:
    if isinstance(start, pa.Array) or isinstance(size, pa.Array):
        raise NotColumnar
    first, count = start.as_py(), INT_MAX if size is None else size.as_py()
    if count <= 0:
        return pc.if_else(pc.is_valid(text), pa.scalar("", TEXT), text)
    first = first - 1 if first > 0 else first
    last: int | None = first + count
    if last is not None and (last > _EXACT or first < 0 <= last):
        last = None
    return pc.utf8_slice_codeunits(text, start=max(first, -_EXACT), stop=last)


def _search(search: Callable[..., Any]) -> Callable[..., Any]:
    def body(text: Any, wanted: Any) -> Any:
        if isinstance(wanted, pa.Array) or not isinstance(text, pa.Array):
            raise NotColumnar
        return search(text, wanted.as_py())

    return body


def _like(text: Any, pattern: str) -> Any:
    compiled = like.compile_pattern(pattern)
    if compiled is None or len(pattern) > LONGEST_LIKE:
        raise NotColumnar
    written = like.expression_of(like.split(pattern))
    program = compiled.regular
    if program is None:
        return pc.match_substring_regex(text, written)
    return _find(text, written, program)


def _rlike(text: Any, pattern: str) -> Any:
    if not regular.columns_agree(pattern):
        raise NotColumnar
    return _find(text, pattern, regular.compile_pattern(pattern))


def _find(text: Any, pattern: str, compiled: regular.Regular) -> Any:
    """Search with Arrow's RE2. The result is null for strings that are too long, as in Python."""
    lengths = pc.binary_length(text)
    longest = pc.max(lengths).as_py()
    if longest is None or longest <= compiled.longest:
        return pc.match_substring_regex(text, pattern)
    fits = pc.less_equal(lengths, compiled.longest)
    shorter = pc.if_else(fits, text, pa.scalar(None, TEXT))
    return pc.match_substring_regex(shorter, pattern)


def _bytes_of(text: Any, count: int) -> int:
    """How many bytes the strings of a column have, or a constant in so many rows."""
    if isinstance(text, pa.Array):
        return pc.sum(pc.binary_length(text)).as_py() or 0
    return count * (pc.binary_length(text).as_py() or 0)


def _concatenate(*texts: Any) -> Any:
    size = reduce(pc.add, (pc.cast(pc.utf8_length(text), WHOLE) for text in texts))
    longest = pc.max(size).as_py() if isinstance(size, pa.Array) else size.as_py()
    if longest is not None and longest > MOST_TEXT:
        raise NotColumnar  # here the reference gives null, and such a long string must not be built
    if isinstance(size, pa.Array):
        # Arrow would join all of them before a work limit is checked again
        whole = sum(_bytes_of(text, len(size)) for text in texts)
        if whole > max(MOST_JOINED, JOINED_EACH * len(size)):
            raise NotColumnar
    return pc.binary_join_element_wise(*texts, pa.scalar("", TEXT), null_handling="emit_null")


_NUMBERS, _TEXTS, _WHOLES = (WHOLE, DOUBLE), (TEXT,), (WHOLE,)

# For each function, its body and, for each argument, the types that it may have. The last of these
# entries also applies to all further arguments.
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[Any, ...], ...]]] = {
    "+": (_arithmetic(pc.add_checked, pc.add), (_NUMBERS,)),
    "-": (_arithmetic(pc.subtract_checked, pc.subtract), (_NUMBERS,)),
    "*": (_arithmetic(pc.multiply_checked, pc.multiply), (_NUMBERS,)),
    "/": (_divide, (_NUMBERS,)),
    "%": (_remainder, (_NUMBERS,)),
    "div": (_quotient, (_WHOLES,)),
    "negative": (pc.negate_checked, (_NUMBERS,)),
    "abs": (pc.abs_checked, (_NUMBERS,)),
    "floor": (_round(pc.floor), (_NUMBERS,)),
    "ceil": (_round(pc.ceil), (_NUMBERS,)),
    "lower": (_change_case(pc.ascii_lower, str.lower), (_TEXTS,)),
    "upper": (_change_case(pc.ascii_upper, str.upper), (_TEXTS,)),
    "trim": (lambda text: pc.utf8_trim(text, " "), (_TEXTS,)),
    "reverse": (pc.utf8_reverse, (_TEXTS,)),
    "length": (lambda text: pc.cast(pc.utf8_length(text), WHOLE), (_TEXTS,)),
    "concat": (_concatenate, (_TEXTS,)),
    "substring": (_part, (_TEXTS, _WHOLES, _WHOLES)),
    "startswith": (_search(pc.starts_with), (_TEXTS,)),
    "endswith": (_search(pc.ends_with), (_TEXTS,)),
    "contains": (_search(pc.match_substring), (_TEXTS,)),
    "like": (_search(_like), (_TEXTS,)),
    "rlike": (_search(_rlike), (_TEXTS,)),
}
