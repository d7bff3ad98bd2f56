"""Results computed from a graph, cached until the graph changes."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar


class Clearable(Protocol):
    def clear(self) -> Any: ...


Cache = TypeVar("Cache", bound=Clearable)


class GraphCaches:
    """The caches of one graph, all cleared at once."""

    def __init__(self) -> None:
        self.version = 0
        """How often the graph has changed."""
        self._caches: list[Clearable] = []

    def add(self, cache: Cache) -> Cache:
        """Add a cache that is cleared when the graph changes."""
        self._caches.append(cache)
        return cache

    def clear(self) -> None:
        """Clear all caches, because the graph has changed."""
        self.version += 1
        for cache in self._caches:
            cache.clear()
