"""Memory for large arrays, reused as soon as no array refers to it.

A batch of 65,536 events against a million filters writes 200 MB of matches. If each batch took this
memory from the system, all those pages would have to be found and zeroed again. That costs between
a tenth of the join and more than all of it (on virtual machines that hand freed memory back to
their host). So memory of results is kept:

    empty(n) -> array -> base: Lease -> memory
                          | when the last array over it is gone
                          v
                  kept, by size, for the next empty(n)

Invariant: memory is either lent (one Lease lives) or kept, never both. Costs: at most MOST bytes
are kept. Sizes are rounded up by an eighth at most, and pages that nobody wrote to cost nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
LEAST = 1 << 20  # bytes from which on arrays are worth keeping
MOST = 1 << 30
WIDER = 4


class _Lease:
    """Memory in use. It goes back to the pool when the last array over it is gone."""

    __slots__ = ("__array_interface__", "memory", "pool")

    def __init__(self, memory: Array, pool: ArrayPool, count: int, kind: np.dtype[Any]) -> None:
        self.memory = memory
        self.pool = pool
        self.__array_interface__ = {
            "version": 3,
            "shape": (count,),
            "typestr": kind.str,
            "data": (memory.ctypes.data, False),
        }

    def __del__(self) -> None:
        self.pool.take_back(self.memory)


class ArrayPool:
    """The memory that is kept, by size. Lists are changed by single appends and pops alone, so
    that threads, and collections of garbage in the midst of a call, need no lock."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._kept: dict[int, list[Array]] = {}
        self._asked: dict[int, int] = {}  # at which of all calls each size was asked for last
        self._calls = 0

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return sum(size * len(kept) for size, kept in list(self._kept.items()))

    def empty(self, count: int, kind: npt.DTypeLike) -> Array:
        """An array like `np.empty(count, kind)`."""
        kind = np.dtype(kind)
        size = count * kind.itemsize
        if size < LEAST or kind.hasobject:
            return np.empty(count, kind)
        size = _round_up(size)
        self._calls += 1
        self._asked[size] = self._calls
        memory = self._take(size)
        if memory is None:
            memory = np.empty(size, np.uint8)
        return np.asarray(_Lease(memory, self, count, kind))

    def take_back(self, memory: Array) -> None:
        """Keep memory that no array refers to; above the limit, free the size not used longest."""
        if memory.nbytes > self.most:
            return
        self._kept.setdefault(memory.nbytes, []).append(memory)
        while self.nbytes > self.most:
            sizes = [size for size, kept in list(self._kept.items()) if kept]
            self._pop(min(sizes, key=self._asked.__getitem__, default=0))

    def _take(self, size: int) -> Array | None:
        """The smallest kept memory of this size or of one up to WIDER times as large."""
        for larger in sorted(self._kept):
            if size <= larger <= size * WIDER and (memory := self._pop(larger)) is not None:
                return memory
        return None

    def _pop(self, size: int) -> Array | None:
        try:
            return self._kept[size].pop()
        except LookupError:  # none, or another thread was first
            return None


def _round_up(size: int) -> int:
    """Up to an eighth more, so that there are few sizes."""
    step = 1 << (size.bit_length() - 4)
    return -(-size // step) * step


_pool = ArrayPool()
empty = _pool.empty
