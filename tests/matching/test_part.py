"""Slots that several boxes of a filter found: each is listed once, in order, on every path."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tidings.matching.segments import part


@pytest.mark.parametrize("count", [1, part.FEW, part.FEW + 1, 1_000])
@pytest.mark.parametrize("size", [2, part.FEW, 2_000, 10_000_000])  # dense, and far apart
def test_each_slot_drop_repeats(seed: int, count: int, size: int) -> None:
    rng = random.Random(f"{seed} {count} {size}")
    slots = np.array([rng.randrange(size) for _ in range(count)], np.uint32)
    found = part._drop_repeats(slots)
    assert found.dtype == slots.dtype
    assert sorted(found.tolist()) == sorted(set(slots.tolist()))


def test_those_that_lie_close_are_not_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    slots = np.array([5, 3, 5, 900] * 20, np.uint32)
    expected = [3, 5, 900]
    assert part._drop_repeats(slots).tolist() == expected
    far = slots.astype(np.uint64) * np.uint64(10_000_000)
    assert part._drop_repeats(far).tolist() == [10_000_000 * one for one in expected]
    monkeypatch.delattr(np, "unique")
    assert part._drop_repeats(slots).tolist() == expected
    with pytest.raises(AttributeError):
        part._drop_repeats(far)
