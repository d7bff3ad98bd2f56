"""Loading subscriptions on Spark: `Snapshot.build` is the judge; bad rows are named."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.filters.strategies import Writer, event, schema
from tests.matching import tables
from tests.repeats import runs

from tidings import (
    Attributes,
    AttributesError,
    ContentGraph,
    FilterError,
    Node,
    TidingsError,
    parse,
)
from tidings.snapshots import Snapshot
from tidings.spark import build_snapshot, subscriptions
from tidings.spark.loading import loading
from tidings.spark.pipeline.subscription_source import FollowedSubscriptions
from tidings.store import ChangeLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Shape = tuple[dict[frozenset[Any], str], set[tuple[frozenset[Any], frozenset[Any]]]]
WIDE = " AND ".join(f"(x{i} = 1 OR y{i} = 2)" for i in range(12))


@pytest.fixture(autouse=True)
def _few_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred rows need no sixteen tasks."""
    monkeypatch.setattr(loading, "LEAST_TASKS", 4)


def table(spark: SparkSession, rows: Iterable[Any], of: str = "id string") -> DataFrame:
    return spark.createDataFrame(list(rows), f"{of}, filter string").repartition(3)


def shape(snapshot: Snapshot) -> Shape:
    """Nodes as sets of ids, with their texts, and edges between them."""
    members = {n: frozenset(snapshot.members(n)) for n in snapshot.numbers.tolist()}
    nodes = {ids: snapshot.filter(n).canonical().sql() for n, ids in members.items()}
    edges = {(members[up], ids) for n, ids in members.items() for up in snapshot.parents(n)}
    return nodes, edges


def random_texts(rng: random.Random, count: int) -> tuple[list[str], Any]:
    of = schema(rng)
    writer = Writer(rng, of, spark=False)
    found: list[str] = []
    while len(found) < count:
        text = writer.filter(depth=2)
        try:
            parse(text)
        except FilterError:
            continue
        found.append(text)
        if rng.random() < 0.2:
            found.append(text)
        if rng.random() < 0.2:
            found.append(f"({text}) AND true")
    found += ["true", "false", "1 = 1 OR x > 3", "true AND false", WIDE, f"({WIDE}) AND x1 = 1"]
    found += ["a0 < b0", "NOT (a0 >= b0)", "a0 < b0 AND x = 1", "x = 1", "x = 1 OR a0 < b0"]
    rng.shuffle(found)
    return found, of


@pytest.mark.parametrize("run", runs(1, 3))
def test_a_snapshot_is_the_one_that_is_built_in_this_process(
    spark: SparkSession, seed: int, run: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "ROWS", 50)  # several files, several blocks
    rng = random.Random(f"{seed} load {run}")
    texts, of = random_texts(rng, 160)
    ids = [f"s{at}" for at in range(len(texts))]
    rng.shuffle(ids)
    rows = list(zip(ids, texts, strict=True))
    told: list[str] = []
    built = build_snapshot(table(spark, rows), tmp_path / "s", number=7, progress=told.append)
    expected = Snapshot.build(sorted(rows), number=7)
    assert shape(built) == shape(expected)
    assert built.numbers.tolist() == expected.numbers.tolist()
    assert built.keys == expected.keys
    assert built.nodes_by_id() == expected.nodes_by_id()
    assert (built.number, len(built)) == (7, len(rows))
    assert built.path == tmp_path / "s"
    assert [path.name for path in tmp_path.iterdir()] == ["s"]  # nothing is left behind
    assert told[0] == "reading filters"
    events = [event(rng, of) for _ in range(40)]
    batch = pa.RecordBatch.from_pylist(events, schema=tables.arrow_schema(of))
    assert built.nodes(batch).to_pylist() == expected.nodes(batch).to_pylist()
    assert [sorted(one) for one in built.subscriptions(batch).to_pylist()] == [
        sorted(one) for one in expected.subscriptions(batch).to_pylist()
    ]


