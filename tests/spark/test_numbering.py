"""Numbers: those of a plain loop over all rows, however they are cut into partitions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidings import TidingsError
from tidings.spark import numbering
from tidings.spark.numbering import ALL, after, count_nodes, numbers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[list[int] | None]
SCHEMA = "at int, nodes array<long>, subscriptions array<string>, reason string, seen long"


def random_partitions(chance: random.Random) -> list[Rows]:
    """Rows of nodes; None is a row that matched nothing."""

    def row() -> list[int] | None:
        if chance.random() < 0.2:
            return None
        return sorted(chance.sample(range(1, 12), chance.randrange(1, 5)))

    return [[row() for _ in range(chance.choice((0, 1, 7, 40)))] for _ in range(4)]


def by_hand(partitions: list[Rows], counters: dict[int, int]) -> list[list[int] | None]:
    now, found = dict(counters), list[list[int] | None]()
    for rows in partitions:
        for nodes in rows:
            if nodes is None:
                found.append(None)
                continue
            out = []
            for node in (ALL, *nodes):
                now[node] = now.get(node, 0) + 1
                out.append(now[node])
            found.append(out)
    return found


class Task:
    """In the place of Spark's context of a task."""

    def __init__(self, partition: int) -> None:
        self._partition = partition

    def partitionId(self) -> int:  # noqa: N802
        return self._partition


def in_task(monkeypatch: pytest.MonkeyPatch, partition: int) -> None:
    import pyspark

    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: Task(partition))


def batches(rows: list[list[int]], chance: random.Random) -> Iterator[Any]:
    while rows:
        size = chance.randrange(1, 9)
        # a slice of a longer array, as Arrow may hand one over: its offsets do not begin with 0
        yield pa.array([[1, 2, 3], *rows[:size]], pa.list_(pa.int64())).slice(1)
        rows = rows[size:]


def test_numbers_are_those_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    counters: dict[int, int] = {}
    for _ in range(30):
        partitions = random_partitions(chance)
        counted: dict[int, dict[int, int]] = {}
        for at, rows in enumerate(partitions):
            for nodes in rows:
                for node in () if nodes is None else (ALL, *nodes):
                    mine = counted.setdefault(at, {})
                    mine[node] = mine.get(node, 0) + 1
        begins, now = {}, dict(counters)
        for at in sorted(counted):
            begins[at] = {node: now.get(node, 0) for node in counted[at]}
            now.update({node: begins[at][node] + count for node, count in counted[at].items()})
        found: list[list[int] | None] = []
        for at, rows in enumerate(partitions):
            in_task(monkeypatch, at)
            lists = [[] if nodes is None else [ALL, *nodes] for nodes in rows]
            number = numbering._numberer(begins, counted)
            for batch in number(batches(lists, chance)):
                found += [one or None for one in batch.to_pylist()]
        assert found == by_hand(partitions, counters)
        new = after(counters, counted)
        assert counters | new == now
        counters |= new


@pytest.mark.parametrize(
    "again",
    [
        [],
        [[0, 5]],
        [[0, 5], [0, 5, 6], [0, 6]],
        [[0, 5], [0, 5]],
        [[0, 5], [0, 5, 7]],
    ],
)
def test_a_partition_that_comes_out_differently_fails(
    monkeypatch: pytest.MonkeyPatch, again: list[list[int]]
) -> None:
    counted = {0: {0: 2, 5: 2, 6: 1}}
    number = numbering._numberer({0: {0: 10, 5: 3, 6: 0}}, counted)
    in_task(monkeypatch, 0)
    right = pa.array([[0, 5], [0, 5, 6]], pa.list_(pa.int64()))
    assert [one.to_pylist() for one in number(iter([right]))] == [[[11, 4], [12, 5, 1]]]
    with pytest.raises(TidingsError, match="came out differently"):
        list(number(iter([pa.array(again, pa.list_(pa.int64()))])))


def test_a_partition_that_nobody_counted_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    in_task(monkeypatch, 1)
    number = numbering._numberer({0: {0: 0}}, {0: {0: 1}})
    with pytest.raises(TidingsError, match="partition 1 came out differently"):
        list(number(iter([pa.array([[0, 9]], pa.list_(pa.int64()))])))


def frame(spark: SparkSession, partitions: list[Rows]) -> DataFrame:
    """Rows in just these partitions."""
    rows = [
        [
            (at, nodes, None if nodes is None else ["x"] * len(nodes), None, 1)
            for at, nodes in enumerate(part, start=1000 * number)
        ]
        for number, part in enumerate(partitions)
    ]
    rdd = spark.sparkContext.parallelize(rows, len(partitions)).flatMap(lambda part: part)
    return spark.createDataFrame(rdd, SCHEMA)


@pytest.mark.spark
def test_on_spark(spark: SparkSession, seed: int) -> None:
    from pyspark.sql import functions as f

    partitions = random_partitions(random.Random(seed))
    counters = {ALL: 100, 3: 7}
    staged = frame(spark, partitions).persist()
    account = count_nodes(staged)
    everything = [nodes for part in partitions for nodes in part]
    matched = [nodes for nodes in everything if nodes is not None]
    assert (account.seen, account.matched) == (len(everything), len(matched))
    assert account.told == sum(map(len, matched))
    with_all = f.when(
        f.col("nodes").isNotNull(), f.concat(f.array(f.lit(ALL).cast("long")), f.col("nodes"))
    )
    numbered = staged.withColumn("numbers", numbers(with_all, counters, account.nodes))
    rows = sorted(numbered.select("at", "numbers").collect())
    staged.unpersist()
    assert [row.numbers or None for row in rows] == by_hand(partitions, counters)
