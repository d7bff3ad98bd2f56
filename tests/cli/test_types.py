"""`tidings types` and `tidings pipeline init`: what is printed can be pasted and works."""

from __future__ import annotations

import json
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from tests.cli.conftest import app
from typer.testing import CliRunner

from tidings import Attributes
from tidings.spark.pipeline.settings import load_settings

ROWS: list[dict[str, Any]] = [
    {"id": 1, "tags": ["a"], "lines": [{"sku": "x", "price": 3}], "geo.zone": "EU",
     "at": "2024-02-29T10:30:00Z", "day": "2024-02-29", "none": None, "mixed": 1, "empty": []},
    {"id": 2, "lines": [{"sku": "y", "price": 2.5}], "zip code": 7, "user": {"city": "Bern"},
     "mixed": "x", 'odd "name"`': True, "day": "2024-02-30"},
]  # fmt: skip
TYPES = {
    "id": "integer", "tags": "list<string>", "lines": "list<struct<sku: string, price: double>>",
    "`geo.zone`": "string", "at": "timestamp", "day": "string", "zip code": "integer",
    "user": "struct<city: string>", '`odd "name"```': "boolean",
}  # fmt: skip


def _call(*words: str) -> str:
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == 0, found.output
    return found.stdout


@pytest.mark.parametrize("form", ["lines", "array"])
def test_types_of_json(tmp_path: Path, form: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        json.dumps(ROWS, indent=1) if form == "array" else "\n".join(map(json.dumps, ROWS))
    )
    text = _call("types", str(path))
    assert tomllib.loads(text) == TYPES
    assert "# none: only nulls" in text
    assert "# mixed: mixed: integer and string" in text
    assert "# empty: only empty lists" in text
    declared = Attributes(tomllib.loads(text))
    for row in ROWS:
        declared.read(row)
    assert json.loads(_call("types", "--json", str(path))) == TYPES


TABLE = pa.table(
    {
        "a.b": pa.array([1], pa.int32()),
        "d": pa.array([Decimal("1.5")], pa.decimal128(10, 2)),
        "l": pa.array([[{"x y": 1.5}]]),
        "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "t": pa.array([0], pa.timestamp("ns", "Europe/Berlin")),
        "c": pa.array(["x"]).dictionary_encode(),
        "bytes": pa.array([b"x"]),
    }
)
OF_TABLE = {
    "`a.b`": "integer", "d": "decimal(10, 2)", "l": "list<struct<`x y`: double>>",
    "m": "map<string, integer>", "t": "timestamp", "c": "string",
}  # fmt: skip


def test_types_of_tables(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    feather.write_feather(TABLE, tmp_path / "a.arrow", compression="uncompressed")
    with pa.ipc.new_stream(str(tmp_path / "b.arrow"), TABLE.schema) as stream:
        stream.write_table(TABLE)
    for name in ("a.parquet", "a.arrow", "b.arrow"):
        text = _call("types", str(tmp_path / name))
        assert tomllib.loads(text) == OF_TABLE, name
        assert "# bytes: the type binary can't be declared" in text
    (tmp_path / "a.csv").write_text("id,day,zip code\n1,2024-02-29,x\n")
    found = tomllib.loads(_call("types", str(tmp_path / "a.csv")))
    assert found == {"id": "integer", "day": "date", "zip code": "string"}


def test_attributes_from_schemas() -> None:
    usable = TABLE.drop_columns(["bytes"])
    found = Attributes.from_arrow(usable)
    assert {name: str(kind) for name, kind in found.tree.items()} == {
        "subject": "string", "a.b": "integer", "d": "decimal(10, 2)",
        "l": "list<struct<`x y`: double>>", "m": "map<string, integer>", "t": "timestamp",
        "c": "string",
    }  # fmt: skip
    from pyspark.sql import types as t

    inner = t.StructType([t.StructField("x y", t.FloatType())])
    kinds: dict[str, t.DataType] = {
        "a.b": t.ShortType(), "d": t.DecimalType(10, 2), "l": t.ArrayType(inner),
        "m": t.MapType(t.StringType(), t.LongType()), "t": t.TimestampNTZType(),
        "c": t.StringType(),
    }  # fmt: skip
    schema = t.StructType([t.StructField(name, kind) for name, kind in kinds.items()])
    assert repr(Attributes.from_spark(schema)) == repr(found)


def test_a_map_is_seen_by_its_many_keys() -> None:
    rows = [{"id": n, "attrs": {f"k{n}": n / 2}} for n in range(100)]
    found = Attributes.from_json_sample(rows)
    assert str(found.data_type(("attrs",))) == "map<string, double>"


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_a_pipeline_file_for_data(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    if form == "json":
        (folder / "a.json").write_text("\n".join(map(json.dumps, ROWS)))
    elif form == "csv":
        (folder / "a.csv").write_text("id,day,version,extra\n1,2024-02-29,x,y\n")
    else:
        pq.write_table(TABLE, folder / "a.parquet")
    target = tmp_path / "pipeline.toml"
    _call("pipeline", "init", str(folder / f"a.{form}"), "--output", str(target))
    settings = load_settings(target)
    assert settings.at("in") == folder
    if form == "json":
        assert settings.columns == TYPES
    if form == "csv":
        # the outbox has a column version, and a column extra only of JSON
        assert settings.columns == {"id": "integer", "day": "date", "extra": "string"}
    again = CliRunner().invoke(
        app, ["pipeline", "init", str(folder / f"a.{form}"), "--output", str(target)]
    )
    assert again.exit_code == 2
    assert "the file exists" in again.stderr
