"""The measurement of an engine, with a stand-in for it."""

from __future__ import annotations

import msgspec
import pytest
from tests.studies.standin import (
    CountingMatcher,
    ForgetfulMatcher,
    MiscountingMatcher,
    RacingMatcher,
    SlowMatcher,
)

from tidings.studies.engine.match_report import MatchReport
from tidings.studies.engine.matching_bench import bench_matching, measure
from tidings.studies.workloads.answers import match_counts
from tidings.studies.workloads.checking import WrongMatches
from tidings.studies.workloads.workloads import make_workload


def test_a_run_has_all_figures() -> None:
    workload = make_workload("mixed", 60, 40)
    matcher = SlowMatcher()
    (run,) = measure(matcher, workload, batch=16, repeats=2, sample=10)
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
    workload = make_workload("equality", 5, 30)
    runs = measure(matcher, workload, batch=8, threads=[2, 3], repeats=1, sample=3)
    assert [run.threads for run in runs] == [2, 3]
    assert matcher.threads == {2, 3}
    assert runs[0].build_seconds == runs[1].build_seconds


def test_a_wrong_engine_is_not_measured() -> None:
    workload = make_workload("flights", 200, 30)
    with pytest.raises(WrongMatches, match="match of JSON is wrong"):
        measure(ForgetfulMatcher(), workload, batch=30, repeats=1, sample=30)


def test_wrong_counts_are_not_measured() -> None:
    workload = make_workload("flights", 200, 30)
    with pytest.raises(WrongMatches, match="match_counts returns"):
        measure(MiscountingMatcher(), workload, batch=30, repeats=1, sample=5)


def test_threads_that_find_other_matches_are_not_measured() -> None:
    workload = make_workload("flights", 200, 30)
    with pytest.raises(
        WrongMatches, match=r"\d+ matches with 2 threads, expected \d+, the number found with 1"
    ):
        measure(RacingMatcher(), workload, batch=30, threads=[1, 2], repeats=1, sample=5)


def test_report_of_several_sizes() -> None:
    notes: list[str] = []
    report = bench_matching(
        ["equality", "prefix"], [5, 20], events=12, repeats=1, sample=4,
        engine=CountingMatcher, note=notes.append,
    )  # fmt: skip
    assert [(run.workload, run.filters) for run in report.runs] == [
        ("equality", 5), ("equality", 20), ("prefix", 5), ("prefix", 20),
    ]  # fmt: skip
    assert notes[0] == "equality, 5 filters: drawing filters and events"
    assert all(run.counts is not None for run in report.runs)
    assert [(one.workload, one.smallest, one.largest) for one in report.growth] == [
        ("equality", 5, 20), ("prefix", 5, 20),
    ]  # fmt: skip
    assert all(one.counts is not None for one in report.growth)
    assert msgspec.json.decode(msgspec.json.encode(report), type=MatchReport) == report


def test_each_number_of_threads_grows_by_itself() -> None:
    report = bench_matching(
        ["equality"], [5, 20], batch=4, threads=[1, 2], repeats=1, sample=2, engine=SlowMatcher
    )
    assert [(run.filters, run.threads) for run in report.runs] == [(5, 1), (5, 2), (20, 1), (20, 2)]
    assert [one.threads for one in report.growth] == [1, 2]
    assert {run.events for run in report.runs} == {8}  # a batch for each thread


def test_one_size_does_not_grow() -> None:
    report = bench_matching(["equality"], [5], events=5, repeats=1, sample=2, engine=SlowMatcher)
    assert report.growth == []
