"""What is packed runs elsewhere, with kernels that are not compiled again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.archives import unpack

from tidings import Matcher, TidingsError
from tidings.spark import pack, shipped_settings

SCRIPT = """
import pyarrow as pa
import tidings
from tidings.matching.segments import join_kernels
matcher = tidings.Matcher()
matcher.add("a", "x > 1 AND y = 'b'")
matcher.merge()
assert matcher.match_batch(pa.RecordBatch.from_pylist([{"x": 2, "y": "b"}])).to_pylist() == [["a"]]
stats = join_kernels.join_all.stats
print(tidings.__file__, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def test_packed_kernels_are_used(tmp_path: Path) -> None:
    matcher = Matcher()
    matcher.add("a", "x > 1 AND y = 'b'")
    matcher.match_batch(pa.RecordBatch.from_pylist([{"x": 2, "y": "b"}]))
    archive = pack(tmp_path / "tidings.tar.gz")
    unpack(archive, tmp_path / "there")
    settings = shipped_settings(archive)
    assert settings["spark.archives"].endswith("tidings.tar.gz#tidings-shipped")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(tmp_path / "there"),
        "TIDINGS_KERNELS": str(tmp_path / "there" / "kernels"),
        "TIDINGS_CACHE_DIR": str(tmp_path / "cache"),
    }
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, cwd=tmp_path, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    file_name, hits, misses = result.stdout.split()
    assert file_name.startswith(str(tmp_path))
    assert int(hits) > 0
    assert int(misses) == 0


def test_the_name_must_be_one_of_an_archive(tmp_path: Path) -> None:
    with pytest.raises(TidingsError, match="expected a name that ends in"):
        pack(tmp_path / "tidings.zip")
