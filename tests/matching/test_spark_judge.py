"""Spark SQL is the judge of the engine too: whatever was added, removed, merged, saved and opened
before, every way to match finds exactly the filters that `df.filter` keeps the row for."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.filters import oracle
from tests.matching import session

from tidings.matching import batch_pieces, held_filters
from tidings.matching.segments import part, residuals, segment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WITHOUT_ANSI = {"spark.sql.ansi.enabled": "false", "spark.sql.legacy.sizeOfNull": "false"}


@pytest.fixture(autouse=True)
def _tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds so low that a few hundred filters meet all of them: parts, pieces, full buffers."""
    monkeypatch.setattr(held_filters, "SEAL_AT", 24)
    monkeypatch.setattr(batch_pieces, "BATCH", 25)
    monkeypatch.setattr(batch_pieces, "LEAST_PIECE", 10)
    monkeypatch.setattr(part, "ROOM", 256)
    monkeypatch.setattr(residuals, "LEAST", 4)


def live(
    spark: SparkSession, rng: random.Random, folder: Path, *, filters: int, declared: bool
) -> None:
    """One session; every second one of undeclared attributes also divides by zero."""
    zeros = not declared and rng.random() < 0.5
    with oracle.settings(spark, oracle.INTERPRETED | (WITHOUT_ANSI if zeros else {})):
        judged = oracle.judged(
            spark, rng, rows=60, filters=filters, declared=declared, zeros=zeros,
            text=session.text, event=session.notification,
        )  # fmt: skip
    session.Session(rng, judged, folder, background=rng.random() < 0.5).run()


@pytest.mark.parametrize("declared", [False, True], ids=["undeclared", "declared"])
def test_the_engine_finds_what_spark_finds(
    spark: SparkSession, seed: int, tmp_path: Path, declared: bool
) -> None:
    rng = random.Random(f"{seed} engine {declared}")
    live(spark, rng, tmp_path, filters=60 if declared else 80, declared=declared)


def test_terms_without_a_column_are_found_too(
    spark: SparkSession, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "MOST_TERMS", 5)
    live(spark, random.Random(f"{seed} columns"), tmp_path, filters=60, declared=False)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_engine_finds_what_spark_finds_in_many_sessions(
    spark: SparkSession, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        monkeypatch.setattr(segment, "MOST_TERMS", 8 if number % 5 == 4 else 30_000)
        rng = random.Random(f"{seed} engine {number}")
        folder = tmp_path / str(number)
        live(spark, rng, folder, filters=500, declared=number % 2 == 1)
