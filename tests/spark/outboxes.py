"""What tests put into outboxes, and what is done to them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.spark.outbox.commits import Commit, DataFile
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.outbox.sealed_files import digest_of


def files_of(outbox: Outbox, batch: int, attempt: str) -> list[DataFile]:
    """The files of an attempt, as a commit names them."""
    found = []
    for folder in (outbox.folder(batch, attempt), outbox.dead_folder(batch, attempt)):
        for path in sorted(folder.rglob("*.parquet")):
            rows = pq.read_metadata(path).num_rows
            name = str(path.relative_to(outbox.path))
            found.append(DataFile(name, rows, path.stat().st_size, digest_of(path)))
    return found


def put_batch(outbox: Outbox, batch: int, counters: dict[int, int], rows: int = 4) -> Commit:
    """A batch as a pipeline makes one: pinned, placed, numbered, committed."""
    pin = outbox.pin(batch, 1, 100 + batch)
    folder = outbox.folder(batch, f"a{batch}")
    folder.mkdir(parents=True)
    nodes = [[1 + at % 3] for at in range(rows)]
    numbers, new = [], dict[int, int]()
    for (node,) in nodes:
        new[node] = new.get(node, counters.get(node, 0)) + 1
        numbers.append([new[node]])
    new[0] = counters.get(0, 0) + rows
    told = pa.table({
        "id": range(rows),
        "notification": range(new[0] - rows + 1, new[0] + 1),
        "nodes": nodes,
        "numbers": numbers,
    })  # fmt: skip
    pq.write_table(told.slice(0, rows // 2), folder / "one.parquet")
    pq.write_table(told.slice(rows // 2), folder / "two.parquet")
    files = files_of(outbox, batch, f"a{batch}")
    done = Commit(batch, f"a{batch}", 1, pin.micros, rows, rows, rows, 0, new, files)
    outbox.commit(done)
    counters.update(new)
    outbox.keep_counters(batch, counters)
    return done
