"""`tidings bench`: the tables, the JSON, and bad values in one sentence."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Run
from tests.studies.standin import CountingMatcher

from tidings.studies import matching_bench

QUICK = ["--filters", "30", "--batch", "16", "--repeats", "1", "--sample", "3"]


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernels are compiled."""
    monkeypatch.setattr(matching_bench, "new_matcher", CountingMatcher)


def test_bench_alone_shows_its_commands(run: Run) -> None:
    result = run("bench")
    assert result.code == 0
    assert "  match " in result.out


@pytest.mark.usefixtures("standin")
def test_match_shows_tables_that_fit(run: Run) -> None:
    result = run("bench", "match", *QUICK, "--filters", "60", "--threads", "1", "--threads", "2")
    assert result.code == 0
    assert "32 events in batches of 16: µs per event" in result.out
    for word in ("speed-up", "JSON p99", "bytes/filter", "Growth", "all matches of 3 events"):
        assert word in result.out
    assert max(map(len, result.out.splitlines())) <= 100


@pytest.mark.usefixtures("standin")
def test_match_as_json(run: Run) -> None:
    result = run("bench", "match", *QUICK, "--workload", "all", "--json")
    (report,) = result.records
    assert [one["workload"] for one in report["runs"]] == [
        "mixed", "equality", "ranges", "prefix", "flights",
    ]  # fmt: skip
    assert report["machine"]["processors"] > 0
    assert report["growth"] == []


@pytest.mark.usefixtures("standin")
def test_match_says_when_threads_are_idle(run: Run) -> None:
    result = run("bench", "match", *QUICK, "--events", "20", "--threads", "2")
    assert result.code == 0
    assert "note: 20 events are fewer than 2 batches of 16" in result.err


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("match", "--workload", "mixt"), "--workload is 'mixt', expected one of mixed, equality"),
        (("match", "--filters", "ten"), "--filters is 'ten', expected a number from 1 on"),
        (("match", "--batch", "0"), "--batch is '0', expected a number from 1 on"),
    ],
)
def test_bad_values_get_one_sentence(run: Run, args: tuple[str, ...], problem: str) -> None:
    result = run("bench", *args)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {problem}")
    assert len(result.err.splitlines()) == 1
