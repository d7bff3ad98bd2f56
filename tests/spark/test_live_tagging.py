"""One's own stream follows the subscriptions: each row says with which version it was matched."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidings import AttributesError, TidingsError, parse
from tidings.spark import tag_live
from tidings.store import ChangeLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id int, `geo.zone` string, price double, tags array<string>, `a b` struct<c: int>"
ROWS: list[dict[str, Any]] = [
    {"id": 1, "geo.zone": "eu", "price": 7.5, "tags": ["new", None], "a b": {"c": 4}},
    {"id": 2, "geo.zone": None, "price": 3.0, "tags": [], "a b": None},
    {"id": 3, "price": None},
]


def expected(log: ChangeLog, version: int) -> dict[int, list[str]]:
    """What matches, filter by filter and row by row."""
    filters = {id_: parse(text) for id_, (text, _) in log.state(version).subscriptions.items()}
    return {
        row["id"]: sorted(str(id_) for id_, one in filters.items() if one.matches(row))
        for row in ROWS
    }


@pytest.mark.spark
def test_a_stream_takes_changes_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    log = ChangeLog(tmp_path / "log")
    log.put("late", "price > 5")
    stream = spark.readStream.schema(SCHEMA).json(str(tmp_path / "in"))
    tagged = tag_live(stream, tmp_path / "log")
    assert tagged.columns == [*stream.columns, "subscriptions", "version"]
    got: list[tuple[int, list[str], int]] = []

    def take(df: DataFrame, _: int) -> None:
        got.extend((row.id, sorted(row.subscriptions), row.version) for row in df.collect())

    query = tagged.writeStream.foreachBatch(take).trigger(processingTime="50 milliseconds").start()
    changes: list[Callable[[], int]] = [
        lambda: log.version,
        lambda: log.put("cheap", "price < 5 OR price IS NULL"),
        lambda: log.put("zone", "`geo.zone` = 'eu' AND `a b`.c = 4"),
        lambda: log.drop("late"),
    ]
    try:
        for at, change in enumerate(changes):
            version, before = change(), len(got)
            beside = tmp_path / f"{at}.json"
            beside.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
            beside.rename(tmp_path / "in" / f"{at}.json")
            query.processAllAvailable()
            new = got[before:]
            assert {found for _, _, found in new} == {version}
            assert {id_: ids for id_, ids, _ in new} == expected(log, version)
    finally:
        query.stop()


@pytest.mark.spark
def test_a_table_has_one_version(spark: SparkSession, tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "log")
    log.put("late", "price > 5")
    table = spark.createDataFrame([(1, 7.5), (2, 1.0)], "id int, price double")
    tagged = tag_live(table, log)
    log.put("all", "price > 0")
    assert [tuple(row) for row in tagged.orderBy("id").collect()] == [
        (1, 7.5, ["late"], 1), (2, 1.0, [], 1),
    ]  # fmt: skip
    assert tag_live(table, log, "nodes").orderBy("id").first() == (1, 7.5, [1], 2)


@pytest.mark.spark
def test_what_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(TidingsError, match="there is no log of subscriptions in"):
        tag_live(stream, tmp_path / "none")
    with pytest.raises(TidingsError, match="expected a local path"):
        tag_live(stream, "s3a://bucket/log")
    log = ChangeLog(tmp_path / "log")
    log.put("odd", "valeu > 5")
    with pytest.raises(AttributesError, match="did you mean value"):
        tag_live(stream, log)
    log.drop("odd")
    with pytest.raises(TidingsError, match="found the output 'pairs'"):
        tag_live(stream, log, "pairs")
    with pytest.raises(AttributesError, match="already has a column 'Version'"):
        tag_live(stream.withColumnRenamed("value", "Version"), log)
    with pytest.raises(AttributesError, match="no column 'x'"):
        tag_live(stream, log, columns=["x"])
