"""What changes cost: the figures are there, and an engine that forgets is not measured."""

from __future__ import annotations

from typing import Any

import pytest

from tidings.matching import Matcher
from tidings.studies import WrongMatches, bench_updates
from tidings.studies.engine import update_bench


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_bench, "SINGLE", 20)
    monkeypatch.setattr(update_bench, "EVENTS", 20_000)


def test_a_run_has_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_bench, "EVENTS", 200)
    [run] = bench_updates(["mixed"], [300], rounds=2).runs
    assert run.filters == 300
    assert run.add.calls == run.remove.calls == 20
    assert 0 < run.quiet.p50 <= run.quiet.p99 <= run.quiet.longest
    assert run.merging.calls > 0
    assert run.slowdown == run.merging.p99 / run.quiet.p99
    assert run.snapshot_bytes > 0
    assert run.open_seconds > 0


def test_an_engine_that_does_not_find_what_was_added_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forget(self: Matcher, event: Any) -> list[Any]:
        return []

    monkeypatch.setattr(Matcher, "match", forget)
    with pytest.raises(WrongMatches, match="the next match does not find it"):
        bench_updates(["mixed"], [300], rounds=1)
