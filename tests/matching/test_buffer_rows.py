"""Which rows of a batch new filters may match, against the filters themselves, one by one."""

from __future__ import annotations

import datetime as dt
import math
import random
from typing import Any

import pyarrow as pa
from tests.repeats import draws

from tidings import parse
from tidings.matching.write_buffer import WriteBuffer

TESTS = ["{a} > 3", "{a} = 2", "{a} IN (1, 2, 7)", "{a} IS NULL", "{a} IS NOT NULL", "{a} <> 2",
         "{a} <=> NULL", "{a} = 'x'", "{a} IN ('y', 'longer than eight', '')", "{a} LIKE 'lo%'",
         "{a} BETWEEN 2 AND 9007199254740993", "coalesce({a}, 5) > 3", "{a}.x = 1", "{a} < -0.5",
         "{a} = 'NaN'", "{a} > 1.5 OR {a} = 'x'", "{a} = TRUE",
         "{a} = 1.00000000000000000000000000000000001"]  # fmt: skip
INTEGERS = [1, 2, 3, 7, -1, 9007199254740992, 9007199254740993, None]
DOUBLES = [1.0, 2.5, -0.0, math.inf, None]
STRINGS = ["x", "y", "", "longer than eight", "longer than ninety", None]
KINDS: list[tuple[list[Any], pa.DataType]] = [
    (INTEGERS, pa.int64()), (DOUBLES, pa.float64()), ([*DOUBLES, math.nan], pa.float64()),
    (STRINGS, pa.string()), (STRINGS, pa.large_string()), ([True, False, None], pa.bool_()),
    ([dt.date(2026, 1, 2), None], pa.date32()), ([None], pa.string()),
]  # fmt: skip


def random_filter(rng: random.Random, tests: list[str]) -> str:
    some = [rng.choice(tests).format(a=rng.choice("abcd")) for _ in range(rng.randrange(1, 4))]
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
