"""Beats: regular messages with totals and digests that show neighbours whether they missed
messages.

    each beat       the totals that changed, a digest of the neighbour's subscriptions
    now and then    a digest of its edges, slice by slice, for a few neighbours at a time

Neighbours without subscriptions get one beat in four, as a keep-alive. Any client can connect
without subscribing, so there may be thousands of such neighbours. These neighbours get their beats
a few at a time, so that notifications need not wait until all of these beats are sent.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from tidings.routing.forwarding.label_graph import LabelGraph
from tidings.routing.forwarding.neighbours.context import Context, Name, Neighbour
from tidings.routing.forwarding.neighbours.sums import Sums
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.digests import mix_edges

SELDOM = 4  # neighbours without subscriptions get one beat in this many
FEW = 32  # each call sends beats to this many neighbours without subscriptions, plus a share of all
SHARES = 64  # this share is one in SHARES neighbours, unless the caller gives another
SLICE = 1000  # nodes whose edges are in the digest of one beat
GRAPH = 5000  # nodes in one Graph message


class Beats:
    """Sends the beats and the graphs of one state machine to its neighbours."""

    def __init__(self, context: Context, graph: LabelGraph[Name], sums: Sums) -> None:
        self._context = context
        self._graph = graph
        self._sums = sums
        self._turns: deque[tuple[Name, Neighbour]] = deque()  # neighbours take turns to get digests
        # each neighbour, with the time of its last beat or an earlier time; the count makes entries
        # unique
        self._beaten: list[tuple[float, int, Name, Neighbour]] = []
        self._count = 0
        self._round: float | None = None  # when `send_all` was last called

    def add(self, name: Name, known: Neighbour) -> None:
        """Add a neighbour."""
        self._turns.append((name, known))
        self._put(name, known)

    def send_all(self, changed: dict[int, int]) -> None:
        """Send beats to all neighbours that have subscriptions, and to some of them a digest of
        edges. `changed` has the new totals. Neighbours without subscriptions get beats less often;
        `keep_alive` sends them."""
        due = self._take_turns()
        self._round = now = self._context.now
        for name, known in self._context.neighbours.items():
            if known.nodes:
                known.beaten = now
                self.send(name, changed, edges=name in due)
        self.keep_alive()

    def keep_alive(self, shares: int = SHARES) -> None:
        """Send beats to a few neighbours without subscriptions, if their beats were due when
        `send_all` was last called. Without a call to `send_all`, no beats become due: if no beats
        come from above, the neighbours must notice that."""
        if self._round is None:
            return
        before = self._round - (SELDOM - 0.5) * self._context.times.beat
        left = FEW + len(self._context.neighbours) // shares
        while left and self._beaten and self._beaten[0][0] <= before:
            at, _, name, known = heappop(self._beaten)
            if self._context.neighbours.get(name) is not known:
                continue
            if known.beaten <= at:
                known.beaten = self._round
                self.send(name, {})
                left -= 1
            self._put(name, known)

    def _put(self, name: Name, known: Neighbour) -> None:
        self._count += 1
        heappush(self._beaten, (known.beaten, self._count, name, known))

    def send(self, name: Name, changed: dict[int, int], *, edges: bool = False) -> None:
        sums = self._sums
        sums.update()
        known = self._context.neighbours[name]
        few, many = (changed, known.nodes) if len(changed) < len(known.nodes) else \
            (known.nodes, changed)  # fmt: skip
        totals = {node: changed[node] for node in few if node in many}
        beat = m.Beat(
            self._context.epoch, sums.serial_for(name), totals, known.tally.digest(),
            known.tally.sum, self._digest_edges(known, name) if edges else None,
            sums.highest_seen(), sums.is_behind_for(name),
        )  # fmt: skip
        self._context.send(name, beat)

    def send_graph(self, name: Name) -> None:
        """Send a neighbour the graph of all nodes that it is subscribed to."""
        known, sums = self._context.neighbours[name], self._sums
        serial = sums.serial_for(name)
        nodes = self._graph.in_order(known.nodes)
        for at in range(0, max(len(nodes), 1), GRAPH):
            part = nodes[at : at + GRAPH]
            parents = {node: self._graph.parents_for(node, name) for node in part}
            totals = {node: sums.total(node) for node in part}
            epoch = self._context.epoch
            self._context.send(name, m.Graph(epoch, serial, parents, totals, sums.highest_seen()))

    def _take_turns(self) -> set[Name]:
        """The neighbours that get a digest of edges with this beat: only a few, to save time."""
        due: set[Name] = set()
        work = 0
        for _ in range(len(self._turns)):
            name, known = self._turns.popleft()
            if self._context.neighbours.get(name) is known:
                self._turns.append((name, known))
                due.add(name)
                work += min(len(known.nodes), SLICE)
                if work >= SLICE:
                    break
        return due

    def _digest_edges(self, known: Neighbour, name: Name) -> m.Edges:
        """A digest of the edges in the neighbour's next slice of nodes."""
        parts = 1 + len(known.nodes) // SLICE
        some = m.Slice(known.part % parts, parts)
        known.part += 1
        mixed = 0
        for node in filter(some.has, known.nodes):
            if node in self._graph:
                mixed ^= mix_edges(node, self._graph.parents_for(node, name))
        return m.Edges(some, mixed)
