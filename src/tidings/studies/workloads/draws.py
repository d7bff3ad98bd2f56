"""Random draws that can be repeated: one seed gives the same values, however many are wanted.

Values are drawn in blocks, each from a generator of its own, so that the first 10,000 filters of a
workload are the same whether 10,000 or a million are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BLOCK = 65_536


def blocks(count: int, *key: int) -> Iterator[tuple[np.random.Generator, int]]:
    """(generator, how many of its block are wanted) until `count` is reached.

    A block is always drawn whole, `BLOCK` values, and cut by the caller.
    """
    for number, start in enumerate(range(0, count, BLOCK)):
        yield np.random.default_rng([*key, number]), min(BLOCK, count - start)


def draw_zipf(rng: np.random.Generator, exponent: float, values: int, size: int) -> Array:
    """Ranks 0 to `values` - 1 by Zipf's law; the tail counts as the last of them."""
    drawn = rng.zipf(exponent, size)
    return np.minimum(drawn - 1, values - 1)


def draw_distinct(rng: np.random.Generator, weights: Array, most: int, size: int) -> Array:
    """`size` rows of `most` different indexes each, drawn one after the other by weight.

    The index with the smallest of exponential times, one per index with its weight as the rate, is
    the first draw, the next smallest the second: the same law as drawing without putting back.
    """
    times = rng.standard_exponential((size, len(weights))) / weights
    return np.argsort(times, axis=1)[:, :most]


def lengths_to_offsets(lengths: Array) -> Array:
    """Where each of some runs starts, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
