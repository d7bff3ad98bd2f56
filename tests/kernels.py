"""Loads the kernels that many tests need. `make test` does this once, before its processes start:
each would compile the missing ones by itself, and so would the processes that it starts."""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

FILTERS = [
    "n > 2 AND s = 'a'", "n > 2", "n > 1 OR s > 'b'", "n > 2 AND s = 'a' AND x < 1.5", "x < 0.5",
    "array_contains(l, 'x')", "n IN (3, 5, 7) AND NOT array_contains(l, 'y')", "n NOT IN (1, 2)",
    "s LIKE 'a%' AND ok", "lower(s) = 'a'", "at < TIMESTAMP '2024-01-01 00:00:00'", "n IS NULL",
    "n % 7 = 3", "x BETWEEN 1 AND 2 AND n BETWEEN 2 AND 9 AND s IN ('a', 'b', 'c')",
    "n > 1 AND x > 2 OR n > 3 AND s = 'b' OR l IS NULL", "d > DATE '2024-01-01'",
    *(f"n > {number % 25} AND x < {number // 25}" for number in range(500)),
]  # fmt: skip


def load_all_kernels() -> None:
    from tidings.broker.outgoing_frames.frame_warming import load_block_kernels
    from tidings.channel.interests import load_interest_kernels
    from tidings.matching import load_kernels

    load_kernels()
    load_block_kernels()
    load_interest_kernels()
    _match_batches()


def _match_batches() -> None:
    """Batches, snapshots in memory and in files, and the coverings of many filters."""
    from tidings import ContentGraph, Matcher, Snapshot, parse
    from tidings.matching.placing import BoxIndex, ask
    from tidings.matching.segments.segment_builder import build_segment

    batch, form = _batch(), parse("n > 2 AND x < 3").form
    index = BoxIndex(build_segment(enumerate(parse(one).form for one in FILTERS[-9:])), 9)
    index.find(ask(form))
    index.find_general(ask(parse("n > 2 OR x < 3").form))
    matcher = Matcher(background=False)
    matcher.add_many(enumerate(FILTERS))
    matcher.match_batch(batch)
    matcher.match_batch(batch.set_column(2, "s", batch["s"].cast("large_string")))
    matcher.match_counts(batch)
    matcher.neighbours(len(FILTERS)).of(form)
    ContentGraph(map(parse, FILTERS))
    with tempfile.TemporaryDirectory() as folder:
        matcher.save(Path(folder, "matcher"))
        opened = Matcher.open(Path(folder, "matcher"), background=False)
        opened.match_batch(batch)
        opened.neighbours(len(FILTERS)).of(form)
        for name, ids in (("numbers", range(len(FILTERS))), ("texts", map(str, range(600)))):
            snapshot = Snapshot.build(dict(zip(ids, FILTERS, strict=False)))
            snapshot.save(Path(folder, name))
            for one in (snapshot, Snapshot.open(Path(folder, name))):
                one.nodes(batch)
                one.subscriptions(batch)
                _count(one.view.match_places(batch), len(FILTERS), len(batch))


def _count(matched: Any, filters: int, rows: int) -> None:
    """What a task of a backtest counts."""
    from tidings.spark.backtests.fire_counts import FireCounts

    mapped = np.arange(rows)
    mapped.flags.writeable = False  # as a column of Arrow is
    for times in (mapped, mapped.copy()):
        tally = FireCounts(filters, 2)
        tally.add_rows(matched, times, times)
        tally.earliest.add_rows(matched, times, mapped, {})


def _batch() -> Any:
    import pyarrow as pa

    day, at = dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, tzinfo=dt.UTC)
    row = {"n": 3, "x": 0.5, "s": "a", "l": ["x", "y"], "ok": True, "d": day, "at": at}
    return pa.RecordBatch.from_pylist([row, dict.fromkeys(row), row] * 20)


if __name__ == "__main__":
    load_all_kernels()
