"""`tidings bench`: the tables, the JSON, the verdicts, and bad values in one sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.studies.fake_revisions import make_checkout, package
from tests.studies.standin import CountingMatcher
from tests.waiting import eventually

from tidings.studies.compare import comparing
from tidings.studies.engine import matching_bench, update_bench

pytestmark = pytest.mark.usefixtures("short_collections")

QUICK = ["--filters", "30", "--batch", "16", "--repeats", "1", "--sample", "3"]
SMALL = ["--filters", "20", "--events", "4", "--rounds", "5", "--builds", "1", "--threshold", "50"]


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernels are compiled."""
    monkeypatch.setattr(matching_bench, "new_matcher", CountingMatcher)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(comparing, "LEAST_SECONDS", 0.01)
    revisions = {"quick": package(), "slow": package(pause=0.03), "wrong": package(found=3)}
    return str(make_checkout(tmp_path / "checkout", **revisions))


def test_bench_alone_shows_its_commands(run: Run) -> None:
    result = run("bench")
    assert result.code == 0
    assert "  match " in result.out
    assert "  compare " in result.out


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
        (("match", "--filters", "ten"), "--filters is 'ten', expected an integer of at least 1"),
        (("match", "--batch", "0"), "--batch is '0', expected an integer of at least 1"),
        (("compare", "a", "b", "--workload", "all"), "--workload is 'all', expected one of mixed"),
        (
            ("compare", "a", "b", "--events", "x"),
            "--events is 'x', expected an integer of at least 1",
        ),
        (("compare", "a", "b", "--repository", "gone"), "there is no folder gone"),
        (("compare", "a", "b", "--repository", "/"), "/ is not in a checkout of a git repository"),
    ],
)
def test_bad_values_get_one_sentence(run: Run, args: tuple[str, ...], problem: str) -> None:
    result = run("bench", *args)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {problem}")
    assert len(result.err.splitlines()) == 1


def test_compare_ends_with_1_on_a_regression(run: Run, checkout: str) -> None:
    result = run("bench", "compare", "quick", "slow", "--repository", checkout, *SMALL)
    assert result.code == 1
    assert "slow (" in result.out.splitlines()[0]
    assert "both find 8 matches" in result.out
    (row,) = [line for line in result.out.splitlines() if line.startswith("one dict, p50")]
    assert row.rstrip().endswith("regression")
    assert max(map(len, result.out.splitlines())) <= 100


def test_compare_as_json(run: Run, checkout: str) -> None:
    result = run("bench", "compare", "slow", "quick", "--repository", checkout, *SMALL, "--json")
    assert result.code == 0
    (report,) = result.records
    words = {one["measure"]["name"]: one["word"] for one in report["verdicts"]}
    assert words["one dict, p50"] == "improvement"
    assert report["first"]["name"] == "slow"


def test_compare_refuses_other_matches(run: Run, checkout: str) -> None:
    result = run("bench", "compare", "quick", "wrong", "--repository", checkout, *SMALL)
    assert (result.code, result.out) == (2, "")
    assert "find different matches with match_pairs: 8 and 12" in result.err


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout", stuck=package(pause=60))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", "from tidings.cli import main; main()", "bench", "compare",
         "stuck", "stuck", "--repository", str(checkout), *SMALL],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(scratch)},
    )  # fmt: skip
    eventually(lambda: list(scratch.glob("*/a.stderr")))
    workers = children(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert list(scratch.iterdir()) == []
    # the watchdog sees that all is over, and goes too
    eventually(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def children(process: int) -> list[str]:
    """Of a process, where the system tells."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [child for task in tasks for child in task.read_text().split()]


def test_bench_graph_shows_steps_and_growth(run: Run) -> None:
    result = run("bench", "graph", "--filters", "30", "--filters", "60", "--sample", "4")
    assert result.code == 0
    assert "hulls" in result.out
    assert "Growth" in result.out


def test_bench_updates_shows_the_slowdown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_bench, "EVENTS", 50)
    result = run("bench", "updates", "--filters", "30", "--rounds", "1")
    assert result.code == 0
    assert "slowdown" in result.out


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_ways_find_the_same(run: Run) -> None:
    sizes = ["--filters", "200", "--rows", "2000", "--few", "50", "--join-rows", "500"]
    result = run("bench", "spark", *sizes, "--repeats", "1")
    assert result.code == 0, result.err
    for word in ("bare engine", "tag_parquet", "nested-loop join", "hash join"):
        assert word in result.out
