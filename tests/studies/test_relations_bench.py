"""`tidings bench relations`, with small sizes: what it reports, and that wrong results are
refused."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tidings import studies
from tidings.relations import Repository
from tidings.routing.early import SentBodies
from tidings.studies.relations import related_bench
from tidings.studies.relations.forwarding_bench import measure_forwarding
from tidings.studies.relations.related_bench import measure_related
from tidings.studies.relations.relation_bars import _overload_bars
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
    assert [run.limit for run in report.related_limits] == [0.5, 0.6, 0.7, 0.8, 0.9]
    assert report.related in report.related_limits
    assert all(run.recall == run.precision == 1.0 for run in report.related_limits)
    deliveries = [run.deliveries for run in report.related_limits]
    assert deliveries == sorted(deliveries, reverse=True)
    assert len(studies.relation_sections(report)) == 5
    assert "Related deliveries at 0.7: 100.0% of" in studies.relation_lines(report)[-1]
    check_bars(report)


def check_bars(report: studies.RelationsReport) -> None:
    overload = studies.bench_overload(1.0)
    whole = studies.complete_report(report, overload)
    assert whole.served == report.served
    bars = {bar.name: bar for bar in whole.bars}
    assert len(bars) == len(whole.bars)
    fast = bars["fast path: rate against Matcher.match, messages served at once"]
    assert (fast.asked, fast.measured) == ("at least 3 times", report.speedup)
    average = bars["fast path: rate against Matcher.match, average of all messages"]
    assert (average.measured, average.met) == (report.first_speedup, None)
    assert bars["store: nodes, share of the distinct filters"].met
    routers = bars["router: time with relations against without, 100 bytes"]
    row = report.forwarding[0]
    assert routers.measured == row.learning_micros / row.plain_micros
    assert (routers.asked, routers.met) == ("at most 1.05 times", routers.measured <= 1.05)
    early = bars["router: time with relations against without, 5,000 bytes, early bodies"]
    assert (early.asked, early.met) == ("", None)
    assert "a second frame" in early.note
    assert bars["related deliveries at 0.7: recall"].met
    for limit in (0.5, 0.6, 0.7, 0.8, 0.9):
        for what in ("precision", "recall"):
            assert bars[f"related deliveries at {limit}: {what}"].measured == 1.0
    top = bars["overload: p99 of the top decile by merit, against without overload"]
    assert (top.asked, top.measured, top.met) == ("at most 2 times", overload.ratio, None)
    assert "only --live can meet the target" in top.note
    assert bars["overload: publications that did not arrive"].met
    assert bars["overload: gaps in the serials of deliveries"].met is None  # only --live has them


def test_only_a_live_overload_can_meet_its_target() -> None:
    for ratio, met in ((1.9, True), (2.1, False)):
        fields: dict[str, Any] = dict.fromkeys(studies.LiveOverloadReport.__struct_fields__, 0)
        report = studies.LiveOverloadReport(**fields | {"ratio": ratio, "seconds": 5})
        (top,) = (bar for bar in _overload_bars(report) if bar.name.startswith("overload: p99"))
        assert (top.measured, top.met) == (ratio, met)
        assert top.note == "real processes; 5 s of overload"


def test_other_deliveries_are_imprecise(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compared with the full scan depends on the repository."""
    monkeypatch.setattr(related_bench, "_weigh", lambda *_: 0.75)
    runs = measure_related(random.Random(1), 20, 10)
    assert all(run.deliveries for run in runs)
    assert all(run.recall < 0.5 for run in runs)
    assert [run.precision for run in runs] == [1.0, 1.0, 1.0, 0.0, 0.0]


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
