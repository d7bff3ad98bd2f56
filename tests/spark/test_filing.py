"""Filing: the same numbers and files, whether the driver does it or the workers do."""

from __future__ import annotations

import datetime as dt
import random
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidings.spark.outbox.batches import filing as module
from tidings.spark.outbox.batches.batch_stages import StagedPartition, _Files
from tidings.spark.outbox.batches.filing import Filing, counts_of, file_rows, grain_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGAN = int(dt.datetime(2013, 1, 1, 9, 59, 59, tzinfo=dt.UTC).timestamp())
UTC = pa.timestamp("us", "UTC")


def staged(
    folder: Path, rows: list[dict[str, Any]], partition: int, size: int = 7
) -> StagedPartition:
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


def read(folder: Path, filed: list[module.WrittenFile]) -> list[dict[str, Any]]:
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


@pytest.mark.parametrize("most", [1, 2, 4, 7])
def test_more_grains_than_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, seed: int
) -> None:
    monkeypatch.setattr(module, "MOST_GRAINS", most)
    chance = random.Random(seed)
    rows = [
        {"id": at, "at": dt.datetime(2013, 1, 1, chance.randrange(7), tzinfo=dt.UTC), "nodes": [1],
         "subscriptions": ["a"]}
        for at in range(60)
    ]  # fmt: skip
    context: Any = None
    filing = Filing(str(tmp_path), 5, BEGAN, 1800, "at")
    filed = file_rows(context, filing, [staged(tmp_path, rows, 0, 5)], {})
    expected = by_hand(rows, {})
    counts = Counter(row["grain"] for row in expected)
    own = {one.grain.removeprefix("grain=") for one in filed} - {"mixed"}
    assert len(filed) == min(most, len(counts))
    rest = {grain: count for grain, count in counts.items() if grain not in own}
    assert max(rest.values(), default=0) <= min([counts[grain] for grain in own], default=60)
    for row in expected:
        row["grain"] = row["grain"] if row["grain"] in own else "mixed"
    assert read(tmp_path, filed) == expected


def test_spread_times_do_not_make_a_file_each(tmp_path: Path, seed: int) -> None:
    """10,000 rows of 10,000 days; each row is there once, and the mixed ones lie by their time."""
    first = dt.datetime(1990, 1, 1, 12, tzinfo=dt.UTC)
    days = random.Random(seed).sample(range(10_000), 10_000)
    rows = [
        {"id": at, "at": first + dt.timedelta(days=day), "nodes": [1 + at % 3],
         "subscriptions": ["a"]}
        for at, day in enumerate(days)
    ]  # fmt: skip
    context: Any = None
    filing = Filing(str(tmp_path), 5, BEGAN, 3600, "at")
    began = time.process_time()
    filed = file_rows(context, filing, [staged(tmp_path, rows, 0, 4096)], {})
    assert time.process_time() - began < 20
    assert len(filed) == module.MOST_GRAINS
    (mixed,) = [one for one in filed if one.grain == "grain=mixed"]
    found = [row for one in filed for row in pq.read_table(tmp_path / one.name).to_pylist()]
    assert sorted(row["id"] for row in found) == list(range(10_000))
    assert sorted(row["notification"] for row in found) == list(range(1, 10_001))
    with pq.ParquetFile(tmp_path / mixed.name) as file:
        assert file.num_row_groups == 3
        for number in range(3):
            times = file.read_row_group(number, columns=["at"]).column("at").to_pylist()
            assert times == sorted(times)


def test_names_of_grains() -> None:
    assert grain_name(0) == "grain=1970-01-01T00-00"
    assert grain_name(-60) == "grain=1969-12-31T23-59"
    assert grain_name(BEGAN - 59) == "grain=2013-01-01T09-59"
