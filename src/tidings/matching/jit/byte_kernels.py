"""A kernel that copies bytes, for the kernels of other rooms that lay out records and frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.jit.compiling import kernel


@kernel
def copy_bytes(out: Any, at: int, data: Any, first: int, size: int) -> Any:
    """Copy data[first : first + size] to an offset; return the offset after the copy. Both arrays
    are uint8. Unsigned offsets never count from the end of an array, which makes the loop ten times
    faster."""
    to, source = np.uint64(at), np.uint64(first)
    for one in range(np.uint64(size)):
        out[to + one] = data[source + one]
    return at + size
