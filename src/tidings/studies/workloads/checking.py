"""Checks the matches of an engine against the workload's answers and the reference semantics."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tidings.filters import parse
from tidings.model import TidingsError
from tidings.studies.workloads.answers import matching_pairs
from tidings.studies.workloads.workloads import Workload

MOST_EVALUATIONS = 200_000


class WrongMatches(TidingsError):
    """An engine and the reference semantics disagree, so the engine's speed is meaningless."""


class Reference:
    """The matches that the first `sample` events of a workload must have.

    The matches are computed from the workload's tests. The reference semantics, `Filter.matches`,
    then has to confirm each match. The reference semantics also has to confirm that other filters
    do not match: all other filters if they are few, or else a random sample within
    MOST_EVALUATIONS.
    """

    def __init__(self, workload: Workload, sample: int) -> None:
        self.events = workload.events.slice(0, sample).to_pylist()
        self.lines = workload.event_lines()[: len(self.events)]
        self._expected: list[set[int]] = [set() for _ in self.events]
        for event, number in zip(*map(list, matching_pairs(workload, sample)), strict=True):
            self._expected[event].add(int(number))
        self.evaluations = self._ask(workload)

    def check(self, found: Sequence[Sequence[object]], way: str) -> None:
        """Raise WrongMatches unless `found` has the expected ids for each sampled event."""
        for number, (ids, expected) in enumerate(zip(found, self._expected, strict=True)):
            if len(ids) == len(expected) and set(ids) == expected:
                continue
            missing, wrong = sorted(expected - set(ids)), sorted(set(ids) - expected, key=str)
            raise WrongMatches(
                f"{way} is wrong for event {number}: found {len(ids)} matches, expected "
                f"{len(expected)}; missing: {missing[:5]}, unexpected: {wrong[:5]}"
            )

    def _ask(self, workload: Workload) -> int:
        texts = dict(workload.texts())
        rng = random.Random(workload.seed)
        most = max(1, MOST_EVALUATIONS // max(1, len(self.events)))
        others = range(len(texts)) if len(texts) <= most else rng.sample(range(len(texts)), most)
        asked = sorted(set(others).union(*self._expected))
        count = 0
        some = set(others)
        for number in asked:
            filter_ = parse(texts[number])
            for event, expected in zip(self.events, self._expected, strict=True):
                if number in some or number in expected:
                    count += 1
                    if filter_.matches(event) is not (number in expected):
                        raise WrongMatches(
                            f"the reference semantics and the workload disagree on filter "
                            f"{number}, {texts[number]!r}, and the event {event!r}"
                        )
        return count
