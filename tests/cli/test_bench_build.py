"""`tidings bench build`, in the Spark session of the run."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import Run
from tests.waiting import eventually

from tidings.studies.host.process_usage import processor_seconds, watch_peaks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
@pytest.mark.spark
def test_build_says_what_it_took_and_that_the_graph_is_right(
    spark: SparkSession, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[bool] = []
    monkeypatch.setattr(spark, "stop", lambda: stopped.append(True))  # other tests need it
    (found,) = run("bench", "build", "--filters", "2k", "--check", "--json").records
    assert stopped
    assert found["filters"] == 2000
    assert found["same"] is True
    assert 0 < found["nodes"] <= 2000
    assert list(found["steps"]) == [
        "reading", "sorting", "gathering", "covering", "joining", "nodes", "saving",
    ]  # fmt: skip
    assert found["seconds"] > 0
    if sys.platform == "linux":
        assert found["together_bytes"] > found["driver_bytes"] > 0
        assert found["java_bytes"] > 0
        assert found["worker_bytes"]


@pytest.mark.skipif(sys.platform != "linux", reason="figures are those of /proc")
def test_processes_are_watched_with_their_children() -> None:
    busy = [sys.executable, "-c", "x = bytearray(200_000_000); input()"]
    with watch_peaks() as peaks:
        before = eventually(lambda: peaks.together)
        with subprocess.Popen(busy, stdin=subprocess.PIPE) as child:
            eventually(lambda: peaks.together > before + 200_000_000)
            assert processor_seconds(child.pid) > 0
            child.communicate(b"\n")
    assert peaks.by_name["driver"][0] > 10_000_000
    children = [size for name, sizes in peaks.by_name.items() if name != "driver" for size in sizes]
    assert max(children) > 200_000_000
    assert peaks.together > 200_000_000
