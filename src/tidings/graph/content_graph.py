"""The content graph: the distinct filters of a channel, and which covers which.

         origin = 'EWR'      delay > 30           an edge from A to B: A covers B and nothing lies
                    \\        /      \\              between. A path from A to B: A covers B.
     origin = 'EWR' AND delay > 60    delay > 90

Invariant, after every call: the edges are the transitive reduction of "covers". A covering that
is known stays known: when B goes, what covered B still covers what B covered. Equal filters share
a node, and so do filters that are written differently but cover each other.

Cost of insert: the candidates of the index, each checked once, plus the part of the graph above and
below the new node. `build` makes a graph of very many at once, by the batch join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tidings.filters import Filter, need_filter, need_mapping
from tidings.filters.index import HullIndex
from tidings.filters.sets import Key
from tidings.model import Event, GraphError


class Node:
    """A filter in a graph, with its number. Numbers are given once and never again."""

    __slots__ = ("_aliases", "_children", "_parents", "filter", "id")

    def __init__(self, number: int, filter_: Filter) -> None:
        self.id = number
        self.filter = filter_
        self._parents: set[Node] = set()
        self._children: set[Node] = set()
        self._aliases: list[bytes] = [filter_.key]

    def __repr__(self) -> str:
        return f"Node({self.id}, {self.filter.sql()!r})"

    def __lt__(self, other: Node) -> bool:
        return self.id < other.id


class ContentGraph:
    """A DAG of nodes; see the top of the module. Iterating gives the nodes by number."""

    def __init__(self, filters: Iterable[Filter] = ()) -> None:
        self._nodes: dict[int, Node] = {}
        self._by_key: dict[bytes, Node] = {}
        self._index: HullIndex[Node] = HullIndex()
        self._next = 1
        for one in filters:
            self.insert(one)

    @classmethod
    def build(
        cls, filters: Iterable[Filter], progress: Callable[[int], None] | None = None
    ) -> ContentGraph:
        """The graph of many filters at once: the same as inserting them one by one, but for the
        numbers of nodes, and far faster. `progress` is told how many more were joined."""
        from tidings.matching.coverage import cover_pairs, equals_of, parents_of

        distinct = list({one.key: one for one in filters}.values())
        pairs = cover_pairs([one.form for one in distinct], progress)
        first, pairs = equals_of(pairs, len(distinct))
        edges = parents_of(pairs, len(distinct))
        graph = cls()
        nodes: list[Node] = []
        for at, one in enumerate(distinct):
            if first[at] == at:
                nodes.append(graph._new_node(one))
            else:
                nodes.append(nodes[first[at]])
                nodes[at]._aliases.append(one.key)
                graph._by_key[one.key] = nodes[at]
        for above, below in zip(edges.above.tolist(), edges.below.tolist(), strict=True):
            nodes[above]._children.add(nodes[below])
            nodes[below]._parents.add(nodes[above])
        return graph

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(list(self._nodes.values()))

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Node) and self._nodes.get(node.id) is node

    def insert(self, filter_: Filter) -> Node:
        """The node of this filter: the one that is there, or a new one in its place."""
        need_filter(filter_)
        known = self._by_key.get(filter_.key)
        if known is not None:
            return known
        above, below = self._above(filter_), self._below(filter_)
        same = above & below
        if same:  # written differently, and yet each covers the other
            node = min(same)
            node._aliases.append(filter_.key)
            self._by_key[filter_.key] = node
            return node
        node = self._new_node(filter_)
        self._link(node, above, below)
        return node

    def _new_node(self, filter_: Filter) -> Node:
        node = Node(self._next, filter_)
        self._next += 1
        self._nodes[node.id] = node
        self._by_key[filter_.key] = node
        self._index.add(node, filter_.form)
        return node

    def _above(self, filter_: Filter) -> set[Node]:
        """All that cover the filter, with whatever covers those."""
        near = {n for n in self._index.may_cover(filter_.form) if n.filter.covers(filter_)}
        return near | _reach(near, up=True)

    def _below(self, filter_: Filter) -> set[Node]:
        """All that the filter covers, with whatever those cover."""
        near = {n for n in self._index.may_be_covered(filter_.form) if filter_.covers(n.filter)}
        return near | _reach(near, up=False)

    @staticmethod
    def _link(node: Node, above: set[Node], below: set[Node]) -> None:
        """Put the node between its lowest coverers and its highest covered; drop the edges that
        it makes redundant."""
        for child in below:
            for parent in child._parents & above:
                child._parents.discard(parent)
                parent._children.discard(child)
        node._parents = {a for a in above if a._children.isdisjoint(above)}
        node._children = {b for b in below if b._parents.isdisjoint(below)}
        for parent in node._parents:
            parent._children.add(node)
        for child in node._children:
            child._parents.add(node)

    def remove(self, node: Node) -> None:
        """Take a node out; its parents cover its children from now on without it."""
        self._check(node)
        for parent in node._parents:
            parent._children.discard(node)
        for child in node._children:
            child._parents.discard(node)
        for child in node._children:
            for parent in node._parents - _reach({child}, up=True):
                parent._children.add(child)
                child._parents.add(parent)
        node._parents, node._children = set(), set()
        for alias in node._aliases:
            del self._by_key[alias]
        del self._nodes[node.id]
        self._index.discard(node, node.filter.form)

    def node(self, filter_: Filter) -> Node | None:
        """The node of an equal filter, if there is one."""
        return self._by_key.get(filter_.key)

    def parents(self, node: Node) -> list[Node]:
        """The lowest nodes that cover this one."""
        return sorted(self._check(node)._parents)

    def children(self, node: Node) -> list[Node]:
        """The highest nodes that this one covers."""
        return sorted(self._check(node)._children)

    def ancestors(self, node: Node) -> list[Node]:
        """All nodes that cover this one."""
        return sorted(_reach({self._check(node)}, up=True))

    def descendants(self, node: Node) -> list[Node]:
        """All nodes that this one covers."""
        return sorted(_reach({self._check(node)}, up=False))

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
        return sorted(node for node in found if node.filter.form.holds(event, values))

    def _check(self, node: Node) -> Node:
        if node not in self:
            raise GraphError(f"{node!r} is not in this graph")
        return node


def _reach(nodes: set[Node], up: bool) -> set[Node]:
    """All that lies above (or below) any of these nodes."""
    seen: set[Node] = set()
    stack = list(nodes)
    while stack:
        one = stack.pop()
        fresh = (one._parents if up else one._children) - seen
        seen |= fresh
        stack.extend(fresh)
    return seen
