"""Feeds as a source of Spark: streams that are stopped, fail and go on, and tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.feed_server import FeedServer, atom, rss, serve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with serve() as server:
        server.pages |= {"/rss": rss("a", "b"), "/atom": atom("x")}
        yield server


class Query:
    """A query on feeds that can be run again from its checkpoint; it collects titles."""

    def __init__(self, spark: SparkSession, folder: Path, urls: str, **options: str) -> None:
        from tidings.spark.feeds.feeds import FeedSource

        spark.dataSource.register(FeedSource)
        self.batches: list[tuple[int, list[str]]] = []
        self.failing = False
        self._folder = folder
        reader = spark.readStream.format("tidings-feeds").option("urls", urls)
        self._stream = reader.option("spool", str(folder / "spool")).options(**options).load()

    @property
    def titles(self) -> list[str]:
        return sorted(title for _, titles in self.batches for title in titles)

    def run(self) -> None:
        writer = self._stream.writeStream.foreachBatch(self._keep)
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()

    def _keep(self, batch: DataFrame, number: int) -> None:
        self.batches.append((number, sorted(row.title for row in batch.collect())))
        if self.failing:
            raise RuntimeError("the sink is down")


def test_each_entry_once_through_restarts(
    spark: SparkSession, server: FeedServer, tmp_path: Path
) -> None:
    query = Query(spark, tmp_path, f"{server.url('/rss')}\n{server.url('/atom')}")
    query.run()
    query.run()
    server.pages |= {"/rss": rss("c", "b"), "/atom": atom("y", "x")}
    query.run()
    server.pages["/rss"] = rss("d Grüße 東京", "c")
    query.run()

    assert query.titles == ["a", "b", "c", "d Grüße 東京", "x", "y"]
    assert 304 in {status for _, status, _ in server.log}
    # What Spark is done with is gone; the last batch is not known to be done yet.
    assert len(list((tmp_path / "spool").glob("*.jsonl"))) == 1


def test_a_batch_that_is_tried_again_has_the_same_entries(
    spark: SparkSession, server: FeedServer, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    query = Query(spark, tmp_path, server.url("/rss"))
    query.failing = True
    with pytest.raises(StreamingQueryException, match="the sink is down"):
        query.run()
    server.pages["/rss"] = rss("c", "d")
    query.failing = False
    query.run()

    assert query.batches == [(0, ["a", "b"]), (0, ["a", "b"]), (1, ["c", "d"])]


def test_broken_feeds_do_not_end_the_stream(
    spark: SparkSession, server: FeedServer, tmp_path: Path
) -> None:
    server.pages["/cut"] = rss("p", "q")[:-60]
    local = tmp_path / "local.xml"
    local.write_bytes(rss("f"))
    urls = f"{server.url('/cut')} {server.url('/none')} {local} http://127.0.0.1:1/"
    query = Query(spark, tmp_path, urls)
    query.run()
    server.status = 500
    query.run()
    server.status = 200
    server.pages["/cut"] = rss("p", "q")
    query.run()

    assert query.titles == ["f", "p", "q"]


def test_entries_arrive_while_the_query_runs(
    spark: SparkSession, server: FeedServer, tmp_path: Path
) -> None:
    query = Query(spark, tmp_path, server.url("/rss"), interval="0")
    writer = query._stream.writeStream.format("memory").queryName("arriving")
    running = writer.trigger(processingTime="50 milliseconds").start()
    try:
        running.processAllAvailable()
        for title in "cde":
            server.pages["/rss"] = rss(title)
            running.processAllAvailable()
        titles = [row.title for row in spark.table("arriving").collect()]
    finally:
        running.stop()

    assert sorted(titles) == ["a", "b", "c", "d", "e"]


def test_rounds_of_fetching_can_be_taken_one_by_one(server: FeedServer, tmp_path: Path) -> None:
    from pyspark.sql.streaming.datasource import ReadMaxFiles

    from tidings.spark.feeds.feeds import FeedOptions, FeedStreamReader

    options = {"urls": server.url("/rss"), "spool": str(tmp_path), "interval": "0"}
    options["maxFilesPerTrigger"] = "1"
    reader = FeedStreamReader(FeedOptions(options))
    start = reader.initialOffset()
    for title in "cd":
        reader.latestOffset(start, ReadMaxFiles(1))
        server.pages["/rss"] = rss(title)

    assert reader.getDefaultReadLimit() == ReadMaxFiles(1)
    assert reader.latestOffset(start, ReadMaxFiles(1)) == {"file": 1}
    assert reader.latestOffset({"file": 1}, ReadMaxFiles(5)) == {"file": 3}
    assert reader.reportLatestOffset() == {"file": 3}
    reader.stop()


def test_a_copy_of_a_query_does_not_get_the_spool(server: FeedServer, tmp_path: Path) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    from tidings.model import EnvironmentProblem
    from tidings.spark.feeds.feeds import FeedOptions, FeedStreamReader

    def reader(checkpoint: str) -> FeedStreamReader:
        options = {"urls": server.url("/rss"), "spool": str(tmp_path / "spool"), "interval": "0"}
        return FeedStreamReader(FeedOptions(options | {"checkpoint": str(tmp_path / checkpoint)}))

    original = reader("original")
    offset = original.latestOffset(original.initialOffset(), ReadAllAvailable())
    original.stop()
    copy = reader("copy")
    with pytest.raises(EnvironmentProblem, match="belongs to another checkpoint"):
        copy.initialOffset()
    copy.stop()
    original = reader("original")  # after a restart, the same rows

    (partition,) = original.partitions({"file": 0}, offset)
    assert [row[3] for row in original.read(partition)] == ["a", "b"]
    original.stop()


def test_problems_are_logged_when_they_change(
    server: FeedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    from tidings.spark.feeds.feeds import FeedOptions, FeedStreamReader

    options = {"urls": server.url("/rss"), "spool": str(tmp_path), "interval": "0"}
    reader = FeedStreamReader(FeedOptions(options))
    for status in (500, 500, 503, 200, 200):
        server.status = status
        reader.latestOffset({"file": 0}, ReadAllAvailable())
    reader.stop()

    said = [record.getMessage().split("/rss ")[1] for record in caplog.records]
    assert said == [
        "answered with status 500",
        "answered with status 503",
        "can be read again",
    ]


def test_each_query_tells_of_a_problem(
    server: FeedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    from tidings.spark.feeds.feed_spool import feed_problems
    from tidings.spark.feeds.feeds import FeedOptions, FeedStreamReader

    for status in (500, 500, 200, 200):
        server.status = status
        reader = FeedStreamReader(FeedOptions({"urls": server.url("/rss"), "spool": str(tmp_path)}))
        reader.latestOffset({"file": 0}, ReadAllAvailable())
        reader.stop()
        assert list(feed_problems(tmp_path)) == ([server.url("/rss")] if status == 500 else [])

    said = [record.getMessage().split("/rss ")[1] for record in caplog.records]
    assert said == [
        "answered with status 500",
        "answered with status 500",
        "can be read again",
    ]


def test_feeds_as_a_table(spark: SparkSession, server: FeedServer) -> None:
    from tidings.spark.feeds.feeds import FeedSource

    spark.dataSource.register(FeedSource)
    reader = spark.read.format("tidings-feeds")
    table = reader.option("urls", f"{server.url('/rss')} {server.url('/atom')}").load()
    rows = sorted(table.collect(), key=lambda row: str(row.title))

    assert [row.title for row in rows] == ["a", "b", "x"]
    assert rows[0].categories == ["news"]
    assert rows[0].published.astimezone(dt.UTC) == dt.datetime(2013, 1, 1, 8, tzinfo=dt.UTC)
    assert rows[0].updated is None
    assert (rows[2].id, rows[2].author, rows[2].summary) == ("urn:x", "Ada", "about x")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, 'the option "urls" is missing'),
        ({"urls": "a", "interval": "soon"}, "the option \"interval\" is 'soon'"),
        ({"urls": "a", "largest": "-1"}, "expected a number of at least 0"),
    ],
)
def test_options_are_checked(options: dict[str, str], sentence: str) -> None:
    from tidings.model import EnvironmentProblem
    from tidings.spark.feeds.feeds import FeedOptions

    with pytest.raises(EnvironmentProblem, match=sentence):
        FeedOptions(options)
