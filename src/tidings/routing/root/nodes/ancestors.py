"""All nodes that a notification matches, given the lowest of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.routing.forwarding.graph_caches import GraphCaches, HeaderCache
from tidings.routing.forwarding.label_graph import Label, LabelGraph
from tidings.routing.forwarding.neighbours import Name

MOST_KNOWN = 10_000  # the most headers whose ancestors are cached


class Ancestors:
    """The nodes of each header and all nodes above them. The results for a header are cached until
    one of its nodes, or of the nodes above them, changes."""

    def __init__(
        self, graph: LabelGraph[Name], aside: Mapping[int, Any], caches: GraphCaches
    ) -> None:
        """Nodes in `aside` match nothing."""
        self._graph = graph
        self._aside = aside
        self._cache: HeaderCache[Label, Label] = caches.add(HeaderCache(MOST_KNOWN))

    def add_ancestors(self, lowest: Label) -> Label:
        """The nodes of a header and all nodes that cover them."""
        found = self._cache.known.get(lowest)
        if found is None:
            above = set(lowest).union(*map(self._graph.ancestors, lowest))
            above -= self._aside.keys()
            found = self._cache.put(lowest, tuple(sorted(above)), lowest)
        return found
