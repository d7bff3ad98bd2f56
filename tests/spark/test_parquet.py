"""tag_parquet(): files to files, with what tag() gives."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.filters import oracle

from tidings import TidingsError
from tidings.snapshots import Snapshot
from tidings.spark import tag, tag_parquet
from tidings.spark.tagging import parquet_files
from tidings.studies import make_workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = make_workload("mixed", 300, 3000).events
    rows = rows.append_column("row", pa.array(range(len(rows))))
    for at, day in enumerate(("1", "2", "2")):
        folder = tmp_path / "in" / f"day={day}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows.slice(at * 1000, 1000), folder / f"{at}.parquet", row_group_size=150)
    return tmp_path / "in"


def test_files_are_tagged_as_tables_are(
    spark: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "PIECE", 400)
    snapshot = Snapshot.build(make_workload("mixed", 300, 1).texts())
    table = spark.read.parquet(str(source))
    for output in ("nodes", "subscriptions", "pairs"):
        target = tmp_path / output
        done = tag_parquet(spark, source, target, snapshot, output)
        assert (done.rows_in, done.files) == (3000, 9)
        found = spark.read.parquet(str(target))
        assert found.columns == [*table.columns[:-1], output, "day"]
        expected = tag(table, snapshot, output)
        key = ["row", "day", output]
        assert sorted(map(str, found.select(key).collect())) == sorted(
            map(str, expected.select(key).collect())
        )
        assert not list(target.glob("_temporary*"))
        assert (target / "_SUCCESS").exists()


def test_columns_stay_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    when = dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC)
    plain = {
        "few": pa.array(["a", None, "b"] * 100),
        "many": pa.array([f"{at:0300d}" if at % 9 else None for at in range(300)]),
        "whole": pa.array([None, 2**62, -5] * 100),
        "small": pa.array([1, 2, None] * 100, pa.int16()),
        "half": pa.array([0.5, float("nan"), None] * 100),
        "day": pa.array([when.date(), None, when.date()] * 100),
        "at": pa.array([when, None, when] * 100, pa.timestamp("us", "UTC")),
        "list": pa.array([["x", None], [], None] * 100),
        "inner": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}] * 100),
        "map": pa.array([[("k", 1)], None, []] * 100, pa.map_(pa.string(), pa.int64())),
    }
    noted = {
        **plain,
        "category": pa.array(["u", None, "w"] * 100).dictionary_encode(),
        "took": pa.array([1, None, 3] * 100, pa.duration("us")),
        "large": pa.array(["p", "q", None] * 100, pa.large_string()),
    }
    filters = ("few = 'a'", "whole > 0", "many LIKE '%7'", "inner.b = 'y'")
    snapshot = Snapshot.build(enumerate(filters))
    for name, columns in (("plain", plain), ("noted", noted)):
        table = pa.table(columns)
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=100)
        tag_parquet(spark, tmp_path / f"{name}.parquet", tmp_path / name, snapshot, "subscriptions")
        (file,) = (tmp_path / name).glob("*.parquet")
        found = pq.ParquetFile(file).read()
        told = found.column("subscriptions").to_pylist()
        assert str(found.drop_columns("subscriptions").to_pylist()) == str(table.to_pylist())
        assert found.drop_columns("subscriptions").schema == table.schema
        assert (
            told == snapshot.view.subscriptions(table.combine_chunks().to_batches()[0]).to_pylist()
        )
        rows = spark.read.parquet(str(tmp_path / name)).collect()
        assert [row.subscriptions for row in rows] == told


def test_only_some_columns_are_kept(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    snapshot = Snapshot.build({"a": "a1 > 100", "b": "row >= 0"})
    done = tag_parquet(spark, source, tmp_path / "out", snapshot, "pairs", columns=["row"])
    found = pq.read_table(tmp_path / "out")
    assert found.column_names[:2] == ["row", "pairs"]
    assert done.rows_out == len(found) > 3000


def test_what_is_refused(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    snapshot = Snapshot.build({"a": "a1 > 100"})
    with pytest.raises(TidingsError, match="expected a new or empty folder"):
        tag_parquet(spark, source, source, snapshot)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TidingsError, match="no Parquet files"):
        tag_parquet(spark, tmp_path / "empty", tmp_path / "out", snapshot)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(TidingsError, match="can't be read as Parquet"):
        tag_parquet(spark, tmp_path / "x.parquet", tmp_path / "out", snapshot)
    with pytest.raises(TidingsError, match="no column 'zzz'"):
        tag_parquet(spark, source, tmp_path / "out", snapshot, columns=["zzz"])
    with pytest.raises(TidingsError, match="'zzz', which the table does not have"):
        tag_parquet(spark, source, tmp_path / "out", Snapshot.build({"a": "zzz > 1"}))
    assert not (tmp_path / "out").exists()


def test_moments_as_spark_writes_them(spark: SparkSession, tmp_path: Path) -> None:
    """By default Spark writes 96 bits, which Arrow takes for nanoseconds of no zone."""
    moments = ("1970-01-01 00:00:00", "9999-12-31 00:00:00", "0001-01-02 00:00:00")
    rows = spark.createDataFrame([(one,) for one in moments], "at string")
    rows = rows.selectExpr("timestamp(at) AS at", "1 AS n")
    with oracle.settings(spark, {"spark.sql.parquet.outputTimestampType": "INT96"}):
        rows.coalesce(1).write.parquet(str(tmp_path / "in"))
    snapshot = Snapshot.build(
        {"late": "at > TIMESTAMP '2000-01-01'", "early": "at < TIMESTAMP '1900-01-01'"}
    )
    tag_parquet(spark, tmp_path / "in", tmp_path / "out", snapshot, "subscriptions")
    found = spark.read.parquet(str(tmp_path / "out"))
    assert found.schema["at"].dataType.typeName() == "timestamp"
    as_text = found.selectExpr("string(at) AS at", "subscriptions").collect()
    told = {row["at"]: row["subscriptions"] for row in as_text}
    assert told == dict(zip(moments, ([], ["late"], ["early"]), strict=True))


def test_unfinished_work_is_not_read(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    for folder in ("_temporary/0", ".staging", "day=1/_temporary-abc"):
        (source / folder).mkdir(parents=True)
        shutil.copy(source / "day=1" / "0.parquet", source / folder / "part.parquet")
    done = tag_parquet(spark, source, tmp_path / "out", Snapshot.build({"a": "a1 > 100"}))
    assert done.rows_in == 3000


def test_files_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    snapshot = Snapshot.build({"a": "x > 1"})
    (tmp_path / "in").mkdir()
    empty = pa.table({"x": pa.array([], pa.int64())})
    pq.write_table(empty, tmp_path / "in" / "a.parquet")
    done = tag_parquet(spark, tmp_path / "in", tmp_path / "none", snapshot)
    assert (done.rows_in, done.files) == (0, 1)
    assert spark.read.parquet(str(tmp_path / "none")).columns == ["x", "nodes"]
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "in" / "b.parquet")
    done = tag_parquet(spark, tmp_path / "in", tmp_path / "some", snapshot)
    assert (done.rows_in, done.files) == (2, 1)


def test_types_that_spark_lacks_may_pass_by(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2], "u": pa.array([2**64 - 1, 0], pa.uint64())})
    pq.write_table(table, tmp_path / "u.parquet")
    tag_parquet(spark, tmp_path / "u.parquet", tmp_path / "out", Snapshot.build({"a": "x > 1"}))
    assert pq.read_table(tmp_path / "out").column("u").to_pylist() == [2**64 - 1, 0]
    with pytest.raises(TidingsError, match="column 'u', whose type"):
        tag_parquet(spark, tmp_path / "u.parquet", tmp_path / "no", Snapshot.build({"a": "u > 1"}))
