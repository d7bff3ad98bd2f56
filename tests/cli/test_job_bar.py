"""The bar of Spark jobs: drawn in a terminal, for jobs that take long, and for no others."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.cli.terminals import Terminal

from tidings.cli.backtests.job_bar import show_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def slow(rows: object) -> list[int]:
    time.sleep(1.5)
    return [1]


@pytest.mark.spark
@pytest.mark.parametrize(("patience", "drawn"), [(0.3, True), (60.0, False)])
def test_a_bar_for_jobs_that_take_long(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, patience: float, drawn: bool
) -> None:
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen)
    with show_jobs(spark, "counting", patience):
        assert spark.sparkContext.parallelize(range(4), 4).mapPartitions(slow).count() == 4
    assert ("counting" in screen.getvalue()) is drawn


@pytest.mark.spark
def test_no_bar_without_a_terminal(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    with show_jobs(spark, "counting", 0.0):
        assert spark.sparkContext.parallelize(range(4), 2).mapPartitions(slow).count() == 2
    assert capsys.readouterr().err == ""
