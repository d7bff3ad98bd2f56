"""Pipelines on data of others: lists, maps, decimals, odd names, fields that nobody declared."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidings.spark.outbox.outbox import Outbox
from tidings.spark.pipeline.inspection import inspect
from tidings.spark.pipeline.pipeline import Pipeline
from tidings.spark.pipeline.settings import load_settings
from tidings.store import ChangeLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FILE = """
name = "orders"
{extra}
[source]
kind = "files"
path = "in"
format = "{format}"

[subscriptions]
log = "subscriptions"

[outbox]
path = "out"

[trigger]
available_now = true

{columns}
"""
COLUMNS = """
[columns]
id = "int"
tags = "list<string>"
lines = "list<struct<sku: string, price: double>>"
attrs = "map<string, double>"
"`geo.zone`" = "string"
"zip code" = "bigint"
amount = "decimal(20, 18)"
user.city = "string"
"""
ORDERS: list[dict[str, Any]] = [
    {"id": 1, "tags": ["a", "b"], "lines": [{"sku": "x", "price": 300}], "geo.zone": "EU"},
    {"id": 2, "tags": [], "attrs": {"k1": 5, "k2": None}, "zip code": 8001, "source": "web"},
    {"id": 3, "tags": None, "user": {"city": "Bern", "age": 7}, "source": 5},
    {"id": 4, "amount": "0.100000000000000001", "source": None, "size": 3},
    {"id": 5, "amount": 0.1, "lines": [{"sku": "y", "price": 1, "gift": True}]},
]


def _prepare(folder: Path, extra: str, columns: str, filters: dict[str, str], form: str) -> None:
    (folder / "in").mkdir()
    line = f'extra = "{extra}"' if extra else ""
    text = FILE.format(extra=line, columns=columns, format=form)
    (folder / "pipeline.toml").write_text(text)
    ChangeLog(folder / "subscriptions").put_many(filters)


def _run(spark: SparkSession, folder: Path) -> dict[str, list[Any]]:
    """Run to the end; the rows of each subscription."""
    settings = load_settings(folder / "pipeline.toml")
    inspect(settings, lambda: spark)
    pipeline = Pipeline(settings, spark)
    pipeline.start().awaitTermination()
    pipeline.close()
    told: dict[str, list[Any]] = {}
    for commit in Outbox(folder / "out").log.each():
        for file in commit.files:
            if file.path.endswith(".parquet") and "refused" not in file.path:
                for row in pq.read_table(folder / "out" / file.path, partitioning=None).to_pylist():
                    for name in row.get("subscriptions", []):
                        told.setdefault(name, []).append(row)
    return told


DECLARED = {
    "tag": "array_contains(tags, 'b')",
    "price": "array_contains(lines.price, 300)",
    "key": "attrs.k1 > 4",
    "zone": "`geo.zone` = 'EU'",
    "zip": "`zip code` = 8001",
    "exactly": "amount = 0.1",
    "above": "amount > 0.1",
    "city": "user.city = 'Bern'",
}
FOUND = {"tag": [1], "price": [1], "key": [2], "zone": [1], "zip": [2], "exactly": [5],
         "above": [4], "city": [3]}  # fmt: skip


def _ids(told: dict[str, list[Any]]) -> dict[str, list[int]]:
    return {name: sorted(row["id"] for row in rows) for name, rows in told.items()}


@pytest.mark.parametrize("extra", ["", "keep", "drop", "refuse"])
def test_json_with_all_types(spark: SparkSession, tmp_path: Path, extra: str) -> None:
    _prepare(tmp_path, extra, COLUMNS, DECLARED, "json")
    (tmp_path / "in" / "a.json").write_text("\n".join(map(json.dumps, ORDERS)) + "\n")
    told = _run(spark, tmp_path)
    (commit,) = Outbox(tmp_path / "out").log.each()
    if extra == "refuse":
        assert _ids(told) == {"tag": [1], "price": [1], "zone": [1]}
        assert (commit.rows, commit.refused, commit.extra_fields) == (1, 4, 0)
        return
    assert _ids(told) == FOUND
    assert (commit.rows, commit.refused) == (5, 0)
    assert (commit.extra_rows, commit.extra_fields) == (4, 6)
    (city,) = told["city"]
    if extra == "drop":
        assert "extra" not in city
    else:
        assert json.loads(city["extra"]) == {"user": {"age": 7}, "source": 5}
        assert told["tag"][0]["extra"] is None
    assert told["above"][0]["amount"] == Decimal("0.100000000000000001")


OPEN = {
    "web": "source = 'web'",
    "five": "source = 5",
    "size": "size > 2",
    "age": "user.age = 7",
    "id": "id <= 2",
}


@pytest.mark.parametrize("columns", ["", '[columns]\nid = "integer"\nuser.city = "string"'])
def test_filters_see_fields_that_are_not_declared(
    spark: SparkSession, tmp_path: Path, columns: str
) -> None:
    _prepare(tmp_path, "open" if columns else "", columns, OPEN, "json")
    (tmp_path / "in" / "a.json").write_text("\n".join(map(json.dumps, ORDERS)) + "\n")
    told = _run(spark, tmp_path)
    whole = {
        name: sorted(row["id"] if columns else json.loads(row["extra"])["id"] for row in rows)
        for name, rows in told.items()
    }
    assert whole == {"web": [2], "five": [3], "size": [4], "age": [3], "id": [1, 2]}


@pytest.mark.parametrize(
    "columns",
    ["", '[columns]\n"`geo.zone`" = "string"\n"zip code" = "integer"\namount = "decimal(20, 18)"'],
)
def test_parquet_with_odd_names(spark: SparkSession, tmp_path: Path, columns: str) -> None:
    filters = {"zone": "`geo.zone` = 'EU'", "zip": "`zip code` > 5", "exactly": "amount = 0.1"}
    _prepare(tmp_path, "", columns, filters, "parquet")
    table = pa.table(
        {
            "geo.zone": ["EU", "US"],
            "zip code": [1, 7],
            "amount": pa.array([Decimal("0.1"), Decimal("0.1000001")], pa.decimal128(20, 18)),
        }
    )
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    told = _run(spark, tmp_path)
    assert {name: [row["geo.zone"] for row in rows] for name, rows in told.items()} == {
        "zone": ["EU"], "zip": ["US"], "exactly": ["EU"],
    }  # fmt: skip
