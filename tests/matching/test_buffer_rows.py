"""Which rows of a batch new filters may match, against the filters themselves, one by one."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import random
from typing import Any

import pyarrow as pa
import pytest
from tests.repeats import draws

from tidings import parse
from tidings.filters.canonical import Form
from tidings.matching.buffer_rows import MOST_IN_ALL, MOST_INTERVALS, MOST_REMOVED, BufferRows
from tidings.matching.write_buffer import WriteBuffer

TESTS = ["{a} > 3", "{a} = 2", "{a} IN (1, 2, 7)", "{a} IS NULL", "{a} IS NOT NULL", "{a} <> 2",
         "{a} <=> NULL", "{a} = 'x'", "{a} IN ('y', 'longer than eight', '')", "{a} LIKE 'lo%'",
         "{a} BETWEEN 2 AND 9007199254740993", "coalesce({a}, 5) > 3", "{a}.x = 1", "{a} < -0.5",
         "{a} = 'NaN'", "{a} > 1.5 OR {a} = 'x'", "{a} = TRUE", "{a} = FALSE", "{a} <> ''",
         "{a} > 'longer than f'", "{a} < 'y'", "{a} LIKE 'longer than n%'", "{a} > 'é'",
         "{a} > DATE '2026-01-02'", "{a} = DATE '2026-01-02'", "{a} <> DATE '2026-01-02'",
         "{a} <= TIMESTAMP '2026-01-02 03:04:05.678901'", "{a} > 3 OR {a} = ''",
         "{a} = 1.00000000000000000000000000000000001"]  # fmt: skip
INTEGERS = [1, 2, 3, 7, -1, 9007199254740992, 9007199254740993, None]
DOUBLES = [1.0, 2.5, -0.0, math.inf, None]
STRINGS = [
    "x",
    "y",
    "",
    "longer than eight",
    "longer than ninety",
    "é",
    "è\0",
    "longe\U0001f600",
    None,
]
MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, dt.UTC)
MOMENTS = [MOMENT, MOMENT + dt.timedelta(microseconds=1), dt.datetime(2026, 1, 2, tzinfo=dt.UTC)]
DATES = [dt.date(2026, 1, 2), dt.date(1026, 1, 2), dt.date(2030, 5, 6), None]
KINDS: list[tuple[list[Any], pa.DataType]] = [
    (INTEGERS, pa.int64()), (DOUBLES, pa.float64()), ([*DOUBLES, math.nan], pa.float64()),
    (STRINGS, pa.string()), (STRINGS, pa.large_string()), ([True, False, None], pa.bool_()),
    (DATES, pa.date32()), ([*MOMENTS, None], pa.timestamp("us", "UTC")), ([None], pa.string()),
    ([one.replace(tzinfo=None) for one in MOMENTS], pa.timestamp("us")),
    (MOMENTS[2:], pa.timestamp("ns", "UTC")),
]  # fmt: skip


def random_filter(rng: random.Random, tests: list[str]) -> str:
    count = rng.choice([1, 1, 2, 2, 3, 3, 8])
    some = [rng.choice(tests).format(a=rng.choice("abcd")) for _ in range(count)]
    if count == 8:  # many boxes
        return " OR ".join(f"{one} AND {two}" for one, two in itertools.pairwise(some))
    return f" {rng.choice(['AND', 'AND', 'OR'])} ".join(some)


def random_batch(rng: random.Random) -> pa.RecordBatch:
    rows, arrays = rng.randrange(1, 30), {}
    for name in rng.sample("abcde", rng.randrange(1, 5)):
        values, kind = rng.choice(KINDS)
        whole = pa.array([rng.choice(values) for _ in range(rows + 5)], kind)
        arrays[name] = whole.slice(rng.randrange(6), rows)
    return pa.RecordBatch.from_pydict(arrays)


def test_no_row_is_left_out(seed: int) -> None:
    rng, matched, last = random.Random(seed), 0, 100
    for _ in draws(150, lambda: matched > 3000):
        tests = rng.sample(TESTS, rng.randrange(2, 8))
        forms = {at: parse(random_filter(rng, tests)).form for at in range(rng.randrange(1, 15))}
        buffer = WriteBuffer()
        for at, form in forms.items():
            buffer.add(at, form)
        for _ in range(3):
            batch = random_batch(rng)
            marked = buffer.find_rows(batch)
            assert len(marked) == batch.num_rows
            for row, event in enumerate(batch.to_pylist()):
                # a null in a batch may represent an absent value
                there = {name: value for name, value in event.items() if value is not None}
                found = [at for at, one in forms.items() if one.holds(event) or one.holds(there)]
                assert marked[row] or not found, (event, found)
                matched += len(found)
            gone = rng.choice([*forms, -1])
            buffer.discard(gone)
            forms.pop(gone, None)
            last += 1
            forms[last] = parse(random_filter(rng, tests)).form
            buffer.add(last, forms[last])


def test_rows_that_match_no_filter_are_rejected() -> None:
    """Each row has a value that some filter tests, but matches no filter."""
    buffer = WriteBuffer()
    for at in range(200):
        buffer.add(at, parse(f"a = 'v{at % 5}' AND n BETWEEN {at} AND {at + 3} AND m = 7").form)
    rows = range(400)
    batch = pa.RecordBatch.from_pydict(
        {"a": [f"v{row % 5}" for row in rows], "n": [*rows], "m": [7 * (row == 17) for row in rows]}
    )
    assert buffer.find_rows(batch).nonzero()[0].tolist() == [17]
    assert not buffer.find_rows(batch.select(["a", "n"])).any()  # `m` is absent


@pytest.mark.parametrize(
    "text",
    [
        "s IN (" + ", ".join(f"'v{at}'" for at in range(17)) + ")",
        "s IN (" + ", ".join(f"'v{at}'" for at in range(170)) + ")",
        "s LIKE 'v%'", "s > 'w'", "s = ''", "d > DATE '2030-01-01'", "b = TRUE", "n < 0 OR n > 9",
        "t >= TIMESTAMP '2026-01-02 03:04:05.7'",
    ],
)  # fmt: skip
def test_each_kind_of_test_rejects_rows(text: str) -> None:
    rows = 1000
    batch = pa.RecordBatch.from_pydict(
        {
            "s": [f"a{at}" for at in range(rows)],
            "d": pa.array([dt.date(2026, 1, 1)] * rows),
            "b": pa.array([False] * rows),
            "n": pa.array([5] * rows),
            "t": pa.array([MOMENT] * rows, pa.timestamp("us", "UTC")),
        }
    )
    buffer = WriteBuffer()
    buffer.add(0, parse(text).form)
    assert not buffer.find_rows(batch).any()


def test_filters_with_many_boxes_are_not_compared_with_each_row() -> None:
    """Of such a filter, only the hull is. Filters beyond the most intervals are found by the values
    of one attribute."""
    rows, most = BufferRows(), MOST_IN_ALL // 8
    assert rows.add(0, _form_of_boxes(400, 9000))
    assert rows.size <= 2 * MOST_INTERVALS[0]
    rows.discard(0)
    assert all(rows.add(at, _form_of_boxes(4, 4 * at)) for at in range(most))
    more = _form_of_boxes(4, 5000)
    assert not rows.add(-1, more)
    rows.discard(7)
    assert rows.add(-1, more)

    buffer = WriteBuffer()
    buffer.add(0, _form_of_boxes(60, 9000))
    for at in range(most + 10):
        buffer.add(at + 1, _form_of_boxes(4, 4 * at))
    values = [9000, 9059, 9060, 4 * (most + 9), 4 * (most + 10)]
    batch = pa.RecordBatch.from_pydict({"a": values, "b": [7, 66, 7, 7, 7]})
    assert buffer.find_rows(batch).tolist() == [True, True, False, True, False]


def test_many_boxes_reject_rows() -> None:
    buffer = WriteBuffer()
    for at in range(500):
        each = (f"(a > {2000 + at} AND b = 'y{at + one}')" for one in range(60))
        buffer.add(at, parse(" OR ".join(each)).form)
    batch = pa.RecordBatch.from_pydict({"a": [*range(1000, 3000)], "b": ["y5"] * 2000})
    assert buffer.find_rows(batch).nonzero()[0].tolist() == [*range(1000, 2000)]


def test_boxes_of_removed_filters_do_not_pile_up() -> None:
    buffer, batch = WriteBuffer(), pa.RecordBatch.from_pydict({"a": [5, 6], "b": [7, 7]})
    buffer.add(0, _form_of_boxes(1, 6))
    for at in range(1, 1000):
        buffer.add(at, _form_of_boxes(4, 5))
        assert buffer.find_rows(batch).tolist() == [True, True]
        buffer.discard(at)
        assert buffer._rows.size <= 2 + 8 + MOST_REMOVED
    for at in range(1, MOST_REMOVED):
        buffer.add(at, _form_of_boxes(2, 8))
        buffer.find_rows(batch)
        buffer.discard(at)
    assert buffer.find_rows(batch).tolist() == [False, True]


def _form_of_boxes(count: int, first: int) -> Form:
    """A filter of so many boxes."""
    return parse(" OR ".join(f"a = {first + at} AND b = {7 + at}" for at in range(count))).form


def test_an_interval_of_numbers_and_of_a_string() -> None:
    """Nothing lies between the numbers and the empty string, so these are one interval."""
    buffer = WriteBuffer()
    buffer.add(0, parse("a > 3 OR a = ''").form)
    buffer.add(1, parse("b = TRUE OR b < 3").form)
    batch = pa.RecordBatch.from_pydict({"a": ["", "x"], "b": [4, 5]})
    assert buffer.find_rows(batch).tolist()[0]
    batch = pa.RecordBatch.from_pydict({"a": [3, 4, 3, 3], "b": [3, 3, 2, 4]})
    assert buffer.find_rows(batch).tolist()[1:3] == [True, True]


def test_sets_of_many_values() -> None:
    buffer = WriteBuffer()
    some = ", ".join(f"'v{at}'" for at in range(0, 60, 2))
    buffer.add(0, parse(f"a IN ({some}) AND n IN (1, 5)").form)
    batch = pa.RecordBatch.from_pydict({"a": ["v2", "v2", "v4", None], "n": [1, 3, 5, 5]})
    assert buffer.find_rows(batch).tolist() == [True, False, True, False]
