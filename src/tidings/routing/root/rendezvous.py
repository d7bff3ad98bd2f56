"""The root of a channel: it knows every node, numbers notifications, and stores its state on the
disk.

    Publish, Run ──> tag ──> number ──> journal ──(on the disk)──> acknowledge, forward
    HandOver ──> number ──> journal ──(on the disk)──> acknowledge, forward
    Ask ──> node ──> journal ──(on the disk)──> answer

A crash must not undo anything that was sent. So acknowledgments, notifications and node numbers are
held until the writes that they depend on are on the disk. The caller syncs the journal, and then
calls `mark_stored`.

This module passes messages and the time to the parts: publications to `publishing`, notifications
that others tagged to `handover`, filters and their nodes to `nodes`, and messages that wait for the
disk to the write queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tidings.model import TidingsError, Undecided
from tidings.routing.forwarding import ways
from tidings.routing.forwarding.cache import Cache
from tidings.routing.forwarding.downstream import Downstream
from tidings.routing.forwarding.graph_caches import NodeCache
from tidings.routing.forwarding.label_graph import Label
from tidings.routing.forwarding.neighbours import Name, Sent, count_entries, is_owner_behind
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.limits import Limits
from tidings.routing.protocol.lineage import Lineage
from tidings.routing.protocol.marks import columns
from tidings.routing.protocol.times import Times
from tidings.routing.root.counts import Counts
from tidings.routing.root.cursors import Cursors
from tidings.routing.root.handover import Correcting, Definition, Following, Piece, TakeOver
from tidings.routing.root.handover.resolving import Resolving
from tidings.routing.root.handover.source_progress import Sources
from tidings.routing.root.interests import Interests, Places
from tidings.routing.root.journal import Journal, Memory
from tidings.routing.root.naming import Naming
from tidings.routing.root.nodes import (
    Holding,
    NodeLifecycle,
    Parts,
    Placing,
    Registry,
    SetAside,
    Territory,
    TypeNodes,
)
from tidings.routing.root.nodes.type_nodes import split_owners
from tidings.routing.root.offers import Offers
from tidings.routing.root.ownership import Claims
from tidings.routing.root.problems import Problems
from tidings.routing.root.publishing import Intake, Stamps, Tagger, UnorderedStamps
from tidings.routing.root.records import Block, Record
from tidings.routing.root.relating import Relating
from tidings.routing.root.revising import recall_coverings
from tidings.routing.root.runs import Run, RunIntake
from tidings.routing.root.write_queue import WriteQueue

RETIRED = 20, 500  # set-aside nodes that are removed per publication, and per tick


class Rendezvous(Downstream):
    """The state machine of a rendezvous point. The state machine uses the interests of the channel
    and a journal."""

    def __init__(
        self,
        name: str,
        interests: Interests,
        journal: Journal,
        memory: Memory,
        times: Times | None = None,
        cache: Cache | None = None,
        limits: Limits | None = None,
        definition: Definition | None = None,
        relating: Relating | None = None,
        *,
        keeps_order: bool = True,
        nodes_for_types: int = 0,
    ) -> None:
        """The life of this start, the last one in `memory`, must already be on the disk. With
        `keeps_order=False`, the publications of a publisher are accepted in any order. At most
        `nodes_for_types` nodes exist only because there were notifications of their types."""
        life = memory.lineage[-1].life

        def total(node: int) -> int:
            return self.counts.totals.get(node, 0)

        cache = Cache() if cache is None else cache
        super().__init__(name, times or Times(), cache, life, limits, total)
        self.interests = interests
        self.journal = journal
        self.standing.life, self.standing.lineage = life, Lineage(memory.lineage)
        self.sums.serial = memory.serial
        self.claims = Claims()
        places = Places.of(memory.placed)
        self.graph.load(places.numbers, places.starts, places.parents)
        there = places.numbers.tolist()
        owners, for_types = split_owners(memory.owners)
        self.claims.load(places.numbers, [memory.sizes.get(one, 0) for one in there], owners)
        last_node = max(there, default=0)
        self.claims.pass_time(float("-inf"), last_node, 0.0)

        context, graph, caches, claims = self.context, self.graph, self.caches, self.claims
        self.problems = problems = Problems(context)
        self.queue = queue = WriteQueue(journal, memory.written)
        self.counts = counts = Counts(memory, self.sums)
        self.history = memory.history.copy()
        self.registry = Registry(self.history, there)
        parts = Parts(
            context, self.charges, self.rights, interests, graph, caches, claims, counts, queue,
            self.registry, self.subscriptions, problems, relating,
        )  # fmt: skip
        self.nodes = nodes = NodeLifecycle(parts)
        self.set_aside = SetAside(parts, nodes)
        self.territory = Territory(parts, self.history)
        self.placing = Placing(parts, nodes, self.set_aside, self.territory, last_node)
        self.type_nodes = TypeNodes(parts, nodes, self.set_aside, nodes_for_types)
        self.stamps = Stamps(memory.publishers) if keeps_order else UnorderedStamps()
        self.tagger = tagger = Tagger(self.limits, interests, claims, self.set_aside)
        tagger.relating, tagger.keeps_order = relating, keeps_order
        self.intake = Intake(
            context, self.stamps, tagger, counts, queue, self.return_paths, problems,
            self.type_nodes,
        )  # fmt: skip
        self.following = Following(
            context,
            self.charges,
            interests,
            self.registry,
            queue,
            definition or Definition(),
            relating,
        )
        self.sources = Sources(memory.sources, self.limits.sources)
        resolving = Resolving(
            graph, caches, interests, self.history, self.set_aside, tagger, self.limits
        )
        correcting = Correcting(
            graph, self.registry, interests, self.set_aside, resolving, self.limits, relating
        )
        tagger.correcting = correcting
        self.take_over = TakeOver(
            context, self.history, self.sources, resolving, counts, queue, problems, tagger,
            self.type_nodes,
        )  # fmt: skip
        self.runs = RunIntake(
            context, self.stamps, tagger, counts, queue, self.return_paths, self.intake,
            resolving.table, caches, problems, correcting, self.type_nodes,
        )  # fmt: skip
        recall_coverings(graph, self.history, resolving.equal)
        nodes.recall_retired(self.history.gone, memory.serial - self.limits.kept)
        held = frozenset(self.history.stands_for(memory.held))  # revisions replace nodes
        cursors = Cursors(memory.cursors, self.limits.names, held, memory.term)
        self.naming = Naming(
            context, self.charges, cursors, nodes, counts, queue, self.wants, interests
        )
        self.type_nodes.load(for_types, cursors.holds)
        self.holding = Holding(parts, nodes, self.set_aside, cursors)
        self.offers = Offers(context, self.charges, self.rights, graph, self.wants)
        self._first: NodeCache[Label] = caches.add(NodeCache())
        self._beaten = float("-inf")
        self._checked = float("-inf")

    @property
    def publishers(self) -> dict[str, int]:
        """The last stamp of each publisher."""
        return self.stamps.known

    @property
    def unsynced_bytes(self) -> int:
        return self.queue.unsynced_bytes

    @property
    def failed(self) -> bool:
        """Whether the caller must start a new state machine."""
        return bool(self.queue.failed)

    # -- messages and time ---------------------------------------------------------------------

    def receive(self, sender: Name, message: m.Message, now: float) -> list[Sent]:
        """Handle a message from a neighbour; return the messages to send now."""
        self.context.now = now
        if isinstance(message, m.Publish):
            self.hear(sender)
            if self.set_aside.aside:
                self.set_aside.retire(RETIRED[0])
            if message.fast:
                self._pass_on_fast(message)
            else:
                self.intake.publish(sender, message)
            return self.drain_outgoing()
        if isinstance(message, Run):
            self.hear(sender)
            if self.set_aside.aside:
                self.set_aside.retire(RETIRED[0])
            self.runs.take(sender, message)
            return self.drain_outgoing()
        if isinstance(message, m.HandOver | Piece):
            self.hear(sender)
            if self.set_aside.aside:
                self.set_aside.retire(RETIRED[0])
            if isinstance(message, Piece):
                self.take_over.take_piece(sender, message)
            else:
                self.take_over.take(sender, message)
            return self.drain_outgoing()
        self.counts.catch_up()
        if isinstance(message, m.Ask):
            self.hear(sender)
            message = self.with_owner(sender, message)
            if self.charges.may_ask(sender, message.owner):
                self.placing.answer(sender, message)
        elif isinstance(message, m.Count):
            self.hear(sender)
            if self.charges.may_ask(sender) and self.rights.admit(sender, (message.node,)):
                self._count(sender, message)
        elif isinstance(message, m.Apply):
            self.hear(sender)
            if message.epoch != self.epoch:
                self.tell_epoch(sender)
            elif self.charges.may_ask(sender, message.owner):
                self.offers.answer(sender, message, self.count_others)
        elif isinstance(message, m.Resume | m.Confirm):
            self.hear(sender)
            if self.charges.may_ask(sender):
                self._answer_named(sender, message)
        elif isinstance(message, m.Describe | m.Follow):
            self.hear(sender)
            self.following.answer(sender, message)
        elif isinstance(message, m.Register):
            self.hear(sender)
            self.following.register(message)
        elif isinstance(message, m.Fault):
            self.hear(sender)  # broker/root_node.py handles a Fault: it switches the predicate off
        elif isinstance(message, m.Suggest):
            self.hear(sender)
            if self.charges.may_ask(sender):
                self.placing.take_suggestion(sender, message)
        elif isinstance(message, m.Seek):
            self.hear(sender)
            self.following.seek(sender, message)
        else:
            self.receive_from_below(sender, message)
        return self.drain_outgoing()

    @property
    def written(self) -> int:
        """How many writes were passed to the journal so far; see `mark_stored`."""
        return self.queue.written

    def mark_stored(self, count: int, now: float) -> list[Sent]:
        """Record that the first `count` writes are on the disk; return the messages to send now."""
        self.context.now = now
        for what in self.queue.take_stored(count):
            if isinstance(what, Record | Block):
                try:
                    self._announce(what)
                except Exception:
                    self.problems.report("send a notification")
            else:
                self.send(*what)
        self.counts.limit_uncounted()
        self.intake.send_acknowledgments()
        return self.drain_outgoing()

    def fail(self, reason: str) -> list[Sent]:
        """Stop, because nothing can be written any more. Give the reason to the clients that wait
        for the disk; from now on, refuse every request that needs a write. The caller starts a new
        state machine from the disk."""
        for what in self.queue.fail(reason):
            if not isinstance(what, Block):
                self.intake.take_back(what, reason)
            elif what.progress is None:
                for record in what.records():
                    self.intake.take_back(record, reason)
        self.counts.take_back()
        return self.drain_outgoing()

    def tick(self, now: float) -> list[Sent]:
        """Do the work that is due. Call this at least every `beat` seconds."""
        self.context.now = now
        self.counts.catch_up()
        self.set_aside.retire(RETIRED[1])
        self.set_aside.settle_doubts()
        self.claims.pass_time(now, self.placing.last_node, self.times.expire)
        if now - self._checked >= self.times.retry:
            if self._checked < 0:
                self.nodes.find_unwanted(self.naming.cursors.holds)
            self._checked = now
            with self.problems.survive("drop silent neighbours"):
                self.expire()
            if not self.failed:
                self.nodes.retire_unwanted()
                self.nodes.forget_retired(max(self.serial_done(), self.serial - self.limits.kept))
                self._forget_publishers()
            with self.problems.survive("prune the journal"):
                self.journal.prune(max(self.serial_done(), self.serial - self.limits.kept))
        if now - self._beaten >= self.times.beat:
            self._beaten = now
            self.beats.send_all(self.counts.take_changed())
        return self.drain_outgoing()

    def _forget_publishers(self) -> None:
        """Forget the stamps of the publishers that have been silent longest. A publisher that was
        forgotten says on its return which of its publications are acknowledged."""
        many = len(self.publishers) - self.limits.publishers
        if many > 0:
            self.journal.forget_publishers(self.stamps.forget(many))
            self.beyond["publishers"] += many

    # -- notifications -------------------------------------------------------------------------

    def split(self, message: m.HandOver) -> Sequence[Piece | m.HandOver]:
        """Split a part into pieces that take a millisecond or two each."""
        return self.take_over.split(message)

    def next_stop(self, count: int) -> int:
        """The number of writes, at most `count`, to pass to `mark_stored` next."""
        return self.queue.next_stop(count)

    def _announce(self, record: Record | Block) -> None:
        """Acknowledge, count and send notifications that are on the disk."""
        if isinstance(record, Block):
            if record.progress is None:
                self.intake.acknowledge_block(record)
            self.counts.store_block(record)
            self.release_block(record)
            return
        self.intake.acknowledge(record)
        nodes = self.counts.store(record)
        if nodes:
            self.release(record, nodes)

    def release(self, record: Record, nodes: Label) -> None:
        """Send a notification, with the initial labels of its marks."""
        labels = [self.first_label(node) for node in nodes]
        marks = [
            m.Mark(mark.node, mark.number, label)
            for mark, label in zip(record.marks, labels, strict=True)
        ]
        notification = record.notification(self.epoch, tuple(marks))
        if record.serial:
            self.cache.put(notification)
        self.forward(notification)

    def _pass_on_fast(self, message: m.Publish) -> None:
        """Send a publication to the linked subscribers, without numbers and without the journal. If
        the publication can't be tagged, it is only counted, because its publisher expects no
        answer."""
        try:
            lowest, body = self.tagger.tag_body(message)
        except Undecided:
            raise
        except TidingsError:
            self.beyond["fast publications"] += 1
        except Exception:
            self.problems.report("match the notification")
        else:
            if lowest:
                marks = tuple(m.Mark(node, 0, (node,)) for node in lowest)
                self.release(Record(0, message.publisher, 0, marks, (), body), lowest)

    def release_block(self, block: Block) -> None:
        """Send the notifications of a block."""
        for record in block.records():
            if record.marks:
                self.release(record, columns(record.marks)[0])

    def first_label(self, node: int) -> Label:
        """The label of a node's marks when they leave the root."""
        found = self._first.get(node)
        if found is None:
            found = self._first[node] = ways.first_label(self.graph, node, self.forwarding)
        return found

    # -- questions -----------------------------------------------------------------------------

    def with_owner(self, sender: Name, message: m.Ask) -> m.Ask:
        message = super().with_owner(sender, message)
        return message if message.owner else msgspec.structs.replace(message, owner=str(sender))

    def _count(self, sender: Name, message: m.Count) -> None:
        """Answer with the counts of a node and of the nodes below it."""
        node = message.node
        if message.epoch != self.epoch:
            self.tell_epoch(sender)
        elif node not in self.graph:
            self.send(sender, m.Refuse(self.epoch, (node,)))
        else:
            under = self.nodes.under(node)
            self.charges.charge(sender, len(under))
            counts = self.nodes.counts_of(node, under, message.since)
            self.send(sender, m.Counted(self.epoch, message.request, node, self.serial,
                                        self.total(node), counts))  # fmt: skip

    def _answer_named(self, sender: Name, message: m.Resume | m.Confirm) -> None:
        """Answer a client's message about its named subscription."""
        if message.epoch != self.epoch:
            self.tell_epoch(sender)
        elif isinstance(message, m.Resume) and not self.rights.admit(sender, (message.node,)):
            return
        elif isinstance(message, m.Resume) and message.node not in self.graph:
            self.send(sender, m.Refuse(self.epoch, (message.node,)))
        else:
            self.naming.answer(sender, self.with_name_owner(sender, message), self.serial)

    def serial_done(self) -> int:
        return min(super().serial_done(), self.naming.cursors.find_confirmed(self.serial))

    def ask_above(self, message: m.Message) -> None:
        """Answer a question from the journal, because the cache could not answer it."""
        if not isinstance(message, m.Recover):
            return
        try:
            ranges = self.nodes.existing(message.ranges)
            found, lost = self.journal.find(ranges, self.limits.answer_bytes)
        except TidingsError:
            return  # no answer: the neighbour will ask again
        request = self.questions.open[message.request]
        self.charges.charge(request.neighbour, count_entries(found))
        for notification in found:
            self.cache.put(notification)
        self.recovery.send(request.neighbour, request.number, found)
        self.pass_down(m.Settled(self.epoch, message.request, tuple(lost)))

    def split_ranges(self, ranges: list[m.Range]) -> tuple[list[m.Range], list[m.Range]]:
        exist, is_known = self.nodes.existing(ranges), self.nodes.is_known
        here = [one for one in exist if is_known(one.node)]
        return here, [one for one in exist if not is_known(one.node)]

    def split_limited(
        self, sender: Name, ranges: list[m.Range], within: m.Within
    ) -> tuple[list[m.Range], list[m.Range]]:
        return self.split_ranges(self.territory.select(ranges, within))

    # -- wanted nodes --------------------------------------------------------------------------

    def admit(self, name: Name, nodes: Iterable[int]) -> list[int]:
        """The nodes that a neighbour may want. If some do not exist, one message refuses all of
        these."""
        asked = list(nodes)
        graph, aside = self.graph, self.set_aside.aside
        unknown = tuple(node for node in asked if node not in graph or node in aside)
        if unknown:
            self.beyond["no such node"] += len(unknown)
            self.send(name, m.Refuse(self.epoch, unknown))
            asked = [node for node in asked if node in graph and node not in aside]
        return super().admit(name, asked)

    def want(self, node: int) -> None:
        self.nodes.want(node)
        if node not in self.graph:
            self.subscriptions.refuse_all(node)

    def stop_wanting(self, node: int) -> None:
        if node in self.graph and not self.naming.cursors.holds(node):
            self.nodes.stop_wanting(node)
            self.claims.make_room(node)

    def count_behind(self, name: Name, node: int) -> int:
        """How many owners asked for the node through this neighbour: more than 1 only if the
        neighbour is a router. At most 8 owners of a node are remembered, and an owner that has left
        may still be counted (ownership/claims.py). The subscriptions of one owner to the same node
        count as one."""
        owners = self.claims.owners(node)
        return max(1, sum(is_owner_behind(name, one) for one in owners))

    def count_subscriptions(self, node: int) -> int:
        """How many subscriptions a node has, with those of the related nodes above it; 0 if all
        have ended. A named subscription counts even if its subscriber is away. After a restart, a
        node counts as one subscription until it is retired, because its subscribers may come
        back."""
        related = self.nodes.related_above(node)
        own = self._count_subscriptions(node, is_base=bool(related))
        return own + sum(self._count_subscriptions(one) for one in related)

    def _count_subscriptions(self, node: int, *, is_base: bool = False) -> int:
        """The count of one node; with `is_base`, the node may exist only for its related nodes."""
        if node not in self.graph:
            return 0
        wanted = sum(self.count_behind(name, node) for name in self.wants.get(node, ()))
        found = max(wanted, self.naming.cursors.count(node))
        if found or is_base:
            return found
        return int(node not in self.nodes.unwanted and node not in self.nodes.kept)

    def select_visible(self, sender: Name, nodes: Iterable[int]) -> Iterable[int]:
        """A neighbour whose link bypasses the tree asked another router for its nodes, so none were
        granted to it here; this method decides whether the neighbour may see its nodes."""
        nodes = list(nodes)
        if self.offers.is_direct(sender) and (within := self.context.within_of(sender)):
            for node in nodes:
                if node in self.graph and self.interests.lies_within(node, within):
                    self.rights.grant(sender, node, within)
        return super().select_visible(sender, nodes)

    def unsubscribe(self, sender: Name, node: int) -> None:
        super().unsubscribe(sender, node)
        self.set_aside.leave(sender, node)

    def take_owner(self, router: Name, owner: str, nodes: Iterable[int]) -> None:
        self.set_aside.take_owner(router, owner, nodes)
