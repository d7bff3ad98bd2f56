"""What workers make of a batch whose ids are too many bytes at once: pieces, with the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidings.snapshots import Snapshot, view as views
from tidings.spark.outbox.batches import batch_stages as stages
from tidings.spark.tagging import parquet
from tidings.spark.tagging.worker import Pinned, make_tagger, view_of

ROWS = pa.record_batch({"x": list(range(-5, 40)), "name": [f"n{at}" for at in range(45)]})


@pytest.fixture
def pinned(tmp_path: Path) -> Pinned:
    Snapshot.build({f"id {at}": f"x > {at % 20}" for at in range(60)}).save(tmp_path / "s")
    return Pinned(str(tmp_path / "s"), 1)


def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MOST_BYTES", 1000)


def test_tagging(pinned: Pinned, monkeypatch: pytest.MonkeyPatch) -> None:
    def tagged() -> list[Any]:
        run = make_tagger(pinned, ["x", "name"], ("nodes", "subscriptions"))
        return list(run(iter([tuple(ROWS.columns)])))

    (whole,) = tagged()
    small_pieces(monkeypatch)
    pieces = tagged()
    assert len(pieces) > 10
    assert pa.concat_arrays(pieces).equals(whole)


@pytest.mark.parametrize("output", ["nodes", "subscriptions", "pairs"])
def test_parquet(pinned: Pinned, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = parquet._Work(pinned, output, ["x"], ["name"], b"", "", [])
    (whole,) = parquet._tag_batch(view_of(pinned), work, ROWS)
    small_pieces(monkeypatch)
    pieces = list(parquet._tag_batch(view_of(pinned), work, ROWS))
    assert len(pieces) > 10
    assert pa.Table.from_batches(pieces).combine_chunks().equals(pa.Table.from_batches([whole]))


def test_stages(pinned: Pinned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = stages.Stage(pinned, str(tmp_path), ROWS.schema.serialize().to_pybytes(), "typed")

    def staged() -> tuple[stages.StagedPartition, pa.Table]:
        with stages._Files(str(tmp_path), 0, stage.filing) as files:
            stages._stage_batch(view_of(pinned), ROWS.schema, stage, ROWS, files)
            (file,) = files.finish().files
        with pq.ParquetFile(tmp_path / file.name) as written:
            groups.append(written.num_row_groups)
            return files.staged, written.read()

    groups = list[int]()
    whole, rows = staged()
    small_pieces(monkeypatch)
    found, same = staged()
    assert groups[0] == 1
    assert groups[1] > 10
    assert same.combine_chunks().equals(rows.combine_chunks())
    for name in ("seen", "matched", "told", "refused", "counts"):
        assert getattr(found, name) == getattr(whole, name)
    assert (whole.seen, whole.matched) == (45, 39)
