"""Handing rows to a rendezvous point from Spark, with a point that is killed in between."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pytest
from tests.spark.standin import delivered
from tests.spark.standin_process import StandInProcess

from tidings.model import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark


@pytest.fixture
def point(tmp_path: Path) -> Iterator[StandInProcess]:
    process = StandInProcess(tmp_path / "point")
    yield process
    process.kill()


def values(folder: Path) -> list[int]:
    """The column `n` of all that was delivered."""
    rows = [row for rows in delivered(folder / "point").values() for row in rows]
    return sorted(msgspec.msgpack.decode(row)["n"] for row in rows)


class Numbers:
    """A stream of numbers from files, written batch by batch."""

    def __init__(self, spark: SparkSession, folder: Path, port: int) -> None:
        from tidings.spark import register

        register(spark)
        self._folder = folder
        self._files = folder / "files"
        self._files.mkdir()
        self._port = port
        self._next = 0
        self.expected: list[int] = []
        reader = spark.readStream.schema("n long").option("maxFilesPerTrigger", 1)
        self.stream = reader.json(str(self._files))

    def add(self) -> None:
        """Ten more numbers, in a file of their own."""
        fresh = range(10 * self._next, 10 * self._next + 10)
        lines = "".join(f'{{"n": {n}}}\n' for n in fresh)
        (self._files / f"{self._next}.json").write_text(lines)
        self.expected += fresh
        self._next += 1

    def run(self, patience: str = "30") -> StreamingQuery:
        writer = self.stream.writeStream.format("tidings-rendezvous").options(
            port=str(self._port), stream="numbers", patience=patience
        )
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        return writer.trigger(availableNow=True).start()


def test_a_stream_goes_on_when_the_point_was_killed(
    spark: SparkSession, point: StandInProcess, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    numbers = Numbers(spark, tmp_path, point.port)
    numbers.add()
    numbers.add()
    numbers.run().awaitTermination()
    assert values(tmp_path) == numbers.expected
    point.kill()
    numbers.add()
    with pytest.raises(StreamingQueryException, match="does not answer"):
        numbers.run(patience="0.1").awaitTermination()

    again = StandInProcess(tmp_path / "point", point.port)
    try:
        numbers.run().awaitTermination()
        again.kill()
        numbers.add()
        running = numbers.run()  # while nobody listens
        again = StandInProcess(tmp_path / "point", point.port)
        running.awaitTermination()
    finally:
        again.kill()

    assert values(tmp_path) == numbers.expected
    (stream,) = delivered(tmp_path / "point")
    assert stream.startswith("numbers#")


def test_a_batch_that_spark_forgot_is_not_delivered_again(
    spark: SparkSession, point: StandInProcess, tmp_path: Path
) -> None:
    numbers = Numbers(spark, tmp_path, point.port)
    numbers.add()
    numbers.run().awaitTermination()
    # As if the driver had died after the commit at the point and before Spark's own.
    for path in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        path.unlink()
    numbers.add()
    numbers.run().awaitTermination()

    assert values(tmp_path) == numbers.expected


def test_hand_over_for_each_batch(
    spark: SparkSession, point: StandInProcess, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    from tidings.spark import Target, hand_over

    target = Target("127.0.0.1", point.port, "numbers", ("n",))
    calls: list[tuple[int, bool]] = []
    failing = True

    def each(batch: DataFrame, number: int) -> None:
        calls.append((number, hand_over(batch.selectExpr("n", "n + 1 AS m"), number, target)))
        if failing:
            raise RuntimeError("after the handover")

    def run() -> None:
        writer = numbers.stream.writeStream.foreachBatch(each)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    numbers = Numbers(spark, tmp_path, point.port)
    numbers.add()
    numbers.add()
    with pytest.raises(StreamingQueryException, match="after the handover"):
        run()
    failing = False
    run()

    assert calls == [(0, True), (0, False), (1, True)]
    assert values(tmp_path) == numbers.expected


def test_tasks_that_fail_leave_nothing_behind(
    spark: SparkSession, point: StandInProcess, tmp_path: Path
) -> None:
    from tidings.spark import Target, hand_over

    target = Target("127.0.0.1", point.port, "numbers")
    marker = tmp_path / "failed"

    def stumble(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        if not marker.exists():
            marker.touch()
            raise RuntimeError("the first try fails")

    table = spark.range(3000, numPartitions=2).selectExpr("id AS n")
    with pytest.raises(Exception, match="the first try fails"):
        hand_over(table.mapInArrow(stumble, "n long"), 5, target)
    assert hand_over(table.mapInArrow(stumble, "n long"), 5, target)
    assert not hand_over(table, 5, target)

    assert values(tmp_path) == list(range(3000))


def test_tables(spark: SparkSession, point: StandInProcess, tmp_path: Path) -> None:
    from tidings.spark import register

    register(spark)
    table = spark.range(4).selectExpr(
        "id AS n", "cast(id AS string) AS s", "encode('x', 'utf-8') b"
    )
    writer = table.write.format("tidings-rendezvous").mode("append").option("port", point.port)
    writer.option("stream", "all").save()
    writer.option("stream", "bytes").option("columns", "b").save()
    for _ in range(2):
        writer.option("stream", "twice").option("columns", "s, n").option("batch", "1").save()
    found = delivered(tmp_path / "point")

    assert msgspec.msgpack.decode(found["all"][1]) == {"n": 1, "s": "1", "b": b"x"}
    assert found["bytes"] == [b"x"] * 4
    assert [msgspec.msgpack.decode(row) for row in found["twice"]] == [
        {"s": str(n), "n": n} for n in range(4)
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"stream": "s"}, 'The option "port" of tidings-rendezvous is missing'),
        ({"port": "1"}, 'The option "stream" of tidings-rendezvous is missing'),
        ({"port": "x", "stream": "s"}, "cannot be read: invalid literal"),
        (
            {"port": "1", "stream": "s", "columns": "a,c"},
            "There is no column c to send; the columns are a, b",
        ),
    ],
)
def test_options_are_checked(options: dict[str, str], sentence: str) -> None:
    from pyspark.sql.types import StructType

    from tidings.spark.handover.rendezvous_sink import Target

    with pytest.raises(EnvironmentProblem, match=sentence):
        Target.of(options, StructType().add("a", "long").add("b", "long"))


def test_values_of_all_kinds_travel() -> None:
    from tidings.spark.handover.payloads import chunks

    moment = dt.datetime(2013, 1, 1, 10, tzinfo=dt.UTC)
    row = {"t": moment, "d": dt.date(2013, 1, 1), "x": 1.5, "l": [1, None], "s": {"a": "ü"}}
    batch = pa.RecordBatch.from_pylist([row | {"m": decimal.Decimal("1.20")}])
    ((payload,),) = chunks((), iter([batch]))

    assert msgspec.msgpack.decode(payload) == row | {"d": "2013-01-01", "m": "1.20"}


def test_nulls_are_no_bytes() -> None:
    from tidings.spark.handover.payloads import chunks

    batch = pa.record_batch({"b": pa.array([b"x", None])})

    with pytest.raises(EnvironmentProblem, match="column b has nulls"):
        list(chunks((), iter([batch])))
