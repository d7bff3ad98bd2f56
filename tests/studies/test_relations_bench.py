"""`tidings bench relations`, with small sizes: what it reports, and that wrong results are
refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidings import studies
from tidings.relations import Repository
from tidings.routing.early import SentBodies
from tidings.studies.relations.forwarding_bench import measure_forwarding
from tidings.studies.workloads.checking import WrongMatches
from tidings.studies.workloads.draws import draw_bounded_zipf


def test_the_benchmark_reports_what_it_measured() -> None:
    report = studies.bench_relations(3000, 800, learn=1500, messages=300, related=100, repeats=1)
    assert report.store_nodes <= report.nodes / 10
    assert report.store_share < 0.1
    assert 0.5 < report.decided <= report.served_some <= 1
    assert report.served <= report.served_some
    assert report.propose_micros < report.match_micros
    assert [row.limit for row in report.limits] == [0.5, 0.7, 1.0, 1.5, 2.0, 3.0]
    recalls = [row.recall for row in report.limits]
    assert recalls == sorted(recalls, reverse=True)
    assert report.related.recall == report.related.precision == 1.0
    assert report.related.deliveries > 100
    assert [one.body for one in report.forwarding] == [100, 5_000]
    assert report.forwarding[0].early_micros is None
    early = report.forwarding[1]
    assert early.early_micros is not None
    assert early.served is not None
    assert 0 < early.served <= 1
    assert len(studies.relation_sections(report)) == 4
    assert "Related deliveries at 0.7: 100.0% of" in studies.relation_lines(report)[-1]


def test_wrong_results_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    route = Repository.route

    def forgetful(self: Repository, event: Any, now: float) -> Any:
        return route(self, event, now)[:0]

    monkeypatch.setattr(Repository, "route", forgetful)
    with pytest.raises(studies.WrongMatches, match="and the matcher find different"):
        studies.bench_relations(500, 100, learn=10, messages=50, repeats=1)


def test_lost_notifications_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A router that forgets early bodies' notifications is found out before anything is timed."""
    monkeypatch.setattr(SentBodies, "shorten", lambda *_: b"")
    with pytest.raises(WrongMatches, match="with 'early'"):
        measure_forwarding(1, 100, 1, (5_000,))


def test_zipf_without_a_tail() -> None:
    drawn = draw_bounded_zipf(np.random.default_rng(1), 1.1, 100, 200_000)
    counts = np.bincount(drawn, minlength=100)
    shares = np.arange(1, 101) ** -1.1
    want = 200_000 * shares / shares.sum()
    assert len(counts) == 100
    assert np.all(np.abs(counts - want) < 6 * np.sqrt(want))
