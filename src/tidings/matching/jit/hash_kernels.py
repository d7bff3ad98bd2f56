"""A kernel that looks up numbers in a hash table with open addressing, for the kernels of other
rooms."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.jit.compiling import kernel

_PRIME = np.uint64(0x9E3779B97F4A7C15)


@kernel
def find_place(number: int, keys: Any) -> Any:
    """The index of a number in a table, or the free index where it can be put: keys int64 [Q], Q a
    power of two, 0 where the table is free. At least one index must be free."""
    mask = len(keys) - 1
    mixed = np.uint64(number) * _PRIME
    place = np.int64(mixed >> np.uint64(32)) & mask
    while keys[place] != 0 and keys[place] != number:
        place = (place + 1) & mask
    return place
