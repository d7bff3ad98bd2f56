"""The workloads' own answers against every filter on every event."""

from __future__ import annotations

import numpy as np
import pytest

from tidings import parse
from tidings.studies.workloads import answers
from tidings.studies.workloads.workloads import RECIPES, make_workload


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_pairs_are_those_of_the_reference_semantics(name: str, seed: int) -> None:
    workload = make_workload(name, 400, 60, seed=seed)
    filters = [parse(text) for _, text in workload.texts()]
    expected = [
        (event, number)
        for event, row in enumerate(workload.events.to_pylist())
        for number, filter_ in enumerate(filters)
        if filter_.matches(row)
    ]
    events, numbers = answers.matching_pairs(workload)
    assert list(zip(events.tolist(), numbers.tolist(), strict=True)) == expected
    counts = answers.match_counts(workload)
    assert counts.tolist() == np.bincount(events, minlength=60).tolist()


def test_only_the_first_events() -> None:
    workload = make_workload("flights", 500, 100)
    assert (
        answers.match_counts(workload, 30).tolist() == answers.match_counts(workload)[:30].tolist()
    )
    assert len(answers.match_counts(workload, 1_000)) == 100


def test_few_candidates_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = make_workload("mixed", 2_000, 300)
    whole = answers.match_counts(workload)
    monkeypatch.setattr(answers, "_AT_ONCE", 50)
    assert answers.match_counts(workload).tolist() == whole.tolist()
    assert whole.sum() > 0
