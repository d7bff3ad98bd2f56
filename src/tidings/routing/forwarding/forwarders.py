"""Three simpler methods of forwarding by header. Labels refine them.

    content list     the header lists every matching node; routers keep no edges
    full graph       the header has the lowest nodes; every router has all edges and walks up
    minimal graph    like the full graph, with only the nodes that neighbours subscribe to;
                     headers change

Tests and measurements compare labels with these methods.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

Neighbour = Hashable
Edges = Mapping[int, Iterable[int]]  # the parents of each node


class ContentList:
    """The subscribers of each node, without edges."""

    def __init__(self) -> None:
        self.subscribers: dict[int, set[Neighbour]] = {}

    def subscribe(self, node: int, neighbour: Neighbour) -> None:
        self.subscribers.setdefault(node, set()).add(neighbour)

    def unsubscribe(self, node: int, neighbour: Neighbour) -> None:
        there = self.subscribers.get(node, set())
        there.discard(neighbour)
        if not there:
            self.subscribers.pop(node, None)

    def forward(self, header: Iterable[int]) -> dict[Neighbour, tuple[int, ...]]:
        """The header goes unchanged to all neighbours that subscribe to one of its nodes."""
        nodes = tuple(header)
        found: set[Neighbour] = set()
        for node in nodes:
            found |= self.subscribers.get(node, set())
        return dict.fromkeys(found, nodes)


class FullGraph(ContentList):
    """Forwards with all edges of the content graph, and leaves the header unchanged."""

    def __init__(self, parents: Edges) -> None:
        super().__init__()
        self.parents = parents

    def above(self, header: Iterable[int]) -> set[int]:
        """The nodes of a header and all nodes that cover them."""
        found, todo = set(header), list(header)
        while todo:
            for parent in self.parents.get(todo.pop(), ()):
                if parent not in found:
                    found.add(parent)
                    todo.append(parent)
        return found

    def forward(self, header: Iterable[int]) -> dict[Neighbour, tuple[int, ...]]:
        nodes = tuple(header)
        return dict.fromkeys(super().forward(self.above(nodes)), nodes)


class MinimalGraph(FullGraph):
    """Sends each neighbour the lowest matching nodes that it subscribes to. The graph may include
    nodes without subscribers, which only connect other nodes."""

    def forward(self, header: Iterable[int]) -> dict[Neighbour, tuple[int, ...]]:
        wanted: dict[Neighbour, set[int]] = {}
        for node in self.above(header):
            for neighbour in self.subscribers.get(node, ()):
                wanted.setdefault(neighbour, set()).add(node)
        found: dict[Neighbour, tuple[int, ...]] = {}
        for neighbour, nodes in wanted.items():
            covering = {
                upper for node in nodes for upper in self.above(self.parents.get(node, ())) & nodes
            }
            found[neighbour] = tuple(sorted(nodes - covering))
        return found
