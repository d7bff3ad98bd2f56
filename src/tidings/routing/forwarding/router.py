"""A router takes messages and the time, returns messages, and never looks at content.

              upstream
                 |        Subscribe ... ^      v Setup, Beat, Notification ...
              [router]    held: the state of each node, see transitions.py
              /  |   \\     graph: labels, see label_graph.py
         neighbours       cache: the latest notifications, for neighbours that missed some

All state of a router is soft: if it forgets something, its neighbours repeat it within a few beats.
A router subscribes upstream to every node of the content graph that a neighbour below it wants. The
router above, or a preprocessor (locating.py), says where such a node belongs in the graph.
Notifications from above are forwarded by label, and kept for a while.

Nothing here does I/O or reads a clock: `receive`, `tick` and `join_upstream` take the current time
and return the messages to send.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from tidings.model import GraphError
from tidings.routing.forwarding.cache import Cache
from tidings.routing.forwarding.downstream import Downstream
from tidings.routing.forwarding.locating import LOCATOR, Locating
from tidings.routing.forwarding.neighbours import Name, Sent, ask_for_owners
from tidings.routing.forwarding.transitions import Action, Event, NodeState, next_step
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.digests import Tally, mix_edges
from tidings.routing.protocol.limits import Limits
from tidings.routing.protocol.lineage import LineageVerdict
from tidings.routing.protocol.times import Times


class WantedNode(msgspec.Struct):
    """A node that a neighbour below wants, or from which the router is unsubscribing."""

    state: NodeState = NodeState.ABSENT
    since: float = 0.0  # when the node was last requested, or its state last changed
    total: int = 0


PASSING = (
    NodeState.PENDING,
    NodeState.INTERRUPTED,
    NodeState.LEAVING,
    NodeState.RETURNING,
)
"""Transient states. The nodes in each of these states, usually few, are kept in a set."""
REQUESTED = (NodeState.PENDING, NodeState.LEAVING, NodeState.RETURNING)
"""The states in which the node above must answer."""
JOINED = (NodeState.ACTIVE, NodeState.INTERRUPTED)
WANTED = 50_000  # nodes in one Wanted message


class Router(Downstream):
    """A router below the rendezvous point."""

    def __init__(
        self,
        name: str,
        upstream: Name,
        times: Times | None = None,
        cache: Cache | None = None,
        life: int = 1,
        limits: Limits | None = None,
    ) -> None:
        """`life` is a new random number at each start."""
        self.held: dict[int, WantedNode] = {}
        held = self.held  # `total` must not use self: a cycle would keep old routers

        def total(node: int) -> int:
            known = held.get(node)
            return 0 if known is None else known.total

        cache = Cache() if cache is None else cache
        super().__init__(name, times or Times(), cache, life, limits, total)
        self.upstream = upstream
        self.sums.is_behind = True  # until the first beat
        self._mine = Tally()  # the tally of the wanted nodes
        self._by_state: dict[NodeState, set[int]] = {state: set() for state in PASSING}
        self.heard = 0.0  # when the last beat arrived
        self._resubscribed = float("-inf")
        self._checked = self._said_wanted = float("-inf")
        self.locating = Locating()
        self._highest = 0  # the highest number among the nodes that were put into the graph

    # -- messages and time ---------------------------------------------------------------------

    def receive(self, sender: Name, message: m.Message, now: float) -> list[Sent]:
        """Handle a message from a neighbour; return the messages to send now."""
        self.context.now = now
        if isinstance(message, m.Down):
            if sender != self.upstream:
                self.ignored += 1
            elif isinstance(message, m.Lineage):
                self._judge(message)
            elif self.standing.accepts(message.epoch, now):
                handler = self._DOWN.get(type(message))
                if handler is not None:
                    handler(self, message)
                else:
                    self.pass_down(message)
            self._trace()
        elif isinstance(message, m.Skipped):
            if sender == self.upstream:
                self._pass_on_skipped()
        elif sender != self.upstream:
            self.receive_from_below(sender, message)
        return self.drain_outgoing()

    def join_upstream(self, now: float) -> list[Sent]:
        """Start to use a new link to the node above: ask for the lineage, and send all wanted
        nodes."""
        self.context.now = now
        self.begin_again()
        return self.drain_outgoing()

    def begin_again(self) -> None:
        """Send all wanted nodes to the node above, and tell the neighbours that notifications may
        be missing."""
        self._pass_on_skipped()
        for node in sorted(self._by_state[NodeState.RETURNING]):  # the old request gets no answer
            self._step(node, Event.GONE)
        self._trace(anyway=True)
        self._say_wanted()
        self._resubscribe()

    def take_places(self, asked: m.Locate, answer: m.Located | None, now: float) -> list[Sent]:
        """Handle the answer of a preprocessor to a question that was sent to LOCATOR. `answer` is
        None if there was no answer."""
        self.context.now = now
        if asked.epoch == self.epoch:
            for node, placed in self.locating.take(asked, answer):
                held = self.held.get(node)
                if held is not None and held.state is NodeState.PENDING:
                    held.since = now
                    self._subscribe_above(node, placed=placed)
        return self.drain_outgoing()

    def note_passed(self, serial: int) -> None:
        """Record that other code has forwarded the notifications of this life up to a serial."""
        self.standing.note_serial(serial)

    def tick(self, now: float) -> list[Sent]:
        """Do the work that is due. Call this at least every `retry` seconds."""
        self.context.now = now
        self.subscriptions.ask_for_left_out(self.count_unknown())
        self._trace()
        if now - self._checked >= self.times.retry:
            self._checked = now
            self.expire()
            self._check_silence()
        if now - self._resubscribed >= self.times.resubscribe:
            self._resubscribe()
        return self.drain_outgoing()

    def _trace(self, *, anyway: bool = False) -> None:
        question = self.standing.next_question(self.context.now, anyway=anyway)
        if question is not None:
            self.send(self.upstream, question)

    def _judge(self, message: m.Lineage) -> None:
        """Check a lineage: if it shows another life, continue in that life, with all state or with
        none. After a revision, edges and nodes may be wrong, so the state is dropped, and the
        neighbours send their wanted nodes again, as after a restart of this router."""
        before = self.standing.life
        verdict = self.standing.judge(message, self.context.now)
        if verdict is LineageVerdict.NOTHING:
            return
        self._pass_on_skipped()  # notifications of the new life were ignored until now
        self.locating.clear()
        is_revised = self.standing.lineage.is_revised_since(before)
        if verdict is LineageVerdict.BROKEN or (verdict is LineageVerdict.HELD and is_revised):
            self.begin_epoch()
        else:
            self.go_on(is_first=verdict is LineageVerdict.BEGUN)
        self._say_wanted()
        self._resubscribe()

    def begin_epoch(self) -> None:
        self.held.clear()
        self._mine.clear()
        self._highest = 0
        for nodes in self._by_state.values():
            nodes.clear()
        super().begin_epoch()

    # -- from below ----------------------------------------------------------------------------

    def want(self, node: int) -> None:
        self._step(node, Event.WANTED)

    def stop_wanting(self, node: int) -> None:
        self._step(node, Event.UNWANTED)

    def count_unknown(self) -> int:
        return len(self.held) - len(self.graph)  # nodes in the state LEAVING count too

    def ask_above(self, message: m.Message) -> None:
        self.send(self.upstream, message)

    def take_owner(self, router: Name, owner: str, nodes: Iterable[int]) -> None:
        self.ask_above(m.Whose(self.epoch, owner, tuple(nodes)))

    # -- from above ----------------------------------------------------------------------------

    def _on_setup(self, message: m.Setup) -> None:
        was_there = message.node in self.graph and self._is_mine(message.node)
        if message.placed and message.node not in self.graph and not self._put(message.node):
            return
        self._told = message
        self.standing.note_serial(max(message.serial, message.seen))
        if was_there:  # the node above had forgotten this node
            self._pass_on_skipped()
        if message.node in self.held:
            self.sums.lagging[message.node] = message.serial
        self._learn({message.node: message.total})
        self._step(message.node, Event.TOLD)

    def _put(self, node: int) -> bool:
        """Put a node into the graph, at the place that a preprocessor gave; return False if that is
        not possible. In that case, or if the place may lack nodes that the preprocessor did not
        know yet, ask the node above for the place."""
        held = self.held.get(node)
        if held is None or held.state is not NodeState.PENDING:
            return False
        place = self.locating.use(node)
        if place is None or place.version < self._highest:
            self._subscribe_above(node)
        if place is None:
            return False
        try:
            self.graph.insert(node, place.above, place.below)
        except GraphError:  # the preprocessor is wrong
            self._subscribe_above(node)
            return False
        return True

    def _on_gone(self, message: m.Gone) -> None:
        for node in message.nodes:
            self._step(node, Event.GONE)

    def _on_refuse(self, message: m.Refuse) -> None:
        for node in message.nodes:
            self._step(node, Event.REFUSED)

    def _on_notification(self, message: m.Notification) -> None:
        if message.serial:
            self.standing.note_serial(message.serial)
            self.cache.put(message)
        self.forward(message)

    def _on_beat(self, message: m.Beat) -> None:
        self.heard = self.context.now
        self.standing.note_serial(max(message.serial, message.seen))
        changed = self._learn(message.totals)
        agree = message.subscribed, message.sum
        self.sums.is_behind = message.behind or agree != (self._mine.digest(), self._mine.sum)
        if message.subscribed != self._mine.digest():
            if self.context.now - self._said_wanted >= self.times.retry:
                self._say_wanted()
        else:
            for node in [*self._by_state[NodeState.INTERRUPTED]]:
                self._step(node, Event.ACKNOWLEDGED)
            if message.sum != self._mine.sum:
                self.send(self.upstream, m.Redraw(self.epoch))
            else:
                self.sums.serial = message.serial
                for node in [*filter(self._is_joined, self.sums.lagging)]:
                    del self.sums.lagging[node]
                if message.edges is not None and self._edges_differ(message.edges):
                    self.send(self.upstream, m.Redraw(self.epoch))
        self.beats.send_all(changed)

    def _learn(self, totals: Mapping[int, int]) -> dict[int, int]:
        """Store new totals; return those that changed."""
        changed: dict[int, int] = {}
        for node, total in totals.items():
            held = self.held.get(node)
            if held is not None and total > held.total:
                self.sums.note_change(node, held.total)
                if held.state is not NodeState.LEAVING:
                    self._mine.sum += total - held.total
                held.total = changed[node] = total
        return changed

    def _pass_on_skipped(self) -> None:
        """Tell all neighbours that notifications may be missing."""
        self.sums.is_behind = True  # until a beat shows that all nodes on the way agree
        for name in self.neighbours:
            self.send(name, m.Skipped())

    def _is_mine(self, node: int) -> bool:
        """Is a node wanted?"""
        held = self.held.get(node)
        return held is not None and held.state is not NodeState.LEAVING

    def _is_joined(self, node: int) -> bool:
        """Is a node wanted, and has the node above answered the last request for it? Beats that the
        node above sent before that answer do not include the node."""
        held = self.held.get(node)
        return held is not None and held.state in JOINED

    def _on_which(self, _: m.Which) -> None:
        self._say_wanted()

    def _on_who(self, message: m.Who) -> None:
        for owner, nodes in ask_for_owners(self.context, message.nodes).items():
            self.ask_above(m.Whose(self.epoch, owner, tuple(nodes)))

    def _on_graph(self, message: m.Graph) -> None:
        self.standing.note_serial(max(message.serial, message.seen))
        mine = {node: parents for node, parents in message.parents.items() if node in self.held}
        for node in mine:
            if node not in self.graph:
                self.graph.insert(node, (), ())
        self._pass_on_skipped()  # earlier notifications may have had wrong labels
        changed = self._learn(message.totals)
        for node, parents in mine.items():
            self._told = m.Setup(self.epoch, node, parents, (), 0, 0)
            self._step(node, Event.TOLD)
        self.beats.send_all(changed)

    def _edges_differ(self, edges: m.Edges) -> bool:
        """Do the edges differ from those at the node above? False if nodes are being added or
        removed."""
        mixed = 0
        for node in filter(edges.slice.has, self.held):
            if not self._is_mine(node):
                continue
            parents = self.graph.parents(node) if node in self.graph else None
            if parents is None or not all(map(self._is_mine, parents)):
                return False
            mixed ^= mix_edges(node, parents)
        return mixed != edges.mixed

    # -- the states of a node ------------------------------------------------------------------

    def _step(self, node: int, event: Event) -> None:
        held = self.held.get(node)
        state = NodeState.ABSENT if held is None else held.state
        after, actions = next_step(state, event)
        if after is not NodeState.ABSENT:
            if held is None:
                held = self.held[node] = WantedNode()
                self.sums.lagging[node] = 0  # the total is not known yet
            held.state = after
            if after is not state or actions:
                held.since = self.context.now
        if held is not None and after is not state:
            self._change_state(node, state, after, held.total)
        for action in actions:
            self._ACTIONS[action](self, node)
        if after is NodeState.ABSENT:
            self.held.pop(node, None)

    def _change_state(self, node: int, before: NodeState, after: NodeState, total: int) -> None:
        """Update the sets and the tally when a node changes its state."""
        if before in self._by_state:
            self._by_state[before].remove(node)
        if after in self._by_state:
            self._by_state[after].add(node)
        gone = NodeState.ABSENT, NodeState.LEAVING
        if before in gone and after not in gone:
            self._mine.add(node, total)
        elif after in gone and before not in gone:
            self._mine.remove(node, total)

    def _ask(self, node: int) -> None:
        if node not in self.graph and self.locating.begin(node):
            self.context.send_single(LOCATOR, m.Locate(self.epoch, (node,)))
        else:
            self._subscribe_above(node)

    def _subscribe_above(self, node: int, *, placed: bool = False) -> None:
        self.context.send_single(self.upstream, m.Subscribe(self.epoch, (node,), placed))

    def _leave(self, node: int) -> None:
        self.sums.lagging.setdefault(node, self.serial)  # beats no longer include this node
        self.context.send_single(self.upstream, m.Unsubscribe(self.epoch, (node,)))

    def _join(self, node: int) -> None:
        told, is_new = self._told, node not in self.graph
        if self.graph.insert(node, told.parents, told.children) and not is_new:
            self.subscriptions.tell_again(node)
        self._highest = max(self._highest, node)
        self.locating.use(node)
        self.caches.change(node)
        self.subscriptions.serve_waiting(node)

    def _forget(self, node: int) -> None:
        self.sums.lagging.pop(node, None)
        self.locating.use(node)
        if node in self.graph:
            self.caches.change(node)
            self.graph.remove(node)

    def _refuse(self, node: int) -> None:
        self.subscriptions.refuse_all(node)

    def _check_silence(self) -> None:
        now = self.context.now
        open_ = [node for state in REQUESTED for node in self._by_state[state]]
        late = [node for node in open_ if now - self.held[node].since > self.times.retry]
        if now - self.heard > self.times.silent:
            late += [
                node
                for node, held in self.held.items()
                if held.state not in REQUESTED and now - held.since > self.times.silent
            ]
        for node in sorted(late):
            self._step(node, Event.SILENT)

    def _resubscribe(self) -> None:
        self._resubscribed = self.context.now
        self.send(self.upstream, m.Resubscribe(self.epoch, self._mine.digest(), self.serial_done()))

    def _say_wanted(self) -> None:
        self._said_wanted = self.context.now
        for wanted in self.list_wanted():
            self.send(self.upstream, wanted)

    def list_wanted(self) -> list[m.Wanted]:
        """Messages that list all wanted nodes."""
        mine = [*filter(self._is_mine, self.held)]
        parts = 1 + len(mine) // WANTED
        nodes = _slice_nodes(mine, parts)
        # slices can be very unequal, for example if all numbers are even
        while max(map(len, nodes)) > 2 * WANTED:
            parts += 1
            nodes = _slice_nodes(mine, parts)
        return [
            m.Wanted(self.epoch, tuple(sorted(some)), m.Slice(part, parts))
            for part, some in enumerate(nodes)
        ]

    _DOWN: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        m.Setup: _on_setup, m.Gone: _on_gone, m.Refuse: _on_refuse, m.Beat: _on_beat,
        m.Notification: _on_notification, m.Which: _on_which, m.Graph: _on_graph,
        m.Who: _on_who,
    }  # fmt: skip
    _ACTIONS: ClassVar[dict[Action, Callable[[Any, int], None]]] = {
        Action.ASK: _ask, Action.JOIN: _join, Action.LEAVE: _leave, Action.FORGET: _forget,
        Action.REFUSE: _refuse,
    }  # fmt: skip


def _slice_nodes(nodes: Iterable[int], parts: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(parts)]
    for node in nodes:
        found[node % parts].append(node)
    return found
