"""Tables, snapshots and outboxes at s3a://, through Spark and Arrow, against moto's server.

`make s3a` runs these tests in a process of their own: jars must be named when a session starts, and
all other tests share one session. Local files and `Filter.matches` are the judges.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.fs
import pytest
from tests.snapshots.buckets import serve_bucket
from tests.spark.test_outbox_reading import GRAINS, collected, oracle, put, rows_of

from tidings import Snapshot, TidingsError, parse
from tidings.files import open_place
from tidings.spark import build_snapshot, local_session, read_outbox, tag
from tidings.spark.outbox import Outbox

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        os.environ.get("TIDINGS_S3A") != "required",
        reason="the jars must be there when the session starts: run `make s3a`",
    ),
]

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
FILTERS = {
    "ana": "price > 5",
    "ben": "price > 5 AND city = 'Bonn'",
    "cy": "day = DATE '2024-03-31'",
}
ROWS = [
    (1, 3.5, "Rome", "2024-03-30"),
    (2, 6.0, "Bonn", "2024-03-31"),
    (3, 9.0, None, "2024-03-30"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    yield from serve_bucket()


@pytest.fixture(scope="module")
def session(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with the settings that the page names."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))  # for snapshots
    here = {
        "spark.hadoop.fs.s3a.endpoint": server,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",  # no names of hosts for buckets
    }
    made = local_session("s3a", 2, **page_settings(), **here)
    yield made
    made.stop()


def page_settings() -> dict[str, str]:
    """The settings of the example in docs/spark.md."""
    found = re.search(r"^parts = .*?(?=^orders = )", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    names: dict[str, Any] = {"local_session": lambda _, **settings: settings}
    exec(found[0], names)
    settings: dict[str, str] = names["spark"]
    return settings


def write_rows(session: SparkSession, address: str) -> DataFrame:
    rows = session.createDataFrame(ROWS, "id int, price double, city string, day string")
    rows = rows.selectExpr("id", "price", "city", "CAST(day AS date) AS day")
    rows.write.partitionBy("day").parquet(address)
    return session.read.parquet(address)


def matching(rows: DataFrame) -> dict[int, list[str]]:
    """What `Filter.matches` says of each row."""
    parsed = {id_: parse(text) for id_, text in FILTERS.items()}
    return {
        row["id"]: [id_ for id_, one in parsed.items() if one.matches(row.asDict())]
        for row in rows.collect()
    }


def tags_of(tagged: DataFrame) -> dict[int, list[str]]:
    return {row["id"]: sorted(row["subscriptions"]) for row in tagged.collect()}


def test_a_table_is_tagged_with_a_snapshot_that_spark_compiled(session: SparkSession) -> None:
    rows = write_rows(session, "s3a://box/rows")
    expected = matching(rows)
    assert expected == {1: [], 2: ["ana", "ben", "cy"], 3: ["ana"]}
    session.createDataFrame(list(FILTERS.items()), "id string, filter string").write.parquet(
        "s3a://box/wanted"
    )

    wanted = session.read.parquet("s3a://box/wanted")
    built = build_snapshot(wanted, "s3a://box/snapshot")

    assert built.address == "s3a://box/snapshot"
    assert built.nodes_by_id() == Snapshot.build(sorted(FILTERS.items())).nodes_by_id()
    for snapshot in (built, "s3a://box/snapshot", "s3://box/snapshot"):
        assert tags_of(tag(rows, snapshot, "subscriptions")) == expected
    tag(rows, built, "subscriptions").write.partitionBy("day").parquet("s3a://box/tagged")
    assert tags_of(session.read.parquet("s3a://box/tagged")) == expected
    build_snapshot(wanted.where("id = 'ana'"), "s3a://box/snapshot")  # takes its place
    assert tags_of(tag(rows, "s3a://box/snapshot", "subscriptions")) == {
        1: [],
        2: ["ana"],
        3: ["ana"],
    }


def test_bad_rows_are_written_beside_the_snapshot(session: SparkSession, tmp_path: Path) -> None:
    given = [("ana", "price > 5"), ("ben", "price >")]
    wanted = session.createDataFrame(given, "id string, filter string")
    with pytest.raises(TidingsError, match="1 of 2 filters are refused; 'ben'"):
        build_snapshot(wanted, "s3a://box/some")
    built = build_snapshot(wanted, "s3a://box/some", errors="collect", work=tmp_path / "work")
    assert list(built.nodes_by_id()) == ["ana"]
    assert list((tmp_path / "work").iterdir()) == []
    skipped = session.read.parquet("s3a://box/some.skipped").collect()
    assert [(row["id"], row["filter"]) for row in skipped] == [("ben", "price >")]


def test_an_outbox_is_read_as_a_table_and_as_a_stream(
    session: SparkSession, tmp_path: Path
) -> None:
    outbox = Outbox(tmp_path / "out")
    put(outbox, 0, {GRAINS[0]: rows_of(1, 10), GRAINS[1]: rows_of(11, 3)}, dead=2)
    put(outbox, 1, {GRAINS[1]: rows_of(14, 2)})
    system, root = open_place("s3a://box/out")
    here = pyarrow.fs.LocalFileSystem()
    pyarrow.fs.copy_files(str(outbox.path), root, here, system, use_threads=False)

    assert collected(read_outbox(session, "s3a://box/out")) == oracle(outbox)
    assert read_outbox(session, "s3a://box/out", dead=True).count() == 2
    stream = read_outbox(session, "s3a://box/out", stream=True)
    query = stream.writeStream.format("memory").queryName("told").trigger(availableNow=True).start()
    query.awaitTermination()
    assert collected(session.table("told")) == oracle(outbox)
