"""A pool of memory for large arrays. It reuses memory as soon as no array refers to it.

A batch of 65,536 events against a million filters writes 200 MB of matches. Without a pool, each
batch would take this memory from the system, which would have to map and zero all these pages each
time. Mapping and zeroing memory take a tenth of the time of a join. On virtual machines that return
freed memory to their host, they take longer than the whole join. So the memory of results is kept
for later results:

    empty(n) -> array -> base: Lease -> memory
                          | when the last array over it is deleted
                          v
                  kept, by size, for the next empty(n)

Invariant: memory is either lent (one Lease exists) or kept, never both. The pool keeps at most MOST
bytes. Sizes are rounded up by at most an eighth, and pages that were never written take no memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
LEAST = 1 << 20  # arrays of fewer bytes are not worth keeping
MOST = 1 << 30
WIDER = 4


class _Lease:
    """A lease on memory of the pool. The memory returns to the pool when the last array that uses
    it is deleted."""

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
    """The memory that is kept, grouped by size. The lists are changed only by appending or popping
    one item at a time. So no lock is needed, even if another thread or the garbage collector
    interrupts a call."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._kept: dict[int, list[Array]] = {}
        self._asked: dict[int, int] = {}  # size -> the number of the last call that requested it
        self._calls = 0

    @property
    def nbytes(self) -> int:
        """The size in bytes of all memory that the pool keeps for reuse."""
        return sum(size * len(kept) for size, kept in list(self._kept.items()))

    def empty(self, count: int, kind: npt.DTypeLike) -> Array:
        """Like `np.empty(count, kind)`, with memory from the pool."""
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
        """Keep memory to which no array refers any more. If that exceeds the limit, free blocks of
        the least recently requested size."""
        if memory.nbytes > self.most:
            return
        self._kept.setdefault(memory.nbytes, []).append(memory)
        while self.nbytes > self.most:
            sizes = [size for size, kept in list(self._kept.items()) if kept]
            self._pop(min(sizes, key=self._asked.__getitem__, default=0))

    def _take(self, size: int) -> Array | None:
        """The smallest kept block that is at least this large, but at most WIDER times as large."""
        for larger in sorted(self._kept):
            if size <= larger <= size * WIDER and (memory := self._pop(larger)) is not None:
                return memory
        return None

    def _pop(self, size: int) -> Array | None:
        try:
            return self._kept[size].pop()
        except LookupError:  # no memory is kept, or another thread took it
            return None


def _round_up(size: int) -> int:
    """Round a size up by at most an eighth, so that there are few different sizes."""
    step = 1 << (size.bit_length() - 4)
    return -(-size // step) * step


_pool = ArrayPool()
empty = _pool.empty
