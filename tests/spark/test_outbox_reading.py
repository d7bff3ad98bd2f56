"""Readers of an outbox: they get every committed row once, and no other, as a table or a stream."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.outboxes import files_of

from tidings import TidingsError
from tidings.spark import read_outbox
from tidings.spark.outbox import Commit, Outbox, OutboxReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GRAINS = ("grain=2013-01-01T09-00", "grain=2013-01-01T10-00", "grain=mixed")


def rows_of(first: int, count: int, **more: Any) -> pa.Table:
    """Rows as a pipeline files them, from a source with odd names."""
    ids = range(first, first + count)
    columns = {
        "geo.zone": [f"z{at}" for at in ids],
        "a `b`": [None if at % 3 == 0 else at / 2 for at in ids],
        "tags": [["x"] * (at % 3) if at % 4 else None for at in ids],
        **more,
        "notification": list(ids),
        "version": [7] * count,
        "nodes": [[1, 2]] * count,
        "numbers": [[at, at] for at in ids],
        "subscriptions": [["ana", "ben"][: 1 + at % 2] for at in ids],
    }
    return pa.table(columns)


def put(outbox: Outbox, batch: int, tables: dict[str, pa.Table], dead: int = 0) -> Commit:
    """Commit a batch with these rows, by grain; another attempt at it stays uncommitted."""
    for attempt in ("good", "left"):
        for grain, rows in tables.items():
            folder = outbox.folder(batch, attempt) / grain
            folder.mkdir(parents=True)
            pq.write_table(rows, folder / "part.parquet")
    if dead:
        folder = outbox.dead_folder(batch, "good")
        folder.mkdir(parents=True)
        letters = {"reason": ["bad"] * dead, "raw": [f"{batch}/{at}" for at in range(dead)]}
        pq.write_table(pa.table(letters), folder / "part.parquet")
    matched = sum(map(len, tables.values()))
    done = Commit(
        batch, "good", 7, 1_700_000_000_000_000, matched, matched, matched, dead, {},
        files_of(outbox, batch, "good"),
    )  # fmt: skip
    outbox.commit(done)
    return done


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    """Three batches; the second matched nothing. The folder's name has wildcards."""
    outbox = Outbox(tmp_path / "out [1] {a}*")
    put(outbox, 0, {GRAINS[0]: rows_of(1, 10), GRAINS[1]: rows_of(11, 5)}, dead=2)
    put(outbox, 1, {})
    put(outbox, 2, {GRAINS[2]: rows_of(16, 7)}, dead=1)
    folder = outbox.folder(3, "open") / GRAINS[0]  # begun, not committed
    folder.mkdir(parents=True)
    pq.write_table(rows_of(900, 3), folder / "part.parquet")
    return outbox


def oracle(outbox: Outbox) -> list[dict[str, Any]]:
    """All committed rows, read with pyarrow from the folders that commits name."""
    found = []
    for folder in outbox.folders():
        for path in folder.rglob("*.parquet"):
            grain = path.parent.name.removeprefix("grain=")
            found += [row | {"grain": grain} for row in pq.ParquetFile(path).read().to_pylist()]
    return sorted(found, key=lambda row: row["notification"])


def collected(df: DataFrame) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in df.collect()), key=lambda row: row["notification"])


@pytest.mark.spark
def test_a_table_has_every_committed_row_once(spark: SparkSession, outbox: Outbox) -> None:
    assert collected(read_outbox(spark, outbox.path)) == oracle(outbox)
    assert len(oracle(outbox)) == 22
    later = read_outbox(spark, str(outbox.path), since=1)
    assert [row["notification"] for row in collected(later)] == list(range(16, 23))
    dead = read_outbox(spark, outbox.path, dead=True)
    assert sorted(row.raw for row in dead.collect()) == ["0/0", "0/1", "2/0"]


@pytest.mark.spark
def test_a_stream_has_the_same_rows_and_goes_on(
    spark: SparkSession, outbox: Outbox, tmp_path: Path
) -> None:
    def run() -> list[dict[str, Any]]:
        got: list[dict[str, Any]] = []
        done = (
            read_outbox(spark, outbox.path, stream=True)
            .writeStream.foreachBatch(lambda df, _: got.extend(collected(df)))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert done.awaitTermination(120)
        return got

    before = oracle(outbox)
    assert run() == before
    assert run() == []
    put(outbox, 3, {GRAINS[1]: rows_of(23, 4)})
    assert [row["notification"] for row in run()] == [23, 24, 25, 26]


@pytest.mark.spark
def test_a_stream_follows_a_writer(spark: SparkSession, outbox: Outbox, seed: int) -> None:
    draw = random.Random(seed)
    got: list[int] = []
    query = (
        read_outbox(spark, outbox.path, stream=True)
        .writeStream.foreachBatch(
            lambda df, _: got.extend(row.notification for row in df.collect())
        )
        .trigger(processingTime="100 milliseconds")
        .start()
    )

    def write() -> None:
        first = 23
        for batch in range(3, 9):
            count = draw.randrange(4)
            put(outbox, batch, {GRAINS[0]: rows_of(first, count)} if count else {})
            first += count
            time.sleep(draw.random() / 5)

    writer = threading.Thread(target=write)
    writer.start()
    writer.join()
    wanted = [row["notification"] for row in oracle(outbox)]
    try:
        end = time.monotonic() + 120
        while len(got) < len(wanted) and time.monotonic() < end and query.isActive:
            time.sleep(0.1)
        assert query.exception() is None
        assert sorted(got) == wanted
    finally:
        query.stop()


@pytest.mark.spark
def test_columns_that_were_added_later_are_null_before(spark: SparkSession, outbox: Outbox) -> None:
    put(outbox, 3, {GRAINS[0]: rows_of(23, 2, late=[True, False])})
    found = {row["notification"]: row["late"] for row in collected(read_outbox(spark, outbox.path))}
    assert (found[1], found[23], found[24]) == (None, True, False)
    assert "late" in read_outbox(spark, outbox.path, stream=True).columns


@pytest.mark.spark
def test_an_outbox_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TidingsError, match=r"there is no outbox in .*/none"):
        read_outbox(spark, tmp_path / "none")
    outbox = Outbox(tmp_path / "out")
    put(outbox, 0, {})
    for stream in (False, True):
        with pytest.raises(TidingsError, match=r"has no rows yet.*pass `schema`"):
            read_outbox(spark, outbox.path, stream=stream)
    assert read_outbox(spark, outbox.path, schema="a int, grain string").collect() == []
    assert read_outbox(spark, outbox.path, dead=True).columns == ["reason", "raw"]


def commits_of(reader: OutboxReader) -> Iterator[int]:
    return (commit.batch for commit in reader.commits())


def test_a_reader_follows_commits(outbox: Outbox) -> None:
    reader = OutboxReader(outbox.path)
    assert list(commits_of(reader)) == [0, 1, 2]
    put(outbox, 3, {GRAINS[0]: rows_of(23, 1)})
    assert reader.refresh() == 4
    assert list(commits_of(reader)) == [0, 1, 2, 3]
