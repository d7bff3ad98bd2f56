"""Matchers without a thread that merges: their parts stay few, and find what they should."""

from __future__ import annotations

import itertools
import math
import random
import threading

import pyarrow as pa
import pytest
from tests.repeats import amount

from tidings.matching import Matcher
from tidings.matching.matcher import CROWD
from tidings.studies import make_workload


@pytest.mark.usefixtures("costly_engine")
def test_parts_stay_few(seed: int) -> None:
    chance = random.Random(seed)
    work = make_workload("mixed", amount(200, 400), 200, seed % 1000)
    (batch,) = work.batches()
    one_by_one, at_once = Matcher(background=False), Matcher(background=False)
    known: dict[int, str] = {}
    for number, text in work.texts():
        one_by_one.add(number, text)
        known[number] = text
        if chance.random() < 0.2:
            gone = chance.choice(list(known))
            one_by_one.remove(gone)
            del known[gone]
        one_by_one.match_batch(batch.slice(0, 1))
        assert one_by_one.stats()["parts"] <= 2 + math.log2(number + 1)
    at_once.add_many(known.items())
    assert as_sets(one_by_one.match_batch(batch)) == as_sets(at_once.match_batch(batch))


@pytest.mark.usefixtures("costly_engine")
def test_several_threads(seed: int) -> None:
    work = make_workload("mixed", amount(150, 300), 50, seed % 1000)
    (batch,) = work.batches()
    matcher = Matcher(background=False)
    texts = list(work.texts())

    def add(start: int) -> None:
        for number, text in texts[start::3]:
            matcher.add(number, text)
            matcher.match_batch(batch.slice(0, 1))

    threads = [threading.Thread(target=add, args=(start,)) for start in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = Matcher(background=False)
    expected.add_many(texts)
    assert as_sets(matcher.match_batch(batch)) == as_sets(expected.match_batch(batch))


def as_sets(found: pa.ListArray) -> list[set[int]]:
    return [set(ids) for ids in found.to_pylist()]


def sealed_sizes(matcher: Matcher) -> list[int]:
    return [len(sealed.part.segment.arrays.box_slot) for sealed in matcher._state.parts]


def test_parts_of_one_size_are_joined_as_a_counter_carries() -> None:
    matcher = Matcher()  # which joins none by itself while so few are added
    for number in range(13):
        matcher.add(number, f"x > {number}")
        matcher._seal()
        matcher._join_small()
        sizes = sealed_sizes(matcher)
        assert sum(sizes) == number + 1
        assert all(one > 2 * other for one, other in itertools.pairwise(sizes))
        assert set(matcher.match({"x": 5})) == set(range(min(number + 1, 5)))


def test_parts_are_not_joined_while_all_are_merged() -> None:
    matcher = Matcher()
    for number in range(3):
        matcher.add(number, f"x > {number}")
        matcher._seal()
    with matcher._merging:
        matcher._join_small()
    assert sealed_sizes(matcher) == [1, 1, 1]
    matcher._join_small()
    assert sealed_sizes(matcher) == [3]


def test_fresh_filters_are_tended() -> None:
    matcher = Matcher()
    for number in range(40):
        matcher.add(number, f"x > {number}")
    assert matcher._state.fresh_count == 40
    matcher._tend(False)
    assert matcher._state.fresh_count == 0
    assert sealed_sizes(matcher) == [40]
    matcher.add(40, "x > 100")
    matcher._tend(False)
    assert sealed_sizes(matcher) == [40, 1]
    matcher._tend(True)
    assert sealed_sizes(matcher) == [41]
    assert set(matcher.match({"x": 3})) == {0, 1, 2}


@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.usefixtures("engine")
def test_a_crowd_of_fresh_filters_becomes_a_part(beyond: bool) -> None:
    matcher = Matcher()
    count = CROWD + beyond
    for number in range(count):
        matcher.add(number, f"x > {number - CROWD - 9}")
    assert len(matcher.match({"x": 0})) == count
    worker = matcher._worker
    assert (worker is not None) == beyond
    if worker is not None:
        worker.join(60)
        assert matcher._state.fresh_count == 0
        assert not matcher._crowded
    assert len(matcher.match({"x": 0})) == count


def test_a_new_part_is_ready_for_single_events_if_others_were_used_for_them() -> None:
    work = make_workload("mixed", 200, 2, 1)
    (batch,) = work.batches()
    texts = list(work.texts())
    matcher = Matcher(background=False)
    matcher.add_many(texts[:100])
    matcher.match_batch(batch)
    assert [one.part.is_probed for one in matcher._state.parts] == [False]
    for event in batch.to_pylist():
        matcher.match(event)
    assert matcher._state.parts[0].part.is_probed
    matcher.add_many(texts[100:])
    matcher.match_batch(batch)
    assert all(one.part.is_probed for one in matcher._state.parts)
