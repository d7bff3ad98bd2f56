"""Spark's from_json on well-typed rows, and its CSV reader in front of `decode_text_columns`."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidings.notifications import decode_json, decode_text_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DDL = (
    "a BIGINT, s SMALLINT, d DOUBLE, t STRING, b BOOLEAN, day DATE, at TIMESTAMP, "
    "tags ARRAY<STRING>, user STRUCT<city: STRING, born: DATE>, legs ARRAY<STRUCT<to: STRING>>"
)
SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("s", pa.int16()),
        ("d", pa.float64()),
        ("t", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
        ("user", pa.struct([("city", pa.string()), ("born", pa.date32())])),
        ("legs", pa.list_(pa.struct([("to", pa.string())]))),
    ]
)
LINES = [
    "{}",
    '{"a": 9223372036854775807, "s": -3, "d": 1, "t": "x\\u00e3\\n", "b": true}',
    '{"d": 0.1, "t": "", "b": null}',
    '{"d": 123456789.123456789e-5, "t": "\\ud83d\\ude00"}',
    '{"day": "2013-01-31", "at": "2013-01-31T05:06:07Z"}',
    '{"day": "1900-02-28", "at": "2013-01-31T05:06:07.123456+02:00"}',
    '{"at": "1969-12-31T23:59:59.5Z", "tags": ["a", null, ""]}',
    '{"tags": [], "user": {"born": "2001-01-01"}, "legs": [null, {}, {"to": "JFK"}]}',
    '{"user": null, "legs": null, "tags": null}',
    '{"a": 1, "a": 2}',
    '{"user": {"city": "a"}, "user": {"born": "2001-01-01"}}',
    ' {"a" : 1 } ',
]


def plain(value: Any) -> Any:
    """Spark's rows as mappings, its instants in UTC."""
    if hasattr(value, "asDict"):
        return {name: plain(inner) for name, inner in value.asDict().items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value.astimezone(dt.UTC) if isinstance(value, dt.datetime) else value


def test_from_json_reads_the_same(spark: SparkSession) -> None:
    from pyspark.sql import functions as f

    frame = spark.createDataFrame(
        [(at, line) for at, line in enumerate(LINES)], "at INT, line STRING"
    )
    found = frame.select("at", f.from_json("line", DDL).alias("row")).orderBy("at").collect()
    decoded = decode_json(pa.array(LINES), SCHEMA)
    assert decoded.reasons == []
    for row, wanted in zip(decoded.good.to_pylist(), found, strict=True):
        assert {name: plain(value) for name, value in row.items()} == plain(wanted["row"])


def test_a_csv_file_by_way_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "flights.csv").write_text(
        "delay,day,dest\n12,2013-01-31,JFK\nlate,,LGA\n3,,,,x\n,,\n"
    )
    columns = "delay STRING, day STRING, dest STRING, _corrupt_record STRING"
    frame = spark.read.csv(
        str(tmp_path), columns, header=True, columnNameOfCorruptRecord="_corrupt_record"
    )
    (batch,) = frame.toArrow().combine_chunks().to_batches()
    schema = pa.schema([("delay", pa.int64()), ("day", pa.date32()), ("dest", pa.string())])
    decoded = decode_text_columns(batch, schema, "_corrupt_record")
    assert decoded.good.to_pylist() == [
        {"delay": 12, "day": dt.date(2013, 1, 31), "dest": "JFK"},
        {"delay": None, "day": None, "dest": None},
    ]
    assert decoded.reasons == [
        "column 'delay': found 'late', expected an integer of 64 bits",
        "the row could not be split into columns: found '3,,,,x', "
        "expected one value for each column",
    ]
