"""The side of a router that faces its neighbours: what they want, what they are sent.

Invariant: a neighbour is subscribed to a node in the graph when it wants the node and the graph has
it; those that want one that is not there yet wait. What a neighbour wants is kept as a set with its
digest, so that both sides can find out cheaply that one of them missed something.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from tidings.routing import messages as m
from tidings.routing.digests import edges_digest, mix
from tidings.routing.label_graph import Label, LabelGraph
from tidings.routing.ways import Forwarding, Labels, Way, ways_of

if TYPE_CHECKING:
    from tidings.routing.cache import Cache
    from tidings.routing.router import Times

Name = Hashable
Sent = tuple[Name, m.Message]
CHUNK = 64  # notifications of one answer
MOST_WAYS = 100_000  # headers of which it is known where they go


class Neighbour(msgspec.Struct):
    """What is known of a neighbour below."""

    heard: float
    nodes: set[int] = msgspec.field(default_factory=set)
    mixed: int = 0  # the digest of the nodes
    done: int = 0  # the serial up to which it needs nothing
    edges: int | None = None  # the digest of its graph, while nothing changes


class Request(msgspec.Struct, frozen=True):
    """A question that was passed on."""

    neighbour: Name
    number: int  # by which the neighbour knows it
    expires: float


class Downstream(ABC):
    """What routers and rendezvous points have in common."""

    def __init__(self, name: str, times: Times, cache: Cache, life: int) -> None:
        self.name = name
        self.times = times
        self.cache = cache
        self.forwarding = Forwarding()
        self.graph: LabelGraph[Name] = LabelGraph()
        self.neighbours: dict[Name, Neighbour] = {}
        self.wants: dict[int, set[Name]] = {}  # who wants a node
        self.epoch = 0
        self.serial = 0  # up to which the totals of nodes are right,
        self.lagging: dict[int, int] = {}  # but for these, which are right up to another
        self.begun: float | None = None  # when the first message came
        self.now = 0.0
        self.ignored = 0  # messages that made no sense
        self.version = 0  # of the graph: it counts its changes
        self._requests: dict[int, Request] = {}
        # an answer to a question of a life before must not be taken for one to this
        self._next_request = ((life & 0x7FFFFFFF) << 32) + 1
        self._publishers: dict[str, Name] = {}
        self._ways: dict[Labels, dict[Name, Way]] = {}
        self._out: list[Sent] = []

    # -- what subclasses say -------------------------------------------------------------------

    @abstractmethod
    def wanted(self, node: int) -> None:
        """A neighbour wants a node."""

    @abstractmethod
    def unwanted(self, node: int) -> None:
        """No neighbour does any more."""

    @abstractmethod
    def total(self, node: int) -> int:
        """How many notifications matched a node."""

    @abstractmethod
    def ask_above(self, message: m.Message) -> None:
        """Pass a question on."""

    # -- sending -------------------------------------------------------------------------------

    def send(self, to: Name, message: m.Message) -> None:
        self._out.append((to, message))

    def taken(self) -> list[Sent]:
        out, self._out = self._out, []
        return out

    def forward(self, message: m.Notification) -> None:
        """Give a notification to every neighbour that has a label at one of its marks."""
        for neighbour, way in self.ways(tuple(mark.label for mark in message.marks)).items():
            self.send(neighbour, way.of(message))

    def ways(self, labels: Labels) -> dict[Name, Way]:
        """What each neighbour gets of notifications with some labels; what was asked once is known
        until the graph changes."""
        found = self._ways.get(labels)
        if found is None:
            if len(self._ways) >= MOST_WAYS:
                self._ways.clear()
            found = self._ways[labels] = ways_of(self.graph, labels, self.forwarding)
        return found

    def graph_changed(self) -> None:
        self.version += 1
        self._ways.clear()
        for neighbour in self.neighbours.values():
            neighbour.edges = None

    def beat(self, changed: dict[int, int], *, edges: bool) -> None:
        """Tell every neighbour where things stand."""
        for name in self.neighbours:
            self.beat_to(name, changed, edges=edges)

    def beat_to(self, name: Name, changed: dict[int, int], *, edges: bool) -> None:
        known = self.neighbours[name]
        totals = {node: total for node, total in changed.items() if node in known.nodes}
        beat = m.Beat(
            self.epoch, self._serial_for(name), totals, m.Digest(len(known.nodes), known.mixed),
            sum(map(self.total, known.nodes)), self._edges_of(name) if edges else None,
        )  # fmt: skip
        self.send(name, beat)

    def _serial_for(self, name: Name) -> int:
        """Up to which the totals of a neighbour's nodes are right."""
        nodes = self.neighbours[name].nodes
        late = (serial for node, serial in self.lagging.items() if node in nodes)
        return min(self.serial, *late, self.serial)

    # -- receiving -----------------------------------------------------------------------------

    def from_below(self, sender: Name, message: m.Message) -> None:
        """Take what a neighbour says."""
        handler = self._UP.get(type(message))
        if handler is None:
            self.ignored += 1
            return
        known = self.neighbours.get(sender)
        if known is None:
            known = self.neighbours[sender] = Neighbour(self.now)
        known.heard = self.now
        if isinstance(message, m.Up) and message.epoch != self.epoch:
            self.other_epoch(sender, message.epoch)
            if message.epoch != self.epoch:
                return
        handler(self, sender, message)

    def other_epoch(self, sender: Name, _: int) -> None:
        """A neighbour speaks of another epoch: it is told of this one."""
        self.beat_to(sender, {}, edges=False)

    def begin_epoch(self, epoch: int) -> None:
        """Forget everything that has a name of the old one, and tell the neighbours."""
        self.epoch = epoch
        self.serial = 0
        self.lagging.clear()
        self.graph = LabelGraph()
        self.wants.clear()
        self.cache.clear()
        self._requests.clear()
        for neighbour in self.neighbours.values():
            neighbour.nodes.clear()
            neighbour.mixed = neighbour.done = 0
        self.graph_changed()
        self.beat({}, edges=False)

    def _on_subscribe(self, sender: Name, message: m.Subscribe) -> None:
        for node in message.nodes:
            self._subscribe(sender, node)

    def _on_unsubscribe(self, sender: Name, message: m.Unsubscribe) -> None:
        for node in message.nodes:
            self._unsubscribe(sender, node)
        self.send(sender, m.Gone(self.epoch, message.nodes))

    def _on_resubscribe(self, sender: Name, message: m.Resubscribe) -> None:
        known = self.neighbours[sender]
        known.done = max(known.done, message.done)
        if message.wanted != m.Digest(len(known.nodes), known.mixed):
            self.send(sender, m.Which(self.epoch))

    def _on_wanted(self, sender: Name, message: m.Wanted) -> None:
        known, wanted = self.neighbours[sender], set(message.nodes)
        for node in known.nodes - wanted:
            self._unsubscribe(sender, node)
        for node in sorted(wanted - known.nodes):
            self._subscribe(sender, node)

    def _on_redraw(self, sender: Name, _: m.Redraw) -> None:
        nodes = [node for node in self.neighbours[sender].nodes if node in self.graph]
        parents = {node: self.parents_for(node, sender) for node in nodes}
        totals = {node: self.total(node) for node in nodes}
        self.send(sender, m.Graph(self.epoch, self._serial_for(sender), parents, totals))

    def _on_publish(self, sender: Name, message: m.Publish) -> None:
        self._publishers[message.publisher] = sender
        self.ask_above(message)

    def _on_question(self, sender: Name, message: m.Ask | m.Count) -> None:
        number = self._remember(sender, message.request)
        self.ask_above(msgspec.structs.replace(message, request=number))

    def _on_recover(self, sender: Name, message: m.Recover) -> None:
        found, rest = self.cache.find(message.ranges)
        for at in range(0, len(found), CHUNK):
            part = tuple(found[at : at + CHUNK])
            self.send(sender, m.Recovered(self.epoch, message.request, part))
        if rest:
            number = self._remember(sender, message.request)
            self.ask_above(m.Recover(self.epoch, number, tuple(rest)))
        else:
            self.send(sender, m.Settled(self.epoch, message.request))

    def _remember(self, sender: Name, number: int) -> int:
        mine = self._next_request
        self._next_request += 1
        self._requests[mine] = Request(sender, number, self.now + self.times.request)
        return mine

    def pass_down(self, message: m.Message) -> None:
        """Give an answer to whoever asked."""
        if isinstance(message, m.Published):
            to = self._publishers.get(message.publisher)
            if to is not None:
                self.send(to, message)
            return
        if not isinstance(message, (m.Answer, m.Counted, m.Recovered, m.Settled)):
            self.ignored += 1
            return
        request = self._requests.get(message.request)
        if request is None:
            return
        if not isinstance(message, m.Recovered):
            del self._requests[message.request]
        else:
            for notification in message.notifications:
                self.cache.put(notification)
        answer = msgspec.structs.replace(message, request=request.number)
        self.send(request.neighbour, answer)

    # -- who wants what ------------------------------------------------------------------------

    def _subscribe(self, sender: Name, node: int) -> None:
        known = self.neighbours[sender]
        if node not in known.nodes:
            known.nodes.add(node)
            known.mixed ^= mix(node)
            self.wants.setdefault(node, set()).add(sender)
            if node in self.graph:
                self._admit(node, sender)
            self.wanted(node)
        elif node in self.graph:  # it was told, and did not hear
            self._tell(node, sender)

    def _unsubscribe(self, sender: Name, node: int) -> None:
        known = self.neighbours[sender]
        if node not in known.nodes:
            return
        known.nodes.remove(node)
        known.mixed ^= mix(node)
        if self.graph.unsubscribe(node, sender):
            self.graph_changed()
        wants = self.wants[node]
        wants.remove(sender)
        if not wants:
            del self.wants[node]
            self.unwanted(node)

    def serve_waiting(self, node: int) -> None:
        """A node is in the graph: whoever wants it is subscribed."""
        for name in sorted(self.wants.get(node, ()), key=str):
            if name not in self.graph.nodes[node].subscribers:
                self._admit(node, name)

    def refuse_all(self, node: int) -> None:
        """Whoever wants a node is told that there is none."""
        for name in sorted(self.wants.get(node, ()), key=str):
            self._unsubscribe_quietly(name, node)
            self.send(name, m.Refuse(self.epoch, (node,)))

    def _unsubscribe_quietly(self, name: Name, node: int) -> None:
        known = self.neighbours[name]
        known.nodes.remove(node)
        known.mixed ^= mix(node)
        if self.graph.unsubscribe(node, name):
            self.graph_changed()
        self.wants[node].remove(name)
        if not self.wants[node]:
            del self.wants[node]

    def _admit(self, node: int, name: Name) -> None:
        self.graph.subscribe(node, name)
        self.graph_changed()
        self._tell(node, name)

    def _tell(self, node: int, name: Name) -> None:
        parents, children = self.graph.around(node, name)
        total, serial = self.total(node), self.lagging.get(node, self.serial)
        self.send(name, m.Setup(self.epoch, node, parents, children, total, serial))

    def parents_for(self, node: int, name: Name) -> Label:
        """The parents that a node has in the graph of a neighbour that is subscribed to it."""
        nodes = self.graph.nodes
        above = {nodes[parent].labels.get(name, ()) for parent in nodes[node].parents}
        return self.graph.lowest(one for label in above for one in label)

    def _edges_of(self, name: Name) -> int:
        known = self.neighbours[name]
        if known.edges is None:
            nodes = (node for node in known.nodes if node in self.graph)
            known.edges = edges_digest({node: self.parents_for(node, name) for node in nodes})
        return known.edges

    # -- what time brings ----------------------------------------------------------------------

    def expire(self) -> None:
        """Drop neighbours that are silent, and questions that nobody answers."""
        self.begun = self.now if self.begun is None else self.begun
        for name, known in [*self.neighbours.items()]:
            if self.now - known.heard > self.times.expire:
                self.drop(name)
        late = [number for number, one in self._requests.items() if one.expires < self.now]
        for number in late:
            del self._requests[number]

    def drop(self, name: Name) -> None:
        """A neighbour is gone for good."""
        known = self.neighbours.get(name)
        if known is not None:
            for node in [*known.nodes]:
                self._unsubscribe(name, node)
            del self.neighbours[name]

    def done(self) -> int:
        """The serial up to which nobody below needs anything. Whoever was just started does not
        know yet who is there."""
        if self.begun is None or self.now - self.begun < 2 * self.times.expire:
            return 0
        return min((known.done for known in self.neighbours.values()), default=self.serial)

    _UP: ClassVar[dict[type, Callable[[Any, Any, Any], None]]] = {
        m.Subscribe: _on_subscribe, m.Unsubscribe: _on_unsubscribe, m.Wanted: _on_wanted,
        m.Resubscribe: _on_resubscribe, m.Redraw: _on_redraw, m.Publish: _on_publish,
        m.Ask: _on_question, m.Count: _on_question, m.Recover: _on_recover,
    }  # fmt: skip
