"""Workloads: what they promise, and that their forms agree."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tidings import parse
from tidings.model import EnvironmentProblem
from tidings.studies.workloads.conjunctions import BETWEEN, EQUAL, sql_of_tests
from tidings.studies.workloads.draws import BLOCK
from tidings.studies.workloads.workloads import RECIPES, Workload, make_workload

NAMES = sorted(RECIPES)
MANY = 40_000


@pytest.fixture(scope="module")
def mixed() -> Workload:
    return make_workload("mixed", MANY, MANY)


def test_names() -> None:
    assert NAMES == ["equality", "flights", "mixed", "prefix", "ranges"]


def test_a_name_that_is_not_known() -> None:
    with pytest.raises(EnvironmentProblem, match="no workload 'mixd', expected one of: equality"):
        make_workload("mixd", 1, 1)


@pytest.mark.parametrize(("filters", "events"), [(0, 1), (1, 0), (-1, 1)])
def test_an_empty_workload_is_refused(filters: int, events: int) -> None:
    with pytest.raises(EnvironmentProblem, match="at least one"):
        make_workload("equality", filters, events)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_and_a_smaller_one_is_the_start(name: str) -> None:
    small = make_workload(name, 50, 20, seed=3)
    large = make_workload(name, 80, 30, seed=3)
    assert list(small.texts()) == list(large.texts())[:50]
    assert small.event_lines() == large.event_lines()[:20]
    other = make_workload(name, 50, 20, seed=4)
    assert list(small.texts()) != list(other.texts())
    assert small.event_lines() != other.event_lines()


def test_more_than_a_block() -> None:
    count = BLOCK + 5
    workload = make_workload("equality", count, count)
    assert len(workload.filters) == workload.events.num_rows == count
    texts = dict(workload.texts())
    assert len(texts) == count
    assert list(texts) == list(range(count))
    assert [batch.num_rows for batch in workload.batches()] == [BLOCK, 5]
    assert [batch.num_rows for batch in workload.batches(50_000)] == [50_000, count - 50_000]
    assert texts[BLOCK] == sql_of_tests(workload.filters[BLOCK])


@pytest.mark.parametrize("name", NAMES)
def test_sql_json_and_arrow_agree(name: str, tmp_path: Path) -> None:
    workload = make_workload(name, 300, 40, seed=9)
    filters, events = workload.write(tmp_path)
    assert events.read_bytes().splitlines() == workload.event_lines()
    rows = workload.events.to_pylist()
    for row, line in zip(rows, workload.event_lines(), strict=True):
        assert json.loads(line) == {key: value for key, value in row.items() if value is not None}
    lines = [json.loads(line) for line in filters.read_bytes().splitlines()]
    assert [line["id"] for line in lines] == list(range(300))
    for (number, text), tests, line in zip(workload.texts(), workload.filters, lines, strict=True):
        assert parse(sql_of_tests(tests)).canonical() == parse(text).canonical(), number
        plain = [{key: test[key] for key in test} for test in line["tests"]]
        assert [test["attribute"] for test in plain] == [test.attribute for test in tests]
        filter_ = parse(text)
        for row in rows:
            assert filter_.matches(row) == all(holds(test, row) for test in plain), (text, row)


def holds(test: dict[str, object], row: dict[str, object]) -> bool:
    """A test as `filters.jsonl` has it, in plain Python."""
    found, wanted = row.get(str(test["attribute"])), test.get("value")
    if found is None:
        return False
    if test["op"] == "=":
        return found == wanted
    if test["op"] == "between":
        low, high = test.get("low", -np.inf), test.get("high", np.inf)
        return bool(low <= found <= high)  # type: ignore[operator]
    text, pattern = str(found), str(wanted)
    if test["op"] == "prefix":
        return text.startswith(pattern)
    if test["op"] == "suffix":
        return text.endswith(pattern)
    start, *middle, end = pattern.split("%")
    if not (text.startswith(start) and text.endswith(end)):
        return False
    rest = text[len(start) : len(text) - len(end)]
    for part in middle:
        at = rest.find(part)
        if at < 0:
            return False
        rest = rest[at + len(part) :]
    return len(start) + len(end) <= len(text)


def test_mixed_and_equality_stay_as_they_are() -> None:
    """Figures are quoted for them. When NumPy draws otherwise, say so beside the figures."""
    assert next(make_workload("mixed", 1, 1).texts())[1] == (
        "a12 = 'v0' AND a0 = 'v999' AND a15 BETWEEN 2923 AND 3493 AND a7 BETWEEN 8634 AND 9483 "
        "AND a2 = 'v297'"
    )
    assert next(make_workload("equality", 1, 1).texts())[1] == (
        "a8 = 'v745' AND a4 = 'v949' AND a1 = 'v898'"
    )


def test_mixed_has_3_to_7_tests_on_different_attributes(mixed: Workload) -> None:
    lengths = np.diff(mixed.filters.offsets)
    shares = np.bincount(lengths, minlength=8)[3:] / MANY
    assert lengths.min() == 3
    assert lengths.max() == 7
    assert np.allclose(shares, 0.2, atol=0.01)
    owner = np.repeat(np.arange(MANY), lengths)
    assert len(np.unique(owner * 20 + mixed.filters.attribute)) == len(owner)


def test_mixed_draws_attributes_by_weight(mixed: Workload) -> None:
    first = mixed.filters.attribute[mixed.filters.offsets[:-1]]
    weights = (np.arange(20) + 1.0) ** -0.6
    found = np.bincount(first, minlength=20) / MANY
    assert np.allclose(found, weights / weights.sum(), atol=0.01)


def test_mixed_strings_are_equalities_by_zipf(mixed: Workload) -> None:
    filters = mixed.filters
    strings = filters.attribute % 2 == 0
    assert (filters.operator[strings] == EQUAL).all()
    values = Counter(filters.text.filter(strings).to_pylist())
    total = sum(values.values())
    assert set(values) <= {f"v{number}" for number in range(1000)}
    assert 0.24 < values["v0"] / total < 0.27
    assert 0.09 < values["v999"] / total < 0.13


def test_mixed_integers_are_ranges(mixed: Workload) -> None:
    filters = mixed.filters
    numbers = filters.attribute % 2 == 1
    low, high = filters.low[numbers], filters.high[numbers]
    assert (filters.operator[numbers] == BETWEEN).all()
    assert (low % 1 == 0).all()
    assert [low.min(), low.max(), high.max()] == [0, 9999, 9999]
    assert (low <= high).all()
    inner = low < 7999  # so that no range is cut at the top
    widths = (high - low)[inner]
    assert [widths.min(), widths.max()] == [0, 2000]
    assert abs(widths.mean() - 1000) < 20
    assert abs(low.mean() - 4999.5) < 60


def test_mixed_events_have_all_attributes(mixed: Workload) -> None:
    assert mixed.events.column_names == [f"a{number}" for number in range(20)]
    assert not any(column.null_count for column in mixed.events.columns)
    assert 0.24 < mixed.events["a4"].to_pylist().count("v0") / MANY < 0.27
    numbers = mixed.events["a3"].to_numpy()
    assert [numbers.min() // 10, numbers.max() // 10] == [0, 999]
    assert abs(numbers.mean() - 4999.5) < 60


def test_equality_has_three_of_ten_attributes() -> None:
    workload = make_workload("equality", MANY, MANY)
    filters = workload.filters
    assert (np.diff(filters.offsets) == 3).all()
    assert filters.operators() == {"="}
    assert np.allclose(np.bincount(filters.attribute) / MANY, 0.3, atol=0.02)
    values = Counter(filters.text.to_pylist())
    assert len(values) == 1000
    assert 60 < min(values.values()) < max(values.values()) < 180  # 120, five deviations
    assert workload.events.column_names == [f"a{number}" for number in range(10)]
    assert len(set(workload.events["a9"].to_pylist())) == 1000


def test_ranges_are_on_doubles_and_some_are_open() -> None:
    filters = make_workload("ranges", MANY, 10).filters
    lengths = np.diff(filters.offsets)
    assert [lengths.min(), lengths.max()] == [3, 6]
    assert filters.operators() == {"between"}
    open_low, open_high = np.isnan(filters.low), np.isnan(filters.high)
    assert not (open_low & open_high).any()
    assert np.allclose([open_low.mean(), open_high.mean()], 0.05, atol=0.01)
    both = ~open_low & ~open_high
    assert (filters.low[both] <= filters.high[both]).all()


def test_prefix_has_a_test_on_the_path_and_an_equality() -> None:
    filters = make_workload("prefix", 2_000, 10).filters
    assert filters.operators() == {"=", "prefix", "suffix", "like"}
    for tests in filters:
        assert [test.attribute for test in tests[:2]] == ["path", "user"]
        assert tests[0].op != "="
        assert not set("_\\'") & set(str(tests[0].value))
        assert all(test.op == "=" for test in tests[1:])
