"""Numbers: those of a plain loop over all rows, however they are cut into partitions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tidings.spark.outbox.batches.numbering import add_before, counters_before, number_lists

Rows = list[list[int]]


def random_partitions(chance: random.Random) -> list[Rows]:
    def row() -> list[int]:
        return sorted(chance.sample(range(12), chance.randrange(5)))

    return [[row() for _ in range(chance.choice((0, 1, 7, 40)))] for _ in range(4)]


def by_hand(partitions: list[Rows], now: dict[int, int]) -> Rows:
    """The numbers of all rows; `now` goes on."""
    found: Rows = []
    for nodes in (nodes for rows in partitions for nodes in rows):
        for node in nodes:
            now[node] = now.get(node, 0) + 1
        found.append([now[node] for node in nodes])
    return found


def batches(rows: Rows, chance: random.Random) -> Iterator[Any]:
    while rows:
        size = chance.randrange(1, 9)
        # a slice of a longer array, as Arrow may hand one over: its offsets do not begin with 0
        yield pa.array([[1, 2, 3], *rows[:size]], pa.list_(pa.int64())).slice(1)
        rows = rows[size:]


def test_numbers_are_those_of_a_plain_loop(seed: int) -> None:
    """Workers write places, which know only their partition; readers add what came before."""
    chance = random.Random(seed)
    counters: dict[int, int] = {}
    for _ in range(30):
        partitions = random_partitions(chance)
        counted, places = list[dict[int, int]](), list[list[tuple[Any, Any]]]()
        for rows in partitions:
            counts: dict[int, int] = {}
            places.append([(lists, number_lists(lists, counts)) for lists in batches(rows, chance)])
            counted.append(counts)
        found: Rows = []
        for some, before in zip(places, counters_before(counters, counted), strict=True):
            for lists, here in some:
                found += add_before(lists, here, before).to_pylist()
        expected = dict(counters)
        assert found == by_hand(partitions, expected)
        for counts in counted:
            for node, count in counts.items():
                counters[node] = counters.get(node, 0) + count
        assert counters == expected


def test_null_lists_have_no_numbers() -> None:
    lists = pa.array([[7], None, [7, 9]], pa.list_(pa.int64()))
    assert number_lists(lists, {7: 40}).to_pylist() == [[41], [], [42, 1]]
