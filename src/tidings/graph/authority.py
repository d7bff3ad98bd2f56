"""Many preprocessors, one graph: tags of older copies are corrected.

    authority     version 7   8   9           subscriptions come here, and only here
    copies             7       8              they tag, each by its version; they keep nothing else

A copy knows nothing of nodes that came after it, and names nodes that are gone. Its tag says which
version it was made with. The authority then has only to match the newer nodes, and to replace
removed nodes by those that stand for them today; the result is the tag that a fresh preprocessor
would give. A tag that it can't explain (of a version that was forgotten or comes from another life,
or with a node that never was) it makes anew. So nothing is lost, however old a copy is.

This rests on two things: numbers are given once, so newer nodes are those with higher numbers; and
a covering that is known stays known, so what matched then is still above the nodes of the tag.
"""

from __future__ import annotations

import copy
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from tidings.graph.history import History
from tidings.graph.lattice import Lattice, Vertex, reach
from tidings.model import GraphError

MANY = 1000  # newer nodes from which on the index of the graph is faster

V = TypeVar("V", bound=Vertex)
N = TypeVar("N")


class Tag(msgspec.Struct, frozen=True):
    """The lowest nodes that match a notification, by their numbers, at a version of the graph."""

    version: int
    nodes: tuple[int, ...]
    life: int = 1


class GraphPreprocessor(Protocol[V, N]):
    """A preprocessor that keeps a graph; one may `read` notifications before it tags them."""

    @property
    def graph(self) -> Lattice[V, N]: ...
    def tag(self, notification: N, /) -> list[V]: ...


class StatelessPreprocessor(Generic[N]):
    """A copy of a preprocessor, as it was at a version. It tags, and takes no interests."""

    def __init__(self, preprocessor: GraphPreprocessor[Any, N], life: int = 1) -> None:
        self._preprocessor = preprocessor
        self.version = preprocessor.graph.version
        self.life = life

    def tag(self, notification: N) -> Tag:
        """The lowest nodes that matched, and the version that says so."""
        nodes = tuple(node.id for node in self._preprocessor.tag(notification))
        return Tag(self.version, nodes, self.life)

    def subscribe(self, interest: object) -> Vertex:
        """GraphError: only the authority's preprocessor takes interests."""
        raise GraphError("a copy of a preprocessor takes no interests; ask the one it is a copy of")


class Authority(Generic[V, N]):
    """The preprocessor whose graph counts, with the history of the graph."""

    def __init__(self, preprocessor: GraphPreprocessor[V, N], life: int = 1) -> None:
        """`life` is another number after each start from nothing, when versions begin again."""
        self._preprocessor = preprocessor
        self.life = life
        self._history = History(preprocessor.graph.version, preprocessor.graph._next)
        if preprocessor.graph._follower is not None:
            raise GraphError("this graph has an authority already")
        preprocessor.graph._follower = self._history

    @property
    def version(self) -> int:
        return self._preprocessor.graph.version

    def copied(self) -> StatelessPreprocessor[N]:
        """A preprocessor that knows what is there now, and nothing of what comes."""
        twin: Any = copy.copy(self._preprocessor)
        twin.graph = self._preprocessor.graph.copy()
        return StatelessPreprocessor(twin, self.life)

    def corrected(self, tag: Tag, notification: N) -> list[V]:
        """The lowest nodes that match now, of a notification that a copy has tagged."""
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
        """No copy is older than this version any more; what comes from an older one is tagged
        anew."""
        self._history.forget(version)
