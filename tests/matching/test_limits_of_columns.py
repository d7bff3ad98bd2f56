"""Limits on work and on memory while Arrow computes terms over columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidings.filters.dialects import Context
from tidings.filters.dialects.sql.dialect import parse_term
from tidings.filters.language import Expression
from tidings.filters.values import WorkError, limit_work
from tidings.matching.rank_space.arrow_evaluation import Columnar
from tidings.matching.rank_space.arrow_functions import (
    JOINED_EACH,
    MOST_JOINED,
    TEXT,
    NotColumnar,
)


def term(text: str) -> Expression:
    return parse_term(text, Context())


def compute(text: str, values: list[str | None]) -> list[object]:
    computed = Columnar({("w",): pa.array(values, TEXT)}, len(values)).condition(term(text))
    found: list[object] = computed.to_pylist()
    return found


@pytest.mark.parametrize(("rows", "most"), [(20, MOST_JOINED), (8_000, 8_000 * JOINED_EACH)])
def test_joined_strings_of_many_bytes(rows: int, most: int) -> None:
    """Each of them is short enough, but not all together; bytes count, not characters."""
    each = most // rows // 64
    joined = f"concat({', '.join(['w'] * 64)})"
    assert compute(joined, ["x" * each] * rows) == ["x" * each * 64] * rows
    for longer in ("x" * (each + 2), "é" * (each // 2 + 2)):
        with pytest.raises(NotColumnar):
            compute(joined, [longer] * rows)
    assert compute(joined, [None] * rows) == [None] * rows


def test_joined_constants() -> None:
    long = "y" * (MOST_JOINED // 500)
    assert compute(f"concat(w, '{long}')", ["x"] * 490) == ["x" + long] * 490
    with pytest.raises(NotColumnar):
        compute(f"concat(w, '{long}')", ["x"] * 501)


def test_limits_are_checked_between_calls() -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    text = "upper(reverse(trim(lower(w)))) = 'A'"
    with limit_work(clock, 100.0):
        assert compute(text, ["a", None]) == [True, None]
    steps = now
    assert steps > 4
    for seconds in range(1, int(steps) - 2):
        with pytest.raises(WorkError), limit_work(clock, seconds):
            compute(text, ["a", None])
