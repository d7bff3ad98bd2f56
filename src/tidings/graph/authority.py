"""Many preprocessors, one graph: whatever was tagged by an older copy is made right.

    authority     version 7   8   9           subscriptions come here, and only here
    copies             7       8              they tag, each by its version; they keep nothing else

A copy knows nothing of nodes that came after it, and names nodes that are gone. Its tag says which
version it was made with. The authority then has only to ask the nodes that are newer, and to put
those in place of removed ones that stand for them today; the result is the tag that a fresh
preprocessor would give. What it can't explain (a version that was forgotten or comes from another
life, a node that never was) it tags anew. So nothing is lost, however old a copy is.

It rests on two things: numbers are given once, so newer nodes are those with higher numbers; and a
covering that is known stays known, so what matched then is still above what was named then.
"""

from __future__ import annotations

import copy
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from tidings.graph.history import History
from tidings.graph.lattice import Lattice, Vertex, reach
from tidings.model import GraphError

MANY = 1000  # newer nodes that are better asked through the index of the graph

V = TypeVar("V", bound=Vertex)
N = TypeVar("N")


class Tag(msgspec.Struct, frozen=True):
    """The lowest nodes that match a notification, by their numbers, at a version of the graph."""

    version: int
    nodes: tuple[int, ...]
    life: int = 1


class Desk(Protocol[V, N]):
    """A preprocessor that keeps a graph; one may `read` notifications before it tags them."""

    @property
    def graph(self) -> Lattice[V, N]: ...
    def tag(self, notification: N, /) -> list[V]: ...


class StatelessPreprocessor(Generic[N]):
    """A copy of a preprocessor, as it was at a version. It tags, and takes no interests."""

    def __init__(self, desk: Desk[Any, N], life: int = 1) -> None:
        self._desk = desk
        self.version = desk.graph.version
        self.life = life

    def tag(self, notification: N) -> Tag:
        """The lowest nodes that matched, and the version that says so."""
        nodes = tuple(node.id for node in self._desk.tag(notification))
        return Tag(self.version, nodes, self.life)

    def subscribe(self, interest: object) -> Vertex:
        """GraphError: only the authority's preprocessor takes interests."""
        raise GraphError("a copy of a preprocessor takes no interests; ask the one it is a copy of")


class Authority(Generic[V, N]):
    """The one whose graph is right, and what it was like before."""

    def __init__(self, desk: Desk[V, N], life: int = 1) -> None:
        """`life` is another number after each start from nothing, when versions begin again."""
        self._desk = desk
        self.life = life
        self._history = History(desk.graph.version, desk.graph._next)
        if desk.graph._follower is not None:
            raise GraphError("this graph has an authority already")
        desk.graph._follower = self._history

    @property
    def version(self) -> int:
        return self._desk.graph.version

    def copied(self) -> StatelessPreprocessor[N]:
        """A preprocessor that knows what is there now, and nothing of what comes."""
        twin: Any = copy.copy(self._desk)
        twin.graph = self._desk.graph.copy()
        return StatelessPreprocessor(twin, self.life)

    def corrected(self, tag: Tag, notification: N) -> list[V]:
        """The lowest nodes that match now, of a notification that a copy has tagged."""
        graph, history = self._desk.graph, self._history
        if tag.life != self.life or not history.knows(tag.version):
            return self._desk.tag(notification)
        first = history.first_since(tag.version)
        numbers = history.now(tag.nodes)
        unexplained = any(number not in graph._nodes for number in numbers)
        if unexplained or graph._next - first > MANY or any(n >= first for n in tag.nodes):
            return self._desk.tag(notification)
        found = {graph._nodes[number] for number in numbers}
        if tag.version < graph.version:
            newer = [graph._nodes[n] for n in range(first, graph._next) if n in graph._nodes]
            if newer:
                read = getattr(self._desk, "read", None)
                content = notification if read is None else read(notification)
                found |= set(graph.matching_of(newer, content))
            found |= reach(found, up=True)
            found = set(graph.lowest(found))
        return sorted(found)

    def forget(self, version: int) -> None:
        """No copy is older than this version any more; what comes from an older one is tagged
        anew."""
        self._history.forget(version)
