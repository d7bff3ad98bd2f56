"""A short overload of real processes: all arrives once, and the best first."""

from __future__ import annotations

import pytest

from tidings.studies.relations import live_overload, live_traffic
from tidings.studies.relations.live_overload import bench_live_overload
from tidings.studies.relations.live_traffic import Traffic
from tidings.studies.workloads.checking import WrongMatches


@pytest.mark.slow
def test_a_short_live_overload(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(live_overload, "TOPICS", 10)
    monkeypatch.setattr(live_traffic, "IDLE", 20)
    report = bench_live_overload(2.0, seed=seed % 1000, publishers=2)
    assert report.published > 100
    assert report.overload_rate > report.calm_rate
    assert report.most_waiting > 0
    assert report.top_p50_millis < report.deciles_millis[0]
    assert len(report.deciles_millis) == 10
    assert (report.delivered, report.gaps) == (report.published, 0)


def test_what_is_wrong_is_noticed() -> None:
    traffic = Traffic([], ["T1"])
    traffic.due, traffic.arrived, traffic.serials = [1.0, 2.0], [1.5, 2.5], [7, 8]
    traffic.check()
    assert traffic.count_serials() == (2, 0)
    traffic.serials = [7, 9]
    assert traffic.count_serials() == (2, 1)
    with pytest.raises(WrongMatches, match="2 different serials from 7 to 9"):
        traffic.check()
    traffic.serials, traffic.twice = [7, 8], 1
    with pytest.raises(WrongMatches, match="1 were delivered twice"):
        traffic.check()
