"""The content graph: the distinct filters of a channel, and which covers which.

         origin = 'EWR'      delay > 30           an edge from A to B: A covers B and nothing lies
                    \\        /      \\              between. A path from A to B: A covers B.
     origin = 'EWR' AND delay > 60    delay > 90

Invariant, after every call: the edges are the transitive reduction of "covers". A covering that
is known stays known: when B goes, what covered B still covers what B covered. Equal filters share
a node, and so do filters that are written differently but cover each other. Each filter of a node
is asked, not only the first: "covers" does not find everything, and of one more than of another.

Cost of insert: the candidates of the index, each checked once, plus the part of the graph above and
below the new node. `build` makes a graph of very many at once, by the batch join; it leaves the
index out, and whoever asks for it first, by `insert` or `matching`, waits until it is made.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tidings.filters import Filter, need_filter, need_mapping
from tidings.filters.index import HullIndex
from tidings.filters.sets import Key
from tidings.graph.node import Node, reach, tie, untie
from tidings.model import Event, GraphError


class ContentGraph:
    """A DAG of nodes; see the top of the module. Iterating gives the nodes by number."""

    def __init__(self, filters: Iterable[Filter] = ()) -> None:
        self._nodes: dict[int, Node] = {}
        self._by_key: dict[bytes, Node] = {}
        self._hulls: HullIndex[Filter] | None = None
        self._next = 1
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
        """The graph of many filters at once: the same as inserting them one by one, but for the
        numbers of nodes, and far faster.

        `progress` is told how many more have their place, `note` what is done next. `threads`: for
        the join, which is the smaller part; when not given, as many as the machine has processors,
        at most a few.
        """
        from tidings.matching.coverage import cover

        graph = cls()
        with _no_collection():
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
        return graph

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(list(self._nodes.values()))

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Node) and self._nodes.get(node.id) is node

    def insert(self, filter_: Filter) -> Node:
        """The node of this filter: the one that is there, or a new one in its place.

        A new filter can show that nodes which were apart cover each other. They become one, the
        one with the lowest number; the others are no longer in the graph, `node in graph` is False
        for them, and calls that are given one raise GraphError. `node(filter)` has the one that is
        there now.
        """
        need_filter(filter_)
        known = self._by_key.get(filter_.key)
        if known is not None:
            return known
        above, below = self._above(filter_), self._below(filter_)
        same = above & below
        if same:  # written differently, and yet each covers the other
            node = self._unite(same)
            self._same(filter_, node)
        else:
            node = self._new_node(filter_)
        self._index.add(filter_, filter_.form)
        self._link(node, above - same, below - same)
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
        """One node in place of several, without edges."""
        kept = min(nodes)
        for node in nodes:
            self._cut_off(node)
            if node is not kept:
                del self._nodes[node.id]
                for filter_ in node._filters:
                    self._same(filter_, kept)
        return kept

    @staticmethod
    def _cut_off(node: Node) -> None:
        for parent in list(node._parents):
            untie(parent, node)
        for child in list(node._children):
            untie(node, child)

    @property
    def _index(self) -> HullIndex[Filter]:
        if self._hulls is None:
            self._hulls = HullIndex()
            for node in self._nodes.values():
                for filter_ in node._filters:
                    self._hulls.add(filter_, filter_.form)
        return self._hulls

    def _above(self, filter_: Filter) -> set[Node]:
        """All that cover the filter, with whatever covers those."""
        found = self._index.may_cover(filter_.form)
        near = {self._by_key[one.key] for one in found if one.covers(filter_)}
        return near | reach(near, up=True)

    def _below(self, filter_: Filter) -> set[Node]:
        """All that the filter covers, with whatever those cover."""
        found = self._index.may_be_covered(filter_.form)
        near = {self._by_key[one.key] for one in found if filter_.covers(one)}
        return near | reach(near, up=False)

    @staticmethod
    def _link(node: Node, above: set[Node], below: set[Node]) -> None:
        """Put the node between its lowest coverers and its highest covered; drop the edges that
        it makes redundant."""
        for child in below:
            for parent in child._parents & above:
                untie(parent, child)
        parents = [a for a in above if a._children.isdisjoint(above)]
        children = [b for b in below if b._parents.isdisjoint(below)]
        for parent in parents:
            tie(parent, node)
        for child in children:
            tie(node, child)

    def remove(self, node: Node) -> None:
        """Take a node out; its parents cover its children from now on without it."""
        self._check(node)
        parents, children = list(node._parents), list(node._children)
        self._cut_off(node)
        for child in children:
            for parent in set(parents) - reach({child}, up=True):
                tie(parent, child)
        del self._nodes[node.id]
        for filter_ in node._filters:
            del self._by_key[filter_.key]
            if self._hulls is not None:
                self._hulls.discard(filter_, filter_.form)

    def node(self, filter_: Filter) -> Node | None:
        """The node of an equal filter, if there is one."""
        need_filter(filter_)
        return self._by_key.get(filter_.key)

    def parents(self, node: Node) -> list[Node]:
        """The lowest nodes that cover this one."""
        return sorted(self._check(node)._parents)

    def children(self, node: Node) -> list[Node]:
        """The highest nodes that this one covers."""
        return sorted(self._check(node)._children)

    def ancestors(self, node: Node) -> list[Node]:
        """All nodes that cover this one."""
        return sorted(reach({self._check(node)}, up=True))

    def descendants(self, node: Node) -> list[Node]:
        """All nodes that this one covers."""
        return sorted(reach({self._check(node)}, up=False))

    def roots(self) -> list[Node]:
        """The nodes that nothing covers."""
        return [node for node in self if not node._parents]

    def lowest(self, matched: Iterable[Node]) -> list[Node]:
        """Of the nodes that match a notification, those that cover no other one of them."""
        nodes = {self._check(node) for node in matched}
        return sorted(node for node in nodes if node._children.isdisjoint(nodes))

    def matching(self, event: Event) -> list[Node]:
        """All nodes whose filter matches the notification."""
        need_mapping(event)
        values: dict[str, Key] = {}
        found = self._index.may_hold(event, values)
        return sorted({self._by_key[one.key] for one in found if one.form.holds(event, values)})

    def _check(self, node: object) -> Node:
        if isinstance(node, Node):
            if node in self:
                return node
            now = self._by_key.get(node.filter.key)
            if now is not None:
                told = f"{node!r} is not in this graph; the node of its filter is {now!r}"
                raise GraphError(told)
        raise GraphError(f"{node!r} is not in this graph")


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without garbage collection, which would go through millions of objects again and again,
    none of them garbage: half of the time of a large build."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
