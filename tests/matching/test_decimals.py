"""Columns of decimals: matched exactly, one by one and in batches, as fractions and Spark say."""

from __future__ import annotations

import operator
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidings import Attributes, Matcher, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt,
       ">=": operator.ge, "!=": operator.ne}  # fmt: skip
KINDS = [(4, 2), (18, 6), (19, 4), (38, 20), (38, 0), (60, 30)]


def _make(draws: random.Random, precision: int, scale: int) -> Decimal:
    digits = draws.choice([1, 3, precision // 2, precision]) or 1
    number = draws.randrange(10 ** min(digits, precision))
    return Decimal((draws.randint(0, 1), tuple(map(int, str(number))), -scale))


def _text(draws: random.Random, values: list[Decimal]) -> str:
    """A number of a filter: a value of the column, one close to it, or any other."""
    value = draws.choice(values)
    how = draws.random()
    if how < 0.5:
        return format(value, "f")
    if how < 0.8:
        sign, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        return format(Decimal((sign, (*digits, draws.randint(0, 9)), exponent - 1)), "f")
    return str(draws.randint(-50, 50))


@pytest.mark.parametrize(("precision", "scale"), KINDS)
@pytest.mark.usefixtures("engine")
def test_decimals_are_compared_as_fractions(seed: int, precision: int, scale: int) -> None:
    draws = random.Random(seed)
    values = [_make(draws, precision, scale) for _ in range(60)]
    kind = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    declared = Attributes({"x": f"decimal({precision}, {scale})"})
    tests = {}
    for number in range(120):
        op, text = draws.choice(list(OPS)), _text(draws, values)
        tests[number] = (op, text)
    matcher = Matcher(attributes=declared)
    for number, (op, text) in tests.items():
        matcher.add(number, f"x {op} {text}")
    batch = pa.record_batch({"x": pa.array([*values, None], kind)})
    found = matcher.match_batch(batch).to_pylist()
    for value, numbers in zip(values, found, strict=False):
        expected = {
            number
            for number, (op, text) in tests.items()
            if OPS[op](Fraction(value), Fraction(Decimal(text)))
        }
        assert set(numbers) == expected, value
        assert set(matcher.match({"x": value})) == expected, value
    assert found[-1] == []


@pytest.mark.usefixtures("engine")
def test_long_numbers_survive_a_snapshot(tmp_path: Path) -> None:
    matcher = Matcher()
    filters = {1: "x > 0.1234567890123456789", 2: "x = 123456789012345678901234567890 OR y = 1",
               3: "x IN (0.1, 0.10000000000000000001)"}  # fmt: skip
    for number, text in filters.items():
        matcher.add(number, text)
    matcher.save(tmp_path / "m")
    again = Matcher.open(tmp_path / "m")
    for text in ("0.1234567890123456789", "0.12345678901234567891", "0.1",
                 "123456789012345678901234567890", "0.10000000000000000001"):  # fmt: skip
        event = {"x": Decimal(text)}
        expected = sorted(number for number, one in filters.items() if parse(one).matches(event))
        assert sorted(again.match(event), key=str) == expected
        assert sorted(matcher.match(event), key=str) == expected
    one = parse(filters[1])
    assert parse(one.sql()).key == one.key
    assert one.key != parse("x > 0.12345678901234567891").key


SPARK_FILTERS = [
    "d = 0.1", "d > 0.1", "d >= 12.34", "d < 12", "d != 0.10", "d BETWEEN 0.1 AND 0.5",
    "d IN (0.1, 12.34, 99)", "l > 0.100000000000000000", "l = 0.100000000000000001",
    "l <= 0.1", "d > l", "d = f", "d < f", "l > i", "d <= i", "d IS NULL", "NOT d > 1",
    "array_contains(a, 0.10)", "s.p >= 0.5", "d = 1e-1", "l < 12345678901234567.5",
]  # fmt: skip


@pytest.mark.spark
def test_spark_is_the_judge(spark: SparkSession, seed: int) -> None:
    draws = random.Random(seed)
    rows: list[Any] = []
    for number in range(60):
        d = None if number % 9 == 0 else draws.choice(["0.10", "12.34", "99.00", "0.50", "-0.10"])
        long = draws.choice(["0.1", "0.100000000000000001", "0.099999999999999999", "12", "-3"])
        f = draws.choice([0.1, 12.34, 0.5, -0.1, 99.0, None])
        p = Decimal(draws.choice(["0.50", "0.49", "7.00"]))
        a = [Decimal(draws.choice(["0.10", "0.20"]))]
        rows.append(
            (number, d and Decimal(d), Decimal(long), f, draws.randint(-3, 99), a, {"p": p})
        )
    schema = ("n int, d decimal(10,2), l decimal(38,18), f double, i long, "
              "a array<decimal(10,2)>, s struct<p: decimal(10,2)>")  # fmt: skip
    df = spark.createDataFrame(rows, schema)
    matcher, declared = Matcher(), Matcher(attributes=Attributes.from_spark(df))
    for number, text in enumerate(SPARK_FILTERS):
        matcher.add(number, text)
        declared.add(number, text)
    table = df.toArrow().combine_chunks()
    expected: list[list[int]] = [[] for _ in rows]
    for number, text in enumerate(SPARK_FILTERS):
        for row in df.filter(text).select("n").collect():
            expected[row["n"]].append(number)
    for one in (matcher, declared):
        found = [sorted(numbers) for numbers in one.match_batch(table).to_pylist()]
        assert found == expected
        events = table.to_pylist()
        assert [set(one.match(event)) for event in events] == list(map(set, expected))