def test_the_graph_is_the_content_graph(spark: SparkSession, seed: int, tmp_path: Path) -> None:
    texts, _ = random_texts(random.Random(f"{seed} load graph"), 120)
    built = build_snapshot(table(spark, enumerate(texts), "id long"), tmp_path / "s")
    graph = ContentGraph.build(parse(text) for text in texts)
    # filters that cover each other share a node of the content graph; here they are a chain
    chains: dict[Node, dict[bytes, set[int]]] = {}
    for at, text in enumerate(texts):
        one = parse(text)
        node = graph.node(one)
        assert node is not None
        chains.setdefault(node, {}).setdefault(one.key, set()).add(at)
    members = {node: [*map(frozenset, chain.values())] for node, chain in chains.items()}
    nodes, edges = shape(built)
    assert set(nodes) == {one for chain in members.values() for one in chain}
    expected = {(members[up][0], members[n][-1]) for n in graph for up in graph.parents(n)}
    expected |= {(up, low) for chain in members.values() for low, up in pairwise(chain)}
    assert edges == expected


def test_a_channel_is_made_and_extended(spark: SparkSession, tmp_path: Path) -> None:
    first = [(f"a{at}", f"x > {at % 5}") for at in range(9)]
    more = [(f"b{at}", f"x > {at + 3}") for at in range(4)]  # two of these filters are there
    made = build_snapshot(table(spark, first), tmp_path, adopt=True, owner="ana")
    assert (made.number, made.numbers.tolist()) == (5, [1, 2, 3, 4, 5])
    log = ChangeLog(tmp_path)
    assert made.path == log.bulk_at(5)
    assert log.put("c", "x > 2") == 6
    build_snapshot(table(spark, more), tmp_path, adopt=True)
    assert log.version == 10
    found = log.subscriptions()
    assert {found[id_][1] for id_ in ("a2", "c")} == {3}
    assert [found[f"b{at}"][1] for at in range(4)] == [4, 5, 9, 10]
    assert log.state().owners == {f"a{at}": "ana" for at in range(9)}
    with pytest.raises(TidingsError, match="the id 'a0' has a subscription"):
        build_snapshot(table(spark, first[:1]), tmp_path, adopt=True)
    empty = build_snapshot(table(spark, []), tmp_path, adopt=True)
    assert (len(empty), log.version) == (0, 10)
    source = FollowedSubscriptions(tmp_path)
    batch = pa.RecordBatch.from_pylist([{"x": x} for x in range(8)])
    tags = [[], [1], [2], [3], [4], [5], [9], [10]]
    assert source.view(10).nodes(batch).to_pylist() == tags
    source.close()
    assert {path.name for path in tmp_path.iterdir()} >= {"bulks", "snapshots", "end"}
    assert not [*tmp_path.glob(".tidings-work*")]  # nothing is left behind


def test_declared_attributes(
    spark: SparkSession, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "ROWS", 20)
    rng = random.Random(f"{seed} load declared")
    of = schema(rng, dotted=False)
    declared = of.attributes()
    writer = Writer(rng, of, spark=False)
    rows = [(at, writer.filter(depth=2)) for at in range(60)]
    checked = subscriptions(table(spark, rows, "id int"), attributes=declared).collect()
    good = [(at, text) for at, text in rows if not _reason(text, declared)]
    assert {row["id"]: row["reason"] for row in checked} == {
        at: _reason(text, declared) for at, text in rows
    }
    built = build_snapshot(
        table(spark, rows, "id int"), tmp_path / "s", attributes=declared, errors="collect"
    )
    assert shape(built) == shape(Snapshot.build(good, declared))
    assert shape(Snapshot.open(tmp_path / "s")) == shape(built)


def _reason(text: str, declared: Attributes | None = None) -> str | None:
    try:
        return None if parse(text, attributes=declared).key else ""
    except FilterError as problem:
        return str(problem)


ROWS = [("a", "x > 1"), ("b", "x >"), ("c", None), (None, "x > 2"), ("d", "x > 1.0")]


def test_rows_are_checked_and_canonical(spark: SparkSession) -> None:
    found = {row["filter"]: row for row in subscriptions(table(spark, ROWS)).collect()}
    assert subscriptions(table(spark, ROWS)).columns == [
        "id", "filter", "canonical", "key", "reason",
    ]  # fmt: skip
    assert bytes(found["x > 1"]["key"]) == bytes(found["x > 1.0"]["key"]) == parse("x > 1").key
    assert found["x > 1.0"]["canonical"] == parse("x > 1.0").canonical().sql()
    assert found["x > 1"]["reason"] is None
    assert found["x >"]["reason"] == _reason("x >")
    assert found["x >"]["canonical"] is found["x >"]["key"] is None
    assert found[None]["reason"] == "the filter is null"
    assert found["x > 2"]["reason"] == "the id is null"
    assert found["x > 2"]["key"] is None


