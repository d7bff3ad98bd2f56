"""Batches that a join has sorted by rank, against the same batches sorted by code, and small
batches against the filters themselves, with terms that have many more codes than events."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.repeats import draws, rounds

import tidings
from tidings.matching.segments import join_kernels as kernels
from tidings.matching.segments.join_kernels import SPARSE, SortedBatch


def make_batch(count: int, size: int, *, by_rank: bool) -> SortedBatch:
    def room(length: int, kind: type = np.int64) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.full(length, 77, kind)  # what was there before must not matter

    words = size // 64 + 1 if by_rank else 0
    return SortedBatch(
        room(size + 1), room(size + 1), room(words, np.uint64), room(words), room(count, np.uint32),
        np.zeros((0, 0), np.uint16), np.zeros((0, 0), np.uint32),
    )  # fmt: skip


def test_ranks_and_codes_say_the_same(seed: int) -> None:
    chance = random.Random(seed)
    for _ in rounds(100, 2_000):
        size = chance.choice([1, 2, 63, 64, 65, 127, 128, 1000, 5000])
        count = chance.choice([1, 2, 7, 40, 300])
        drawn = [chance.randrange(size) for _ in range(chance.choice([1, count]))]
        codes = np.array([chance.choice([*drawn, 0, size - 1]) for _ in range(count)], np.uint32)
        code, rank = make_batch(count, size, by_rank=False), make_batch(count, size, by_rank=True)
        kernels.sort_by_code(codes, size, code.order, code.starts)
        kernels.find_used(code.starts, size, code.used)
        kernels.sort_by_rank(codes, size, rank)
        assert rank.order.tolist() == code.order.tolist()
        assert rank.order.tolist() == np.argsort(codes, kind="stable").tolist()
        for one in range(size + 1):
            below = int((codes < one).sum())
            assert kernels.events_below(rank, one) == kernels.events_below(code, one) == below
            later = codes[codes >= one]
            following = int(later.min()) if len(later) else kernels.NONE
            assert kernels.next_code(rank, one) == kernels.next_code(code, one) == following


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_small_batches_match_as_filters_do(kind: str, seed: int) -> None:
    chance = random.Random(seed)

    def value() -> str:
        number = chance.randrange(3_000)
        return str(number) if kind == "numbers" else f"'{number:05}'"

    def condition() -> str:
        name = chance.choice("abc")
        low, high = sorted([value(), value()], key=lambda one: one.strip("'").zfill(5))
        return chance.choice(
            [
                f"{name} = {low}", f"{name} IN ({low}, {high}, {value()})", f"{name} < {low}",
                f"{name} BETWEEN {low} AND {high}", f"{name} <> {low}", f"{name} IS NULL",
            ]
        )  # fmt: skip

    texts = [" AND ".join(condition() for _ in range(chance.choice([1, 2, 3]))) for _ in range(900)]
    filters = {number: tidings.parse(text) for number, text in enumerate(texts)}
    matcher = tidings.Matcher()
    matcher.add_many(filters.items())
    matcher.merge()
    matched = 0
    for _ in draws(6, lambda: matched > 100):
        events = []
        for _ in range(chance.choice([1, 3, 20, 100])):
            present = {name: value().strip("'") for name in "abc" if chance.random() < 0.7}
            events.append(
                {name: int(one) if kind == "numbers" else one for name, one in present.items()}
            )
        assert len(events) * SPARSE < 900  # so the join sorts by rank
        found = matcher.match_batch(events).to_pylist()
        for event, ids in zip(events, found, strict=True):
            expected = {number for number, one in filters.items() if one.matches(event)}
            assert set(ids) == expected
            matched += len(expected)
