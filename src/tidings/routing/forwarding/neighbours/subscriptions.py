"""Which neighbour wants which node.

Invariant: a neighbour is subscribed to a node if and only if it wants the node and the graph
contains the node. A neighbour that wants a node outside the graph waits until the node is in the
graph. The nodes that a neighbour wants are kept as a set with a digest. By comparing digests, the
two ends of a link notice cheaply if one of them missed a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidings.routing.forwarding.graph_caches import GraphCaches
from tidings.routing.forwarding.label_graph import Label, LabelGraph
from tidings.routing.forwarding.neighbours.context import Context, Name
from tidings.routing.forwarding.neighbours.node_charges import Charges
from tidings.routing.forwarding.neighbours.sums import Sums
from tidings.routing.protocol import messages as m


class Subscriptions:
    """The subscriptions of all neighbours of one state machine."""

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

    def add(self, name: Name, node: int, *, placed: bool = False) -> bool:
        """Record that a neighbour wants a node; return False if that is known already. As soon as
        the graph contains the node, the neighbour is told the node's place, or only its total if
        the neighbour knows the place (`placed`)."""
        known = self._neighbours[name]
        if node not in self._graph:
            (known.placed.add if placed else known.placed.discard)(node)
        if node in known.nodes:
            if node in self._graph and self._charges.may_ask(name):  # Setup was lost
                self._tell(node, name, placed=placed)
            return False
        known.nodes.add(node)
        known.tally.add(node, self.sums.total_counted(node))
        self.wants.setdefault(node, set()).add(name)
        if node in self._graph:
            self._subscribe(node, name, placed=placed)
        else:
            known.unknown.add(node)
        return True

    def remove(self, name: Name, node: int) -> bool:
        """Record that a neighbour no longer wants a node; return True if no other neighbour wants
        it."""
        if node not in self._neighbours[name].nodes:
            return False
        self._remove(name, node)
        return node not in self.wants

    def _remove(self, name: Name, node: int) -> None:
        known = self._neighbours[name]
        known.nodes.remove(node)
        known.unknown.discard(node)
        known.placed.discard(node)
        known.tally.remove(node, self.sums.total_counted(node))
        if self._graph.unsubscribe(node, name):
            self._caches.change(node)
        wants = self.wants[node]
        wants.remove(name)
        if not wants:
            del self.wants[node]

    def _subscribe(self, node: int, name: Name, *, placed: bool) -> None:
        self._graph.subscribe(node, name)
        self._caches.change(node)
        self._tell(node, name, placed=placed)

    def _tell(self, node: int, name: Name, *, placed: bool) -> None:
        """Tell a neighbour the place of a node in the neighbour's own graph."""
        parents, children = ((), ()) if placed else self._graph.around(node, name)
        self._charges.charge(name, 1 + len(parents) + len(children))
        self._send_setup(node, name, parents, children, placed=placed)

    def _send_setup(
        self, node: int, name: Name, parents: Label, children: Label, *, placed: bool = False
    ) -> None:
        total, serial = self.sums.total(node), self.sums.serial_of(node)
        epoch, seen = self._context.epoch, self.sums.highest_seen()
        setup = m.Setup(epoch, node, parents, children, total, serial, seen, placed)
        self._context.send(name, setup)

    # -- all neighbours that want a node -------------------------------------------------------

    def serve_waiting(self, node: int) -> None:
        """Subscribe the neighbours that waited for a node, which is now in the graph."""
        for name in sorted(self.wants.get(node, ()), key=str):
            known = self._neighbours[name]
            known.unknown.discard(node)
            placed = node in known.placed
            known.placed.discard(node)
            if not self._graph.is_subscribed(node, name):
                self._subscribe(node, name, placed=placed)

    def tell_again(self, node: int) -> None:
        """Tell the neighbours the place of a node whose edges were wrong here, and so in their
        graphs too. The neighbours would notice the error at the next beat, but until then they
        would miss notifications of the nodes below the node."""
        for name in sorted(self.wants.get(node, ()), key=str):
            if self._graph.is_subscribed(node, name):
                parents, children = self._graph.around(node, name)
                if parents or children:
                    self._send_setup(node, name, parents, children)

    def refuse_all(self, node: int) -> None:
        """Tell each neighbour that wants this node: the node does not exist."""
        for name in sorted(self.wants.get(node, ()), key=str):
            self._remove(name, node)
            self._context.send_single(name, m.Refuse(self._context.epoch, (node,)))

    # -- limits --------------------------------------------------------------------------------

    def admit(self, name: Name, nodes: Iterable[int], all_unknown: int) -> list[int]:
        """Those of `nodes` that a neighbour may want. `all_unknown` is the number of wanted
        nodes that are not in the graph. If a node is left out because too many wanted nodes are not
        in the graph, the neighbour is asked to repeat its nodes as soon as there is room."""
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
        """Ask neighbours to repeat the nodes that were left out, if there is room for them."""
        limits = self._context.limits
        room = 2 * all_unknown <= limits.all_unknown
        for name, known in self._neighbours.items():
            if known.left_out and room and 2 * len(known.unknown) <= limits.unknown:
                known.left_out = False
                self._context.send(name, m.Which(self._context.epoch))

    def clear(self) -> None:
        """Forget all nodes and subscriptions, because they belong to a life that is over."""
        self._graph.clear()
        self.wants.clear()
        self.sums.clear()
        for known in self._neighbours.values():
            known.nodes.clear()
            known.unknown.clear()
            known.placed.clear()
            known.tally.clear()
            known.granted.clear()  # another life may use the same numbers for other nodes
        self._caches.clear()
