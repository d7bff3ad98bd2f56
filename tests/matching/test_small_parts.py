"""Matchers without a thread that merges: their parts stay few, and find what they should."""

from __future__ import annotations

import math
import random
import threading

import pyarrow as pa

from tidings.matching import Matcher
from tidings.studies import make_workload


def test_parts_stay_few(seed: int) -> None:
    chance = random.Random(seed)
    work = make_workload("mixed", 400, 200, seed % 1000)
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


def test_several_threads(seed: int) -> None:
    work = make_workload("mixed", 300, 50, seed % 1000)
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
