"""A local session, on a real Spark."""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_python_workers_see_arrow_batches(spark: SparkSession) -> None:
    def double(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow.compute

        for batch in batches:
            yield pa.record_batch({"id": pyarrow.compute.multiply(batch["id"], 2)})

    rows = spark.range(5).mapInArrow(double, "id long").collect()

    assert sorted(row.id for row in rows) == [0, 2, 4, 6, 8]


def test_spark_finds_its_logging_settings(spark: SparkSession) -> None:
    options = spark.conf.get("spark.driver.extraJavaOptions") or ""
    url = options.partition("-Dlog4j2.configurationFile=")[2].split()[0]

    assert Path(url.removeprefix("file://")).is_file()


def test_workers_run_the_python_of_the_driver(spark: SparkSession) -> None:
    def python(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"python": [sys.prefix] * len(batch)})

    rows = spark.range(1).mapInArrow(python, "python string").collect()

    assert [row.python for row in rows] == [sys.prefix]


def test_time_is_utc(spark: SparkSession) -> None:
    rows = spark.sql("SELECT timestamp'2013-01-01 10:00:00' AS at").collect()

    assert rows[0].at.astimezone(dt.UTC) == dt.datetime(2013, 1, 1, 10, tzinfo=dt.UTC)


def test_local_session_is_shared(spark: SparkSession) -> None:
    from tidings.spark import local_session

    assert local_session("another").sparkContext is spark.sparkContext
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
