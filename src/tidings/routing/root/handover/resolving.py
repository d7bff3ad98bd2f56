"""Replaces the nodes of tags that were made elsewhere with the lowest current nodes.

    removed      replaced by nodes with an equal filter; if there are none, by the lowest nodes that
                 covered it
    set aside    replaced by the nodes that cover it
    equal        to another node: both get a mark, because a tag may name only one of them
    newer        than the tag: never added. So a pipeline matches an interest from the first batch
                 on that begins after the interest was acknowledged

Nearly all notifications need no replacement (see node_table.py). All other notifications are
resolved one by one. The result for a tag is cached until a node that was visited for it, or a node
above such a node, changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.routing.forwarding.graph_caches import GraphCaches, HeaderCache
from tidings.routing.forwarding.label_graph import Label, LabelGraph
from tidings.routing.forwarding.neighbours import Name
from tidings.routing.protocol.limits import Limits
from tidings.routing.root.handover.node_table import NodeTable
from tidings.routing.root.interests import Interests
from tidings.routing.root.node_history import History
from tidings.routing.root.nodes import SetAside
from tidings.routing.root.publishing import Outdated, Tagger
from tidings.routing.root.records import MatchColumns

MOST_KNOWN = 10_000  # the most tags whose results are cached

Numbers = npt.NDArray[np.int64]


class Tags(NamedTuple):
    """The lowest nodes of some notifications, with their codes in the table, and all nodes that the
    notifications match. The nodes of notification i are nodes[starts[i] : starts[i + 1]]."""

    starts: Numbers
    nodes: Numbers
    codes: Numbers
    matched: MatchColumns
    fronts: list[bytes]  # the bytes before each body, in a channel with relations


class Resolving:
    """Finds the current nodes for the nodes of tags."""

    def __init__(
        self,
        graph: LabelGraph[Name],
        caches: GraphCaches,
        interests: Interests,
        history: History,
        set_aside: SetAside,
        tagger: Tagger,
        limits: Limits,
    ) -> None:
        self._limits = limits
        self._graph = graph
        self._interests = interests
        self._history = history
        self._aside = set_aside.aside
        self._tagger = tagger
        self._caches = caches
        self.equal: dict[int, set[int]] = {}
        """Nodes that are equal to others, as removed nodes prove; for each, the nodes that it is
        equal to."""
        self.table = caches.add(NodeTable(self._look))
        self._known: HeaderCache[tuple[int, Label], Label] = caches.add(HeaderCache(MOST_KNOWN))

    def renew(
        self, starts: Numbers, nodes: Numbers, version: int, contents: Sequence[bytes] = ()
    ) -> Tags:
        """The lowest current nodes of notifications, and all nodes that they match. In a channel
        with relations, `contents` has the attributes of the notifications. Raise Outdated if one of
        the given nodes is unknown."""
        starts, nodes = self.lowest(starts, nodes, version)
        starts, nodes, fronts = self._tagger.relate_many(contents, starts, nodes, version)
        codes = self.table.codes_of(nodes)
        matched = self.table.list_matched(starts, codes)
        wide = np.diff(matched.starts) > self._limits.matches
        if wide.any():
            starts, nodes = self._resolve_odd(starts, nodes, wide, version)
            codes = self.table.codes_of(nodes)
            matched = self.table.list_matched(starts, codes)
        return Tags(starts, nodes, codes, matched, fronts)

    def lowest(self, starts: Numbers, nodes: Numbers, version: int) -> tuple[Numbers, Numbers]:
        """The lowest current nodes of notifications. Raise Outdated if one of the given nodes is
        unknown."""
        codes = self.table.codes_of(nodes)
        odd = self.table.odd(starts, nodes, codes, self._limits.marks)
        return (starts, nodes) if odd is None else self._resolve_odd(starts, nodes, odd, version)

    def renew_one(self, given: Label, version: int) -> Label:
        """The lowest current nodes of one notification. Shares are not checked."""
        found = self._known.known.get((version, given))
        if found is None:
            found, seen = self._replace(given, version)
            self._known.put((version, given), found, seen)
        return found

    def _look(self, node: int) -> tuple[bool, Iterable[int]]:
        """Whether a node can stay in a tag as it is, and which nodes cover it."""
        if node not in self._graph:
            return False, ()
        above = self._graph.ancestors(node)
        plain = node not in self._aside and not self._equals(node)
        return plain, above.difference(self._aside) if self._aside else above

    def _equals(self, node: int) -> Iterable[int]:
        known = self.equal.get(node)
        found = self._interests.equal(node)
        return found if known is None else {*known, *found} - {node}

    # -- one by one ----------------------------------------------------------------------------

    def _resolve_odd(
        self, starts: Numbers, nodes: Numbers, odd: npt.NDArray[Any], version: int
    ) -> tuple[Numbers, Numbers]:
        """Replace the nodes of the flagged notifications. If this sets filters aside, the graph has
        changed, and all notifications are resolved again."""
        rows = np.flatnonzero(odd).tolist()
        while True:
            before = self._caches.version
            found = {row: self._resolve_row(starts, nodes, row, version) for row in rows}
            if self._caches.version == before:
                break
            rows = [*range(len(starts) - 1)]
        return replace_rows(starts, nodes, found)

    def _resolve_row(self, starts: Numbers, nodes: Numbers, row: int, version: int) -> Label:
        given = tuple(nodes[starts[row] : starts[row + 1]].tolist())
        return self._tagger.fit(lambda: self.renew_one(given, version))

    def _replace(self, given: Label, version: int) -> tuple[Label, set[int]]:
        """The current nodes for the nodes of a tag, and all nodes on which the result depends."""
        graph, aside = self._graph, self._aside
        there: set[int] = set()
        todo = [*self._history.stands_for(given)]
        seen: set[int] = set()
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            if node not in graph:
                raise Outdated(
                    f"found node {node} in a tag of version {version}, expected a node of this "
                    f"channel; tag again at version {self._history.version}",
                    self._history.version,
                )
            todo += (one for one in self._equals(node) if one <= version and one in graph)
            if node in aside:
                todo += graph.parents(node)
            else:
                there.add(node)
        return graph.lowest(there), seen


def replace_rows(
    starts: Numbers, nodes: Numbers, rows: Mapping[int, Label]
) -> tuple[Numbers, Numbers]:
    """Replace the nodes of the notifications in `rows`, whose positions are in ascending order."""
    sizes = np.diff(starts)
    pieces, at = list[Numbers](), 0
    for row, label in rows.items():
        pieces += nodes[at : starts[row]], np.array(label, np.int64)
        sizes[row], at = len(label), starts[row + 1]
    pieces.append(nodes[at:])
    changed = np.zeros(len(starts), np.int64)
    np.cumsum(sizes, out=changed[1:])
    return changed, np.concatenate(pieces)
