"""The side of a router that faces its neighbours: what they want, what they are sent.

Invariant: a neighbour is subscribed to a node in the graph when it wants the node and the graph has
it; those that want one that is not there yet wait. What a neighbour wants is kept as a set with its
digest, so that both sides can find out cheaply that one of them missed something.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from tidings.routing.forwarding.accounts import MANY, Account, Accounts, Payer
from tidings.routing.forwarding.claims import behind
from tidings.routing.forwarding.label_graph import Label, LabelGraph
from tidings.routing.forwarding.ways import Forwarding, Labels, Way, ways_of
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.digests import Tally, mix_edges
from tidings.routing.protocol.limits import Limits, work_of
from tidings.routing.protocol.lineage import Standing
from tidings.routing.protocol.message_merging import merged

if TYPE_CHECKING:
    from tidings.routing.forwarding.cache import Cache
    from tidings.routing.forwarding.router import Times

Name = Hashable
Sent = tuple[Name, m.Message]
MOST_NUMBERS = 4000  # that are looked for at once: who means well asks for fewer
CHUNK = 64  # notifications of one answer,
CHUNK_BYTES = 512 << 10  # and of their payloads and marks: a router does nothing else meanwhile,
MARK_BYTES = 32  # of which each is about so many
SELDOM = 4  # beats: every so many, those are told of one that want nothing
GRAPH = 5000  # nodes of one drawing
SLICE = 1000  # nodes whose edges are looked at with a beat
MOST_BACK = 4  # neighbours that get the acknowledgments of one publisher
MOST_WAYS = 100_000  # headers of which it is known where they go


class Neighbour(msgspec.Struct):
    """What is known of a neighbour below."""

    heard: float
    nodes: set[int] = msgspec.field(default_factory=set)
    tally: Tally = msgspec.field(default_factory=Tally)  # of the nodes
    done: int = 0  # the serial up to which it needs nothing,
    says_done: bool = False  # which those say who subscribe, and others never
    part: int = 0  # of its edges that is looked at next
    unknown: set[int] = msgspec.field(default_factory=set)  # those that are not in the graph yet
    left_out: bool = False  # it wants more than it may wait for
    own: Account = msgspec.field(default_factory=Account)  # for what it says itself,
    behind: Account = msgspec.field(default_factory=Account)  # and for what others say by it
    beaten: float = float("-inf")  # when it was last told where things stand


class Request(msgspec.Struct, frozen=True):
    """A question that was passed on."""

    neighbour: Name
    number: int  # by which the neighbour knows it
    expires: float
    payers: tuple[Payer, ...]


class Downstream(ABC):
    """What routers and rendezvous points have in common."""

    def __init__(
        self, name: str, times: Times, cache: Cache, life: int, limits: Limits | None = None
    ) -> None:
        self.name = name
        self.times = times
        self.limits = limits or Limits()
        self.cache = cache
        self.forwarding = Forwarding()
        self.graph: LabelGraph[Name] = LabelGraph()
        self.neighbours: dict[Name, Neighbour] = {}
        self.wants: dict[int, set[Name]] = {}  # who wants a node
        # an answer to a question of a life before must not be taken for one to this
        self._next_request = ((life & 0x7FFFFFFF) << 32) + 1
        self.standing = Standing(times, self._next_request, hands_on=True)
        self.serial = 0  # up to which the totals of nodes are right,
        self.lagging: dict[int, int] = {}  # but for these, which are right up to another
        self.begun: float | None = None  # when the first message came
        self.now = 0.0
        self.ignored = 0  # messages that made no sense
        self.beyond: Counter[str] = Counter()  # what was not done, by the limit that it was beyond
        self.queued: Callable[[Name], int] = lambda _: 0  # bytes that wait for a neighbour
        self.owner_of: Callable[[Name], str] = lambda _: ""  # of what a neighbour asks for;
        # empty where the neighbour says so itself, as routers do
        self.unsynced_bytes = 0  # of publications that wait for the disk here
        self.version = 0  # of the graph: it counts its changes
        self.accounts = Accounts(self.limits)
        self._requests: dict[int, Request] = {}
        self._publishers: dict[str, tuple[Name, ...]] = {}  # who spoke of each, the last one first
        self._ways: dict[Labels, dict[Name, Way]] = {}
        self._moved: dict[int, int] = {}  # what sums have of nodes whose totals are others by now
        self._turns: deque[tuple[Name, Neighbour]] = deque()  # whose edges are looked at next
        self.many_publishers = self.limits.publishers // 2
        self._out: list[Sent] = []
        self._single = 0  # messages among them that may become one

    @property
    def epoch(self) -> int:
        """The life of the rendezvous point, as far as it is known here."""
        return self.standing.life

    @epoch.setter
    def epoch(self, life: int) -> None:
        self.standing.life = life

    def seen(self) -> int:
        """The highest serial of which anything is known here."""
        return max(self.serial, self.standing.serial)

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

    @abstractmethod
    def told_whose(self, router: Name, owner: str, nodes: Iterable[int]) -> None:
        """A router below says that an owner wants nodes."""

    # -- sending -------------------------------------------------------------------------------

    def send(self, to: Name, message: m.Message) -> None:
        self._out.append((to, message))

    def taken(self) -> list[Sent]:
        out, self._out = self._out, []
        if self._single > 1:
            out = merged(out)
        self._single = 0
        return out

    def send_single(self, to: Name, message: m.Message) -> None:
        """Send something about one node: with others of its kind it is one message."""
        self._single += 1
        self._out.append((to, message))

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

    def beat(self, changed: dict[int, int]) -> None:
        """Tell every neighbour where things stand, and some of them how their graph looks. Those
        that want nothing need no more than a sign of life now and then."""
        due = self._whose_turn()
        before = self.now - (SELDOM - 0.5) * self.times.beat
        for name, known in self.neighbours.items():
            if known.nodes or known.beaten <= before:
                known.beaten = self.now
                self.beat_to(name, changed, edges=name in due)

    def beat_to(self, name: Name, changed: dict[int, int], *, edges: bool = False) -> None:
        self._settle_sums()
        known = self.neighbours[name]
        few, many = (changed, known.nodes) if len(changed) < len(known.nodes) else \
            (known.nodes, changed)  # fmt: skip
        totals = {node: changed[node] for node in few if node in many}
        beat = m.Beat(
            self.epoch, self._serial_for(name), totals, known.tally.digest(), known.tally.sum,
            self._edges_of(known, name) if edges else None, self.seen(),
        )  # fmt: skip
        self.send(name, beat)

    def _whose_turn(self) -> set[Name]:
        """Neighbours whose edges are looked at now: as many as do not take long."""
        due: set[Name] = set()
        work = 0
        for _ in range(len(self._turns)):
            name, known = self._turns.popleft()
            if self.neighbours.get(name) is known:
                self._turns.append((name, known))
                due.add(name)
                work += min(len(known.nodes), SLICE)
                if work >= SLICE:
                    break
        return due

    def moved(self, node: int, before: int) -> None:
        """The total of a node is another one now. Sums follow before they are told."""
        self._moved.setdefault(node, before)

    def _summed(self, node: int) -> int:
        """The total that a node has in the sums of neighbours."""
        before = self._moved.get(node)
        return self.total(node) if before is None else before

    def _settle_sums(self) -> None:
        for node, before in self._moved.items():
            for name in self.wants.get(node, ()):
                self.neighbours[name].tally.sum += self.total(node) - before
        self._moved.clear()

    def _serial_for(self, name: Name) -> int:
        """Up to which the totals of a neighbour's nodes are right."""
        nodes, lagging = self.neighbours[name].nodes, self.lagging
        few, many = (lagging, nodes) if len(lagging) < len(nodes) else (nodes, lagging)
        late = (lagging[node] for node in few if node in many)
        return min(self.serial, *late, self.serial)

    # -- limits --------------------------------------------------------------------------------

    def payers(self, name: Name, owner: str = "") -> tuple[Payer, ...]:
        """Who pays for what a neighbour asks; a router may ask for an owner behind it."""
        mine = self.owner_of(name)
        if mine:
            return (Payer(self.accounts.of(mine, self.now)),)
        known = self.neighbours[name]
        if owner:
            return Payer(self.accounts.of(owner, self.now)), Payer(known.behind, MANY)
        return (Payer(known.own),)

    def may_ask(self, name: Name, owner: str = "") -> bool:
        """Is a neighbour to be answered: has it read its answers, and not had too many?"""
        for account, many in self.payers(name, owner):
            account.settle(self.now, self.limits.work * many)
            if account.spent > self.limits.burst * many:
                self.beyond["work"] += 1
                return False
        if self.queued(name) > self.limits.unread_bytes:
            self.beyond["unread_bytes"] += 1
            return False
        return True

    def charge(self, name: Name, work: int, owner: str = "") -> None:
        """A neighbour had something done for it, or for an owner behind it."""
        if name in self.neighbours:
            for account, _ in self.payers(name, owner):
                account.spent += work

    def admitted(self, name: Name, nodes: Iterable[int]) -> list[int]:
        """Those that a neighbour may want, of nodes that it says it wants. The rest is left out: it
        is asked again for them when it waits for fewer."""
        known, limits = self.neighbours[name], self.limits
        found, unknown = [], len(known.unknown)
        most = min(limits.unknown, unknown + limits.all_unknown - self.count_unknown())
        left = limits.nodes - len(known.nodes)
        for node in nodes:
            if node in known.nodes:
                found.append(node)
                continue
            new = node not in self.graph
            if left <= 0 or (new and unknown >= most):
                known.left_out = known.left_out or left > 0
                self.beyond["nodes" if left <= 0 else "unknown"] += 1
                continue
            unknown += new
            left -= 1
            found.append(node)
        return found

    def ask_again(self) -> None:
        """Have neighbours say what was left out, when there is room for it."""
        room = 2 * self.count_unknown() <= self.limits.all_unknown
        for name, known in self.neighbours.items():
            if known.left_out and room and 2 * len(known.unknown) <= self.limits.unknown:
                known.left_out = False
                self.send(name, m.Which(self.epoch))

    def count_unknown(self) -> int:
        """The nodes that neighbours want and the graph has not."""
        return 0

    # -- receiving -----------------------------------------------------------------------------

    def from_below(self, sender: Name, message: m.Message) -> None:
        """Take what a neighbour says."""
        handler = self._UP.get(type(message))
        if handler is None:
            self.ignored += 1
            return
        known = self.heard_of(sender)
        if isinstance(message, m.Up) and message.epoch != self.epoch:
            if self.epoch and self.may_ask(sender):
                self.charge(sender, 1 + len(known.nodes))
                self.tell_epoch(sender)
            return
        handler(self, sender, message)

    def heard_of(self, name: Name) -> Neighbour:
        """A neighbour said something."""
        known = self.neighbours.get(name)
        if known is None:
            known = self.neighbours[name] = Neighbour(self.now)
            self._turns.append((name, known))
        known.heard = self.now
        return known

    def tell_epoch(self, sender: Name) -> None:
        """A neighbour speaks of another life: it is told of this one, and will ask."""
        self.beat_to(sender, {})

    def _on_trace(self, sender: Name, message: m.Trace) -> None:
        """The lineage, where it is known: nobody may judge by one that was not taken up here."""
        lives = self.standing.lineage.lives
        if lives and self.may_ask(sender):
            self.charge(sender, len(lives))
            self.send(sender, m.Lineage(self.epoch, message.request, lives))

    def go_on(self) -> None:
        """There is another life in which everything goes on: tell the neighbours, which judge for
        themselves. Questions of the old one are not answered any more; and what a neighbour needs
        it says again, as it may be one that does not go on."""
        self._forget_requests([*self._requests])
        for neighbour in self.neighbours.values():
            neighbour.done = 0
        self.beat({})

    def begin_epoch(self) -> None:
        """There is another life, in which nothing that is known is right: forget everything, and
        tell the neighbours."""
        self.serial = 0
        self.lagging.clear()
        self.graph = LabelGraph()
        self.wants.clear()
        self.cache.clear()
        self._forget_requests([*self._requests])
        for neighbour in self.neighbours.values():
            neighbour.nodes.clear()
            neighbour.unknown.clear()
            neighbour.tally.clear()
            neighbour.done = 0
        self._moved.clear()
        self.graph_changed()
        self.beat({})

    def _on_subscribe(self, sender: Name, message: m.Subscribe) -> None:
        for node in self.admitted(sender, message.nodes):
            self._subscribe(sender, node)

    def _on_unsubscribe(self, sender: Name, message: m.Unsubscribe) -> None:
        for node in message.nodes:
            self._unsubscribe(sender, node)
        self.send(sender, m.Gone(self.epoch, message.nodes))

    def _on_resubscribe(self, sender: Name, message: m.Resubscribe) -> None:
        known = self.neighbours[sender]
        known.done = max(known.done, message.done)
        known.says_done = True
        if message.wanted != known.tally.digest():
            self.send(sender, m.Which(self.epoch))

    def _on_wanted(self, sender: Name, message: m.Wanted) -> None:
        if len(message.nodes) > SLICE and not self.may_ask(sender):
            return
        self.charge(sender, len(message.nodes))
        known, wanted = self.neighbours[sender], set(message.nodes)
        for node in [*filter(message.slice.has, known.nodes - wanted)]:
            self._unsubscribe(sender, node)
        for node in self.admitted(sender, sorted(wanted - known.nodes)):
            self._subscribe(sender, node)

    def may_want(self, sender: Name, many: int, now: float) -> bool:
        """May a neighbour say at once that it wants so many nodes? It is asked before they are
        looked at; what that costs is charged beside what is done about them."""
        self.now = now
        self.heard_of(sender)
        if not self.may_ask(sender):
            return False
        self.charge(sender, many // 16)
        return True

    def _on_redraw(self, sender: Name, _: m.Redraw) -> None:
        if not self.may_ask(sender):
            return
        self.charge(sender, 1 + len(self.neighbours[sender].nodes))
        serial = self._serial_for(sender)
        nodes = self.graph.in_order(self.neighbours[sender].nodes)
        for at in range(0, max(len(nodes), 1), GRAPH):
            part = nodes[at : at + GRAPH]
            parents = {node: self.parents_for(node, sender) for node in part}
            totals = {node: self.total(node) for node in part}
            self.send(sender, m.Graph(self.epoch, serial, parents, totals, self.seen()))

    def _on_publish(self, sender: Name, message: m.Publish) -> None:
        self.know_publisher(message.publisher, sender)
        self.ask_above(message)

    def know_publisher(self, publisher: str, sender: Name) -> None:
        """Where acknowledgments of a publisher go: to the last few that spoke of it, for one that
        only repeats what it said must not have them alone. Those that were not heard of for the
        longest time are forgotten: whoever still waits for one says its publication again."""
        known = self._publishers
        ways = known.get(publisher, ())
        if not ways or ways[0] != sender:
            ways = (sender, *(one for one in ways if one != sender))[:MOST_BACK]
        if len(known) > self.many_publishers:  # only then it matters who was silent
            known.pop(publisher, None)
        known[publisher] = ways
        if len(known) > self.limits.publishers:
            del known[next(iter(known))]
            self.beyond["publishers"] += 1

    def send_back(self, message: m.Published) -> None:
        for to in self._publishers.get(message.publisher, ()):
            self.send(to, message)

    def _on_question(self, sender: Name, message: m.Ask | m.Count) -> None:
        work, owner = 1, ""
        if isinstance(message, m.Ask):
            message = self.stamped(sender, message)
            work, owner = work_of(message.interest), message.owner
        if self.may_ask(sender, owner):
            number = self._remember(sender, message.request, work, owner)
            if number is not None:
                self.ask_above(msgspec.structs.replace(message, request=number))

    def stamped(self, sender: Name, message: m.Ask) -> m.Ask:
        """A question with the name of whose it is: nobody but a router says that of another."""
        owner = self.owner_of(sender) or behind(sender, message.owner)
        return msgspec.structs.replace(message, owner=owner)

    def ask_who(self, nodes: Iterable[int]) -> dict[str, list[int]]:
        """Which of some nodes are wanted by owners whose links end here. Routers are asked."""
        asked, found = set(nodes), dict[str, list[int]]()
        for name, known in self.neighbours.items():
            mine = sorted(asked & known.nodes)
            owner = self.owner_of(name)
            if mine and owner:
                found.setdefault(owner, []).extend(mine)
            elif mine:
                self.send(name, m.Who(self.epoch, tuple(mine)))
        return found

    def _on_whose(self, sender: Name, message: m.Whose) -> None:
        if self.owner_of(sender):  # it is no router
            self.ignored += 1
        elif self.may_ask(sender):
            self.charge(sender, 1 + len(message.nodes))
            nodes = self.neighbours[sender].nodes.intersection(message.nodes)
            if nodes:  # whose others are is not for it to say
                self.told_whose(sender, behind(sender, message.owner), sorted(nodes))

    def _on_recover(self, sender: Name, message: m.Recover) -> None:
        if not self.may_ask(sender):
            return
        ranges, elsewhere = self.looked_for(bounded(message.ranges))
        found, rest = self.cache.find(ranges, self.limits.answer_bytes)
        rest += elsewhere
        self.charge(sender, len(message.ranges) + entries_of(found))
        self.give_recovered(sender, message.request, found)
        if rest:
            number = self._remember(sender, message.request)
            if number is not None:
                self.ask_above(m.Recover(self.epoch, number, tuple(rest[: m.MOST_RANGES])))
        else:
            self.send(sender, m.Settled(self.epoch, message.request))

    def looked_for(self, ranges: list[m.Range]) -> tuple[list[m.Range], list[m.Range]]:
        """What is worth looking for in the cache, and what can't be there."""
        return ranges, []

    def give_recovered(self, to: Name, request: int, found: list[m.Notification]) -> None:
        """Send what was asked for, in pieces that fit into frames."""
        part: list[m.Notification] = []
        size = 0
        for one in found:
            more = len(one.payload) + MARK_BYTES * len(one.marks)
            if part and (len(part) == CHUNK or size + more > CHUNK_BYTES):
                self.send(to, m.Recovered(self.epoch, request, tuple(part)))
                part, size = [], 0
            part.append(one)
            size += more
        if part:
            self.send(to, m.Recovered(self.epoch, request, tuple(part)))

    def _remember(self, sender: Name, number: int, work: int = 1, owner: str = "") -> int | None:
        """The number of a question that is passed on; None where there are too many."""
        payers, limits = self.payers(sender, owner), self.limits
        if len(self._requests) >= limits.all_questions or any(
            one.account.questions >= one.most(limits.questions, limits.all_questions)
            for one in payers
        ):
            self.beyond["questions"] += 1
            return None
        mine = self._next_request
        self._next_request += 1
        self._requests[mine] = Request(sender, number, self.now + self.times.request, payers)
        for account, _ in payers:
            account.questions += 1
            account.spent += work
        return mine

    def _forget_requests(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            for account, _ in self._requests.pop(number).payers:
                account.questions -= 1

    def pass_down(self, message: m.Message) -> None:
        """Give an answer to whoever asked."""
        if isinstance(message, m.Published):
            self.send_back(message)
            return
        if not isinstance(message, (m.Answer, m.Counted, m.Recovered, m.Settled)):
            self.ignored += 1
            return
        request = self._requests.get(message.request)
        if request is None:
            return
        if not isinstance(message, m.Recovered):
            self._forget_requests([message.request])
            for account, _ in request.payers:
                account.spent += _entries(message)
        else:
            for notification in message.notifications:
                self.standing.saw(notification.serial)
                self.cache.put(notification)
        answer = msgspec.structs.replace(message, request=request.number)
        self.send(request.neighbour, answer)

    # -- who wants what ------------------------------------------------------------------------

    def _subscribe(self, sender: Name, node: int) -> None:
        known = self.neighbours[sender]
        if node not in known.nodes:
            known.nodes.add(node)
            known.tally.add(node, self._summed(node))
            self.wants.setdefault(node, set()).add(sender)
            if node in self.graph:
                self._admit(node, sender)
            else:
                known.unknown.add(node)
            self.wanted(node)
        elif node in self.graph and self.may_ask(sender):  # it was told, and did not hear
            self._tell(node, sender)

    def _unsubscribe(self, sender: Name, node: int) -> None:
        known = self.neighbours[sender]
        if node not in known.nodes:
            return
        known.nodes.remove(node)
        known.unknown.discard(node)
        known.tally.remove(node, self._summed(node))
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
            self.neighbours[name].unknown.discard(node)
            if name not in self.graph.nodes[node].subscribers:
                self._admit(node, name)

    def refuse_all(self, node: int) -> None:
        """Whoever wants a node is told that there is none."""
        for name in sorted(self.wants.get(node, ()), key=str):
            self._unsubscribe_quietly(name, node)
            self.send_single(name, m.Refuse(self.epoch, (node,)))

    def _unsubscribe_quietly(self, name: Name, node: int) -> None:
        known = self.neighbours[name]
        known.nodes.remove(node)
        known.unknown.discard(node)
        known.tally.remove(node, self._summed(node))
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
        self.charge(name, 1 + len(parents) + len(children))
        total, serial = self.total(node), self.lagging.get(node, self.serial)
        self.send(name, m.Setup(self.epoch, node, parents, children, total, serial, self.seen()))

    def parents_for(self, node: int, name: Name) -> Label:
        """The parents that a node has in the graph of a neighbour that is subscribed to it."""
        nodes = self.graph.nodes
        above = {nodes[parent].labels.get(name, ()) for parent in nodes[node].parents}
        return self.graph.lowest(one for label in above for one in label)

    def _edges_of(self, known: Neighbour, name: Name) -> m.Edges:
        parts = 1 + len(known.nodes) // SLICE
        some = m.Slice(known.part % parts, parts)
        known.part += 1
        mixed = 0
        for node in filter(some.has, known.nodes):
            if node in self.graph:
                mixed ^= mix_edges(node, self.parents_for(node, name))
        return m.Edges(some, mixed)

    # -- what time brings ----------------------------------------------------------------------

    def expire(self) -> None:
        """Drop neighbours that are silent, and questions that nobody answers."""
        self.begun = self.now if self.begun is None else self.begun
        for name, known in [*self.neighbours.items()]:
            if self.now - known.heard > self.times.expire:
                self.drop(name)
        late = [number for number, one in self._requests.items() if one.expires < self.now]
        self._forget_requests(late)
        self.accounts.close(self.now)

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
        known = (one for one in self.neighbours.values() if one.says_done or one.nodes)
        return min((one.done for one in known), default=self.serial)

    _UP: ClassVar[dict[type, Callable[[Any, Any, Any], None]]] = {
        m.Subscribe: _on_subscribe, m.Unsubscribe: _on_unsubscribe, m.Wanted: _on_wanted,
        m.Resubscribe: _on_resubscribe, m.Redraw: _on_redraw, m.Publish: _on_publish,
        m.Ask: _on_question, m.Count: _on_question, m.Recover: _on_recover, m.Trace: _on_trace,
        m.Whose: _on_whose,
    }  # fmt: skip


def bounded(ranges: Iterable[m.Range], most: int = MOST_NUMBERS) -> list[m.Range]:
    """Ranges of which none has a number of another one, and no more numbers than that."""
    found: list[m.Range] = []
    for node, first, last in sorted(ranges):
        if found and found[-1].node == node:
            first = max(first, found[-1].last + 1)
        last = min(last, first + most - 1)
        if first <= last:
            found.append(m.Range(node, first, last))
            most -= last - first + 1
    return found


def entries_of(found: Iterable[m.Notification]) -> int:
    """What it takes to give notifications again: those with many marks are dear."""
    return sum(1 + 2 * len(one.marks) for one in found)


def _entries(message: m.Answer | m.Counted | m.Settled) -> int:
    return len(message.lost) if isinstance(message, m.Settled) else len(message.counts)
