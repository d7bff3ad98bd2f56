"""The side of a router or a rendezvous point that faces its neighbours below.

    message ──> from_below ──> subscriptions    who wants which node        ┐
                               charges          who pays for answers        │
                               rights           which nodes neighbours see  ├──> context:
                               questions        what was passed on upwards  │    messages to send
                               recovery         what neighbours missed      │
                               return_paths     where acknowledgments go    │
                               beats            how neighbours keep in step ┘

This module passes messages to its parts, which are in the folder neighbours/.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, ClassVar

import msgspec

from tidings.routing.forwarding.cache import Cache
from tidings.routing.forwarding.graph_caches import GraphCaches, HeaderCache
from tidings.routing.forwarding.label_graph import LabelGraph
from tidings.routing.forwarding.neighbours import (
    SIGNED,
    Beats,
    Charges,
    Context,
    Name,
    Neighbour,
    Questions,
    Recovery,
    ReturnPaths,
    Rights,
    Sent,
    Signed,
    Subscriptions,
    bound_ranges,
    name_owner,
    name_owner_behind,
)
from tidings.routing.forwarding.ways import Forwarding, Labels, Way, ways_of
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.limits import Limits, work_of
from tidings.routing.protocol.times import Times

MOST_FREE = 1000  # a neighbour that may ask nothing else may still list this many wanted nodes
MOST_WAYS = 100_000  # the most headers whose ways are cached


class Downstream(ABC):
    """The part that routers and rendezvous points have in common."""

    def __init__(
        self,
        name: str,
        times: Times,
        cache: Cache,
        life: int,
        limits: Limits | None,
        total: Callable[[int], int],
    ) -> None:
        """`total` says how many notifications matched a node."""
        # Answers to questions from before a restart must not match questions after it.
        first_request = ((life & 0x7FFFFFFF) << 32) + 1
        context = Context(name, times, limits or Limits(), first_request)
        self.context = context
        self.name = name
        self.times = times
        self.limits = context.limits
        self.cache = cache
        self.standing = context.standing
        self.neighbours = context.neighbours
        self.beyond = context.beyond
        self.send, self.drain_outgoing = context.send, context.drain_outgoing
        self.forwarding = Forwarding()
        self.graph: LabelGraph[Name] = LabelGraph()
        self.caches = GraphCaches(self.graph)
        self.charges = Charges(context)
        self.rights = Rights(context)
        self.questions = Questions(context, self.charges, self.rights, first_request)
        self.recovery = Recovery(context, self.charges, self.questions, cache)
        self.return_paths = ReturnPaths(context)
        self.subscriptions = Subscriptions(context, self.charges, self.graph, self.caches, total)
        self.wants = self.subscriptions.wants
        self.sums = self.subscriptions.sums
        self.total = total
        self.beats = Beats(context, self.graph, self.sums)
        self.ignored = 0  # messages that this node does not expect
        self._begun: float | None = None  # when `expire` was first called
        self._ways: HeaderCache[Labels, dict[Name, Way]] = self.caches.add(HeaderCache(MOST_WAYS))

    @property
    def epoch(self) -> int:
        """The last known life of the rendezvous point."""
        return self.standing.life

    @epoch.setter
    def epoch(self, life: int) -> None:
        self.standing.life = life

    @property
    def serial(self) -> int:
        """The serial up to which the totals of nodes are correct."""
        return self.sums.serial

    @property
    def version(self) -> int:
        """How often the graph has changed."""
        return self.caches.version

    @property
    def unsynced_bytes(self) -> int:
        """Bytes of publications that wait for the disk here."""
        return 0

    # -- implemented by subclasses -------------------------------------------------------------

    @abstractmethod
    def want(self, node: int) -> None:
        """Called when a neighbour wants a node."""

    @abstractmethod
    def stop_wanting(self, node: int) -> None:
        """Called when no neighbour wants a node any more."""

    @abstractmethod
    def ask_above(self, message: m.Message) -> None:
        """Pass a question on towards the root."""

    @abstractmethod
    def take_owner(self, router: Name, owner: str, nodes: Iterable[int]) -> None:
        """Called when a router below reports that an owner wants some nodes."""

    def split(self, message: m.HandOver) -> Sequence[Any]:
        """Split a part that is handed over into messages that are handled one after the other."""
        return (message,)

    def count_unknown(self) -> int:
        """The number of nodes that neighbours want but that are not in the graph."""
        return 0

    # -- notifications -------------------------------------------------------------------------

    def forward(self, message: m.Notification) -> None:
        """Send a notification to every neighbour that has a label at one of its marks."""
        for neighbour, way in self.ways(tuple(mark.label for mark in message.marks)).items():
            self.send(neighbour, way.of(message))

    def ways(self, labels: Labels) -> dict[Name, Way]:
        """How notifications with these labels are sent to each neighbour. Results are cached until
        a node of the labels, or a node above such a node, changes."""
        found = self._ways.known.get(labels)
        if found is None:
            found = ways_of(self.graph, labels, self.forwarding)
            self._ways.put(labels, found, chain.from_iterable(labels))
        return found

    def note_graph_change(self) -> None:
        """Clear all caches, because anything in the graph may have changed."""
        self.caches.clear()

    # -- receiving -----------------------------------------------------------------------------

    def receive_from_below(self, sender: Name, message: m.Message) -> None:
        """Handle a message from a neighbour below."""
        handler = self._UP.get(type(message))
        if handler is None:
            self.ignored += 1
            return
        known = self.hear(sender)
        if isinstance(message, m.Up) and message.epoch != self.epoch:
            if self.epoch and self.charges.may_ask(sender):
                self.charges.charge(sender, 1 + len(known.nodes))
                self.tell_epoch(sender)
            return
        handler(self, sender, message)

    def hear(self, name: Name) -> Neighbour:
        """Record that a neighbour sent a message; return what is known about the neighbour."""
        known = self.neighbours.get(name)
        if known is None:
            known = self.neighbours[name] = Neighbour(self.context.now)
            self.beats.add(name, known)
        known.heard = self.context.now
        return known

    def tell_epoch(self, sender: Name) -> None:
        """Tell a neighbour the current life; a neighbour in another life asks for the lineage."""
        self.beats.send(sender, {})

    def _on_trace(self, sender: Name, message: m.Trace) -> None:
        """Send the lineage if this node has accepted one."""
        lives = self.standing.lineage.lives
        if lives and self.charges.may_ask(sender):
            self.charges.charge(sender, len(lives))
            self.send(sender, m.Lineage(self.epoch, message.request, lives))

    # -- wanted nodes --------------------------------------------------------------------------

    def _on_subscribe(self, sender: Name, message: m.Subscribe) -> None:
        self._subscribe(sender, message.nodes, placed=message.placed)

    def _on_unsubscribe(self, sender: Name, message: m.Unsubscribe) -> None:
        for node in message.nodes:
            self.unsubscribe(sender, node)
        self.send(sender, m.Gone(self.epoch, message.nodes))

    def _on_resubscribe(self, sender: Name, message: m.Resubscribe) -> None:
        known = self.neighbours[sender]
        known.done = max(known.done, message.done)
        known.says_done = True
        if message.wanted != known.tally.digest():
            self.send(sender, m.Which(self.epoch))

    def _on_wanted(self, sender: Name, message: m.Wanted) -> None:
        if len(message.nodes) > MOST_FREE and not self.charges.may_ask(sender):
            return
        self.charges.charge(sender, len(message.nodes))
        known, wanted = self.neighbours[sender], set(message.nodes)
        for node in [*filter(message.slice.has, known.nodes - wanted)]:
            self.unsubscribe(sender, node)
        self._subscribe(sender, sorted(wanted - known.nodes))

    def may_want(self, sender: Name, many: int, now: float) -> bool:
        """May a neighbour list `many` wanted nodes in one message? This method is called before the
        nodes are handled; its charge is added to the charge for handling the nodes."""
        self.context.now = now
        self.hear(sender)
        if not self.charges.may_ask(sender):
            return False
        self.charges.charge(sender, many // 16)
        return True

    def _on_redraw(self, sender: Name, _: m.Redraw) -> None:
        if self.charges.may_ask(sender):
            self.charges.charge(sender, 1 + len(self.neighbours[sender].nodes))
            self.beats.send_graph(sender)

    def admit(self, name: Name, nodes: Iterable[int]) -> list[int]:
        """Those of `nodes` that a neighbour may want."""
        return self.subscriptions.admit(name, nodes, self.count_unknown())

    def select_visible(self, sender: Name, nodes: Iterable[int]) -> Iterable[int]:
        """The nodes among `nodes` that a neighbour has the right to see; see rights.py."""
        return self.rights.admit(sender, nodes)

    def _subscribe(self, sender: Name, nodes: Iterable[int], *, placed: bool = False) -> None:
        for node in self.admit(sender, self.select_visible(sender, nodes)):
            if self.subscriptions.add(sender, node, placed=placed):
                self.want(node)

    def unsubscribe(self, sender: Name, node: int) -> None:
        if self.subscriptions.remove(sender, node):
            self.stop_wanting(node)

    # -- questions and publications ------------------------------------------------------------

    def _on_publish(self, sender: Name, message: m.Publish) -> None:
        if not message.fast:  # fast publications get no answer
            self.return_paths.add(message.publisher, sender)
        self.ask_above(message)

    def _on_question(self, sender: Name, message: m.Ask | m.Count | m.Resume | m.Confirm) -> None:
        work, owner = 1, ""
        if isinstance(message, m.Resume | m.Confirm):
            message = self.with_name_owner(sender, message)
        if isinstance(message, m.Ask):
            message = self.with_owner(sender, message)
            work, owner = work_of(message.interest), message.owner
        elif not isinstance(message, m.Confirm) and not self.rights.admit(sender, (message.node,)):
            return
        if self.charges.may_ask(sender, owner):
            number = self.questions.add(sender, message.request, work, owner)
            if number is not None:
                self.ask_above(msgspec.structs.replace(message, request=number))

    def _on_apply(self, sender: Name, message: m.Apply) -> None:
        """Pass on an agent's request for a link to the rendezvous point. An agent that needs signed
        grants gets no direct link, because only this node knows its grants."""
        others = message.others + self.count_others({sender}, (*message.nodes, *message.above))
        others = min(others, m.MOST_NUMBER)  # a number out of range would end the link to above
        party = self.context.owner_of(sender) or message.party
        message = name_owner(self.context, sender, message)
        message = msgspec.structs.replace(message, others=others, party=party)
        if self.context.within_of(sender) == SIGNED:
            self.send(sender, m.Offered(self.epoch, message.request))
        elif self.charges.may_ask(sender, message.owner):
            within = self.rights.limit(sender, message.within)
            number = self.questions.add(sender, message.request, len(message.nodes), message.owner)
            if number is not None:
                self.ask_above(msgspec.structs.replace(message, request=number, within=within))

    def count_behind(self, name: Name, node: int) -> int:
        """How many subscriptions to a node a neighbour has, as far as this node knows. Neighbours
        say which nodes they want, but not for how many subscriptions, so a router counts one. A
        rendezvous point may know of more subscriptions."""
        return 1

    def count_others(self, apart: set[Name], nodes: Iterable[int]) -> int:
        """How many neighbours, not counting those in `apart`, get notifications of any of these
        nodes."""
        found = set[Name]().union(*map(self.graph.labels, nodes))
        return len(found - apart)

    def _on_recover(self, sender: Name, message: m.Recover) -> None:
        if self.charges.may_ask(sender):
            ranges = bound_ranges(message.ranges)
            within = self.rights.limit(sender, message.within)
            split = self.split_limited(sender, ranges, within) if within else None
            here, elsewhere = self.split_ranges(ranges) if split is None else split
            rest = self.recovery.answer(sender, message, here, elsewhere, within)
            if rest is not None:
                self.ask_above(rest)

    def split_ranges(self, ranges: list[m.Range]) -> tuple[list[m.Range], list[m.Range]]:
        """The ranges to look up in the cache, and the ranges that can't be in the cache."""
        return ranges, []

    def split_limited(
        self, sender: Name, ranges: list[m.Range], within: m.Within
    ) -> tuple[list[m.Range], list[m.Range]]:
        """Split ranges as `split_ranges` does, for a neighbour with limited rights. Nodes that were
        granted to the neighbour are looked up here. Only the root knows whether the neighbour may
        see other nodes."""
        is_alone = self.context.within_of(sender) in (within, SIGNED)
        here = [one for one in ranges if is_alone and self.rights.is_granted(sender, one.node)]
        return here, [one for one in ranges if one not in here]

    def renew_rights(self, name: Name, now: float) -> list[Sent]:
        """Handle a possible change to a neighbour's rights: unsubscribe it from the nodes that were
        not granted under its present rights. The neighbour then asks for these nodes again."""
        self.context.now = now
        if name in self.neighbours and self.context.within_of(name):
            self._end_ungranted(name)
        return self.drain_outgoing()

    def present(self, name: Name, node: int, grant: Signed, now: float) -> str:
        """Record a neighbour's signed grant; its signature was checked before. Return why the grant
        is refused, or an empty string."""
        self.context.now = now
        self.hear(name)
        return self.rights.grant_signed(name, node, grant)

    def revoke(self, now: float, is_void: Callable[[Signed], bool] = lambda _: False) -> list[Sent]:
        """End the signed grants that have expired or are void, and the subscriptions that need
        them."""
        self.context.now = now
        for name in self.rights.revoke(is_void):
            self._end_ungranted(name)
        return self.drain_outgoing()

    def _end_ungranted(self, name: Name) -> None:
        held = [*self.neighbours[name].nodes]
        for node in set(held).difference(self.rights.admit(name, held)):
            self.unsubscribe(name, node)

    def pass_down(self, message: m.Message) -> None:
        """Pass an answer on to the neighbour that asked."""
        if isinstance(message, m.Published):
            self.return_paths.send(message)
        elif not isinstance(message, m.ANSWERS):
            self.ignored += 1
        elif self.questions.pass_down(message) and isinstance(message, m.Recovered):
            for notification in message.notifications:
                self.standing.note_serial(notification.serial)
                self.cache.put(notification)

    def _on_seek(
        self, sender: Name, message: m.Seek | m.Advise | m.Describe | m.Follow | m.Suggest
    ) -> None:
        if self.charges.may_ask(sender):
            number = self.questions.add(sender, message.request)
            if number is not None:
                self.ask_above(msgspec.structs.replace(message, request=number))

    def _on_tagging(self, sender: Name, message: m.TAGGING) -> None:
        """Refuse a message that only the rendezvous point can answer, or pass it on if routers may
        relay it (`relayed`)."""
        if isinstance(message, m.Suggest) or (
            isinstance(message, m.Describe | m.Follow) and message.relayed
        ):
            self._on_seek(sender, message)
            return
        reason = (
            f"{self.name!r} is a router, expected the rendezvous point; use the address of the "
            "node whose file has a journal"
        )
        if isinstance(message, m.HandOver):
            key = message.source, message.batch, message.part
            self.send(sender, m.Taken(self.epoch, *key, reason))
        elif isinstance(message, m.Register | m.Fault):
            self.ask_above(message)
        else:
            kind = m.Described if isinstance(message, m.Describe) else m.Changed
            self.send(sender, kind(self.epoch, message.request, refusal=reason))

    # -- owners --------------------------------------------------------------------------------

    def with_owner(self, sender: Name, message: m.Ask) -> m.Ask:
        """Return the question with its owner, and with the filters that must cover its interest."""
        within = self.rights.limit(sender, message.within)
        return msgspec.structs.replace(name_owner(self.context, sender, message), within=within)

    def with_name_owner(self, sender: Name, message: m.Resume | m.Confirm) -> m.Resume | m.Confirm:
        """Return the message with the owner of the named subscription. A router is trusted to name
        the owners below it."""
        context = self.context
        owner = context.party_of(sender) or context.owner_of(sender) or message.owner
        return msgspec.structs.replace(message, owner=owner)

    def _on_whose(self, sender: Name, message: m.Whose) -> None:
        if self.context.owner_of(sender):  # the sender is not a router
            self.ignored += 1
        elif self.charges.may_ask(sender):
            self.charges.charge(sender, 1 + len(message.nodes))
            nodes = self.neighbours[sender].nodes.intersection(message.nodes)
            if nodes:  # a router may name owners only for nodes that it wants
                owner = name_owner_behind(sender, message.owner)
                self.take_owner(sender, owner, sorted(nodes))

    # -- lives ---------------------------------------------------------------------------------

    def go_on(self, *, is_first: bool = False) -> None:
        """Continue in another life and keep all state. Tell the neighbours; each of them decides
        whether it starts over. Questions of the old life will not be answered, so they are
        forgotten. If this node knew no life before (`is_first`), the questions that were asked
        until now are kept. Neighbours must report `done` again, because some of them may start
        over."""
        if not is_first:
            self.questions.clear()
        for neighbour in self.neighbours.values():
            neighbour.done = 0
        self.beats.send_all({})

    def begin_epoch(self) -> None:
        """Start over in another life, in which the present state is not valid: forget everything,
        and tell the neighbours."""
        self.cache.clear()
        self.questions.clear()
        self.subscriptions.clear()
        for neighbour in self.neighbours.values():
            neighbour.done = 0
        self.beats.send_all({})

    # -- timeouts ------------------------------------------------------------------------------

    def keep_alive(self, now: float, shares: int) -> list[Sent]:
        """Send a beat to about one in `shares` of the neighbours without subscriptions. Call this
        often enough that `shares` calls happen within four beats."""
        self.context.now = now
        self.beats.keep_alive(shares)
        return self.drain_outgoing()

    def expire(self) -> None:
        """Drop silent neighbours, and questions that nobody answers."""
        now = self.context.now
        self._begun = now if self._begun is None else self._begun
        for name, known in [*self.neighbours.items()]:
            if now - known.heard > self.times.expire:
                self.drop(name)
        self.questions.expire()
        self.charges.accounts.close(now)

    def drop(self, name: Name) -> None:
        """Forget a neighbour, and end its subscriptions."""
        known = self.neighbours.get(name)
        if known is not None:
            for node in [*known.nodes]:
                self.unsubscribe(name, node)
            del self.neighbours[name]

    def serial_done(self) -> int:
        """The serial up to which no neighbour below needs notifications again; 0 shortly after a
        start, when not all neighbours are known."""
        if self._begun is None or self.context.now - self._begun < 2 * self.times.expire:
            return 0
        return self.serial_done_below()

    def serial_done_below(self) -> int:
        """The serial up to which no neighbour that is known needs any notification again."""
        known = (one for one in self.neighbours.values() if one.says_done or one.nodes)
        return min((one.done for one in known), default=self.serial)

    _UP: ClassVar[dict[type, Callable[[Any, Any, Any], None]]] = {
        m.Subscribe: _on_subscribe, m.Unsubscribe: _on_unsubscribe, m.Wanted: _on_wanted,
        m.Resubscribe: _on_resubscribe, m.Redraw: _on_redraw, m.Publish: _on_publish,
        m.Resume: _on_question, m.Confirm: _on_question, m.Apply: _on_apply,
        m.Ask: _on_question, m.Count: _on_question, m.Recover: _on_recover, m.Trace: _on_trace,
        m.Whose: _on_whose, m.Describe: _on_tagging, m.Follow: _on_tagging,
        m.HandOver: _on_tagging, m.Register: _on_tagging, m.Fault: _on_tagging, m.Seek: _on_seek,
        m.Suggest: _on_tagging,
        m.Advise: _on_seek,
    }  # fmt: skip
