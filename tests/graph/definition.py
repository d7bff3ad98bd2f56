"""What a content graph is, written as directly as it can be: for graphs of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidings.graph import Lattice, Vertex


def check(graph: Lattice[Any, Any], covers: Callable[[Any, Any], bool]) -> None:
    """Paths are the covering between nodes, and edges its transitive reduction."""
    nodes = list(graph)
    assert nodes == sorted(nodes)
    below = {a: {b for b in nodes if a is not b and covers(a, b)} for a in nodes}
    for node in nodes:
        assert set(graph.descendants(node)) == below[node], node
        assert set(graph.ancestors(node)) == {a for a in nodes if node in below[a]}, node
        direct = {b for b in below[node] if not any(b in below[m] for m in below[node])}
        assert graph.children(node) == sorted(direct), node
        assert all(node in graph.parents(child) for child in direct)
    assert graph.roots() == [n for n in nodes if not any(n in below[a] for a in nodes)]


def lowest(
    graph: Lattice[Any, Any], matched: set[Any], covers: Callable[[Any, Any], bool]
) -> list[Vertex]:
    """Of the nodes that match, those that cover no other one of them."""
    return sorted(a for a in matched if not any(a is not b and covers(a, b) for b in matched))
