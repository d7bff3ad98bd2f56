"""Trackers against sets of numbers."""

from __future__ import annotations

import random

import pytest

from tidings.routing.clients.tracking import Tracker
from tidings.routing.protocol.messages import Mark, Range


def mark(node: int, number: int) -> Mark:
    return Mark(node, number, (node,))


def numbers(ranges: list[Range]) -> set[tuple[int, int]]:
    return {(r.node, number) for r in ranges for number in range(r.first, r.last + 1)}


def test_random_arrivals(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        base = {node: chance.randrange(5) for node in range(1, 4)}
        tracker = Tracker(base)
        settled = {(node, n) for node, count in base.items() for n in range(1, count + 1)}
        known = dict(base)
        for _ in range(40):
            node = chance.randrange(1, 6)  # 4 and 5 are new ones
            what = chance.random()
            if what < 0.6:
                number = chance.randrange(1, 12)
                assert tracker.see([mark(node, number)]) is ((node, number) not in settled)
                settled.add((node, number))
                known[node] = max(known.get(node, 0), number)
            elif what < 0.8:
                count = chance.randrange(12)
                tracker.learn({node: count})
                known[node] = max(known.get(node, 0), count)
            else:
                first = chance.randrange(1, 10)
                last = first + chance.randrange(4)
                there = {(node, n) for n in range(first, last + 1) if n <= known.get(node, 0)}
                tracker.give_up([Range(node, first, last)])
                settled |= there
            missing = {(one, n) for one, top in known.items() for n in range(1, top + 1)} - settled
            assert numbers(tracker.list_missing()) == missing
            assert tracker.is_complete() is not bool(missing)
            wanted = [mark(one, n) for one in range(1, 6) for n in range(1, 13)]
            assert {(w.node, w.number) for w in tracker.select_missing(wanted)} == missing


def test_a_notification_that_came_with_fewer_marks() -> None:
    tracker = Tracker({1: 4, 2: 7})
    assert tracker.see([mark(1, 5)])
    assert not tracker.see([mark(1, 5), mark(2, 8)])
    assert tracker.is_complete()
    assert tracker.see([mark(2, 9), mark(3, 1)])
    assert tracker.has_any([mark(2, 8), mark(9, 1)])
    assert not tracker.has_any([mark(2, 10)])


def test_a_first_number_above_one_is_a_gap() -> None:
    tracker = Tracker({})
    assert tracker.see([mark(7, 1)])
    assert tracker.list_missing() == []
    assert tracker.see([mark(8, 3)])
    assert tracker.list_missing() == [Range(8, 1, 2)]


@pytest.mark.timeout(120)
def test_a_hundred_thousand_that_are_missing() -> None:
    """A subscriber that was away for long: each that is recovered costs as much as any other."""
    tracker = Tracker({})
    for number in range(100_001, 200_001):
        tracker.see([mark(1, number)])
    for number in range(1, 100_001):
        assert tracker.select_missing([mark(1, number)])
        tracker.see([mark(1, number)])
    assert tracker.is_complete()
