"""A cache of compiled patterns, limited in bytes.

A compiled pattern (a *program*) caches the states that it visits, so its memory grows with use. The
cache counts each program at its maximum size. When the cache is full, it evicts programs at random.
Evicting the oldest program would be worse: if the filters in use run in turn and need one program
more than the cache can hold, the evicted program would always be the one that is needed next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from random import Random
from typing import Generic, TypeVar

Program = TypeVar("Program")


class ProgramCache(Generic[Program]):
    """Programs, which are found by their source patterns. Thread-safe."""

    def __init__(self, most: int, size: Callable[[Program], int]) -> None:
        self._most = most
        self._size = size
        self._kept: dict[Hashable, Program] = {}
        self._keys: list[Hashable] = []
        self._bytes = 0
        self._draw = Random(1)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._keys)

    def get(self, key: Hashable, make: Callable[[], Program]) -> Program:
        """Return the cached program, or make and cache it. Errors of `make` are not cached."""
        found = self._kept.get(key)
        if found is None:
            found = make()
            with self._lock:
                self._keep(key, found)
        return found

    def _keep(self, key: Hashable, program: Program) -> None:
        if key in self._kept:  # another thread has added the program
            return
        self._bytes += self._size(program)
        while self._bytes > self._most and self._keys:
            at = self._draw.randrange(len(self._keys))
            self._keys[at], self._keys[-1] = self._keys[-1], self._keys[at]
            self._bytes -= self._size(self._kept.pop(self._keys.pop()))
        self._kept[key] = program
        self._keys.append(key)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._keys.clear()
            self._bytes = 0
