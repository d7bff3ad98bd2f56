"""Results computed from a graph, which are cached until the graph changes in a way that affects
them.

        1           If the subscribers or the edges of node 3 change, only the results for headers
       / \\          with 3 or 4 can change, because 4 is below 3. The labels, lists and ancestors
      2   3         of all other nodes stay the same. So a new node, which usually has no nodes
      |   |         below it, affects only headers that contain it.
      5   4

A cache has an index from nodes to headers, to find the headers to drop. If a node has very many
nodes below it, all caches are cleared instead.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from tidings.routing.forwarding.cover_graph import CoverGraph

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
MOST_BELOW = 1000  # if more nodes than this are below a changed node, all results are dropped
MOST_WAITING = 10_000  # if more changed nodes than this are noted, all results are dropped
NODES_PER_HEADER = 8  # the index of a HeaderCache has at most this many entries per header


class Clearable(Protocol):
    """Results that are cleared after every change."""

    def clear(self) -> Any: ...


@runtime_checkable
class Droppable(Clearable, Protocol):
    """Results that depend on nodes."""

    def drop(self, nodes: Collection[int]) -> Any:
        """Drop all results that depend on one of these nodes."""


Cache = TypeVar("Cache", bound=Clearable)


class GraphCaches:
    """The caches of one graph."""

    def __init__(self, graph: CoverGraph) -> None:
        self.version = 0
        """How often the graph has changed."""
        self._graph = graph
        self._caches: list[Clearable] = []
        self._dropping: list[Droppable] = []

    def add(self, cache: Cache) -> Cache:
        """Add a cache. From now on, each change to the graph makes the cache drop its outdated
        results, or all results."""
        if isinstance(cache, Droppable):
            self._dropping.append(cache)
        else:
            self._caches.append(cache)
        return cache

    def clear(self) -> None:
        """Clear all caches, because anything may have changed."""
        self.version += 1
        for cache in (*self._caches, *self._dropping):
            cache.clear()

    def change(self, node: int) -> None:
        """Drop all results that depend on a node. Call this after a node was inserted or its
        subscribers changed, and before a node is removed. Cost: a visit to each node below the
        given one, up to a thousand."""
        nodes = self._graph.at_and_below(node, MOST_BELOW)
        if nodes is None:
            self.clear()
            return
        self.version += 1
        for cache in self._caches:
            cache.clear()
        for one in self._dropping:
            one.drop(nodes)


class NodeCache(dict[int, Value]):
    """Results for single nodes."""

    def drop(self, nodes: Collection[int]) -> None:
        if self:
            for node in nodes:
                self.pop(node, None)


class Header(Generic[Key]):
    """A header in the index of a cache. The index lists a header once for each of its nodes.
    With `is_dropped`, the tuple need not be hashed again for each of its nodes; Python does not
    cache the hashes of tuples."""

    __slots__ = ("is_dropped", "key")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.is_dropped = False


class HeaderCache(Generic[Key, Value]):
    """Results for headers. Each result depends on all nodes of its header. When the cache is full,
    all results are dropped.

    Cost: a list entry for each node of each header. Dropping a header removes its entry only for
    the changed node; if there are too many entries, all results are dropped.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.known: dict[Key, Value] = {}
        self._headers: dict[int, list[Header[Key]]] = {}  # by node
        self._entries = 0

    def __len__(self) -> int:
        return len(self.known)

    def put(self, key: Key, value: Value, nodes: Iterable[int]) -> Value:
        """Add the result for a header with these nodes."""
        if len(self.known) >= self.most or self._entries >= NODES_PER_HEADER * self.most:
            self.clear()
        self.known[key] = value
        header = Header(key)
        for node in nodes:
            there = self._headers.get(node)
            if there is None:
                self._headers[node] = [header]
            else:
                there.append(header)
            self._entries += 1
        return value

    def drop(self, nodes: Collection[int]) -> list[Key]:
        """Drop the results that depend on these nodes; return their headers."""
        dropped: list[Key] = []
        if self._headers:
            for node in nodes:
                headers = self._headers.pop(node, ())
                self._entries -= len(headers)
                for header in headers:
                    if not header.is_dropped:
                        header.is_dropped = True
                        if self.known.pop(header.key, None) is not None:
                            dropped.append(header.key)
        return dropped

    def clear(self) -> None:
        self.known.clear()
        self._headers.clear()
        self._entries = 0


class GraphChanges:
    """Notes which nodes have changed, so that a cache elsewhere can drop results before its next
    use. This object has no reference to that cache, so the graph does not keep the cache in
    memory."""

    def __init__(self) -> None:
        self.everything = False
        self.nodes: set[int] = set()

    def __bool__(self) -> bool:
        return self.everything or bool(self.nodes)

    def drop(self, nodes: Collection[int]) -> None:
        if not self.everything:
            self.nodes.update(nodes)
            if len(self.nodes) > MOST_WAITING:
                self.clear()

    def clear(self) -> None:
        self.everything = True
        self.nodes.clear()

    def forget(self) -> None:
        """Forget the changes, because all outdated results were dropped."""
        self.everything = False
        self.nodes.clear()
