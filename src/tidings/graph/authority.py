"""Many preprocessors share one graph, and the authority corrects the tags of outdated copies.

    authority     version 7   8   9           only the authority accepts subscriptions
    copies             7       8              each copy only tags, at its own version

A copy lacks nodes that were added after it was made, and its tags may name nodes that have been
removed since then. A tag that a copy made names the version of the copy's graph. The authority
matches only the newer nodes, and replaces removed nodes with their current substitutes. The result
is the tag that an up-to-date preprocessor would give. If a tag has an unknown version, an unknown
node or a different life, the authority tags the notification itself. So no match is lost, however
old a copy is.

The authority relies on two facts. Node numbers are never reused, so newer nodes have higher
numbers. A known covering stays known, so every node that matched at the old version is still in the
tag, or above a node in the tag.
"""

from __future__ import annotations

import copy
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from tidings.graph.history import History
from tidings.graph.lattice import Lattice, Vertex, reach
from tidings.model import GraphError

MANY = 1000  # if more nodes than this are newer, searching the index of the graph is faster

V = TypeVar("V", bound=Vertex)
N = TypeVar("N")


class Tag(msgspec.Struct, frozen=True):
    """The numbers of the lowest nodes that match a notification at one version of the graph."""

    version: int
    nodes: tuple[int, ...]
    life: int = 1


class GraphPreprocessor(Protocol[V, N]):
    """A preprocessor that has a graph. If the preprocessor has a method `read`, it tags what `read`
    returns."""

    @property
    def graph(self) -> Lattice[V, N]: ...
    def tag(self, notification: N, /) -> list[V]: ...


class StatelessPreprocessor(Generic[N]):
    """A copy of a preprocessor at one version. A copy tags notifications, but accepts no
    interests."""

    def __init__(self, preprocessor: GraphPreprocessor[Any, N], life: int = 1) -> None:
        self._preprocessor = preprocessor
        self.version = preprocessor.graph.version
        self.life = life

    def tag(self, notification: N) -> Tag:
        """The lowest nodes that match, and the version of this copy."""
        nodes = tuple(node.id for node in self._preprocessor.tag(notification))
        return Tag(self.version, nodes, self.life)

    def subscribe(self, interest: object) -> Vertex:
        """Always raise GraphError: only the authority's preprocessor accepts interests."""
        raise GraphError(
            "a copy of a preprocessor accepts no interests; subscribe at the original instead"
        )


class Authority(Generic[V, N]):
    """The preprocessor whose graph is authoritative, and the history of that graph."""

    def __init__(self, preprocessor: GraphPreprocessor[V, N], life: int = 1) -> None:
        """Pass a different `life` whenever the graph starts empty and versions start again at 0."""
        self._preprocessor = preprocessor
        self.life = life
        self._history = History(preprocessor.graph.version, preprocessor.graph._next)
        if preprocessor.graph._follower is not None:
            raise GraphError("this graph already has an authority")
        preprocessor.graph._follower = self._history

    @property
    def version(self) -> int:
        return self._preprocessor.graph.version

    def copy(self) -> StatelessPreprocessor[N]:
        """A copy of the preprocessor as it is now; later changes do not affect it."""
        twin: Any = copy.copy(self._preprocessor)
        twin.graph = self._preprocessor.graph.copy()
        return StatelessPreprocessor(twin, self.life)

    def correct(self, tag: Tag, notification: N) -> list[V]:
        """The lowest nodes that now match a notification that a copy has tagged."""
        graph, history = self._preprocessor.graph, self._history
        if tag.life != self.life or not history.knows(tag.version):
            return self._preprocessor.tag(notification)
        first = history.first_since(tag.version)
        numbers = history.now(tag.nodes)
        unexplained = any(number not in graph._nodes for number in numbers)
        if unexplained or graph._next - first > MANY or any(n >= first for n in tag.nodes):
            return self._preprocessor.tag(notification)
        found = {graph._nodes[number] for number in numbers}
        if tag.version < graph.version:
            newer = [graph._nodes[n] for n in range(first, graph._next) if n in graph._nodes]
            if newer:
                read = getattr(self._preprocessor, "read", None)
                content = notification if read is None else read(notification)
                found |= set(graph.matching_of(newer, content))
            found |= reach(found, up=True)
            found = set(graph.lowest(found))
        return sorted(found)

    def forget(self, version: int) -> None:
        """Forget the history before this version. Notifications that an older copy has tagged are
        then tagged again from scratch."""
        self._history.forget(version)
