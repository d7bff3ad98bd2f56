"""Compiled patterns that are kept, as many as fit a number of bytes.

A program remembers the states that it went through, so it grows with what it is searched in. What
is kept is counted by the most that each may take. When there is no room, programs go by lot: where
filters take turns that are one more than there is room for, the oldest would always be the next one
that is asked for, and none would be found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from random import Random
from typing import Generic, TypeVar

Program = TypeVar("Program")


class ProgramCache(Generic[Program]):
    """Programs by what they were made of. Safe to use from threads."""

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
        """The program of a key, made if it is not kept; what raises is not kept."""
        found = self._kept.get(key)
        if found is None:
            found = make()
            with self._lock:
                self._keep(key, found)
        return found

    def _keep(self, key: Hashable, program: Program) -> None:
        if key in self._kept:  # another thread was first
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
