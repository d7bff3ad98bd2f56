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
from tidings.spark.outbox.commits import PartitionCounts
from tidings.store.numbers import pack_counts

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


class Filled(Outbox):
    """An outbox, and the first batch that this release wrote: rows with places, then numbers."""

    since = 0


def with_places(rows: pa.Table, before: int) -> pa.Table:
    """Rows as this release files them: all rows of the batch are one partition."""
    notifications, numbers = rows["notification"].to_pylist(), rows["numbers"].to_pylist()
    own = rows.column_names[: rows.column_names.index("notification")]
    return pa.table({
        **{name: rows[name] for name in own},
        "_place": [one - before for one in notifications],
        "version": rows["version"],
        "nodes": rows["nodes"],
        "_places": [[number - before for number in some] for some in numbers],
        "subscriptions": rows["subscriptions"],
    })  # fmt: skip


def put(
    outbox: Outbox, batch: int, tables: dict[str, pa.Table], dead: int = 0, *, numbered: bool = True
) -> Commit:
    """Commit a batch with these rows, by grain; another attempt at it stays uncommitted."""
    is_new = batch >= getattr(outbox, "since", 0)
    before = sum(one.matched for one in outbox.log.each())
    if is_new:
        tables = {grain: with_places(rows, before) for grain, rows in tables.items()}
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
    counts = pack_counts({1: matched, 2: matched})
    done = Commit(
        batch, "good", 7, 1_700_000_000_000_000, matched, matched, matched, dead,
        files=files_of(outbox, batch, "good"), before=before,
        partitions=[PartitionCounts(len(tables), matched, counts)] if is_new and matched else [],
    )  # fmt: skip
    outbox.commit(done)
    if numbered and done.needs_numbers:
        outbox.put_numbers(batch, {1: before, 2: before})
    return done


# A stream of the outbox takes seconds. One that an older release began has both kinds of batches.
few_streams = pytest.mark.parametrize(
    "outbox",
    [
        pytest.param(0, id="new", marks=pytest.mark.slow),
        pytest.param(2, id="both"),
        pytest.param(99, id="old", marks=pytest.mark.slow),
    ],
    indirect=True,
)


@pytest.fixture(params=[0, 2, 99], ids=["new", "both", "old"])
def outbox(tmp_path: Path, request: pytest.FixtureRequest) -> Filled:
    """Three batches; the second matched nothing. The folder's name has wildcards. An older release
    wrote none, some, or all of the batches."""
    outbox = Filled(tmp_path / "out [1] {a}*")
    outbox.since = request.param
    put(outbox, 0, {GRAINS[0]: rows_of(1, 10), GRAINS[1]: rows_of(11, 5)}, dead=2)
    put(outbox, 1, {})
    put(outbox, 2, {GRAINS[2]: rows_of(16, 7)}, dead=1)
    folder = outbox.folder(3, "open") / GRAINS[0]  # begun, not committed
    folder.mkdir(parents=True)
    pq.write_table(rows_of(900, 3), folder / "part.parquet")
    return outbox


def oracle(outbox: Outbox) -> list[dict[str, Any]]:
    """All committed rows, read with pyarrow from the folders that commits name. Both nodes match
    each row, so that all numbers of a row are equal."""
    found = []
    for commit in outbox.log.each():
        for path in outbox.folder(commit.batch, commit.attempt).rglob("*.parquet"):
            grain = path.parent.name.removeprefix("grain=")
            for row in pq.ParquetFile(path).read().to_pylist():
                if "_place" in row:
                    place, places = row.pop("_place"), row.pop("_places")
                    assert places == [place, place]
                    row["notification"] = commit.before + place
                    row["numbers"] = [commit.before + place] * 2
                found.append(row | {"grain": grain})
    return sorted(found, key=lambda row: row["notification"])


def collected(df: DataFrame) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in df.collect()), key=lambda row: row["notification"])


@pytest.mark.spark
def test_a_table_has_every_committed_row_once(spark: SparkSession, outbox: Filled) -> None:
    assert collected(read_outbox(spark, outbox.path)) == oracle(outbox)
    assert len(oracle(outbox)) == 22
    later = read_outbox(spark, str(outbox.path), since=1)
    assert [row["notification"] for row in collected(later)] == list(range(16, 23))
    dead = read_outbox(spark, outbox.path, dead=True)
    assert sorted(row.raw for row in dead.collect()) == ["0/0", "0/1", "2/0"]


