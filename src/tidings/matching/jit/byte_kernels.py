"""Kernels that write bytes. The kernels of other rooms use them to lay out records and frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.jit.kernel_compiler import kernel


@kernel
def copy_bytes(out: Any, at: int, data: Any, first: int, size: int) -> Any:
    """Copy data[first : first + size] to this offset; return the offset after the copy. Both arrays
    are uint8. The offsets are unsigned, so the code that Numba makes need not check for negative
    indexes; this makes the loop ten times faster."""
    to, source = np.uint64(at), np.uint64(first)
    for one in range(np.uint64(size)):
        out[to + one] = data[source + one]
    return at + size


@kernel
def put_number(out: Any, at: int, number: int, size: int) -> Any:
    """Write a non-negative number as `size` bytes, lowest byte first; return the offset after them.
    `out` is uint8."""
    left, to = np.uint64(number), np.uint64(at)
    for one in range(np.uint64(size)):
        out[to + one] = left & np.uint64(0xFF)
        left >>= np.uint64(8)
    return at + size
