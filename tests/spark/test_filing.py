"""Filing: the same numbers and files, whether the driver does it or the workers do."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidings.spark import filing as module
from tidings.spark.filing import Filing, counts_of, file_rows, grain_name
from tidings.spark.stages import Staged, _Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGAN = int(dt.datetime(2013, 1, 1, 9, 59, 59, tzinfo=dt.UTC).timestamp())
UTC = pa.timestamp("us", "UTC")


def staged(folder: Path, rows: list[dict[str, Any]], partition: int, size: int = 7) -> Staged:
    """Rows in a file, as a worker leaves them."""
    ids = pa.list_(pa.string())
    kinds = [
        ("id", pa.int64()),
        ("at", UTC),
        ("nodes", pa.list_(pa.int64())),
        ("subscriptions", ids),
    ]
    with _Files(str(folder), partition) as files:
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            files.put_rows(pa.RecordBatch.from_pylist(part, pa.schema(kinds)))
            for row in part:
                files.staged.matched += 1
                for node in row["nodes"]:
                    files.staged.nodes[node] = files.staged.nodes.get(node, 0) + 1
    return files.staged


def random_rows(chance: random.Random, first: int, hours: int) -> list[dict[str, Any]]:
    def moment() -> dt.datetime | None:
        if chance.random() < 0.1:
            return None
        seconds = chance.randrange(-3600 * hours, 3600 * hours)
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)

    return [
        {
            "id": first + at,
            "at": moment(),
            "nodes": sorted(chance.sample(range(1, 9), chance.randrange(1, 4))),
            "subscriptions": [f"s{chance.randrange(9)}"],
        }
        for at in range(chance.choice((0, 1, 30)))
    ]


def by_hand(rows: list[dict[str, Any]], now: dict[int, int]) -> list[dict[str, Any]]:
    found = []
    for row in rows:
        for node in (0, *row["nodes"]):
            now[node] = now.get(node, 0) + 1
        when = row["at"] or dt.datetime.fromtimestamp(BEGAN, dt.UTC)
        grain = when.replace(minute=when.minute // 30 * 30, second=0).strftime("%Y-%m-%dT%H-%M")
        numbers = [now[node] for node in row["nodes"]]
        found.append(
            {**row, "notification": now[0], "version": 5, "numbers": numbers, "grain": grain}
        )
    return found


def read(folder: Path, filed: list[module.Filed]) -> list[dict[str, Any]]:
    found = [
        {**row, "grain": one.grain.removeprefix("grain=")}
        for one in filed
        for row in pq.read_table(folder / one.name).to_pylist()
    ]
    return sorted(found, key=lambda row: row["notification"])


@pytest.mark.spark
@pytest.mark.parametrize("here", [0, 1 << 30], ids=["workers", "driver"])
def test_numbers_and_grains(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: int, seed: int
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(module, "HERE", here)
    counters = {0: 100, 3: 7}
    parts = [random_rows(chance, 1000 * at, hours=40) for at in range(4)]
    made = [staged(tmp_path, rows, at) for at, rows in enumerate(parts)]
    filing = Filing(str(tmp_path), 5, BEGAN, 1800, "at")
    filed = file_rows(spark.sparkContext, filing, made, counters)
    assert read(tmp_path, filed) == by_hand([row for rows in parts for row in rows], dict(counters))
    assert len({one.name for one in filed}) == len(filed)


def test_without_a_column_of_time_all_is_in_one_grain(tmp_path: Path, seed: int) -> None:
    rows = random_rows(random.Random(seed), 0, hours=40) or random_rows(random.Random(7), 0, 40)
    one = staged(tmp_path, rows, 0)
    context: Any = None  # is not asked
    filed = file_rows(context, Filing(str(tmp_path), 5, BEGAN, 3600), [one], {})
    assert [file.grain for file in filed] == (["grain=2013-01-01T09-00"] if rows else [])
    assert counts_of(one).get(0, 0) == len(rows)


def test_more_grains_than_files_may_be_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 3)
    rows = [
        {"id": at, "at": dt.datetime(2013, 1, 1, at % 7, tzinfo=dt.UTC), "nodes": [1],
         "subscriptions": ["a"]}
        for at in range(60)
    ]  # fmt: skip
    context: Any = None
    filing = Filing(str(tmp_path), 5, BEGAN, 1800, "at")
    filed = file_rows(context, filing, [staged(tmp_path, rows, 0, 5)], {})
    assert read(tmp_path, filed) == by_hand(rows, {})


def test_names_of_grains() -> None:
    assert grain_name(0) == "grain=1970-01-01T00-00"
    assert grain_name(-60) == "grain=1969-12-31T23-59"
    assert grain_name(BEGAN - 59) == "grain=2013-01-01T09-59"
