"""A channel declares another attribute while a pipeline runs: the next batch has it, in every
format. Rows of CSV reach agents through real processes; Parquet is read by a stream in this one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.broker.kills.tree import ROOT
from tests.spark.chain import Chain
from tests.spark.kills.history import run_tidings
from tests.waiting import eventually

from tidings import Attributes
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.outbox.outbox_reading import OutboxReader
from tidings.spark.pipeline.pipeline import Pipeline
from tidings.spark.pipeline.settings import load_settings
from tidings.store import ChangeLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
PARQUET = """
name = "orders"

[source]
kind = "files"
path = "in"
format = "{format}"

[columns]
id = "integer"
price = "integer"

[subscriptions]
log = "channel"

[outbox]
path = "out"

[trigger]
every_seconds = 0.1
"""


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    columns = {"id": "integer", "price": "integer"}
    one = Chain(tmp_path, above={"e0": ROOT}, format="csv", columns=columns)
    yield one
    one.end()


def move(folder: Path, name: str, text: str) -> None:
    beside = folder / f".{name}"
    beside.write_text(text)
    beside.rename(folder / "in" / name)


def test_an_attribute_that_is_declared_while_the_pipeline_runs(chain: Chain) -> None:
    one = chain
    one.start()
    agent = one.listen("e0", "price > 10")
    move(one.folder, "0.csv", "id,price\n1,5\n2,15\n")
    one.run_pipeline()
    eventually(lambda: one.is_alive() and one.handed_rows() >= 2, 300)
    node = one.nodes()["price > 10"]
    root = str(one.folder / f"{ROOT}.toml")
    ran = run_tidings(one.folder, "channel", "declare", root, "--types", "price=double")
    assert (ran.code, "'price' is integer and would become double" in ran.said) == (2, True)
    assert f"node {node}: price > 10; drop it first" in ran.said
    ran = run_tidings(one.folder, "channel", "declare", root, "--types", "kind=string")
    assert ran.code == 0, ran.said
    ales = agent.subscribe("kind = 'ale'")
    move(one.folder, "1.csv", "kind,id,price\nale,3,5\nbeer,4,20\n")
    move(one.folder, "2[*].csv", "id,price\n5,30\n6,1\n")  # the old columns, and an odd name
    eventually(lambda: one.is_alive() and one.handed_rows() >= 6, 300)
    rows: list[dict[str, Any]] = [
        {"id": 2, "price": 15}, {"id": 4, "price": 20, "kind": "beer"}, {"id": 5, "price": 30},
        {"id": 3, "price": 5, "kind": "ale"},
    ]  # fmt: skip
    agent.interests[0].check(rows)
    ales.check(rows)
    assert one.nodes()["price > 10"] == node
    # the rendezvous point starts with its file, which does not list the attribute
    one.tree.kill(ROOT)
    one.tree.start(ROOT)
    move(one.folder, "3.csv", "id,price,kind\n7,1,ale\n")
    eventually(lambda: one.is_alive() and one.handed_rows() >= 7, 300)
    ales.check([*rows, {"id": 7, "price": 1, "kind": "ale"}])
    one.tree.check()


def rows_of(outbox: Path) -> dict[int, dict[str, Any]]:
    reader = OutboxReader(outbox)
    return {
        row["id"]: row
        for commit in reader.commits()
        for file in reader.files(commit)
        for batch in reader.batches(file)
        for row in batch.to_pylist()
    }


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_a_stream_takes_up_an_attribute(spark: SparkSession, tmp_path: Path, form: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "pipeline.toml").write_text(PARQUET.format(format=form))
    log = ChangeLog(tmp_path / "channel", load_settings(tmp_path / "pipeline.toml").attributes)
    log.put("high", "price > 10")

    def put(name: str, *rows: dict[str, Any]) -> None:
        beside = tmp_path / f".{name}"
        if form == "json":
            beside.write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            pq.write_table(pa.Table.from_pylist([*rows]), beside)
        beside.rename(tmp_path / "in" / name)

    pipeline = Pipeline(load_settings(tmp_path / "pipeline.toml"), spark)
    query = pipeline.start()
    try:

        def done(batches: int) -> bool:
            assert query.isActive, query.exception()
            return len(Outbox(tmp_path / "out").commits()) >= batches

        put("0", {"id": 1, "price": 20, "kind": "x"})
        eventually(lambda: done(1), 120)
        log.declare(Attributes({"id": "integer", "price": "integer", "kind": "string"}))
        ales = log.put("ales", "kind = 'ale'")
        put("1", {"id": 2, "price": 5, "kind": "ale"}, {"id": 3, "price": 30, "kind": None})
        eventually(lambda: done(2), 120)
        put("2", {"id": 4, "price": 50})
        eventually(lambda: done(3), 120)
    finally:
        query.stop()
        pipeline.close()
    rows = rows_of(tmp_path / "out")
    assert {id_: (row["nodes"], row["numbers"]) for id_, row in rows.items()} == {
        1: ([1], [1]), 2: ([ales], [1]), 3: ([1], [2]), 4: ([1], [3]),
    }  # fmt: skip
    assert [rows[at].get("kind") for at in (2, 3, 4)] == ["ale", None, None]
    # it starts again with the file, whose columns are still declared
    Pipeline(load_settings(tmp_path / "pipeline.toml"), spark).close()
