"""Tables that a person reads on a screen of 100 columns."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from rich.console import Console
from tests.studies.standin import CountingMatcher, SlowMatcher

from tidings.studies.engine.match_report import MatchReport
from tidings.studies.engine.matching_bench import bench_matching
from tidings.studies.result_tables import describe_checks, machine_lines, match_sections


@pytest.fixture(scope="module")
def report() -> MatchReport:
    return bench_matching(
        ["equality", "prefix"], [5, 20], batch=6, threads=[1, 2], repeats=1, sample=4,
        engine=CountingMatcher,
    )  # fmt: skip


def shown(report: MatchReport) -> str:
    console = Console(width=100, highlight=False)
    with console.capture() as caught:
        for heading, table in match_sections(report):
            console.print(heading, table)
    return caught.get()


def test_headings_say_what_and_in_which_unit(report: MatchReport) -> None:
    text = shown(report)
    assert "12 events in batches of 6: µs per event, medians of 1 (range: that of pairs)" in text
    assert "One event at a time, in µs (12 events)" in text
    assert "bytes/filter" in text
    assert "only counted" in text


def test_rows(report: MatchReport) -> None:
    rows = [table.row_count for _, table in match_sections(report)]
    assert rows == [8, 4, 4, 4]  # batches and growth by threads, the others are shared


def test_large_numbers_fit(report: MatchReport) -> None:
    slow = msgspec.structs.replace(report.runs[0].pairs, median=1234.5, best=1e3, worst=99999.0)
    large: dict[str, Any] = {
        "filters": 1_000_000, "matches_per_event": 12345.0, "pairs": slow, "lists": slow,
        "json_batches": slow, "counts": slow, "index_bytes": 10**11, "bytes_per_filter": 10**5,
    }  # fmt: skip
    runs = [msgspec.structs.replace(run, **large) for run in report.runs]
    text = shown(msgspec.structs.replace(report, runs=runs))
    assert "…" not in text
    assert "1,000-99,999" in text


def test_speed_up_only_with_several_threads(report: MatchReport) -> None:
    assert "speed-up" in shown(report)
    alone = bench_matching(["equality"], [5], events=5, repeats=1, sample=2, engine=SlowMatcher)
    assert "speed-up" not in shown(alone)
    assert "counts" not in shown(alone)
    assert "Growth" not in shown(alone)


def test_lines(report: MatchReport) -> None:
    assert "all matches of 4 events per row" in describe_checks(report)
    lines = machine_lines(msgspec.structs.replace(report.machine, load=1.25, processor="Abacus"))
    assert f"{report.machine.processors} x Abacus, load 1.2 at the start" in lines[0]
    assert lines[1].startswith("Python 3.")
    quiet = machine_lines(msgspec.structs.replace(report.machine, load=None, processor=""))
    assert f"{report.machine.processors} x processor" in quiet[0]