@pytest.mark.spark
@few_streams
def test_a_stream_has_the_same_rows_and_goes_on(
    spark: SparkSession, outbox: Filled, tmp_path: Path
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
@few_streams
def test_a_stream_follows_a_writer(spark: SparkSession, outbox: Filled, seed: int) -> None:
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
def test_columns_that_were_added_later_are_null_before(spark: SparkSession, outbox: Filled) -> None:
    put(outbox, 3, {GRAINS[0]: rows_of(23, 2, late=[True, False])})
    found = {row["notification"]: row["late"] for row in collected(read_outbox(spark, outbox.path))}
    assert (found[1], found[23], found[24]) == (None, True, False)
    assert "late" in read_outbox(spark, outbox.path, stream=True).columns


@pytest.mark.spark
def test_the_columns_are_those_of_the_docs(spark: SparkSession, outbox: Filled) -> None:
    added = ["notification", "version", "nodes", "numbers", "subscriptions", "grain"]
    wanted = ["geo.zone", "a `b`", "tags", *added]
    assert read_outbox(spark, outbox.path).columns == wanted
    assert read_outbox(spark, outbox.path, stream=True).columns == wanted
    some = read_outbox(spark, outbox.path, schema="tags array<string>, numbers array<long>")
    assert some.columns == ["tags", "numbers", "grain"]
    expected = [(row["tags"], row["numbers"], row["grain"]) for row in oracle(outbox)]
    assert sorted(map(tuple, some.collect()), key=lambda row: row[1]) == expected


@pytest.mark.spark
def test_nodes_have_no_numbers_where_a_rendezvous_point_gives_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    outbox = Outbox(tmp_path / "out")
    folder = outbox.folder(0, "a") / GRAINS[0]
    folder.mkdir(parents=True)
    pq.write_table(with_places(rows_of(1, 3), 0), folder / "part.parquet")
    counted = [PartitionCounts(1, 3, pack_counts({1: 3, 2: 3}))]
    files = files_of(outbox, 0, "a")
    outbox.commit(Commit(0, "a", 7, 0, 3, 3, 3, 0, files=files, life=9, partitions=counted))
    for df in (read_outbox(spark, outbox.path), read_outbox(spark, outbox.path, stream=True)):
        assert df.schema["numbers"].dataType.simpleString() == "array<bigint>"
    found = collected(read_outbox(spark, outbox.path))
    assert [(row["notification"], row["numbers"]) for row in found] == [
        (1, None), (2, None), (3, None)
    ]  # fmt: skip


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


def test_a_reader_follows_commits(outbox: Filled) -> None:
    reader = OutboxReader(outbox.path)
    assert list(commits_of(reader)) == [0, 1, 2]
    put(outbox, 3, {GRAINS[0]: rows_of(23, 1)})
    assert reader.refresh() == 4
    assert list(commits_of(reader)) == [0, 1, 2, 3]


def test_a_batch_is_read_with_its_numbers(tmp_path: Path) -> None:
    """A pipeline was stopped between the commit and the numbers."""
    outbox = Outbox(tmp_path / "out")
    put(outbox, 0, {GRAINS[0]: rows_of(1, 2)})
    put(outbox, 1, {GRAINS[0]: rows_of(3, 4)}, numbered=False)
    reader = OutboxReader(outbox.path)
    assert (reader.refresh(), list(commits_of(reader))) == (1, [0])
    outbox.put_numbers(1, {1: 2, 2: 40})
    assert (reader.refresh(), list(commits_of(reader))) == (2, [0, 1])
    (commit,) = reader.commits(1)
    (file,) = reader.files(commit)
    (rows,) = reader.batches(file, ["numbers", "notification"])
    assert rows.schema.names == ["numbers", "notification"]
    assert rows.to_pylist() == [
        {"numbers": [3 + at, 41 + at], "notification": 3 + at} for at in range(4)
    ]
    with pytest.raises(TidingsError, match="is not committed, or already has numbers"):
        outbox.put_numbers(1, {1: 2, 2: 40})
    with pytest.raises(TidingsError, match="is not committed, or already has numbers"):
        outbox.put_numbers(2, {1: 2})
