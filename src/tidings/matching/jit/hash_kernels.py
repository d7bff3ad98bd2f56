"""A kernel that looks up numbers in a hash table with open addressing; the kernels of other rooms
use it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.jit.kernel_compiler import kernel

_PRIME = np.uint64(0x9E3779B97F4A7C15)


@kernel
def find_place(number: int, keys: Any) -> Any:
    """The index of a number in a table, or a free index for a number that is not in the table.
    `keys` is int64 [Q], Q is a power of two, and the key of a free index is 0. The table must have
    at least one free index."""
    mask = len(keys) - 1
    mixed = np.uint64(number) * _PRIME
    place = np.int64(mixed >> np.uint64(32)) & mask
    while keys[place] != 0 and keys[place] != number:
        place = (place + 1) & mask
    return place
