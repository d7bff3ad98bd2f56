"""Ledger: counts, first samples, shared nodes."""

from __future__ import annotations

import tidings
from tidings.cli.common.subscription_files import FileSubscription
from tidings.cli.filters.match_counts import MatchCounts


def counts_of(*texts: str) -> MatchCounts:
    counts = MatchCounts()
    for number, text in enumerate(texts):
        counts.subscribe(FileSubscription(number, text), tidings.parse(text))
    return counts


def test_counts_and_first_samples() -> None:
    counts = counts_of("a > 1", "a > 5", "b = 1")
    found = list(counts.match_chunk([(n, {"a": a}) for n, a in enumerate((0, 3, 9))]))
    assert [one.places for one in found] == [[], [0], [0, 1]]
    for one in found:
        counts.count(one)
    told = [(tally.subscription.id, tally.count, tally.first) for tally in counts.rank()]
    assert told == [(0, 2, 1), (1, 1, 2)]
    assert counts.rank()[0].sample_text == "a = 3"


def test_equal_filters_share_a_node_and_are_told_in_order() -> None:
    counts = counts_of("a = 1", "b = 1", "a IN (1)", "NOT (a != 1)")
    graph = counts.build_graph()
    assert len(graph) == 2
    assert counts.count_sharing(graph) == 3
    (found,) = counts.match_chunk([(0, {"a": 1, "b": 1})])
    assert found.places == [0, 1, 2, 3]