def test_bad_rows_are_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    rows = [row for row in ROWS if row[0] is not None]
    with pytest.raises(TidingsError) as caught:
        build_snapshot(table(spark, rows), tmp_path / "s")
    expected = f"2 of 4 filters are refused; 'b': {_reason('x >')}; 'c': the filter is null"
    assert str(caught.value) == expected
    with pytest.raises(TidingsError, match="1 of 2 filters are refused; the id is null"):
        build_snapshot(table(spark, [(None, "x > 1"), ("b", "true")]), tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_bad_rows_are_skipped(spark: SparkSession, tmp_path: Path) -> None:
    built = build_snapshot(table(spark, ROWS), tmp_path / "s", errors="collect")
    assert built.nodes_by_id() == {"a": 1, "d": 1}
    skipped = spark.read.parquet(str(tmp_path / "s.skipped")).collect()
    assert {(row["id"], row["filter"], row["reason"]) for row in skipped} == {
        ("b", "x >", _reason("x >")),
        ("c", None, "the filter is null"),
        (None, "x > 2", "the id is null"),
    }
    with pytest.raises(TidingsError, match="found errors='drop', expected 'raise' or 'collect'"):
        build_snapshot(table(spark, ROWS), tmp_path / "s", errors="drop")


def test_an_id_that_is_there_twice_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rows = [("a", "x > 1"), ("b", "x > 2"), ("b", "x > 3")]
    with pytest.raises(TidingsError, match=r"^the id 'b' occurs more than once$"):
        build_snapshot(table(spark, rows), tmp_path / "s")
    same = [(1, "x > 1"), (1, "x > 1"), (2, "true"), (2, "y > 1")]
    with pytest.raises(TidingsError, match=r"^2 ids occur more than once; the first is 1$"):
        build_snapshot(table(spark, same, "id int"), tmp_path / "s")


def test_integer_ids(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(10, "x > 1"), (9, "x > 1.0D"), (-3, "x > 0"), (2**31 - 1, "true")]
    built = build_snapshot(table(spark, rows, "id int"), tmp_path / "s")
    assert built.nodes_by_id() == {-3: 1, 9: 2, 10: 2, 2**31 - 1: 3}
    assert built.parents(2) == [1]
    assert built.ids.type == pa.int64()
    assert built.filter(2).sql() == "x > 1.0D"  # the text of the least id


@pytest.mark.parametrize("of", ["id string", "id long"])
def test_no_rows(spark: SparkSession, tmp_path: Path, of: str) -> None:
    built = build_snapshot(table(spark, [], of), tmp_path / "s")
    assert len(built) == len(built.numbers) == 0
    assert built.nodes(pa.RecordBatch.from_pylist([{"x": 1}])).to_pylist() == [[]]


def test_columns_are_checked_by_name(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1.5, "x > 1", "a")], "n double, text string, `who is` string")
    said = "the table has no column 'id', expected one; its columns are n, text, who is"
    with pytest.raises(AttributesError, match=said):
        subscriptions(df)
    with pytest.raises(AttributesError, match="the column 'n' is double, expected strings or int"):
        build_snapshot(df, tmp_path / "s", id="n", filter="text")
    with pytest.raises(AttributesError, match=r"the column 'n' is double, expected strings$"):
        subscriptions(df, id="who is", filter="n")
    both = df.select("text", df["who is"].alias("text"))
    with pytest.raises(AttributesError, match="the table has 2 columns 'text', expected one"):
        subscriptions(both, id="text", filter="text")
    built = build_snapshot(df, tmp_path / "s", id="who is", filter="text")
    assert built.nodes_by_id() == {"a": 1}


def test_a_snapshot_that_is_there_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    build_snapshot(table(spark, [("a", "x > 1")]), tmp_path / "s")
    build_snapshot(table(spark, [("b", "x > 2")]), tmp_path / "s")
    assert Snapshot.open(tmp_path / "s").nodes_by_id() == {"b": 1}
    (tmp_path / "mine").mkdir()
    with pytest.raises(TidingsError, match="exists but is not a snapshot; it was not replaced"):
        build_snapshot(table(spark, [("b", "x >")]), tmp_path / "mine")
