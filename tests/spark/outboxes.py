"""What tests put into outboxes, and what is done to them."""

from __future__ import annotations

import shutil
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tidings.spark.outbox.commits import Commit, Commits, DataFile, PartitionCounts
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.outbox.outbox_reading import OutboxReader, grain_of
from tidings.spark.outbox.sealed_files import digest_of
from tidings.store.numbers import pack_counts


def files_of(outbox: Outbox, batch: int, attempt: str) -> list[DataFile]:
    """The files of an attempt, as a commit names them."""
    found = []
    for folder in (outbox.folder(batch, attempt), outbox.dead_folder(batch, attempt)):
        for path in sorted(folder.rglob("*.parquet")):
            rows = pq.read_metadata(path).num_rows
            name = str(path.relative_to(outbox.path))
            found.append(DataFile(name, rows, path.stat().st_size, digest_of(path)))
    return found


def put_batch(
    outbox: Outbox, batch: int, counters: dict[int, int], rows: int = 4, *, numbered: bool = True
) -> Commit:
    """A batch as a pipeline makes one: pinned, placed, committed, numbered. `counters` has the
    numbers before it, and then those after it."""
    pin = outbox.pin(batch, 1, 100 + batch)
    folder = outbox.folder(batch, f"a{batch}")
    folder.mkdir(parents=True)
    nodes = [[1 + at % 3] for at in range(rows)]
    parts = []
    for name, start, end in (("one", 0, rows // 2), ("two", rows // 2, rows)):
        counts, places = dict[int, int](), list[list[int]]()
        for (node,) in nodes[start:end]:
            counts[node] = counts.get(node, 0) + 1
            places.append([counts[node]])
        told = pa.table({
            "id": range(start, end),
            "_place": range(1, end - start + 1),
            "nodes": pa.array(nodes[start:end], pa.list_(pa.int64())),
            "_places": pa.array(places, pa.list_(pa.int64())),
        })  # fmt: skip
        pq.write_table(told, folder / f"{name}.parquet")
        parts.append(PartitionCounts(1, end - start, pack_counts(counts)))
    done = Commit(
        batch, f"a{batch}", 1, pin.micros, rows, rows, rows, 0,
        files=files_of(outbox, batch, f"a{batch}"), before=counters.get(0, 0), partitions=parts,
    )  # fmt: skip
    outbox.commit(done)
    counts = done.count_nodes()
    if numbered:
        outbox.put_numbers(batch, {node: counters.get(node, 0) for node in counts})
    counters[0] = counters.get(0, 0) + rows
    for node, count in counts.items():
        counters[node] = counters.get(node, 0) + count
    outbox.keep_counters(batch, counters)
    return done


def read_rows(outbox: Outbox) -> list[dict[str, Any]]:
    """All rows that readers get, in the order of their numbers."""
    reader = OutboxReader(outbox.path)
    found = [
        row | {"grain": grain_of(file)}
        for commit in reader.commits()
        for file in reader.files(commit)
        for batch in reader.batches(file)
        for row in batch.to_pylist()
    ]
    return sorted(found, key=lambda row: int(row["notification"]))


def as_before(outbox: Outbox) -> None:
    """Rewrite an outbox as releases wrote it that numbered rows before the commit: the files have
    the numbers, and the commits have the counters after them."""
    commits, rows = [*outbox.log.each()], dict[str, pa.Table]()
    reader = OutboxReader(outbox.path)
    for commit in commits:
        for file in reader.files(commit):
            rows[file] = pa.Table.from_batches([*reader.batches(file)])
    for file, table in rows.items():
        pq.write_table(table, outbox.path / file)
    shutil.rmtree(outbox.log.folder)
    shutil.rmtree(outbox.home / "counters", ignore_errors=True)
    log, counters = Commits(outbox.log.folder), dict[int, int]()
    for commit in commits:
        counts = {0: commit.matched, **commit.count_nodes()} if commit.matched else {}
        for node, count in counts.items():
            counters[node] = counters.get(node, 0) + count
        new = {node: counters[node] for node in counts}
        files = files_of(outbox, commit.batch, commit.attempt)
        log.append(
            msgspec.structs.replace(commit, counters=new, files=files, partitions=[], before=0)
        )
        counters.update(new)
    log.close()
