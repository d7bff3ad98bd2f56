"""The content graph: the distinct filters of a channel, and the coverings between them.

         origin = 'EWR'      delay > 30           an edge from A to B: A covers B and nothing lies
                    \\        /      \\              between. A path from A to B: A covers B.
     origin = 'EWR' AND delay > 60    delay > 90

Invariant, after every call: the edges are the transitive reduction of the known coverings. A known
covering stays known: when a node B is removed, every node that covered B still covers every node
that B covered. Equal filters share a node, and so do filters that are written differently but cover
each other. All filters of a node are compared, not only the first, because `covers` does not find
every covering, and what it finds depends on how a filter is written.

Cost of `insert`: each candidate from the index is checked once, and all nodes above and below the
new node are visited. After PLACING steps in one direction, the search stops, and coverings that it
has not found by then stay unknown. `build` creates a graph of very many filters at once, with the
batch join. `build` does not create the index; the first call to `insert` or `matching` creates it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tidings.filters import Filter, need_filter, need_mapping
from tidings.filters.canonical import HullIndex, WorkBudget, covers
from tidings.filters.values import Key
from tidings.graph.lattice import Lattice, reach, tie
from tidings.graph.node import Node
from tidings.graph.picture import draw
from tidings.model import Event, GraphError, pause_gc

PLACING = 100_000  # the most steps, of about 1 µs each, for a new filter in each direction
MOST_DRAWN = 2_000  # the most nodes in a picture that a notebook shows
FEW = 64  # if there are at most this many candidates, they are compared in any order


class ContentGraph(Lattice[Node, Event]):
    """A DAG of nodes; see the module docstring. Iterating yields the nodes."""

    def __init__(self, filters: Iterable[Filter] = ()) -> None:
        super().__init__()
        self._hulls: HullIndex[Filter] | None = None
        for one in filters:
            self.insert(one)

    @classmethod
    def build(
        cls,
        filters: Iterable[Filter],
        progress: Callable[[int], None] = lambda _: None,
        threads: int | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> ContentGraph:
        """The graph of many filters. Building is far faster than inserting filters one by one, and
        the result is the same, except for the numbers of nodes, and for coverings that `insert`
        does not find within PLACING steps.

        `progress` is called with the number of filters placed since the last call, and `note` with
        the name of the next step. `threads` is the number of threads for the join, which is less
        than half of the work; the default is the number of processors, up to a small limit.
        """
        from tidings.matching.covering import cover

        graph = cls()
        with pause_gc():
            note("forms")
            by_key: dict[bytes, Filter] = {}
            for one in filters:
                need_filter(one)
                by_key.setdefault(one.key, one)
            distinct = list(by_key.values())
            found = cover([one.form for one in distinct], progress, threads, note)
            note("nodes")
            nodes: list[Node] = []
            for one, first in zip(distinct, found.first.tolist(), strict=True):
                if first < len(nodes):
                    nodes.append(nodes[first])
                    graph._same(one, nodes[first])
                else:
                    nodes.append(graph._new_node(one))
            for above, below in zip(found.above.tolist(), found.below.tolist(), strict=True):
                tie(nodes[above], nodes[below])
        graph._count_change()
        return graph

    def __repr__(self) -> str:
        return f"<ContentGraph of {len(self):,} node{'' if len(self) == 1 else 's'}>"

    def _repr_html_(self) -> str:
        """The picture of the graph, for notebooks; for a large graph, only its size."""
        if len(self) > MOST_DRAWN:
            return f"<p>a content graph of {len(self):,} nodes, too many to draw</p>"
        return draw(self)

    def insert(self, filter_: Filter) -> Node:
        """The node of this filter, which is added if it is new.

        A new filter can reveal that two separate nodes cover each other. Nodes that cover each
        other are merged into the one with the lowest number. The other nodes leave the graph: `node
        in graph` is then False, and methods raise GraphError for these nodes. `node(filter)`
        returns the merged node.
        """
        need_filter(filter_)
        known = self._by_key.get(filter_.key)
        if known is not None:
            return known
        above = self._above(filter_, WorkBudget(PLACING))
        below = self._below(filter_, WorkBudget(PLACING))
        same = above & below
        if same:  # the filters are written differently, but each covers the other
            node = self._unite(same)
            self._same(filter_, node)
        else:
            node = self._new_node(filter_)
        self._index.add(filter_, filter_.form)
        self._link(node, above - same, below - same)
        self._count_change()
        return node

    def _new_node(self, filter_: Filter) -> Node:
        node = Node(self._next, filter_)
        self._next += 1
        self._nodes[node.id] = node
        self._by_key[filter_.key] = node
        return node

    def _same(self, filter_: Filter, node: Node) -> None:
        node._others += (filter_,)
        self._by_key[filter_.key] = node

    def _unite(self, nodes: set[Node]) -> Node:
        """Merge nodes into one, and remove all their edges."""
        kept = min(nodes)
        for node in nodes:
            self._cut_off(node)
            if node is not kept:
                del self._nodes[node.id]
                for filter_ in node._filters:
                    self._same(filter_, kept)
                if self._follower is not None:
                    self._follower.note_removal(node.id, [kept.id])
        return kept

    @property
    def _index(self) -> HullIndex[Filter]:
        if self._hulls is None:
            self._hulls = HullIndex()
            for node in self._nodes.values():
                for filter_ in node._filters:
                    self._hulls.add(filter_, filter_.form)
        return self._hulls

    def _above(self, filter_: Filter, effort: WorkBudget) -> set[Node]:
        """All nodes that cover the filter, and all their ancestors."""
        asked = _light_first(self._index.may_cover(filter_.form))
        near = {self._by_key[o.key] for o in asked if covers(o.form, filter_.form, effort)}
        return near | reach(near, up=True)

    def _below(self, filter_: Filter, effort: WorkBudget) -> set[Node]:
        """All nodes that the filter covers, and all their descendants."""
        asked = _light_first(self._index.may_be_covered(filter_.form))
        near = {self._by_key[o.key] for o in asked if covers(filter_.form, o.form, effort)}
        return near | reach(near, up=False)

    def _forget(self, node: Node) -> None:
        super()._forget(node)
        if self._hulls is not None:
            for filter_ in node._filters:
                self._hulls.discard(filter_, filter_.form)

    def _keys_of(self, node: Node) -> tuple[bytes, ...]:
        return node._keys

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._hulls = None

    def node(self, filter_: Filter) -> Node | None:
        """The node of an equal filter; None if there is no such node."""
        need_filter(filter_)
        return self._by_key.get(filter_.key)

    def matching(self, event: Event) -> list[Node]:
        """All nodes whose filter matches the notification."""
        need_mapping(event)
        values: dict[str, Key] = {}
        found = self._index.may_hold(event, values)
        return sorted({self._by_key[one.key] for one in found if one.form.holds(event, values)})

    def matching_of(self, nodes: Iterable[Node], event: Event) -> list[Node]:
        """The given nodes whose filter matches the notification."""
        need_mapping(event)
        values: dict[str, Key] = {}
        return [node for node in nodes if node.filter.form.holds(event, values)]

    def _stranger(self, node: object) -> GraphError:
        now = self._by_key.get(node.filter.key) if isinstance(node, Node) else None
        if now is None:
            return super()._stranger(node)
        return GraphError(f"{node!r} is not in this graph; the node of its filter is {now!r}")


def _light_first(found: Iterable[Filter]) -> Iterable[Filter]:
    """The candidates in an order that puts the cheapest comparisons first, so that as many as
    possible fit within the limit."""
    asked = list(found)
    return sorted(asked, key=lambda one: one.form.weight) if len(asked) > FEW else asked
