"""What workers share: batches that are put together, within bounds."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidings import TidingsError
from tidings.spark.tagging import worker
from tidings.spark.tagging.worker import join_batches


def batch(rows: int, width: int = 1) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"a": ["x" * width] * rows})


def test_small_batches_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "ROWS", 10)
    monkeypatch.setattr(worker, "BYTES", 1000)
    sizes = [one.num_rows for one in join_batches([batch(4)] * 7)]
    assert sizes == [12, 12, 4]
    wide = [one.num_rows for one in join_batches([batch(1, 600)] * 5)]
    assert wide == [2, 2, 1]
    assert [*join_batches([])] == []


def test_batches_of_other_columns_are_refused() -> None:
    other = pa.RecordBatch.from_pydict({"b": [1]})
    with pytest.raises(TidingsError, match="a string and b int64"):
        list(join_batches([batch(1), other]))
