"""The life of a node at the root: new, wanted, unwanted, retired, forgotten.

    new ──subscribed──> wanted ──nobody wants it──> unwanted ──40 s──> retired ──60 s──> gone
     └──────────────nobody subscribed──────────────────┘
                                                       └──> kept, for a type (type_nodes.py)

A retired node is no longer in the graph. The count of a retired node is still reported, because a
subscriber may have missed the last notifications of the node. The history keeps the count of a
retired node, so that it is also reported after a restart. The periods of 40 and 60 seconds are two
and three times `Times.expire`.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile

import msgspec

from tidings.routing.forwarding.neighbours import Payer
from tidings.routing.protocol import messages as m
from tidings.routing.root.interests import Placed
from tidings.routing.root.node_history import RemovedNode
from tidings.routing.root.nodes.shared_objects import NodePart, Parts
from tidings.routing.root.records import Record
from tidings.routing.root.revising import lay_above

MOST_LOOKED_AT = 2_000  # nodes of earlier lives that one call checks


class Retired(msgspec.Struct, frozen=True):
    """A removed node whose last numbers a subscriber may have missed."""

    above: set[int]  # the nodes that covered it
    count: int
    latest: int
    since: float


class NodeLifecycle(NodePart):
    """The states of the nodes of a rendezvous point."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.unwanted: dict[int, float] = {}  # nodes nobody wants, oldest first, each with a time
        self.makers: dict[int, tuple[Payer, ...]] = {}  # the accounts that pay for a new node
        self.retired: dict[int, Retired] = {}
        self.kept: set[int] = set()
        """The nodes that exist only because there were notifications of their types."""
        self.may_keep: Callable[[int], bool] = lambda _: False
        """Called with a node that would be retired; whether it is kept for its type instead."""
        self._earlier = array("q")  # nodes of earlier lives that were not checked yet
        self._earlier_since = 0.0
        self._is_held: Callable[[int], bool] = lambda _: False

    # -- new nodes -----------------------------------------------------------------------------

    def begin(self, placed: Placed, interest: bytes, owner: str) -> None:
        """Add a new node to both the graph and the journal, or to neither."""
        node = placed.node
        try:
            self._graph.insert(node, placed.parents, placed.children)
            self._caches.change(node)
            key = self._interests.identity(node)
            self._queue.add_node(node, interest, owner, key)
        except Exception:
            with contextlib.suppress(Exception):
                self._interests.remove(node)
            if node in self._graph:
                self._graph.remove(node)
            self._caches.clear()
            raise
        self._registry.add(node)

    # -- numbers -------------------------------------------------------------------------------

    def under(self, node: int) -> set[int]:
        """A node and all nodes that it covers."""
        return self._graph.descendants(node) | {node}

    def counts_of(self, node: int, under: Iterable[int], since: int) -> dict[int, int]:
        """The counts that changed after a serial: for the nodes in `under`, and for retired nodes
        below `node`."""
        found = self._counts.list_changes_since(under, since)
        for number, one in self.retired.items():
            if one.latest > since and node in one.above:
                found[number] = one.count
        return found

    def is_known(self, node: int) -> bool:
        """Does a node exist, or did it exist until recently?"""
        return node in self._counts.counts or node in self._graph or node in self.retired

    def existing(self, ranges: Iterable[m.Range]) -> list[m.Range]:
        """Cut ranges to the numbers that are on the disk, because later ones are not lost and will
        be sent. Also limit how many numbers one call looks up."""
        found: list[m.Range] = []
        left = self._context.limits.burst
        for node, first, last in ranges:
            first = max(first, 1)
            if self.is_known(node):
                last = min(last, self._count_of(node))  # the journal may have unknown nodes
            last = min(last, first + left - 1)
            if first <= last:
                found.append(m.Range(node, first, last))
                left -= last - first + 1
        return found

    def _count_of(self, node: int) -> int:
        retired = self.retired.get(node)
        return self._counts.counts.get(node, 0) if retired is None else retired.count

    def count_asked(self) -> int:
        """How many nodes there are, without those that are kept for their types: only these leave
        less room for the filters of subscribers."""
        return len(self._graph) - len(self.kept)

    # -- wanted and unwanted nodes -------------------------------------------------------------

    def add_maker(self, node: int, payers: tuple[Payer, ...]) -> None:
        """Charge a new node to the accounts that asked for it, until a neighbour subscribes to
        it."""
        self.makers[node] = payers
        for account, _ in payers:
            account.made += 1

    def settle(self, node: int) -> None:
        """Stop charging for a node as a new one, because it is wanted now, or was removed."""
        for account, _ in self.makers.pop(node, ()):
            account.made -= 1

    def want(self, node: int) -> None:
        self.unwanted.pop(node, None)
        self.kept.discard(node)
        self.settle(node)
        if self._relating is not None and node in self._relating.bases:
            self.settle(self._relating.bases[node])  # it may have no subscribers of its own

    def stop_wanting(self, node: int) -> None:
        """Record that nobody wants a node any more, or that nobody wants a new node yet."""
        self.unwanted.pop(node, None)
        self.unwanted[node] = self._context.now

    def is_left(self, node: int) -> bool:
        """Whether a node is unwanted, not charged as new, and below no related node."""
        return not (
            self.related_above(node) or node in self._subscriptions.wants or node in self.makers
        )

    def related_above(self, node: int) -> Sequence[int]:
        """The related nodes above a node, whose subscribers get its notifications too."""
        return () if self._relating is None else self._relating.dependents(node)

    def find_unwanted(self, is_held: Callable[[int], bool]) -> None:
        """After a start, record the nodes of earlier lives. Once the time for which unwanted nodes
        are kept has passed, these nodes are checked, and retired if nobody wants them and no named
        subscription needs them."""
        self._earlier, self._earlier_since = self._registry.living(), self._context.now
        self._is_held = is_held

    # -- removing nodes ------------------------------------------------------------------------

    def retire_unwanted(self) -> None:
        """Retire nodes that were unwanted for so long that no subscription can still arrive."""
        late = self._context.now - 2 * self._context.times.expire
        old = {node for node, _ in takewhile(lambda one: one[1] < late, self.unwanted.items())}
        for node in [*filter(self._is_needed, old)]:  # although nobody wants them
            old.remove(node)
            del self.unwanted[node]  # recorded again when the name or the related node is dropped
        earlier: list[int] = []
        if self._earlier and self._earlier_since < late:
            earlier = self._take_earlier()
            old.update(earlier)
        if old:
            for record in self._queue.records:
                old.difference_update(
                    record.matched if isinstance(record, Record) else record.times
                )
        for node in earlier:
            if node not in old:  # if it matches a notification that waits for the disk
                self.stop_wanting(node)
        for node in sorted(old):
            self.unwanted.pop(node, None)
            with self._problems.survive(f"forget node {node}"):
                if not self.may_keep(node):
                    self.retire(node)

    def _take_earlier(self) -> list[int]:
        """Some of the nodes of earlier lives that nobody has wanted since this start. Each call
        checks a limited number, because there may be a million nodes, most of which are wanted."""
        some = self._earlier[-MOST_LOOKED_AT:]
        del self._earlier[-MOST_LOOKED_AT:]
        wants, unwanted, graph = self._subscriptions.wants, self.unwanted, self._graph
        return [
            one
            for one in some
            if one not in wants
            and one not in unwanted
            and one in graph
            and not self._is_needed(one)
        ]

    def _is_needed(self, node: int) -> bool:
        """Is a node kept for its type, does a named subscription need it, or is there a related
        node above it?"""
        return node in self.kept or bool(self.related_above(node)) or self._is_held(node)

    def forget_retired(self, done: int) -> None:
        """Forget retired nodes whose numbers nobody can ask for any more: nobody needs the
        notifications up to the serial `done`. If a subscriber was away for longer, a loss of
        notifications is reported to it."""
        late = self._context.now - 3 * self._context.times.expire
        many = len(self.retired) - self._context.limits.all_new_nodes
        for at, (node, one) in enumerate([*self.retired.items()]):
            if at < many or (one.since < late and one.latest <= done):
                del self.retired[node]

    def retire(self, node: int) -> None:
        """Remove a node that nobody wants."""
        self.settle(node)
        self.kept.discard(node)
        parents, children = self._graph.parents(node), self._graph.children(node)
        equal = tuple(self._interests.equal(node))
        exact = 0 if self._relating is None else self._relating.bases.get(node, 0)
        version = self._interests.remove(node)
        count, latest = self._counts.counts.get(node, 0), self._counts.latest.get(node, 0)
        gone = RemovedNode(version, equal, parents, children if parents else (), count, latest)
        self._claims.remove(node)
        above = self._graph.ancestors(node)
        for one in (node, *equal):  # cached results for equal nodes may depend on this node too
            self._caches.change(one)
        self._graph.remove(node)
        self.retired[node] = Retired(above, count, latest, self._context.now)
        self._queue.drop_node(node, gone)
        self._registry.drop(node, gone)
        self._counts.remove(node)
        if exact in self._graph and exact not in self._subscriptions.wants:
            self.stop_wanting(exact)  # if only the related node needed it

    def recall_retired(self, gone: Mapping[int, RemovedNode], after: int) -> None:
        """After a start, restore the removed nodes whose counts changed after a serial, so that
        their counts are reported again."""
        late = [node for node, one in gone.items() if one.latest > after]
        for node in late[-self._context.limits.all_new_nodes :]:
            one = gone[node]
            above = lay_above(one, gone, self._graph)
            self.retired[node] = Retired(above, one.count, one.latest, self._context.now)
