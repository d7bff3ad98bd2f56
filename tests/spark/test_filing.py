"""Filing: rows lie in the files of their grains, and get the numbers of a plain loop."""

from __future__ import annotations

import datetime as dt
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidings.spark.outbox.batches import filing as module
from tidings.spark.outbox.batches.filing import Filing, RowFiles, WrittenFile, grain_name
from tidings.spark.outbox.commits import Commit, DataFile, PartitionCounts
from tidings.spark.outbox.numbered_rows import number_files
from tidings.store.numbers import pack_counts

BEGAN = int(dt.datetime(2013, 1, 1, 9, 59, 59, tzinfo=dt.UTC).timestamp())
UTC = pa.timestamp("us", "UTC")


def put(folder: Path, filing: Filing, rows: list[dict[str, Any]], size: int = 7) -> RowFiles:
    """Rows of a partition, as a task puts them."""
    kinds = [
        ("id", pa.int64()),
        ("at", UTC),
        ("nodes", pa.list_(pa.int64())),
        ("subscriptions", pa.list_(pa.string())),
    ]
    files = RowFiles(folder, filing)
    for start in range(0, len(rows), size):
        files.put(pa.RecordBatch.from_pylist(rows[start : start + size], pa.schema(kinds)))
    return files


def commit_of(parts: list[tuple[RowFiles, list[WrittenFile]]], before: int) -> Commit:
    """A commit of what some partitions wrote."""
    named = [
        DataFile(f"data/00000000-a/{one.grain}/{one.name}", one.rows, one.size, one.digest)
        for _, filed in parts
        for one in filed
    ]
    counted = []
    for files, filed in parts:
        counts = dict(files.counts)
        rows = counts.pop(0, 0)
        if filed:
            counted.append(PartitionCounts(len(filed), rows, pack_counts(counts)))
    rows = sum(one.rows for one in counted)
    return Commit(0, "a", 5, 0, rows, rows, rows, 0, files=named, before=before, partitions=counted)


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


def read(folder: Path, commit: Commit, numbers: dict[int, int] | None) -> list[dict[str, Any]]:
    """The rows of a batch, as readers get them."""
    found, known = list[dict[str, Any]](), number_files(commit, numbers)
    for one in commit.files:
        grain = one.path.split("/")[2].removeprefix("grain=")
        with pq.ParquetFile(folder / Path(one.path).name) as file:
            for batch in file.iter_batches(5):
                rows = known[one.path].join(batch).to_pylist()
                found += [{**row, "grain": grain} for row in rows]
    return sorted(found, key=lambda row: int(row["notification"]))


def test_numbers_and_grains(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    parts = [random_rows(chance, 1000 * at, hours=40) for at in range(4)]
    made = [put(tmp_path, Filing(5, BEGAN, 1800, "at"), rows) for rows in parts]
    filed = [one.finish() for one in made]
    commit = commit_of(list(zip(made, filed, strict=True)), before=100)
    numbers = {node: chance.randrange(100) for node in commit.count_nodes()}
    everything = [row for rows in parts for row in rows]
    assert read(tmp_path, commit, numbers) == by_hand(everything, {0: 100, **numbers})
    named = [one.name for some in filed for one in some]
    assert len({*named}) == len(named)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(named)  # nothing else is left
    # where a rendezvous point numbers, readers get null
    bare = read(tmp_path, commit, None)
    assert [row["notification"] for row in bare] == list(range(101, 101 + len(everything)))
    assert all(row["numbers"] is None for row in bare)


def test_without_a_column_of_time_all_is_in_one_grain(tmp_path: Path, seed: int) -> None:
    rows = random_rows(random.Random(seed), 0, hours=40) or random_rows(random.Random(7), 0, 40)
    files = put(tmp_path, Filing(5, BEGAN, 3600), rows)
    filed = files.finish()
    assert [file.grain for file in filed] == (["grain=2013-01-01T09-00"] if rows else [])
    assert files.counts.get(0, 0) == len(rows)


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
    files = put(tmp_path, Filing(5, BEGAN, 1800, "at"), rows, 5)
    filed = files.finish()
    expected = by_hand(rows, {})
    counts = Counter(row["grain"] for row in expected)
    own = {one.grain.removeprefix("grain=") for one in filed} - {"mixed"}
    assert len(filed) == min(most, len(counts))
    rest = {grain: count for grain, count in counts.items() if grain not in own}
    assert max(rest.values(), default=0) <= min([counts[grain] for grain in own], default=60)
    for row in expected:
        row["grain"] = row["grain"] if row["grain"] in own else "mixed"
    assert read(tmp_path, commit_of([(files, filed)], 0), {1: 0}) == expected


def test_spread_times_do_not_make_a_file_each(tmp_path: Path, seed: int) -> None:
    """10,000 rows of 10,000 days; each row is there once, and the mixed ones lie by their time."""
    first = dt.datetime(1990, 1, 1, 12, tzinfo=dt.UTC)
    days = random.Random(seed).sample(range(10_000), 10_000)
    rows = [
        {"id": at, "at": first + dt.timedelta(days=day), "nodes": [1 + at % 3],
         "subscriptions": ["a"]}
        for at, day in enumerate(days)
    ]  # fmt: skip
    began = time.process_time()
    filed = put(tmp_path, Filing(5, BEGAN, 3600, "at"), rows, 4096).finish()
    assert time.process_time() - began < 20
    assert len(filed) == module.MOST_GRAINS
    (mixed,) = [one for one in filed if one.grain == "grain=mixed"]
    found = [row for one in filed for row in pq.read_table(tmp_path / one.name).to_pylist()]
    assert sorted(row["id"] for row in found) == list(range(10_000))
    assert sorted(row["_place"] for row in found) == list(range(1, 10_001))
    with pq.ParquetFile(tmp_path / mixed.name) as file:
        assert file.num_row_groups == 3
        for number in range(3):
            times = file.read_row_group(number, columns=["at"]).column("at").to_pylist()
            assert times == sorted(times)


def test_names_of_grains() -> None:
    assert grain_name(0) == "grain=1970-01-01T00-00"
    assert grain_name(-60) == "grain=1969-12-31T23-59"
    assert grain_name(BEGAN - 59) == "grain=2013-01-01T09-59"
