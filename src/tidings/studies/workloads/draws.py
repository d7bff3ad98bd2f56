"""Reproducible random draws: the same seed always gives the same values, no matter how many are
drawn.

Values are drawn in blocks, each from its own generator, so the first 10,000 filters of a workload
are the same whether 10,000 or a million are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BLOCK = 65_536


def blocks(count: int, *key: int) -> Iterator[tuple[np.random.Generator, int]]:
    """Yield a generator for each block, and the number of values needed from it: `count` in total.

    The caller always draws a whole block of `BLOCK` values, and keeps only the needed ones.
    """
    for number, start in enumerate(range(0, count, BLOCK)):
        yield np.random.default_rng([*key, number]), min(BLOCK, count - start)


def draw_zipf(rng: np.random.Generator, exponent: float, values: int, size: int) -> Array:
    """Draw ranks 0 to `values` - 1 by Zipf's law; the tail counts as the last rank."""
    drawn = rng.zipf(exponent, size)
    return np.minimum(drawn - 1, values - 1)


def draw_bounded_zipf(rng: np.random.Generator, exponent: float, values: int, size: int) -> Array:
    """Draw ranks 0 to `values` - 1 by Zipf's law without a tail, which allows small exponents."""
    shares = np.cumsum(np.arange(1, values + 1, dtype=np.float64) ** -exponent)
    return np.searchsorted(shares / shares[-1], rng.random(size), side="right")


def draw_distinct(rng: np.random.Generator, weights: Array, most: int, size: int) -> Array:
    """Draw `size` rows of `most` different indexes each, by weight and without replacement.

    Each index gets an exponential random time with its weight as rate; the indexes with the
    smallest times are drawn, in the order of their times. The distribution is the same as if the
    indexes were drawn one by one.
    """
    times = rng.standard_exponential((size, len(weights))) / weights
    return np.argsort(times, axis=1)[:, :most]


def lengths_to_offsets(lengths: Array) -> Array:
    """The start of each run, and the end of the last run."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
