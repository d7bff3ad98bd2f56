"""Measures tagging on Spark against the bare engine, and against joins in Spark.

There are three runs, each from Parquet to Parquet:

    tagging        workload `mixed`: the bare engine on two threads, files to files, table to table
    mixed shapes   few filters of many shapes: against a nested-loop join with a table of bounds
    one shape      many filters `symbol = ? AND price > ? AND volume BETWEEN ? AND ?`: against a
                   broadcast hash join on the symbol

All methods of a run must find the same pairs of row and filter; otherwise there is no report.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidings.matching import Matcher
from tidings.snapshots import Snapshot
from tidings.spark import tag, tag_parquet
from tidings.studies.host.machine_info import MachineInfo, describe_machine
from tidings.studies.workloads.checking import WrongMatches
from tidings.studies.workloads.conjunctions import Conjunctions
from tidings.studies.workloads.workloads import make_workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SYMBOLS = 100
BARE_BATCH = 131_072
Note = Callable[[str], None]


class SparkWay(msgspec.Struct, frozen=True):
    """One method in one run."""

    run: str
    filters: int
    rows: int
    way: str
    rows_per_second: float  # median
    least: float
    most: float
    pairs: int


class SparkReport(msgspec.Struct, frozen=True):
    machine: MachineInfo
    ways: list[SparkWay]


def bench_spark(
    spark: SparkSession,
    folder: Path,
    *,
    filters: int = 100_000,
    rows: int = 2_000_000,
    few: int = 1_000,
    join_rows: int = 1_000_000,
    repeats: int = 3,
    seed: int = 1,
    note: Note = lambda _: None,
) -> SparkReport:
    """Measure all runs; files are written to an existing folder."""
    where = describe_machine()
    bench = _Bench(spark, folder, repeats, note)
    ways = bench.tagging(filters, rows, seed)
    ways += bench.mixed_shapes(few, join_rows, seed)
    ways += bench.one_shape(filters, join_rows, seed)
    return SparkReport(where, ways)


class _Bench:
    def __init__(self, spark: SparkSession, folder: Path, repeats: int, note: Note) -> None:
        self.spark = spark
        self.folder = folder
        self.repeats = repeats
        self.note = note
        self._outputs = 0

    def tagging(self, filters: int, rows: int, seed: int) -> list[SparkWay]:
        self.note("tagging: drawing filters and rows")
        work = make_workload("mixed", filters, rows, seed)
        source = self._write("tagging", work.events)
        snapshot = self._snapshot("tagging", work.texts())
        batches = pq.read_table(source).to_batches(BARE_BATCH)
        matcher = Matcher(background=False)
        matcher.add_many(work.texts())
        matcher.merge()

        def bare(_: str) -> int:
            return sum(len(matcher.match_batch(batch, threads=2).values) for batch in batches)

        def files(out: str) -> int:
            tag_parquet(self.spark, source, out, snapshot, "subscriptions")
            return self._count_told(out)

        def table(out: str) -> int:
            tag(self._read(source), snapshot, "subscriptions").write.parquet(out)
            return self._count_told(out)

        ways = {"bare engine, 2 threads": bare, "tag_parquet": files, "tag": table}
        return self._measure("tagging", filters, rows, ways)

    def mixed_shapes(self, filters: int, rows: int, seed: int) -> list[SparkWay]:
        self.note("mixed shapes: drawing filters and rows")
        work = make_workload("mixed", filters, rows, seed)
        source = self._write("mixed-shapes", work.events)
        snapshot = self._snapshot("mixed-shapes", work.texts())
        bounds = self._bounds(work.filters)
        kinds = {attribute.name: attribute.kind for attribute in work.attributes}
        condition = " AND ".join(
            f"({name}_is IS NULL OR {name} = {name}_is)"
            if kind == "string"
            else f"({name}_low IS NULL OR {name} BETWEEN {name}_low AND {name}_high)"
            for name, kind in kinds.items()
        )

        def nested_loop(out: str) -> int:
            joined = self._read(source).join(bounds.hint("broadcast"), _expr(condition))
            return self._pairs(joined.select("row", "pairs"), out)

        return self._compare_with("mixed shapes", filters, rows, source, snapshot, nested_loop)

    def one_shape(self, filters: int, rows: int, seed: int) -> list[SparkWay]:
        self.note("one shape: drawing filters and rows")
        rng = np.random.default_rng(seed)
        low = rng.integers(0, 100_000, filters)
        wanted = pa.table(
            {
                "pairs": pa.array(np.arange(filters)),
                "is": pa.array([f"S{n}" for n in rng.integers(0, SYMBOLS, filters)]),
                "above": pa.array(rng.integers(500, 1000, filters).astype(np.float64)),
                "low": pa.array(low),
                "high": pa.array(low + rng.integers(0, 10_000, filters)),
            }
        )
        events = pa.table(
            {
                "symbol": pa.array([f"S{n}" for n in rng.integers(0, SYMBOLS, rows)]),
                "price": pa.array(rng.uniform(0, 1000, rows).round(2)),
                "volume": pa.array(rng.integers(0, 100_000, rows)),
            }
        )
        source = self._write("one-shape", events)
        texts = (
            (row["pairs"], f"symbol = '{row['is']}' AND price > {row['above']} "
             f"AND volume BETWEEN {row['low']} AND {row['high']}")
            for row in wanted.to_pylist()
        )  # fmt: skip
        snapshot = self._snapshot("one-shape", texts)
        bounds = self.spark.createDataFrame(wanted)
        condition = "symbol = is AND price > above AND volume BETWEEN low AND high"

        def hash_join(out: str) -> int:
            joined = self._read(source).join(bounds.hint("broadcast"), _expr(condition))
            return self._pairs(joined.select("row", "pairs"), out)

        return self._compare_with("one shape", filters, rows, source, snapshot, hash_join)

    # -- shared by all runs --------------------------------------------------------------------

    def _compare_with(
        self, run: str, filters: int, rows: int, source: str, snapshot: Snapshot,
        join: Callable[[str], int],
    ) -> list[SparkWay]:  # fmt: skip
        def files(out: str) -> int:
            tag_parquet(self.spark, source, out, snapshot, "pairs", columns=["row"])
            return self._checksum(out)

        def table(out: str) -> int:
            return self._pairs(
                tag(self._read(source), snapshot, "pairs").select("row", "pairs"), out
            )

        other = "nested-loop join" if run == "mixed shapes" else "hash join"
        return self._measure(run, filters, rows, {other: join, "tag_parquet": files, "tag": table})

    def _measure(
        self, run: str, filters: int, rows: int, ways: Mapping[str, Callable[[str], int]]
    ) -> list[SparkWay]:
        """Measure each method in turn, round after round; the first round is a warm-up."""
        spent: dict[str, list[float]] = {way: [] for way in ways}
        found: dict[str, int] = {}
        for number in range(self.repeats + 1):
            for way, work in ways.items():
                self.note(f"{run}: {way}, round {number} of {self.repeats}")
                out = self.folder / f"out-{self._outputs}"
                self._outputs += 1
                self._ended = 0.0
                start = time.perf_counter()
                found[way] = work(str(out))
                ended = self._ended or time.perf_counter()
                shutil.rmtree(out, ignore_errors=True)
                if number:
                    spent[way].append(rows / (ended - start))
        if len(set(found.values())) > 1:
            raise WrongMatches(f"{run}: the matching methods found different matches: {found}")
        return [
            SparkWay(run, filters, rows, way, statistics.median(s), min(s), max(s), found[way])
            for way, s in spent.items()
        ]

    _ended = 0.0

    def _pairs(self, df: DataFrame, out: str) -> int:
        df.write.parquet(out)
        return self._checksum(out)

    def _count_told(self, out: str) -> int:
        """The number of pairs in the lists; the clock is stopped before they are counted."""
        self._ended = time.perf_counter()
        found = self.spark.read.parquet(out).selectExpr("sum(size(subscriptions)) AS n").first()
        return int(found["n"]) if found is not None and found["n"] is not None else 0

    def _checksum(self, out: str) -> int:
        """A checksum of the pairs; the clock is stopped before it is computed."""
        self._ended = time.perf_counter()
        made = "bigint(count(*)) + sum(pmod(xxhash64(row, pairs), 1000003)) * 1000000 AS n"
        found = self.spark.read.parquet(out).selectExpr(made).first()
        return int(found["n"]) if found is not None and found["n"] is not None else 0

    def _read(self, source: str) -> DataFrame:
        return self.spark.read.parquet(source)

    def _write(self, name: str, events: pa.Table) -> str:
        """Write rows as four Parquet files, with a column of row numbers."""
        folder = self.folder / f"{name}-in"
        folder.mkdir()
        rows = events.append_column("row", pa.array(np.arange(len(events))))
        size = -(-len(rows) // 4)
        for at in range(0, len(rows), size):
            part = rows.slice(at, size)
            pq.write_table(part, folder / f"{at}.parquet", row_group_size=1 << 18)
        return str(folder)

    def _snapshot(self, name: str, texts: Any) -> Snapshot:
        self.note(f"{name}: compiling")
        path = self.folder / f"{name}-snapshot"
        Snapshot.build(texts).save(path)
        return Snapshot.open(path)

    def _bounds(self, filters: Conjunctions) -> DataFrame:
        """A table with a row for each filter: the value or bounds of each column."""
        columns: dict[str, list[Any]] = {}
        kinds = {attribute.name: attribute.kind for attribute in filters.attributes}
        for name, kind in kinds.items():
            for part in ("is",) if kind == "string" else ("low", "high"):
                columns[f"{name}_{part}"] = [None] * len(filters)
        for number, tests in enumerate(filters):
            for test in tests:
                if kinds[test.attribute] == "string":
                    columns[f"{test.attribute}_is"][number] = test.value
                else:
                    columns[f"{test.attribute}_low"][number] = test.low
                    columns[f"{test.attribute}_high"][number] = test.high
        arrays = {
            name: pa.array(values, pa.string() if name.endswith("_is") else pa.int64())
            for name, values in columns.items()
        }
        arrays["pairs"] = pa.array(np.arange(len(filters)))
        return self.spark.createDataFrame(pa.table(arrays))


def _expr(text: str) -> Any:
    from pyspark.sql.functions import expr

    return expr(text)
