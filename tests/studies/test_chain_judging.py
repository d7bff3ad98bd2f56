"""The judge of the chain, on deliveries that are right and on ones that are wrong in one way each;
and the drawn interests, against the dialects."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest

from tidings.filters import parse
from tidings.studies.chain.chain_rows import (
    ATTRIBUTES,
    DIALECTS,
    FIRST_PUBLISHED,
    WrittenInterest,
    draw_interests,
    draw_row,
)
from tidings.studies.chain.judging import (
    ChainVerdict,
    RowOracle,
    RowPlaces,
    count_in_next_batch,
    count_out_of_order,
    judge,
    judge_published,
)
from tidings.studies.chain.listener import digest_row
from tidings.studies.chain.listener_processes import TOLD

ROWS = [draw_row(random.Random(at), at) | {"made": at} for at in range(60)]
BATCH = 20  # rows
BEGAN = (1_000, 2_000, 3_000)  # of the three batches


def placed() -> RowPlaces:
    ids = np.arange(len(ROWS))
    return RowPlaces(ids // BATCH, ids * 1, np.array(BEGAN)[ids // BATCH])


def interests() -> list[WrittenInterest]:
    return draw_interests(random.Random(5), 12)


def told_of(wanted: list[Any]) -> Any:
    """What comes if all is well: serials are the places in the outbox."""
    found = [
        (number, digest_row(ROWS[at]), at, 100 + at, 0)
        for number, matched in enumerate(wanted)
        for at in np.flatnonzero(matched).tolist()
    ]
    return np.array(found, TOLD)


def judged(told: Any, since: list[int] | None = None) -> ChainVerdict:
    wanted = RowOracle(ROWS).match_all(interests())
    return judge(ROWS, placed(), wanted, since or [0] * len(wanted), told)


def right() -> Any:
    return told_of(RowOracle(ROWS).match_all(interests()))


def test_the_oracle_says_what_filters_say() -> None:
    for one, found in zip(interests(), RowOracle(ROWS).match_all(interests()), strict=True):
        filter_ = parse(one.text, one.dialect, attributes=ATTRIBUTES)
        assert found.tolist() == [filter_.matches(row) for row in ROWS]


def test_interests_are_of_all_dialects_and_overlap() -> None:
    drawn = draw_interests(random.Random(1), 100)
    assert min(Counter(one.dialect for one in drawn).values()) == 25
    assert {one.dialect for one in drawn} == {*DIALECTS}
    filters = [parse(one.text, one.dialect, attributes=ATTRIBUTES) for one in drawn]
    assert not any(one.never for one in filters)
    assert 30 < len(set(filters)) < 100  # some are equal
    covering = sum(a.covers(b) for a in filters[1:] for b in filters[1:] if a != b)
    assert covering > 20


def test_what_is_right_is_found_right() -> None:
    found = judged(right())
    assert found.expected == found.delivered == len(right())
    wrong = msgspec.structs.asdict(found)
    assert {name: count for name, count in wrong.items() if count} == {
        "expected": found.expected, "delivered": found.delivered
    }  # fmt: skip


def _lose(told: Any) -> Any:
    return told[1:]


def _double(told: Any) -> Any:
    return np.concatenate([told, told[5:6]])


def _alter(told: Any) -> Any:
    told["digest"][3] += 1
    return told


def _stray(told: Any) -> Any:
    known = {*told["id"][told["interest"] == 1].tolist()}
    other = next(at for at in range(len(ROWS)) if at not in known)
    new = np.array([(1, digest_row(ROWS[other]), other, 100 + other, 0)], TOLD)
    return np.concatenate([told, new])


def _swap(told: Any) -> Any:
    told["serial"][[0, 1]] = told["serial"][[1, 0]]
    return told


@pytest.mark.parametrize(
    ("change", "field"),
    [(_lose, "lost"), (_double, "doubled"), (_alter, "altered"), (_stray, "strays"),
     (_swap, "misnumbered")],
)  # fmt: skip
def test_each_fault_is_found(change: Any, field: str) -> None:
    assert getattr(judged(change(right())), field) == 1


def test_what_comes_after_a_later_one_is_found() -> None:
    told = right()
    mine = np.flatnonzero(told["interest"] == 0)
    order = np.arange(len(told))
    order[mine[:2]] = mine[1], mine[0]
    found = judged(told[order])
    assert (found.misnumbered, found.lost) == (0, 0)
    assert (count_out_of_order(told), count_out_of_order(told[order])) == (0, 1)


def test_what_is_published_is_due_from_the_time_of_an_interest() -> None:
    wanted = RowOracle(ROWS).match_all(interests())
    told = right()
    told["id"] += FIRST_PUBLISHED
    since = [0] * len(wanted)
    found = judge_published(ROWS, wanted, since, told)
    assert (found.expected, found.lost, found.strays) == (len(told), 0, 0)
    assert judge_published(ROWS, wanted, since, told[1:]).lost == 1
    since[0] = 30  # rows are made at 0, 1, 2 ...
    late = told[(told["interest"] != 0) | (told["id"] > FIRST_PUBLISHED + 30)]
    assert judge_published(ROWS, wanted, since, late).lost == 0
    assert judge_published(ROWS, wanted, since, told).optional == 31
    assert (found + found).expected == 2 * found.expected


def test_an_added_interest_is_due_the_batches_that_begin_later() -> None:
    since = [0] * 12
    since[0] = 1_500  # between the first batch and the second
    told = right()
    found = judged(told, since)
    assert (found.optional, found.lost) == (BATCH, 0)
    late = told[(told["interest"] != 0) | (told["id"] >= BATCH)]
    assert judged(late, since).lost == 0
    assert judged(late[late["id"] != BATCH], since).lost > 0


def test_the_first_batch_after_an_interest_was_added_is_looked_at() -> None:
    wanted, told = RowOracle(ROWS).match_all(interests())[0], right()
    assert count_in_next_batch(placed(), wanted, 1_500, told, 0) is True
    less = told[told["id"] != BATCH]
    assert count_in_next_batch(placed(), wanted, 1_500, less, 0) is False
    assert count_in_next_batch(placed(), wanted, 2_500, less, 0) is True
    assert count_in_next_batch(placed(), wanted, 3_500, told, 0) is None
