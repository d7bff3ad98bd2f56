"""The clustering relation store: what was forwarded before, to which hop, and for which ids.

    forwarded: terms {Chicago, Christmas 2013}, hop B, ids 7 and 9      a node
                       |              |
                    element        element       each in a cluster of its context

A node is one combination of terms that was forwarded to one hop. A query finds a node through any
of the node's elements; the merit of the node is the sum over the terms of the query. A node is
dropped when its last id is cancelled, when it has not been used for a while, or when the store is
full and no other node was used less. The caller passes the current time, in seconds.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

import msgspec

from tidings.relations.clusters.elements import Elements
from tidings.relations.semantic import Context, Edge, SemanticStore, Term, Value, Weights


class StoreSettings(msgspec.Struct, frozen=True):
    """Which nodes the store admits, and how long it keeps them."""

    least: int = 1
    """A node is admitted if at least this many subscriptions matched."""
    most: int = 100_000
    """The most nodes."""
    keep: float = 7 * 86_400.0
    """A node is forgotten if it was not used for this many seconds."""
    radius_km: float = 50.0
    radius_days: float = 2.0


class ForwardedNode(msgspec.Struct, eq=False):
    """One combination of terms that was forwarded to one hop."""

    number: int
    terms: tuple[Term, ...]
    hop: Hashable
    ids: set[Hashable]
    last: float
    uses: int = 1


class Hit(msgspec.Struct, frozen=True):
    """A node that a query found. `edges` has, for each term of the query that found the node, the
    term, the value that it found, and how the two are related."""

    node: ForwardedNode
    merit: float
    edges: tuple[tuple[Term, Value, Edge], ...]


Watcher = Callable[[ForwardedNode, bool, Sequence[Term]], None]


class ClusterStore:
    """Nodes; each is found through the elements of its terms."""

    def __init__(
        self,
        semantic: SemanticStore,
        weights: Weights | None = None,
        settings: StoreSettings | None = None,
    ) -> None:
        self.settings = settings or StoreSettings()
        self.weights = weights or Weights()
        self.elements = Elements(
            semantic, self.weights, self.settings.radius_km, self.settings.radius_days
        )
        self._nodes: dict[tuple[frozenset[Term], Hashable], ForwardedNode] = {}
        self._by_term: dict[Term, dict[int, ForwardedNode]] = {}
        self._by_id: dict[Hashable, dict[int, ForwardedNode]] = {}
        # a heap; some of its entries may be outdated
        self._least_used: list[tuple[int, float, int, ForwardedNode]] = []
        self._numbers = itertools.count(1)
        self._watchers: list[Watcher] = []

    def watch(self, told: Watcher) -> None:
        """Call a function whenever a node was added or removed. Its arguments are the node, whether
        it was added, and those terms of the node that no other node has."""
        self._watchers.append(told)

    def __contains__(self, node: ForwardedNode) -> bool:
        return self._nodes.get((frozenset(node.terms), node.hop)) is node

    def node(self, terms: Iterable[Term], hop: Hashable) -> ForwardedNode | None:
        """The node for a combination of terms that was forwarded to a hop."""
        return self._nodes.get((frozenset(terms), hop))

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[ForwardedNode]:
        return iter(self._nodes.values())

    # -- changes -------------------------------------------------------------------------------

    def learn(
        self,
        terms: Iterable[Term],
        hop: Hashable,
        ids: Iterable[Hashable],
        now: float,
        count: int | None = None,
    ) -> ForwardedNode | None:
        """Store that a message with these terms was forwarded, and return the node of the terms.
        Return None if too few subscriptions matched the message, or if it has no terms. `count` is
        how many subscriptions the ids represent; by default, each id represents one."""
        terms = tuple(dict.fromkeys(terms))
        ids = set(ids)
        node = self._nodes.get((frozenset(terms), hop))
        if node is None:
            enough = (len(ids) if count is None else count) >= self.settings.least
            if not terms or not ids or not enough:
                return None
            while len(self._nodes) >= max(self.settings.most, 1):
                self._drop_least_used()
            node = self._insert(terms, hop, now)
        else:
            node.uses += 1
            node.last = max(node.last, now)
        self._add_ids(node, ids)
        return node

    def _add_ids(self, node: ForwardedNode, ids: set[Hashable]) -> None:
        for one in ids - node.ids:
            self._by_id.setdefault(one, {})[node.number] = node
        node.ids |= ids

    def use(self, nodes: Iterable[ForwardedNode], now: float, times: int = 1) -> None:
        """Note that these nodes were used. A message uses a node if it has at least one of the
        node's terms."""
        for node in nodes:
            node.uses += times
            node.last = max(node.last, now)

    def cancel(self, id_: Hashable, *hops: Hashable) -> None:
        """Remove a subscription, at all hops or only at some, and the nodes that no other
        subscription needs."""
        holders = self._by_id.pop(id_, {})
        stay = {at: node for at, node in holders.items() if hops and node.hop not in hops}
        if stay:
            self._by_id[id_] = stay
        for node in [node for at, node in holders.items() if at not in stay]:
            node.ids.discard(id_)
            if not node.ids:
                self.forget(node)

    def age(self, now: float) -> int:
        """Forget the nodes that were not used for a while, and return their number. The uses of the
        other nodes are halved, so that a node that is no longer popular can be replaced."""
        old = [node for node in self._nodes.values() if node.last + self.settings.keep < now]
        for node in old:
            self.forget(node)
        for node in self._nodes.values():
            node.uses = max(1, node.uses // 2)
        self._least_used = [_rank(node) for node in self._nodes.values()]
        heapq.heapify(self._least_used)
        return len(old)

    def forget(self, node: ForwardedNode) -> None:
        """Remove a node, and those of its elements that no other node has."""
        del self._nodes[frozenset(node.terms), node.hop]
        for id_ in node.ids:
            holders = self._by_id[id_]
            del holders[node.number]
            if not holders:
                del self._by_id[id_]
        gone: list[Term] = []
        for term in node.terms:
            nodes = self._by_term[term]
            del nodes[node.number]
            if not nodes:
                del self._by_term[term]
                self.elements.remove(term)
                gone.append(term)
        for told in self._watchers:
            told(node, False, gone)
        if len(self._least_used) > 2 * len(self._nodes) + 64:
            self._least_used = [_rank(one) for one in self._nodes.values()]
            heapq.heapify(self._least_used)

    def _insert(self, terms: tuple[Term, ...], hop: Hashable, now: float) -> ForwardedNode:
        node = ForwardedNode(next(self._numbers), terms, hop, set(), now)
        self._nodes[frozenset(terms), hop] = node
        fresh = [term for term in terms if term not in self.elements]
        for term in terms:
            self.elements.add(term)
            self._by_term.setdefault(term, {})[node.number] = node
        heapq.heappush(self._least_used, _rank(node))
        for told in self._watchers:
            told(node, True, fresh)
        return node

    def _drop_least_used(self) -> None:
        while True:
            rank = heapq.heappop(self._least_used)
            node = rank[-1]
            if node not in self:
                continue
            if rank != _rank(node):  # an old rank: `uses` or `last` has grown
                heapq.heappush(self._least_used, _rank(node))
                continue
            self.forget(node)
            return

    def replace(self, old: Term, new: Term) -> None:
        """Move what was learnt under an old term to a new one, because a name has another value
        now. If both terms are equal, index the term again, because its tree has grown."""
        for node in list(self._by_term.get(old, {}).values()) if old != new else ():
            terms = tuple(dict.fromkeys(new if term == old else term for term in node.terms))
            there = self._nodes.get((frozenset(terms), node.hop))
            if there is None:
                there = self._insert(terms, node.hop, node.last)
                there.uses = 0
            there.uses += node.uses
            there.last = max(there.last, node.last)
            self._add_ids(there, node.ids)
            self.forget(node)  # only now, so that watchers never see the hop without nodes
        self.elements.refile(new)

    # -- queries -------------------------------------------------------------------------------

    def find(self, terms: Iterable[Term]) -> list[Hit]:
        """All nodes that are related to the terms of a message, best first."""
        edges: dict[int, list[tuple[Term, Value, Edge]]] = {}
        nodes: dict[int, ForwardedNode] = {}
        for term in dict.fromkeys(terms):
            best: dict[int, tuple[Value, Edge]] = {}
            for value, edge in self.elements.find_related(term).items():
                for number, node in self._by_term[Term(term.context, value)].items():
                    if number not in best or edge.beats(best[number][1]):
                        best[number] = value, edge
                        nodes[number] = node
            for number, (value, edge) in best.items():
                edges.setdefault(number, []).append((term, value, edge))
        hits = (
            Hit(nodes[number], sum(edge.weight for _, _, edge in found), tuple(found))
            for number, found in edges.items()
        )
        return sorted(
            (hit for hit in hits if hit.merit > 0), key=lambda hit: (-hit.merit, hit.node.number)
        )

    def ids(self) -> Collection[Hashable]:
        """The ids of all nodes."""
        return self._by_id.keys()

    def hops_of(self, id_: Hashable) -> set[Hashable]:
        """The hops of the nodes that contain an id."""
        return {node.hop for node in self._by_id.get(id_, {}).values()}

    def nodes_at(self, term: Term) -> Mapping[int, ForwardedNode]:
        """The nodes that have exactly this term, by number."""
        return self._by_term.get(term, {})

    def majority_hop(self, context: Context, members: Iterable[Value]) -> Hashable:
        """The hop that has more than half of the nodes of a cluster; None if there is none."""
        hops = Counter(
            node.hop
            for value in members
            for node in self._by_term.get(Term(context, value), {}).values()
        )
        if not hops:
            return None
        hop, count = hops.most_common(1)[0]
        return hop if 2 * count > hops.total() else None


def _rank(node: ForwardedNode) -> tuple[int, float, int, ForwardedNode]:
    return node.uses, node.last, node.number, node
