"""Batches in types that Arrow has several of: they match as the same values in a mapping do."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from tidings import Attributes
from tidings.matching import Matcher

LATE = dt.datetime(9999, 12, 31, 23, 59, tzinfo=dt.UTC)


def same(matcher: Matcher, column: Any, values: list[Any]) -> list[Any]:
    """What a batch of one column `x` matches, after a comparison with single matches."""
    batch = pa.RecordBatch.from_arrays([column], ["x"])
    found: list[Any] = matcher.match_batch(batch).to_pylist()
    assert found == [matcher.match({"x": value}) for value in values]
    return found


@pytest.mark.parametrize("text", ["lower(x) = ''", "x = ''", "x LIKE '%a%b%'", "x IS NULL"])
@pytest.mark.parametrize("inner", [False, True], ids=["column", "field"])
@pytest.mark.usefixtures("engine")
def test_views_of_strings(text: str, inner: bool) -> None:
    values = ["", None, "aab", "ba"]
    column = pa.array(values, pa.string_view())
    matcher = Matcher()
    if not inner:
        matcher.add("a", text)
        same(matcher, column, values)
        return
    matcher.add("a", text.replace("x", "x.y"))
    struct = pa.StructArray.from_arrays([column], ["y"], mask=pa.array([False] * 3 + [True]))
    same(matcher, struct, [*({"y": value} for value in values[:3]), None])


@pytest.mark.usefixtures("engine")
def test_a_declared_date_in_a_view_of_strings() -> None:
    matcher = Matcher(Attributes({"x": "date"}))
    matcher.add("a", "x > '2024-01-01'")
    values = ["2024-02-01", None, "2023-02-01"]
    assert same(matcher, pa.array(values, pa.string_view()), values) == [["a"], [], []]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.string()), pa.large_list(pa.string()), pa.list_(pa.string(), 2),
        pa.list_view(pa.string()), pa.large_list_view(pa.string()), pa.list_(pa.string_view()),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.usefixtures("engine")
def test_lists_in_every_layout(kind: Any) -> None:
    matcher = Matcher()
    matcher.add("a", "array_contains(x, 'a')")
    matcher.add("not a", "NOT array_contains(x, 'a')")
    values = [["a", "b"], None, ["b", "c"], ["b", None]]
    assert same(matcher, pa.array(values, kind), values) == [["a"], [], ["not a"], []]


@pytest.mark.parametrize("zone", ["UTC", "+02:00", "America/New_York"])
@pytest.mark.usefixtures("engine")
def test_the_last_day_in_every_zone(zone: str) -> None:
    matcher = Matcher()
    matcher.add("last", "year(x) = 9999 AND dayofweek(x) = 6")
    matcher.add("compared", "x > y OR x IS NOT NULL")
    assert same(matcher, pa.array([LATE, None], pa.timestamp("us", zone)), [LATE, None])[1] == []


@pytest.mark.usefixtures("engine")
def test_nanoseconds_before_1970_are_cut_off_downwards() -> None:
    matcher = Matcher()
    matcher.add("before", "x < TIMESTAMP '1970-01-01'")
    matcher.add("second", "second(x) = 59")
    column = pa.array([-1, 0, 999, None], pa.timestamp("ns"))
    found = matcher.match_batch(pa.RecordBatch.from_arrays([column], ["x"])).to_pylist()
    assert [sorted(ids) for ids in found] == [["before", "second"], [], [], []]
