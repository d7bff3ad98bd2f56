"""The simulation of an overload, with small sizes."""

from __future__ import annotations

import pytest

from tidings.studies.relations import overload_bench
from tidings.studies.relations.overload_bench import bench_overload


def test_a_short_overload(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(overload_bench, "TOPICS", 2000)
    monkeypatch.setattr(overload_bench, "LEARNT", 2000)
    monkeypatch.setattr(overload_bench, "MEMORY", 100_000)
    report = bench_overload(2.0, seed=seed % 1000)
    assert report.served == report.published > 4000
    assert report.most_on_disk > 0
    assert report.most_in_memory_bytes <= 100_000
    assert report.top_p99_millis < report.all_p99_millis / 10
    assert report.drained_after > 1.0
