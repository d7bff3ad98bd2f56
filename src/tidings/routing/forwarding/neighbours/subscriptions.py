"""Which neighbour wants which node.

Invariant: a neighbour is subscribed to a node in the graph when it wants the node and the graph has
it; those that want one that is not there yet wait. What a neighbour wants is kept as a set with its
digest, so that both sides can find out cheaply that one of them missed something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidings.routing.forwarding.graph_caches import GraphCaches
from tidings.routing.forwarding.label_graph import LabelGraph
from tidings.routing.forwarding.neighbours.charges import Charges
from tidings.routing.forwarding.neighbours.context import Context, Name
from tidings.routing.forwarding.neighbours.sums import Sums
from tidings.routing.protocol import messages as m


class Subscriptions:
    """Of all neighbours of one machine, in its graph."""

    def __init__(
        self,
        context: Context,
        charges: Charges,
        graph: LabelGraph[Name],
        caches: GraphCaches,
        total: Callable[[int], int],
    ) -> None:
        self._context = context
        self._charges = charges
        self._neighbours = context.neighbours
        self._graph = graph
        self._caches = caches
        self.wants: dict[int, set[Name]] = {}
        """The neighbours that want a node."""
        self.sums = Sums(context, self.wants, total)

    # -- one neighbour and one node ------------------------------------------------------------

    def add(self, name: Name, node: int) -> bool:
        """A neighbour wants a node; False if it is known to. It is told where the node belongs, as
        soon as the graph has it."""
        known = self._neighbours[name]
        if node in known.nodes:
            if node in self._graph and self._charges.may_ask(name):  # it was told, and missed it
                self._tell(node, name)
            return False
        known.nodes.add(node)
        known.tally.add(node, self.sums.total_counted(node))
        self.wants.setdefault(node, set()).add(name)
        if node in self._graph:
            self._subscribe(node, name)
        else:
            known.unknown.add(node)
        return True

    def remove(self, name: Name, node: int) -> bool:
        """A neighbour does not want a node any more; True if it was the last that did."""
        if node not in self._neighbours[name].nodes:
            return False
        self._remove(name, node)
        return node not in self.wants

    def _remove(self, name: Name, node: int) -> None:
        known = self._neighbours[name]
        known.nodes.remove(node)
        known.unknown.discard(node)
        known.tally.remove(node, self.sums.total_counted(node))
        if self._graph.unsubscribe(node, name):
            self._caches.clear()
        wants = self.wants[node]
        wants.remove(name)
        if not wants:
            del self.wants[node]

    def _subscribe(self, node: int, name: Name) -> None:
        self._graph.subscribe(node, name)
        self._caches.clear()
        self._tell(node, name)

    def _tell(self, node: int, name: Name) -> None:
        """Say where a node belongs in the graph of a neighbour."""
        parents, children = self._graph.around(node, name)
        self._charges.charge(name, 1 + len(parents) + len(children))
        total, serial = self.sums.total(node), self.sums.serial_of(node)
        epoch, seen = self._context.epoch, self.sums.seen()
        self._context.send(name, m.Setup(epoch, node, parents, children, total, serial, seen))

    # -- all that want a node ------------------------------------------------------------------

    def serve_waiting(self, node: int) -> None:
        """Subscribe those that want a node, which is in the graph now."""
        for name in sorted(self.wants.get(node, ()), key=str):
            self._neighbours[name].unknown.discard(node)
            if name not in self._graph.nodes[node].subscribers:
                self._subscribe(node, name)

    def refuse_all(self, node: int) -> None:
        """Tell those that want a node that there is none."""
        for name in sorted(self.wants.get(node, ()), key=str):
            self._remove(name, node)
            self._context.send_single(name, m.Refuse(self._context.epoch, (node,)))

    # -- limits --------------------------------------------------------------------------------

    def admit(self, name: Name, nodes: Iterable[int], all_unknown: int) -> list[int]:
        """The nodes that a neighbour may want, of those that it says it wants. `all_unknown` nodes
        are wanted and not in the graph. The rest is left out: the neighbour is asked for them again
        when it waits for fewer."""
        known, limits, beyond = self._neighbours[name], self._context.limits, self._context.beyond
        found, unknown = [], len(known.unknown)
        most = min(limits.unknown, unknown + limits.all_unknown - all_unknown)
        left = limits.nodes - len(known.nodes)
        for node in nodes:
            if node in known.nodes:
                found.append(node)
                continue
            new = node not in self._graph
            if left <= 0 or (new and unknown >= most):
                known.left_out = known.left_out or left > 0
                beyond["nodes" if left <= 0 else "unknown"] += 1
                continue
            unknown += new
            left -= 1
            found.append(node)
        return found

    def ask_for_left_out(self, all_unknown: int) -> None:
        """Have neighbours repeat what was left out, when there is room for it."""
        limits = self._context.limits
        room = 2 * all_unknown <= limits.all_unknown
        for name, known in self._neighbours.items():
            if known.left_out and room and 2 * len(known.unknown) <= limits.unknown:
                known.left_out = False
                self._context.send(name, m.Which(self._context.epoch))

    def clear(self) -> None:
        """Nothing that is known of nodes is right any more."""
        self._graph.clear()
        self.wants.clear()
        self.sums.clear()
        for known in self._neighbours.values():
            known.nodes.clear()
            known.unknown.clear()
            known.tally.clear()
        self._caches.clear()
