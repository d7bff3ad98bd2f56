"""The check of an engine's matches."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.studies.standin import SlowMatcher

from tidings.studies.workloads import checking
from tidings.studies.workloads.checking import Reference, WrongMatches
from tidings.studies.workloads.workloads import Workload, make_workload


@pytest.fixture
def workload() -> Workload:
    return make_workload("flights", 300, 50)


def test_the_right_matches_pass(workload: Workload) -> None:
    reference = Reference(workload, 20)
    matcher = SlowMatcher()
    matcher.add_many(workload.texts())
    found = [matcher.match(event) for event in reference.events]
    assert sum(map(len, found)) > 0
    reference.check(found, "match")
    reference.check([matcher.match(line) for line in reference.lines], "match")
    assert reference.evaluations == 300 * 20


@pytest.mark.parametrize("change", ["missing", "too many", "twice"])
def test_other_matches_do_not(workload: Workload, change: str) -> None:
    reference = Reference(workload, 20)
    matcher = SlowMatcher()
    matcher.add_many(workload.texts())
    found = [matcher.match(event) for event in reference.events]
    at = next(number for number, ids in enumerate(found) if ids)
    if change == "missing":
        del found[at][0]
    else:
        found[at].append(found[at][0] if change == "twice" else 999)
    with pytest.raises(WrongMatches, match=f"match is wrong for event {at}: "):
        reference.check(found, "match")


def test_many_filters_are_asked_in_part(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "MOST_EVALUATIONS", 100)
    reference = Reference(workload, 20)
    assert 100 <= reference.evaluations < 300 * 20


def test_a_workload_whose_texts_say_something_else_is_found_out(workload: Workload) -> None:
    filters = workload.filters
    moved = dataclasses.replace(filters, offsets=filters.offsets.copy())
    lengths = np.diff(filters.offsets)
    at = int(np.flatnonzero(lengths[:-1] > 1)[0])
    moved.offsets[at + 1] -= 1  # the last test of a filter goes to the next one

    class Mixed(Workload):
        def texts(self):  # type: ignore[no-untyped-def]
            return enumerate(moved.sql())

    broken = Mixed(workload.name, workload.seed, filters, workload.events)
    with pytest.raises(WrongMatches, match="disagree on filter"):
        Reference(broken, 50)
