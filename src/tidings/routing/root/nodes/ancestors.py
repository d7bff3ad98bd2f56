"""All nodes that a notification matches, given the lowest of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.routing.forwarding.graph_caches import GraphCaches
from tidings.routing.forwarding.label_graph import Label, LabelGraph
from tidings.routing.forwarding.neighbours import Name

MOST_KNOWN = 10_000  # headers whose ancestors are remembered


class Ancestors:
    """The nodes above each header, computed once and cached until the graph changes."""

    def __init__(
        self, graph: LabelGraph[Name], aside: Mapping[int, Any], caches: GraphCaches
    ) -> None:
        """Nodes in `aside` match nothing."""
        self._graph = graph
        self._aside = aside
        self._known: dict[Label, Label] = caches.add({})

    def matched(self, lowest: Label) -> Label:
        """The nodes of a header and all nodes that cover them."""
        found = self._known.get(lowest)
        if found is None:
            above = set(lowest).union(*map(self._graph.ancestors, lowest))
            above -= self._aside.keys()
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[lowest] = tuple(sorted(above))
        return found
