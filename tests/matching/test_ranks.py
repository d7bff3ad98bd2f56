"""Rank space: codes of single values and of columns are the number of cuts before a value."""

from __future__ import annotations

import datetime as dt
import math
import random
from bisect import bisect_right
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidings import parse
from tidings.filters.values.sets import ValueSet, key
from tidings.matching.rank_space.encoder import Encoder
from tidings.matching.rank_space.ranks import Ranks, asks_order, merge_ranks
from tidings.matching.segments.statistics import move_counts
from tidings.model import normalise

TEXTS = (
    "x > 5", "x <= 2.5", "x = 9007199254740993", "x != 9007199254740992", "x > 1e300",
    "x < double('Infinity')", "x >= double('-Infinity')", "x = double('NaN')", "x IN (1, 2, 7)",
    "x = 'a'", "x IN ('', 'é', 'zz')", "x = true", "x IS NULL", "x IS NOT NULL",
    "x >= DATE '2024-02-29'", "x < TIMESTAMP '2024-03-01 10:00:00.000001'",
    "x = -9223372036854775808", "x > 9223372036854775806", "x <= 9223372036854775807",
    "x > -1e19", "x NOT IN (3, 4)",
)  # fmt: skip
ORDERED = ("x > 'b'", "startswith(x, 'é')", "x <= 'zz\U0010ffff'", "x LIKE 'a%'")
VALUES: dict[Any, list[Any]] = {
    pa.int64(): [0, 1, 2, 3, 5, 6, 7, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, None],
    pa.int8(): [0, 5, -128, 127, None],
    pa.uint64(): [0, 5, 2**63, 2**64 - 1, None],
    pa.float64(): [0.0, -0.0, 2.5, 5.0, 5.000001, math.nan, math.inf, -math.inf, 2.0**53,
                   2.0**53 + 2, 1e300, 1.1e300, -1e19, None],
    pa.float32(): [0.5, 5.0, math.nan, None],
    pa.string(): ["", "a", "b", "ba", "é", "éa", "zz", "zz\U0010ffff", "zzz", "\uffff", None],
    pa.large_string(): ["a", "", "zz", None],
    pa.string_view(): ["a", "", "unknown and long enough not to be inlined", None],
    pa.dictionary(pa.int32(), pa.string()): ["a", "zz", "q", None],
    pa.bool_(): [True, False, None],
    pa.date32(): [dt.date(2024, 2, 28), dt.date(2024, 2, 29), dt.date(1, 1, 1), None],
    pa.timestamp("us", "UTC"): [dt.datetime(2024, 2, 29, tzinfo=dt.UTC),
                                dt.datetime(2024, 3, 1, 10, 0, 0, 1, tzinfo=dt.UTC), None],
    pa.timestamp("s"): [dt.datetime(2024, 2, 29), dt.datetime(2024, 3, 1, 10), None],  # noqa: DTZ001
    pa.decimal128(10, 2): [Decimal("5.00"), Decimal("2.50"), Decimal("2.51"), None],
    pa.list_(pa.int64()): [[1], [], None],
    pa.null(): [None, None],
}  # fmt: skip


def ranks_of(texts: tuple[str, ...]) -> tuple[Ranks, list[ValueSet]]:
    found = [parse(text).form.boxes for text in texts]
    sets = [box["x"] for boxes in found if boxes for box in boxes]
    ordered = any(asks_order(one) for one in sets)
    return Ranks(sorted({cut for one in sets for cut in one.cuts}), ordered), sets


@pytest.mark.parametrize("texts", [TEXTS, TEXTS + ORDERED, ("x = 'a'",), ("x > 3", "x > 9")])
@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_column_and_value_have_the_same_code(texts: tuple[str, ...], kind: Any) -> None:
    ranks, sets = ranks_of(texts)
    column = pa.array(VALUES[kind], kind)
    codes = Encoder(ranks).encode(column)
    sliced = Encoder(ranks).encode(column.slice(1))
    assert codes.dtype == np.uint32
    assert sliced.tolist() == codes.tolist()[1:]
    for value, code in zip(column.to_pylist(), codes.tolist(), strict=True):
        assert ranks.code(value) == code, value
        for one in sets:  # what counts: the code says whether the value is in the set
            inside = any(low <= code <= high for low, high in ranks.intervals(one))
            assert inside is (key(normalise(value)) in one), (value, one)


def test_ordered_strings_by_bisection(seed: int) -> None:
    rng = random.Random(seed)
    alphabet = "ab\ud7ff\ue000\uffff\U00010000\U0010ffff"
    words = ["".join(rng.choices(alphabet, k=rng.randint(0, 3))) for _ in range(300)]
    ranks, _ = ranks_of(tuple(f"x > '{word}'" for word in words[:40]))
    codes = Encoder(ranks).encode(pa.array(words))
    assert codes.tolist() == [ranks.code(word) for word in words]


@pytest.mark.parametrize("text", TEXTS)
def test_these_do_not_ask_about_the_order_of_strings(text: str) -> None:
    assert not ranks_of((text,))[0].ordered


@pytest.mark.parametrize("text", ORDERED)
def test_these_do(text: str) -> None:
    assert ranks_of((text,))[0].ordered


def test_counts_move_to_a_finer_space() -> None:
    coarse, _ = ranks_of(("x > 5",))
    other, _ = ranks_of(("x > 7",))
    fine, places = merge_ranks([coarse, other])
    counts = np.array([1.0, 2.0, 6.0])[: len(coarse)]
    found = move_counts(counts, places[0], len(fine))
    assert len(found) == len(fine)
    assert found.sum() == pytest.approx(counts.sum())


def test_merged_ranks_have_all_cuts_and_say_where_they_went(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        texts = [rng.choices(TEXTS + ORDERED, k=rng.randint(1, 12)) for _ in range(3)]
        parts = [ranks_of(tuple(some))[0] for some in texts]
        whole, places = merge_ranks(parts)
        assert whole.cuts == sorted({cut for part in parts for cut in part.cuts})
        assert whole.ordered == any(part.ordered for part in parts)
        for part, place in zip(parts, places, strict=True):
            assert [whole.cuts[at] for at in place] == part.cuts


def test_thresholds_are_those_of_each_cut(seed: int) -> None:
    """Integers and doubles by array are what comparing with each cut says."""
    rng = random.Random(seed)
    numbers = [-(2**53), 2**53, 2**53 + 1, -5, 0, 5, 7, 2**63 - 1, -(2**63), 0.5, -2.5, 1e300]
    for _ in range(200):
        some = rng.sample(numbers, rng.randint(1, 6))
        ranks, _ = ranks_of(tuple(f"x {rng.choice(['<', '<=', '=', '>'])} {n!r}" for n in some))
        for value in (*numbers, *(n + 1 for n in numbers[:7])):
            assert ranks.code(value) == bisect_right(ranks.cuts, key(normalise(value))), (
                some,
                value,
            )
            if abs(value) <= 2**53:
                found = int(np.searchsorted(ranks.doubles, float(value), side="right"))
                assert ranks.number_base + found == ranks.code(value)
