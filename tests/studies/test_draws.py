"""Draws: the laws they follow, and that they can be repeated."""

from __future__ import annotations

import numpy as np

from tidings.studies.workloads.draws import (
    BLOCK,
    Array,
    blocks,
    draw_distinct,
    draw_zipf,
    lengths_to_offsets,
)


def zipf_shares(exponent: float, values: int) -> Array:
    """The share of each rank, the tail in the last one, summed up far enough."""
    whole = np.arange(1, 10_000_000, dtype=np.float64) ** -exponent
    # What the sum leaves out, as an integral.
    total = whole.sum() + 1e7 ** (1 - exponent) / (exponent - 1)
    shares: Array = whole[:values] / total
    shares[-1] += 1 - shares.sum()
    return shares


def test_blocks_add_up_and_repeat() -> None:
    sizes = [size for _, size in blocks(2 * BLOCK + 7, 1, 0)]
    assert sizes == [BLOCK, BLOCK, 7]
    first, again, other = (next(blocks(5, *key))[0] for key in ((1, 0), (1, 0), (1, 1)))
    drawn = first.random(3)
    assert (drawn == again.random(3)).all()
    assert (drawn != other.random(3)).any()


def test_zipf_has_its_head_and_folds_its_tail() -> None:
    size = 400_000
    drawn = draw_zipf(np.random.default_rng(7), 1.3, 1000, size)
    assert drawn.min() == 0
    assert drawn.max() == 999
    found = np.bincount(drawn, minlength=1000) / size
    expected = zipf_shares(1.3, 1000)
    slack = 5 * np.sqrt(expected / size)  # five standard deviations
    assert (np.abs(found - expected) <= slack + 1e-6).all()
    assert 0.24 < found[0] < 0.27
    assert found[999] > 0.09  # all ranks from 1000 on


def test_distinct_draws_one_after_the_other() -> None:
    weights = np.array([4.0, 2.0, 1.0, 1.0])
    drawn = draw_distinct(np.random.default_rng(3), weights, 2, 200_000)
    assert (drawn[:, 0] != drawn[:, 1]).all()
    first = np.bincount(drawn[:, 0], minlength=4) / len(drawn)
    assert np.allclose(first, weights / 8, atol=0.005)
    # After 0 is gone, 1 has half of what is left.
    after = drawn[drawn[:, 0] == 0, 1]
    assert abs((after == 1).mean() - 0.5) < 0.01


def test_lengths_to_offsets() -> None:
    assert lengths_to_offsets(np.array([2, 0, 3])).tolist() == [0, 2, 2, 5]
