"""Many arrays for a kernel as one: the address and the length of each.

Numba takes a tenth of a microsecond to unpack an array that Python hands it, and the kernel for
single events needs thirty of them that never change. It gets one array of addresses instead and
makes its views itself. Whoever makes such a book keeps the arrays as long as the book.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

Array = npt.NDArray[Any]


def book_of(arrays: Sequence[Array], kinds: Sequence[Any]) -> Array:
    """int64 [n, 2]: address and number of rows of each array, which must be of these types and lie
    in memory row after row."""
    for array, kind in zip(arrays, kinds, strict=True):
        if array.dtype != np.dtype(kind) or not array.flags.c_contiguous:
            raise TypeError(f"found an array of {array.dtype}, expected {np.dtype(kind)} in rows")
    return np.array([(array.ctypes.data, len(array)) for array in arrays], np.int64)


def _pointer(_context: Any, address: Any) -> Any:
    """An address as a pointer, for numba.carray."""
    signature = types.voidptr(types.int64)

    def generate(_target: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.PointerType(ir.IntType(8)))

    return signature, generate


pointer: Any = intrinsic(_pointer)
