"""The measurement of stored answers at a rendezvous point, with small sizes."""

from __future__ import annotations

import pytest

from tidings.relations.merit import ExactTable, MatchedIds
from tidings.studies.relations.planned_tagging import bench_planned
from tidings.studies.workloads.checking import WrongMatches


def test_both_kinds_of_filters_are_measured(seed: int) -> None:
    report = bench_planned(500, 100, learn=300, messages=100, repeats=1, seed=seed % 1000)
    assert [row.priced for row in report.rows] == [0.2, 0.0]
    for row in report.rows:
        assert 0.5 < row.planned <= 1
        assert 0 < row.receive_perfect_micros < row.receive_micros + row.receive_planned_micros
    assert report.rows[0].nodes > report.rows[1].nodes


def test_wrong_answers_are_noticed(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(ExactTable, "search", lambda *_: MatchedIds())
    with pytest.raises(WrongMatches, match="find different nodes"):
        bench_planned(500, 100, learn=300, messages=100, repeats=1, seed=seed % 1000)
