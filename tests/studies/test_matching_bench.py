"""The measurement of an engine, with a stand-in for it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.studies.standin import CountingMatcher, ForgetfulMatcher, SlowMatcher

from tidings.studies.answers import match_counts
from tidings.studies.checking import WrongMatches
from tidings.studies.matching_bench import (
    MatchReport,
    bench_matching,
    exponent,
    measure,
    parse_lines,
    schema_of_lines,
)
from tidings.studies.tables import growth_table, match_table
from tidings.studies.workloads import RECIPES, make_workload


def test_a_run_has_all_figures() -> None:
    workload = make_workload("mixed", 60, 40)
    matcher = SlowMatcher()
    run = measure(matcher, workload, batch=16, threads=1, repeats=2, sample=10)
    assert (run.workload, run.filters, run.events, run.batch) == ("mixed", 60, 40, 16)
    assert (run.index_bytes, run.bytes_per_filter) == (2400, 40)
    assert run.matches_per_event == match_counts(workload).mean()
    assert (run.checked_events, run.checked_evaluations) == (10, 600)
    for timing in (run.pairs, run.lists, run.json_batches):
        assert 0 < timing.best <= timing.median <= timing.worst
    for single in (run.one_dict, run.one_json):
        assert 0 < single.p50 <= single.p99
        assert single.events == 40
    assert run.counts is None
    assert matcher.merges > 0
    assert matcher.threads == {1}


def test_threads_are_passed_on() -> None:
    matcher = SlowMatcher()
    run = measure(
        matcher, make_workload("equality", 5, 30), batch=8, threads=2, repeats=1, sample=3
    )
    assert run.threads == 2
    assert matcher.threads == {2}


def test_a_wrong_engine_is_not_measured() -> None:
    workload = make_workload("flights", 200, 30)
    with pytest.raises(WrongMatches, match="match of JSON is wrong"):
        measure(ForgetfulMatcher(), workload, batch=30, threads=1, repeats=1, sample=30)


def test_report_of_several_sizes() -> None:
    notes: list[str] = []
    report = bench_matching(
        ["equality", "prefix"], [5, 20], events=12, repeats=1, sample=4,
        engine=CountingMatcher, note=notes.append,
    )  # fmt: skip
    assert [(run.workload, run.filters) for run in report.runs] == [
        ("equality", 5), ("equality", 20), ("prefix", 5), ("prefix", 20),
    ]  # fmt: skip
    assert notes[0] == "equality, 5 filters"
    assert all(run.counts is not None for run in report.runs)
    assert [(one.workload, one.smallest, one.largest) for one in report.growth] == [
        ("equality", 5, 20), ("prefix", 5, 20),
    ]  # fmt: skip
    assert all(one.counts is not None for one in report.growth)
    assert msgspec.json.decode(msgspec.json.encode(report), type=MatchReport) == report
    assert match_table(report).row_count == 4
    assert growth_table(report).row_count == 2


def test_one_size_does_not_grow() -> None:
    report = bench_matching(["equality"], [5], events=5, repeats=1, sample=2, engine=SlowMatcher)
    assert report.growth == []


def test_exponent() -> None:
    sizes = [10, 100, 1000]
    assert exponent(sizes, [3.0, 3.0, 3.0]) == pytest.approx(0)
    assert exponent(sizes, [2 * np.sqrt(size) for size in sizes]) == pytest.approx(0.5)
    assert exponent(sizes, [0.1 * size for size in sizes]) == pytest.approx(1)


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_lines_are_parsed_to_the_batch_they_were_written_from(name: str) -> None:
    workload = make_workload(name, 1, 300)
    text = b"\n".join(workload.event_lines())
    (whole,) = workload.batches()
    assert parse_lines(text, whole.schema).to_pylist() == whole.to_pylist()
    assert schema_of_lines(text).equals(whole.schema)
