"""Rows of CSV and Parquet files, over many batches."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.conftest import Write

from tidings.cli.common import arrow
from tidings.cli.common.command_errors import BadInput

COUNT = 3 * arrow.BATCH_ROWS + 1


def test_all_rows_of_a_large_csv(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "BLOCK_BYTES", 10_000)
    path = write("e.csv", "n,text\n" + "".join(f"{n},x{n}\n" for n in range(COUNT)))
    rows = list(arrow.read_csv(path))
    assert rows == [{"n": n, "text": f"x{n}"} for n in range(COUNT)]


def test_all_rows_of_a_large_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    parquet.write_table(pa.table({"n": range(COUNT)}), path)
    assert [row["n"] for row in arrow.read_parquet(str(path))] == list(range(COUNT))


def test_a_column_that_changes_its_type_says_what_to_do(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "BLOCK_BYTES", 1_000)
    path = write("e.csv", "n,m\n" + "1,\n" * 1_000 + "x,5\n")
    with pytest.raises(BadInput, match=r"conversion error.*--types can declare the column"):
        list(arrow.read_csv(path))
    assert list(arrow.read_csv(path, ["n", "m"]))[-1] == {"n": "x", "m": "5"}


def test_nanoseconds_become_microseconds() -> None:
    batch = pa.record_batch({"at": pa.array([1_234_567], pa.timestamp("ns", "UTC"))})
    [row] = arrow.rows_of(batch)
    assert row["at"].microsecond == 1234
