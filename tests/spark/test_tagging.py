"""tag(): Spark SQL is the judge, of tables and of streams; what makes no sense is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.filters import oracle
from tests.matching import session
from tests.repeats import amount

from tidings import (
    Attributes,
    AttributesError,
    ContentGraph,
    RefusedFilters,
    TidingsError,
    parse,
)
from tidings.snapshots import Snapshot
from tidings.spark import backtest, build_snapshot, tag, tag_live, tag_parquet
from tidings.spark.tagging.column_checks import MisfitWarning, NeverTrueWarning
from tidings.spark.tagging.worker import Pinned, view_of
from tidings.store import ChangeLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FLIGHTS = {
    "late": "dep_delay > 60",
    "very late": "dep_delay > 120",
    "in Newark": "origin = 'EWR' AND dep_delay > 60",
    "tagged": "array_contains(tags, 'x')",
    "nested": "plane.seats > 100",
}


@pytest.fixture
def flights(spark: SparkSession) -> DataFrame:
    rows = [
        (1, 61, "EWR", ["x"], (150,)),
        (2, 130, "JFK", None, None),
        (3, None, "EWR", ["y"], (90,)),
    ]
    of = "n int, dep_delay int, origin string, tags array<string>, plane struct<seats: int>"
    return spark.createDataFrame(rows, of)


def told(df: DataFrame, column: str, n: str = "n") -> dict[int, Any]:
    # the other columns hold dates that Python can't
    return {row[n]: row[column] for row in df.select(n, column).collect()}


@pytest.mark.filterwarnings("ignore::tidings.spark.tagging.column_checks.NeverTrueWarning")
@pytest.mark.parametrize("declared", [False, True], ids=["undeclared", "declared"])
@pytest.mark.usefixtures("patient_graphs")
def test_tags_are_what_spark_says(
    spark: SparkSession, seed: int, declared: bool, tmp_path: Path
) -> None:
    rng = random.Random(f"{seed} tag {declared}")
    with oracle.settings(spark, oracle.INTERPRETED):
        judged = oracle.judged(
            spark, rng, rows=60, filters=amount(40, 160), declared=declared, text=session.text,
            event=session.notification,
        )  # fmt: skip
    filters = {str(at): text for at, text in enumerate(judged.texts)}
    path = tmp_path / "snapshot"
    Snapshot.build(filters, judged.attributes).save(path)
    of = oracle.spark_schema(judged.schema)
    rows = [(*(oracle.row(event, of) or ()), at) for at, event in enumerate(judged.events)]
    table = spark.createDataFrame(rows, of.add("#", "integer")).repartition(3)
    expected = {
        at: sorted(str(f) for f, says in enumerate(judged.says) if says[at])
        for at in range(len(judged.events))
    }
    batch = told(tag(table, path, "subscriptions", strict=False), "subscriptions", "#")
    assert {n: sorted(ids) for n, ids in batch.items()} == expected
    pairs = tag(table, path, "pairs", strict=False).select("#", "pairs").collect()
    assert sorted((row["#"], row["pairs"]) for row in pairs) == sorted(
        (n, id_) for n, ids in expected.items() for id_ in ids
    )
    named = {
        str(at): f"named('a', {judged.texts[at]}) OR named('b', {judged.texts[at + 1]})"
        for at in range(0, 20, 2)
    }
    compiled = Snapshot.build(named, judged.attributes)
    parts = told(tag(table, compiled, "parts", strict=False, errors="collect"), "parts", "#")
    for n, found in parts.items():
        true = {id_: [name for name, more in (("a", 0), ("b", 1))
                      if judged.says[int(id_) + more][n]] for id_ in named}  # fmt: skip
        assert {one.id: one.names for one in found} == {i: some for i, some in true.items() if some}
    nodes = told(tag(table, path, "nodes", strict=False), "nodes", "#")
    graph = ContentGraph()
    node_of = {id_: graph.insert(_parsed(text, judged)) for id_, text in filters.items()}
    subscribed = Snapshot.open(path).nodes_by_id()
    same = {node.id: subscribed[id_] for id_, node in node_of.items()}
    for n, ids in expected.items():
        lowest = graph.lowest({node_of[id_] for id_ in ids})
        assert nodes[n] == sorted(same[node.id] for node in lowest)


def _parsed(text: str, judged: oracle.Judged) -> Any:
    return parse(text, attributes=judged.attributes)


def test_a_stream_gives_what_the_table_gives(
    spark: SparkSession, flights: DataFrame, tmp_path: Path
) -> None:
    flights.repartition(3).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(flights.schema).parquet(str(tmp_path / "in"))
    snapshot = Snapshot.build(FLIGHTS)
    query = (
        tag(stream, snapshot, "subscriptions")
        .writeStream.trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .format("parquet")
        .start(str(tmp_path / "out"))
    )
    query.awaitTermination()
    streamed = told(spark.read.parquet(str(tmp_path / "out")), "subscriptions")
    table = told(tag(flights, snapshot, "subscriptions"), "subscriptions")
    assert {n: sorted(ids) for n, ids in streamed.items()} == {
        1: ["in Newark", "late", "nested", "tagged"], 2: ["late", "very late"], 3: [],
    }  # fmt: skip
    assert {n: sorted(ids) for n, ids in table.items()} == {
        n: sorted(ids) for n, ids in streamed.items()
    }


def test_integer_ids_and_the_names_of_columns(flights: DataFrame) -> None:
    snapshot = Snapshot.build({7: "dep_delay > 60", 9: "true"})
    tagged = tag(flights, snapshot, "subscriptions")
    assert tagged.columns == [*flights.columns, "subscriptions"]
    assert tagged.schema["subscriptions"].dataType.simpleString() == "array<bigint>"
    found = told(tagged, "subscriptions")
    assert {n: sorted(ids) for n, ids in found.items()} == {1: [7, 9], 2: [7, 9], 3: [9]}
    pairs = tag(flights, snapshot, "pairs")
    assert pairs.schema["pairs"].dataType.simpleString() == "bigint"
    assert pairs.count() == 5
    assert told(tag(flights, snapshot), "nodes") == {1: [1], 2: [1], 3: [2]}


def test_no_filters_and_filters_of_no_column(flights: DataFrame) -> None:
    assert told(tag(flights, Snapshot.build({}), "subscriptions"), "subscriptions") == {
        1: [], 2: [], 3: [],
    }  # fmt: skip
    assert told(tag(flights, Snapshot.build({"all": "true"})), "nodes") == {1: [1], 2: [1], 3: [1]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dep_dealy > 60", "'dep_dealy', which the table does not have; did you mean dep_delay?"),
        ("plane.seat > 1", "'plane.seat', which the table does not have; did you mean seats?"),
        ("origin > 60", "the column 'origin' is string, but filters compare it with numbers"),
        ("dep_delay = 'late'", "'dep_delay' is int, but filters compare it with strings"),
        ("zzz IS NULL", "'zzz', which the table does not have; its columns are n, dep_delay"),
    ],
)
def test_filters_that_make_no_sense_on_a_table_are_refused(
    flights: DataFrame, text: str, message: str
) -> None:
    with pytest.raises(AttributesError) as caught:
        tag(flights, Snapshot.build({"a": text}))
    assert message in str(caught.value)


def test_what_tag_refuses(flights: DataFrame, tmp_path: Path) -> None:
    snapshot = Snapshot.build(FLIGHTS)
    with pytest.raises(TidingsError, match="expected one of nodes, subscriptions, pairs"):
        tag(flights, snapshot, "rows")
    with pytest.raises(AttributesError, match="already has a column 'nodes'"):
        tag(tag(flights, snapshot), snapshot)
    with pytest.raises(TidingsError, match="is not a snapshot"):
        tag(flights, tmp_path)
    with pytest.raises(AttributesError, match="can't be compared"):
        tag(flights.selectExpr("binary('a') AS dep_delay"), Snapshot.build({"a": "dep_delay > 1"}))


def test_a_column_that_is_missing_may_be_taken_as_null(flights: DataFrame) -> None:
    snapshot = Snapshot.build({"a": "zzz > 1 OR n = 1", "b": "zzz IS NULL"})
    found = told(tag(flights, snapshot, "subscriptions", strict=False), "subscriptions")
    assert {n: sorted(ids) for n, ids in found.items()} == {1: ["a", "b"], 2: ["b"], 3: ["b"]}


def test_a_snapshot_that_was_replaced_is_opened_anew(flights: DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    for number, id_ in ((1, "ana"), (1, "ben"), (2, "cy")):
        Snapshot.build({id_: "dep_delay > 100"}, number=number).save(path)
        assert told(tag(flights, path, "subscriptions"), "subscriptions")[2] == [id_]
    Snapshot.build({"dee": "dep_delay > 100"}, number=2).save(path)
    with pytest.raises(TidingsError, match="was replaced while it was in use"):
        view_of(Pinned(str(path), 2, identity="0" * 32))


def test_what_was_declared_must_be_there(spark: SparkSession) -> None:
    snapshot = Snapshot.build({"a": "x > 1", "b": "d > DATE '2020-01-01'"},
                              Attributes({"x": "integer", "d": "date"}))  # fmt: skip
    for of in ("x double, d date", "x decimal(5,2), d date", "x int, d timestamp"):
        with pytest.raises(AttributesError, match=r"but was declared as (integer|date) when"):
            tag(spark.createDataFrame([], of), snapshot)
    for of in ("x tinyint, d date", "x decimal(5,0), d date", "x bigint, d date"):
        assert tag(spark.createDataFrame([], of), snapshot).collect() == []


def test_names_that_differ_in_case_alone(spark: SparkSession) -> None:
    snapshot = Snapshot.build({"a": "x > 1"})
    with pytest.raises(AttributesError, match="already has a column 'Nodes'"):
        tag(spark.createDataFrame([(2, 7)], "x int, Nodes int"), snapshot)
    with pytest.raises(AttributesError, match="columns 'x' and 'X', which Spark can't tell apart"):
        tag(spark.createDataFrame([(2, 7)], "x int, X int"), snapshot)
    with oracle.settings(spark, {"spark.sql.caseSensitive": "true"}):
        both = tag(spark.createDataFrame([(2, 7, 8)], "x int, X int, Nodes int"), snapshot)
        assert [tuple(row) for row in both.collect()] == [(2, 7, 8, [1])]


def test_filters_of_other_dialects(spark: SparkSession) -> None:
    """Their terms and residuals are computed by the workers, from the texts in the snapshot."""
    rows = [(1, "5", 10, "com.a"), (2, "x", 10, "com.b"), (3, None, 3, "org.a"), (4, "9", 9, None)]
    table = spark.createDataFrame(rows, "n int, hop string, ttl int, type string")
    texts = {
        "alive": "hop < ttl",
        "fifth": "hop = 5",
        "first": "type LIKE 'com.%' OR ttl < 5",
        "sum": "INT(hop) + ttl >= 15",
    }
    objects: dict[str, Any] = {
        "not com": {"not": {"prefix": {"type": "com."}}},
        "ten": {"sql": "ttl = '10'"},
    }
    filters = {name: parse(text, "cesql") for name, text in texts.items()}
    filters |= {name: parse(one, "cloudevents") for name, one in objects.items()}
    tagged = told(tag(table, Snapshot.build(filters), "subscriptions"), "subscriptions")
    assert {n: sorted(ids) for n, ids in tagged.items()} == {
        1: ["alive", "fifth", "first", "sum", "ten"], 2: ["first", "ten"], 3: ["first", "not com"],
        4: ["not com", "sum"],
    }  # fmt: skip


def test_each_filter_is_judged_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    """Other filters on the column make sense, and functions count too."""
    table = spark.createDataFrame([(1, "a", "10:00", [("x", 2.0)])],
        "qty int, city string, time string, lines array<struct<sku: string, price: double>>",
    )  # fmt: skip
    good = {f"g{at}": f"city = 'c{at}' AND qty > {at}" for at in range(50)}
    bad = {
        "b1": "city > 5", "b2": "hour(time) = 10", "b3": "length(qty) > 3", "b4": "city = 7",
        "b5": "lines.sku = 'x'",
    }  # fmt: skip
    table.write.parquet(str(tmp_path / "in"))
    expected = [
        "the column 'city' is string, but filters compare it with numbers (2 subscriptions: 'b1', ",
        "the column 'lines.sku' is array<string>, but filters compare it with strings (subscr",
        "the column 'qty' is int, but length takes a string (subscription 'b3')",
        "the column 'time' is string, but hour takes a time (subscription 'b2')",
    ]
    snapshot = Snapshot.build(good | bad)
    tries: list[Callable[[], Any]] = [
        lambda: tag(table, snapshot),
        lambda: tag_parquet(spark, tmp_path / "in", tmp_path / "out", snapshot),
        lambda: backtest(table, good | bad),
    ]
    for attempt in tries:
        with pytest.raises(AttributesError) as caught:
            attempt()
        for part in expected:
            assert part in str(caught.value)
    with pytest.warns(MisfitWarning, match="hour takes a time"):
        tagged = tag(table, Snapshot.build({**bad, "ok": "qty = 1"}), "subscriptions",
                     errors="collect")  # fmt: skip
    assert [row.subscriptions for row in tagged.collect()] == [["ok"]]


def test_a_backtest_sets_bad_filters_aside(spark: SparkSession) -> None:
    table = spark.createDataFrame([(1, "a")], "qty int, city string")
    given = {"ok": "qty = 1", "bad": "qty >", "worse": "city ="}
    with pytest.raises(RefusedFilters, match=r"2 of 3 filters .*'bad': .*'worse': "):
        backtest(table, given)
    found = backtest(table, given, errors="collect")
    assert found.ids == ["ok"]
    assert sorted(found.refused) == ["bad", "worse"]


def test_who_can_never_match_is_named(
    spark: SparkSession, flights: DataFrame, tmp_path: Path
) -> None:
    given = {"ok": "n > 1", "empty": "n > 5 AND n < 3", "none": "FALSE"}
    rows = spark.createDataFrame(list(given.items()), "id string, filter string")
    snapshot = build_snapshot(rows, tmp_path / "snapshot")
    assert sorted(snapshot.never()) == ["empty", "none"]
    log = ChangeLog(tmp_path / "log")
    log.put_many(given)
    flights.select("n").write.parquet(str(tmp_path / "in"))
    tries: list[Callable[[], Any]] = [
        lambda: tag(flights, snapshot, "subscriptions"),
        lambda: tag_live(flights, log),
        lambda: tag_parquet(spark, tmp_path / "in", tmp_path / "out", snapshot),
    ]
    for attempt in tries:
        with pytest.warns(NeverTrueWarning) as caught:
            attempt()
        said = str(caught[0].message)
        assert said in (
            "2 subscriptions can never match: 'empty', 'none'",
            "2 subscriptions can never match: 'none', 'empty'",
        )
        assert caught[0].filename == __file__  # the line that called it
    found = backtest(flights.select("n"), given)
    assert found.never() == ["empty", "none"]
    assert found.never_fired() == ["empty", "none"]


def test_a_missing_column_names_the_subscriptions(flights: DataFrame) -> None:
    snapshot = Snapshot.build({"a": "zzz > 1", "b": "zzz IS NULL", "c": "n > 1", "d": "zzz = 'q'"})
    with pytest.raises(AttributesError, match=r"\(3 subscriptions: 'a', 'b', 'd'\)"):
        tag(flights, snapshot)
