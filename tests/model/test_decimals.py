"""Decimals on the line of numbers, against fractions; and what Spark's comparison would say."""

from __future__ import annotations

import math
import random
import struct
from decimal import Decimal
from fractions import Fraction

import pytest

from tidings.model import LongDecimal, compare, fits_decimal, normalise, place_of


def _draw_double(draws: random.Random) -> float:
    if draws.random() < 0.5:
        return round(draws.uniform(-1000, 1000), draws.randint(0, 15))
    value: float = struct.unpack("d", draws.randbytes(8))[0]
    return value if math.isfinite(value) else 0.5


def _draw_decimal(draws: random.Random, digits: int = 38) -> Decimal:
    whole = draws.randrange(10 ** draws.randint(1, digits))
    return Decimal((draws.randint(0, 1), tuple(map(int, str(whole))), -draws.randint(0, digits)))


def _near(draws: random.Random, number: float) -> Decimal:
    """A decimal close to a double, within its rounding interval or just outside."""
    exact = Fraction(number)
    step = Fraction(math.ulp(number)) * draws.choice([0, 1, -1]) / draws.choice([2, 3, 4, 1000])
    scaled = (exact + step) * 10**40
    whole = int(scaled)
    return Decimal((int(whole < 0), tuple(map(int, str(abs(whole)))), -40))


def _line(number: int | float | Decimal) -> Fraction:
    """Where a number lies, by the definition and not by the code."""
    if not isinstance(number, float):
        return Fraction(number)
    within = abs(number) >= 2**53 and -(2**63) <= number < 2**63
    return Fraction(number) if within else Fraction(repr(number))


def test_the_order_of_all_numbers(seed: int) -> None:
    draws = random.Random(seed)
    for _ in range(3000):
        double = _draw_double(draws)
        pool = [double, _draw_decimal(draws), _draw_decimal(draws, 15), draws.randint(-9, 9)]
        if 1e-20 < abs(double) < 1e25:
            pool += [_near(draws, double), Decimal(repr(double))]
        left, right = draws.choice(pool), draws.choice(pool)
        expected = (_line(left) > _line(right)) - (_line(left) < _line(right))
        assert compare(normalise(left), normalise(right)) == expected, (left, right)


def test_doubles_keep_their_order(seed: int) -> None:
    draws = random.Random(seed)
    for _ in range(3000):
        left = _draw_double(draws)
        right = math.nextafter(left, math.inf)
        assert place_of(left) < place_of(right)
        for number in (int(left), int(left) + 1):
            if abs(number) < 2**63:
                assert (place_of(left) < number) == (left < number)


def test_decimals_of_15_digits_compare_with_doubles_as_in_spark(seed: int) -> None:
    draws = random.Random(seed)
    for _ in range(3000):
        number = _draw_decimal(draws, 15)
        nearest = float(number)
        for double in (nearest, math.nextafter(nearest, 9e99), math.nextafter(nearest, -9e99)):
            as_doubles = (nearest > double) - (nearest < double)
            assert compare(normalise(number), double) == as_doubles, (number, double)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("5", int), ("5.00", int), ("9223372036854775807", int), ("-9223372036854775808", int),
        ("9223372036854775808", LongDecimal), ("0.1", float), ("123456.78", float),
        ("0.12345678901234567", LongDecimal), ("1e30", float), ("9007199254740993.5", LongDecimal),
    ],
)  # fmt: skip
def test_the_form_of_a_decimal(text: str, kind: type) -> None:
    assert type(normalise(Decimal(text))) is kind
    again = normalise(Decimal(text + ("0" if "." in text else "")))
    assert (again, hash(again), str(again)) == (
        normalise(Decimal(text)), hash(normalise(Decimal(text))), str(normalise(Decimal(text)))
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "precision", "scale", "fits"),
    [
        (Decimal("1.20"), 3, 2, True), (Decimal("1.2300"), 3, 2, True), (1.234, 5, 2, False),
        (100, 2, 0, False), (100, 3, 0, True), (0, 1, 1, True), (1, 1, 1, False),
        (0.1, 1, 1, True), (math.nan, 38, 2, False), (-99, 2, 0, True), (math.inf, 38, 2, False),
    ],
)  # fmt: skip
def test_what_a_decimal_type_holds(value: float, precision: int, scale: int, fits: bool) -> None:
    assert fits_decimal(value, precision, scale) is fits
