"""The life of a node at the root: new, wanted, unwanted, retired, forgotten.

    new ──subscribed──> wanted ──nobody wants it──> unwanted ──40 s──> retired ──20 s──> gone
     └──────────────nobody came for it─────────────────┘

A retired node is not in the graph any more, but a subscriber may have missed its last numbers, so
its count is still told. The times are two and three times `Times.expire`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidings.routing.forwarding.neighbours import Payer
from tidings.routing.protocol import messages as m
from tidings.routing.root.nodes.parts import NodePart, Parts


class Retired(msgspec.Struct, frozen=True):
    """A node that is gone, though somebody may have missed its last numbers."""

    above: set[int]  # the nodes that covered it
    count: int
    latest: int
    since: float


class Nodes(NodePart):
    """The nodes of a rendezvous point, and what becomes of them."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.unwanted: dict[int, float] = {}  # nodes that nobody wants, and since when
        self.makers: dict[int, tuple[Payer, ...]] = {}  # who pays for a new node
        self.retired: dict[int, Retired] = {}

    # -- numbers -------------------------------------------------------------------------------

    def under(self, node: int) -> set[int]:
        """A node and all that it covers."""
        return self._graph.descendants(node) | {node}

    def counts_of(self, node: int, under: Iterable[int], since: int) -> dict[int, int]:
        """The counts of the nodes under a node, retired ones included, that counted since a
        serial."""
        found = self._counts.changed_since(under, since)
        for number, one in self.retired.items():
            if one.latest > since and node in one.above:
                found[number] = one.count
        return found

    def is_known(self, node: int) -> bool:
        """Is a node there, or was it a while ago?"""
        return node in self._counts.counts or node in self._graph or node in self.retired

    def existing(self, ranges: Iterable[m.Range]) -> list[m.Range]:
        """Ranges without the numbers that were not given yet: what is not on the disk yet is not
        lost, and will be sent. At most as many numbers as are looked for at once."""
        found: list[m.Range] = []
        left = self._context.limits.burst
        for node, first, last in ranges:
            first = max(first, 1)
            if self.is_known(node):
                last = min(last, self._count_of(node))  # only the journal knows of other nodes
            last = min(last, first + left - 1)
            if first <= last:
                found.append(m.Range(node, first, last))
                left -= last - first + 1
        return found

    def _count_of(self, node: int) -> int:
        retired = self.retired.get(node)
        return self._counts.counts.get(node, 0) if retired is None else retired.count

    # -- who wants them ------------------------------------------------------------------------

    def add_maker(self, node: int, payers: tuple[Payer, ...]) -> None:
        """A node is new: it is charged to those who asked for it until somebody wants it."""
        self.makers[node] = payers
        for account, _ in payers:
            account.made += 1

    def settle(self, node: int) -> None:
        """A node is wanted, or gone: it is not new any more."""
        for account, _ in self.makers.pop(node, ()):
            account.made -= 1

    def want(self, node: int) -> None:
        self.unwanted.pop(node, None)
        self.settle(node)

    def find_unwanted(self, wanted: Iterable[int]) -> None:
        """After a start: nodes of a life before that nobody may want any more."""
        there = self._graph.nodes.keys() - wanted - self.unwanted.keys()
        self.unwanted |= dict.fromkeys(there, self._context.now)

    # -- how they go ---------------------------------------------------------------------------

    def retire_unwanted(self) -> None:
        """Retire nodes that were unwanted for so long that nobody can be about to want them."""
        late = self._context.now - 2 * self._context.times.expire
        old = {node for node, since in self.unwanted.items() if since < late}
        if old:
            old.difference_update(*(record.matched for record in self._queue.records))
        for node in sorted(old):
            del self.unwanted[node]
            with self._problems.survive(f"forget node {node}"):
                self.retire(node)

    def forget_retired(self, done: int) -> None:
        """Forget retired nodes when nobody can ask for their numbers any more: nobody needs what
        came up to `done`, and subscribers that are away for longer are told that they missed
        something."""
        late = self._context.now - 3 * self._context.times.expire
        many = len(self.retired) - self._context.limits.all_new_nodes
        for at, (node, one) in enumerate([*self.retired.items()]):
            if at < many or (one.since < late and one.latest <= done):
                del self.retired[node]

    def retire(self, node: int) -> None:
        """Take out a node that nobody wants."""
        self.settle(node)
        self._interests.remove(node)
        self._claims.remove(node)
        above = {*self._graph.ancestors(node)}
        self._graph.remove(node)
        self._caches.clear()
        counts = self._counts
        count, latest = counts.counts.get(node, 0), counts.latest.get(node, 0)
        self.retired[node] = Retired(above, count, latest, self._context.now)
        self._queue.drop_node(node)
        counts.remove(node)
