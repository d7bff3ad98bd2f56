"""tag_parquet(): files to files, with what tag() gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidings import TidingsError
from tidings.snapshots import Snapshot
from tidings.spark import parquet, tag, tag_parquet
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
    monkeypatch.setattr(parquet, "PIECE", 400)
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
