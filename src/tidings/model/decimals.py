"""The order of decimals among other numbers, and those decimals that equal no integer or double.

All numbers have places on one line, which orders them. Integers and decimals lie at their own
values. A double lies at the shortest decimal that parses back to it, which is what programs print:
0.1 lies at 0.1, not at 0.1000000000000000055. There is one exception: a double beyond ±2**53 whose
value is a 64-bit integer lies at that integer. Doubles are ordered as usual among themselves and
among integers. So

    the decimal 0.1 equals the number 0.1 of a filter, of JSON and of a column of doubles
    the decimal 0.1000000000000000001 is above all three, and below the next double

*Rejected:* comparing numbers as doubles, as Spark does. Two decimals could then both equal the same
double without being equal, and a set of numbers would no longer be a sequence of intervals.
Decimals of up to 15 digits compare with all doubles as they do in Spark.

`normalise_decimal` turns a decimal into the integer or double that equals it, if there is one. A
`LongDecimal` is a decimal that lies at the place of no integer and no double.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

_WHOLE = 2.0**53  # from here up, all doubles are whole numbers
_INTEGERS = 2.0**63
_INT_MAX = 2**63 - 1
_LARGEST, _SMALLEST = 308, -400  # a number with an exponent beyond these counts as infinite or zero
_LONGEST = 400  # a text longer than this is not parsed


class LongDecimal(Decimal):
    """A finite decimal, without trailing zeros, that equals no 64-bit integer and no double.

    In comparisons, a double counts as the decimal at whose place it lies.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return Decimal.__eq__(self, _place(other))

    def __ne__(self, other: object) -> bool:
        return not Decimal.__eq__(self, _place(other))

    def __lt__(self, other: Any) -> bool:
        return Decimal.__lt__(self, _place(other))

    def __le__(self, other: Any) -> bool:
        return Decimal.__le__(self, _place(other))

    def __gt__(self, other: Any) -> bool:
        return Decimal.__gt__(self, _place(other))

    def __ge__(self, other: Any) -> bool:
        return Decimal.__ge__(self, _place(other))

    __hash__ = Decimal.__hash__

    def __repr__(self) -> str:
        return str(self)


def _place(number: Any) -> Any:
    return place_of(number) if isinstance(number, float) else number


def place_of(number: float) -> Decimal:
    """The decimal at whose place a double lies. NaN and infinities stay as they are."""
    if -_WHOLE < number < _WHOLE or not -_INTEGERS <= number < _INTEGERS:
        return Decimal(repr(number))
    return Decimal(number)


def exact_value(number: Any) -> Decimal:
    """The decimal at the place of a finite number."""
    return place_of(number) if isinstance(number, float) else Decimal(number)


def normalise_decimal(value: Decimal) -> int | float | LongDecimal:
    """The integer or double that lies at the same place as the decimal, or a LongDecimal if there
    is no such number."""
    if not value.is_finite():
        return math.nan if value.is_nan() else float(value)
    if value.adjusted() > _LARGEST:
        return math.copysign(math.inf, value)
    if value.adjusted() < _SMALLEST:
        return 0.0
    if value == value.to_integral_value() and value.copy_abs() <= _INT_MAX + 1:
        whole = int(value)
        if whole <= _INT_MAX:
            return whole
    nearest = float(value)
    if math.isfinite(nearest) and place_of(nearest) == value:
        return nearest
    return _without_zeros(value)


def _without_zeros(value: Decimal) -> LongDecimal:
    """The same number without trailing zeros. `Decimal.normalize` would round the number to 28
    digits."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    end = len(digits)
    while end > 1 and digits[end - 1] == 0:
        end -= 1
    return LongDecimal((sign, digits[:end], exponent + len(digits) - end))


def count_digits(value: Decimal) -> int:
    """The number of significant digits in a decimal."""
    return len(value.as_tuple().digits)


def fits_decimal(value: int | float | Decimal, precision: int, scale: int) -> bool:
    """Whether decimal(precision, scale) can represent the number exactly."""
    exact = exact_value(value)
    if not exact.is_finite():
        return False
    _, digits, exponent = _without_zeros(exact).as_tuple()
    assert isinstance(exponent, int)
    if digits == (0,):
        return True
    return -exponent <= scale and len(digits) + exponent <= precision - scale


def read_decimal(text: str) -> Decimal:
    """Parse a decimal as a cast of Spark does; raise ValueError if the text is not a decimal."""
    word = text.strip()
    if len(word) > _LONGEST or not word.isascii() or "_" in word:
        raise ValueError(f"'{word[:40]}' is not a decimal")
    try:
        found = Decimal(word)
    except ArithmeticError:
        raise ValueError(f"'{word[:40]}' is not a decimal") from None
    if not found.is_finite() or not _SMALLEST < found.adjusted() < _LARGEST:
        raise ValueError(f"'{word[:40]}' is not a decimal")
    return found
